"""What `busbw env lint` says of settings."""

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding


class SettingsLine(Value, kw_only=True, frozen=True):
    """A line that a finding is about, cut where it is very long."""

    file: str
    number: Integer
    text: str


class SettingsCheck(Value, kw_only=True, frozen=True):
    """The findings on the settings of a text, a host or a run, in their order."""

    # What was read, the strongest first: names of files, `environment`.
    files: tuple[str, ...]
    # How each was read: shell, nccl.conf, kubernetes...
    languages: tuple[str, ...]
    # What they were held against; None: nobody said.
    platform: str | None = None
    # The version of NCCL that was meant, and whether somebody asked for it.
    nccl: str
    nccl_asked: bool = False
    settings: Integer = 0
    findings: tuple[Finding, ...] = ()
    errors: Integer = 0
    warnings: Integer = 0
    notes: Integer = 0
    lines: tuple[SettingsLine, ...] = ()
    # What may make more of the text, such as naming the platform.
    hints: tuple[str, ...] = ()


class SettingsFix(Value, kw_only=True, frozen=True):
    """What to change in a file."""

    file: str
    # A unified diff, empty where nothing can be corrected with certainty.
    diff: str
    # Findings before, and what is left of them.
    findings: Integer
    left: Integer
