"""`busbw doctor --here`: the checks that a node allows without a job, on this host or a captured one."""

from collections import Counter
from pathlib import Path

from busbw.facts.platforms import all_platforms, find_platform
from busbw.machine.capture.sites import site_files
from busbw.machine.detect.differences import contradictions
from busbw.machine.detect.hardware import fit
from busbw.machine.detect.ladder import detect
from busbw.machine.health.examination import examine
from busbw.machine.health.node import node_of
from busbw.machine.named import host_of_snapshot, snapshot_here, snapshot_of_file
from busbw.machine.read.state import state_of
from busbw.model.detection import Contradiction
from busbw.model.host import Hardware
from busbw.model.host_check import HostDiagnosis
from busbw.model.platform import Platform
from busbw.model.snapshot import Answer, Snapshot


def examine_here(*, platform: str | None = None) -> HostDiagnosis:
    """Return what is wrong with this host, without running anything on its GPUs or NICs. It takes some seconds.

    `platform` is what the host should be; None: it is detected. Raises InputError for one that does not exist.
    """
    return _examined(snapshot_here(), platform)


def examine_captured(path: Path, *, platform: str | None = None) -> HostDiagnosis:
    """Return what was wrong with a captured host. Raises InputError for a file that is no snapshot too."""
    return _examined(snapshot_of_file(path), platform)


def _examined(snapshot: Snapshot, named: str | None) -> HostDiagnosis:
    probe = host_of_snapshot(snapshot)
    platform, differences = _platform(probe.hardware, snapshot.answers, named)
    checks = examine(node_of(probe, state_of(snapshot, probe.settings), platform, differences))
    counts = Counter(found.severity for check in checks for found in check.findings)
    return HostDiagnosis(
        hostname=probe.hardware.hostname,
        captured=snapshot.captured,
        root=snapshot.root,
        container=probe.hardware.container,
        platform=platform.id if platform is not None else None,
        checks=checks,
        errors=counts["error"],
        warnings=counts["warn"],
        notes=counts["note"],
    )


def _platform(
    hardware: Hardware, answers: tuple[Answer, ...], named: str | None
) -> tuple[Platform | None, tuple[Contradiction, ...]]:
    """Return the platform that is named, else the one that is detected, and where the host is not like it."""
    sites = site_files()
    if named is not None:
        fitting = fit(find_platform(named, sites).platform, hardware)
        return fitting.platform, contradictions(fitting.platform, fitting.comparisons, hardware)
    detection = detect(hardware, answers, all_platforms(sites))
    if detection.platform is None:
        return None, ()
    return find_platform(detection.platform, sites).platform, detection.contradictions
