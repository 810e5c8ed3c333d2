"""Settings that hold together, as NCCL reads each."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from busbw.env.values import read_value
from busbw.env.values_c import leading_integer
from busbw.env.versions import reaches
from busbw.facts.envvars import variables
from busbw.model.envvar import Interaction


@dataclass(frozen=True, slots=True)
class Together:
    """What is set, for which NCCL, for how many nodes; None: the newest that is known, not known."""

    values: Mapping[str, str]
    version: tuple[int, ...] | None
    nodes: int | None

    def has(self, name: str) -> bool:
        """Return whether a variable is set, to whatever."""
        return name in self.values

    def text(self, name: str) -> str | None:
        """Return the text of a variable; None: it is not set."""
        return self.values.get(name)

    def taken(self, name: str) -> str | None:
        """Return what NCCL takes a variable for; None: it is not set, or NCCL does not get that far."""
        text = self.values.get(name)
        return None if text is None else read_value(variables()[name], text, self.version).value

    def number(self, name: str) -> int | None:
        """Return the number that NCCL takes a variable for; None: it is not set, or is none."""
        taken = self.taken(name)
        number = None if taken is None else leading_integer(taken)
        return None if number is None or number.rest else number.value

    def is_on(self, name: str) -> bool:
        """Return whether a variable is set to a number other than 0."""
        return self.number(name) not in (None, 0)

    def is_off(self, name: str) -> bool:
        """Return whether a variable is set to 0."""
        return self.number(name) == 0

    def written(self, name: str) -> str:
        """Return `NAME="value"` as it is set."""
        return f'{name}="{self.values[name][:40]}"'

    def from_version(self, *since: int) -> bool:
        """Return whether the version is `since` or later."""
        return reaches(self.version, since)


Rule = Callable[[Together], Iterator[Interaction]]
