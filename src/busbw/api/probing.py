"""The host we are on, or a captured one: as it was captured, and as it reads."""

from pathlib import Path

from busbw.model.hardware import Hardware
from busbw.model.probe import Probe
from busbw.model.snapshot import Snapshot
from busbw.probe.capture.anonymous import anonymous
from busbw.probe.capture.snapshot import capture, capture_anonymously, capture_hardware
from busbw.probe.read.hardware import hardware_of
from busbw.probe.read.host import host_of
from busbw.store.snapshots import read_snapshot, write_snapshot


def snapshot_here() -> Snapshot:
    """Return this host as it is now. It takes some seconds, at most two minutes."""
    return capture()


def anonymous_snapshot_here() -> Snapshot:
    """Return this host without names, serial numbers and addresses."""
    return capture_anonymously()


def snapshot_of_file(path: Path) -> Snapshot:
    """Return a captured host. Raises InputError for a file that is no snapshot."""
    return read_snapshot(path)


def anonymous_snapshot_of_file(path: Path) -> Snapshot:
    """Return a captured host without names, serial numbers and addresses. Raises as `snapshot_of_file`."""
    return anonymous(read_snapshot(path))


def hardware_here() -> Hardware:
    """Return what this host says of itself."""
    return hardware_of(capture_hardware())


def hardware_of_file(path: Path) -> Hardware:
    """Return what a captured host said of itself. Raises InputError for a file that is no snapshot."""
    return hardware_of(read_snapshot(path))


def host_of_snapshot(snapshot: Snapshot) -> Probe:
    """Return what a captured host says: hardware, libraries, settings, and what is unusual."""
    return host_of(snapshot)


def keep_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot. Raises InputError or RunError when it cannot be written."""
    write_snapshot(path, snapshot)
