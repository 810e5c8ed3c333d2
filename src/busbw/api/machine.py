"""The host we are on, or a captured one: what it is, which platform, and what it could reach at best."""

from pathlib import Path

from msgspec import structs

from busbw.base.errors import InputError
from busbw.facts.platforms import all_platforms
from busbw.limits.ceiling import ceiling
from busbw.limits.rates import rates_of_platform
from busbw.machine.capture.metadata import answers
from busbw.machine.capture.sites import site_files
from busbw.machine.capture.snapshot import capture_hardware
from busbw.machine.detect.ladder import detect
from busbw.machine.named import captured_rates, hardware_of_file, node_view, platform
from busbw.machine.read.hardware import hardware_of
from busbw.model.host import Answer, Detection, Hardware, Snapshot
from busbw.model.limit import Limit, NodeRates
from busbw.store.snapshots import read_snapshot
from busbw.topo.origins.from_platform import map_gap


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

    Raises InputError for a file that is not a snapshot, and for a site's platform file that cannot be used.
    """
    snapshot = read_snapshot(path)
    return _detect(snapshot, snapshot.answers)


def detect_captured_without_answers(path: Path) -> Detection:
    """Return which platform a captured host is, from firmware and hardware alone. Raises as `detect_captured`."""
    return _detect(read_snapshot(path), ())


def _detect(snapshot: Snapshot, asked: tuple[Answer, ...]) -> Detection:
    return detect(hardware_of(snapshot), asked, all_platforms(site_files()))


def limit_of_platform(
    name: str, *, nodes: int = 1, gpus: int | None = None, collective: str | None = None, algorithm: str | None = None
) -> Limit:
    """Return the ceilings of bus bandwidth on `nodes` nodes of a platform, by any of its names.

    `gpus`: of each node, all by default. Without a collective those with a bound, without an algorithm those that
    libraries choose. Raises InputError for names, nodes and GPUs that there are not.
    """
    found = platform(name).platform
    rates = rates_of_platform(found, gpus=gpus, name=name)
    limit = ceiling(rates, nodes=nodes, collective=collective, algorithm=algorithm)
    return limit if map_gap(found) is not None else _with_plans(limit, name)


def limit_of_host(
    path: Path, *, nodes: int = 1, gpus: int | None = None, collective: str | None = None, algorithm: str | None = None
) -> Limit:
    """Return the same on nodes such as a captured host: of its links those that are up, of its ports those that are.

    Raises InputError for a file that is not a snapshot, and for more GPUs than the host shows.
    """
    rates = rates_of_host(path, hardware_of_file(path), gpus)
    return _with_plans(ceiling(rates, nodes=nodes, collective=collective, algorithm=algorithm), str(path))


def rates_of_host(path: Path, hardware: Hardware, gpus: int | None) -> NodeRates:
    """Return the line rates of a captured host. Raises InputError for more GPUs than it shows."""
    has = len(hardware.gpus)
    if gpus is not None and not 1 <= gpus <= has:
        raise InputError(f"{gpus} of the GPUs of {hardware.hostname}", where=str(path), hint=f"it shows {has}")
    return captured_rates(hardware, gpus=gpus)


def _with_plans(limit: Limit, source: str) -> Limit:
    """Return a limit with what NCCL plans within one whole node, as `topo show` says it of the same machine."""
    if limit.nodes > 1:
        return limit
    view = node_view(source)
    if not view.plans or limit.gpus != len(view.gpus):
        return limit
    return structs.replace(limit, plans=view.plans, planned_by=view.release)
