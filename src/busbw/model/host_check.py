"""What `busbw doctor --here` says of a host: one entry a check, with what it found."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding

# skipped: there is nothing here that it is about.
CheckOutcome = Literal["ok", "found", "cannot_tell", "skipped"]


class HostCheck(Value, kw_only=True, frozen=True):
    """One thing that was looked at."""

    name: str
    outcome: CheckOutcome
    # What is fine, why it cannot be told, or why it does not matter here; None where findings say it.
    because: str | None = None
    # The command that shows it.
    look: str
    findings: tuple[Finding, ...] = ()


class HostDiagnosis(Value, kw_only=True, frozen=True):
    """All checks of one host, in their order."""

    hostname: str
    captured: str
    root: bool
    container: str | None
    # Its id; None: unknown.
    platform: str | None
    checks: tuple[HostCheck, ...]
    errors: Integer
    warnings: Integer
    notes: Integer
