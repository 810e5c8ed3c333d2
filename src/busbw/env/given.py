"""What every reader of values is given."""

from dataclasses import dataclass

from busbw.env.versions import default_in, reaches
from busbw.model.envvar import EnvVar


@dataclass(frozen=True, slots=True)
class Given:
    """A text for a variable, and the version of the variable's owner; None: the newest that is known."""

    var: EnvVar
    text: str
    version: tuple[int, ...] | None = None

    @property
    def default(self) -> str:
        """The default of that version, in words where it is not known."""
        default = self.var.default if self.version is None else default_in(self.var, self.version)
        return default if default is not None else "the default"

    @property
    def shown(self) -> str:
        """The text, quoted, as far as a sentence has room for it."""
        return repr(self.text[:40])

    def from_version(self, *since: int) -> bool:
        """Return whether the version is `since` or later."""
        return reaches(self.version, since)
