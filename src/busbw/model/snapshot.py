"""What was captured of a host: files, links and what commands said, untouched, so that it can be read anywhere."""

from typing import Literal

import msgspec

from busbw.base.value import Integer, Value

SNAPSHOT_SCHEMA = 1


class Answer(Value, kw_only=True, frozen=True):
    """What one command said, or why it said nothing."""

    # busbw's name of it: `nvidia-smi-topo`; every name there is stands in busbw.machine.read.commands.
    name: str
    argv: tuple[str, ...]
    # absent: no such program; cut: its output was longer than is kept.
    ended: Literal["ok", "failed", "absent", "timeout", "cut"]
    exit_code: Integer | None = None
    output: str = ""
    error: str = ""


class CapturedFile(Value, kw_only=True, frozen=True):
    """One small file, as /sys/devices/system/node/node0/cpulist."""

    path: str
    # None: it is there and could not be read; `reason` says why.
    text: str | None
    reason: str | None = None


class CapturedLink(Value, kw_only=True, frozen=True):
    """One symbolic link of sysfs: the tree of PCI is in them."""

    path: str
    target: str


class FoundLibrary(Value, kw_only=True, frozen=True):
    """A library that jobs here would load."""

    # libnccl, libcuda, libmpi, libnccl-net...
    name: str
    path: str
    # As the library itself or its file name says; None: neither does.
    version: str | None
    # Where it was found: loader, LD_LIBRARY_PATH, wheel, PATH.
    found_by: str
    # Libraries that it needs, itself or through others, and that nothing on the loader's way provides; None: not told.
    unresolved: tuple[str, ...] | None = None


class Snapshot(Value, kw_only=True, frozen=True):
    """One host at one moment. Paths are those of the host."""

    schema: Integer = SNAPSHOT_SCHEMA
    busbw_version: str
    # ISO 8601 with offset.
    captured: str
    hostname: str
    # Whether it was captured as root, and whether names, serial numbers and addresses were replaced.
    root: bool
    anonymous: bool = False
    container: str | None = None
    files: tuple[CapturedFile, ...] = ()
    links: tuple[CapturedLink, ...] = ()
    answers: tuple[Answer, ...] = ()
    # Only names that begin with a prefix of the allow-list.
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    libraries: tuple[FoundLibrary, ...] = ()
