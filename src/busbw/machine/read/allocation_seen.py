"""What is looked at to find out which hosts a job has."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from busbw.base.errors import InputError
from busbw.model.snapshot import Answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """The environment of a process, the files that it names, and what programs of the batch system say."""

    environment: Mapping[str, str]
    # By the variable that names it: its text, or in `unread` why there is none.
    files: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()
    # The time that it is.
    now_unix_s: float = 0.0

    def file(self, variable: str) -> str:
        """Return the text of the file that a variable names. Raises InputError where it cannot be read."""
        if variable not in self.files:
            raise InputError(
                f"{variable} names a file that cannot be read: {self.unread.get(variable, 'it is not there')}",
                where=self.environment.get(variable),
                hint=f"name the hosts: --hosts n[0-3]; or, outside of that job: unset {variable}",
            )
        return self.files[variable]

    def said(self, name: str) -> str | None:
        """Return what a program said, without white space around; None where it did not answer."""
        found = next((answer for answer in self.answers if answer.name == name), None)
        return found.output.strip() if found is not None and found.ended == "ok" else None
