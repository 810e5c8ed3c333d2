"""What busbw says when it cannot go on: cause, place, hint, exit code."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process returns to its caller."""

    OK = 0
    FINDINGS = 1
    BAD_INPUT = 2
    RUN_FAILED = 3
    CANNOT_TELL = 4


class BusbwError(Exception):
    """An error for a person: the exact cause, where it is, and something to paste that helps."""

    exit_code = ExitCode.RUN_FAILED

    def __init__(self, cause: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"error: {self.cause}"]
        if self.where is not None:
            lines.append(f"  --> {self.where}")
        if self.hint is not None:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class InputError(BusbwError):
    """Arguments, files or an environment that busbw cannot work with."""

    exit_code = ExitCode.BAD_INPUT


class RunError(BusbwError):
    """A launch or a measurement that did not get to its end."""

    exit_code = ExitCode.RUN_FAILED
