"""What `busbw probe` says of a host: its hardware, the software that jobs would load, and what to look at."""

from busbw.base.value import Value
from busbw.model.host import Hardware
from busbw.model.snapshot import FoundLibrary


class FoundSetting(Value, kw_only=True, frozen=True):
    """One setting that a job started here would have."""

    name: str
    value: str
    # The file it stands in; None: the environment.
    path: str | None = None


class Probe(Value, kw_only=True, frozen=True):
    """One host, read."""

    captured: str
    # Whether it was captured as root, and whether names and addresses were replaced.
    root: bool
    anonymous: bool
    hardware: Hardware
    libraries: tuple[FoundLibrary, ...] = ()
    settings: tuple[FoundSetting, ...] = ()
    # What is unusual here, in words, each with what it does.
    remarks: tuple[str, ...] = ()
