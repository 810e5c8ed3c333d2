"""Which platform a host is: this one, or a captured one."""

from pathlib import Path

from busbw.facts.platforms import all_platforms
from busbw.machine.capture.metadata import answers
from busbw.machine.capture.sites import site_files
from busbw.machine.capture.snapshot import capture_hardware
from busbw.machine.detect.ladder import detect
from busbw.machine.read.hardware import hardware_of
from busbw.model.detection import Detection
from busbw.model.snapshot import Answer, Snapshot
from busbw.store.snapshots import read_snapshot


def detect_here() -> Detection:
    """Return which platform this host is; the cloud's metadata service is asked, for at most a second.

    Raises InputError for a site's platform file that cannot be used.
    """
    snapshot = capture_hardware()
    return _detect(snapshot, answers(hardware_of(snapshot).dmi))


def detect_here_without_asking() -> Detection:
    """Return which platform this host is, from firmware and hardware alone. Raises InputError as `detect_here`."""
    return _detect(capture_hardware(), ())


def detect_captured(path: Path) -> Detection:
    """Return which platform a captured host is, by what its metadata service said when it was captured.

    Raises InputError for a file that is no snapshot, and for a site's platform file that cannot be used.
    """
    snapshot = read_snapshot(path)
    return _detect(snapshot, snapshot.answers)


def detect_captured_without_answers(path: Path) -> Detection:
    """Return which platform a captured host is, from firmware and hardware alone. Raises as `detect_captured`."""
    return _detect(read_snapshot(path), ())


def _detect(snapshot: Snapshot, asked: tuple[Answer, ...]) -> Detection:
    return detect(hardware_of(snapshot), asked, all_platforms(site_files()))
