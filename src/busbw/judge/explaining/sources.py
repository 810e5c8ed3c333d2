"""The series of a run: its measurements, sweep by sweep."""

from collections.abc import Iterator
from itertools import groupby

from busbw.base.units import format_size
from busbw.judge.explaining.series import Sample, Series, rates_of
from busbw.judge.explaining.told import Told, algorithm_name, detour_of, told_by_settings
from busbw.judge.usable import has_interval, is_disturbed
from busbw.model.measurement import Measurement
from busbw.model.record import NcclChoice
from busbw.model.run import Run

_FEWEST_SAMPLES = 6
# Calls among two ranks have no algorithm to choose.
_MESSAGES = frozenset({"Send", "Recv", "SendRecv"})
# A kernel of symmetric memory has a name of its own, and no bound but that of the links.
SYMMETRIC = "symmetric"


def series_of_run(run: Run, told: Told) -> tuple[Series, ...]:
    """Return the sweeps of a run whose ranks all took part; pairs of ranks are looked at elsewhere."""
    told = told_by_settings(settings_of(run)).then(told)
    measured = [item for item in run.measurements if item.pair is None and item.median_s > 0 and item.ranks > 1]
    kinds = groupby(measured, key=_kind)
    return tuple(_series(run, told, tuple(items)) for _, items in kinds)


def settings_of(run: Run) -> tuple[tuple[str, str], ...]:
    """Return what the first rank found set, multicast off included."""
    for hello in run.ranks:
        if hello.gpu is not None:
            return hello.gpu.environment
    return tuple(run.plan.job.env)


def _kind(item: Measurement) -> tuple[str, str, str, int, bool, int | None]:
    return item.collective, item.dtype, item.op, item.root, item.in_place, item.group


def _series(run: Run, told: Told, items: tuple[Measurement, ...]) -> Series:
    first, plan = items[0], run.plan
    hosts = {view.host for view in first.per_rank} or set(plan.placement.hosts)
    nodes = told.nodes or len(hosts)
    multicast = plan.gpu_setup is not None and plan.gpu_setup.multicast_off
    placement = "in place" if first.in_place else "out of place"
    return Series(
        title=f"{first.collective} {first.dtype}, {placement}",
        collective=first.collective,
        dtype=first.dtype,
        op=first.op,
        in_place=first.in_place,
        ranks=first.ranks,
        nodes=nodes,
        gpus_per_node=_gpus_per_node(run, first.ranks, nodes),
        gpu_name=_gpu_name(run),
        library="nccl" if plan.gpu_setup is not None or plan.backend == "nccl-tests" else "mpi",
        statistic=f"median of {first.samples} samples, {first.mode} mode",
        nvls=False if multicast else told.nvls,
        sharp=told.sharp,
        algorithms=told.algorithms,
        network=told.network,
        detour=detour_of(told, nodes),
        nccl=_nccl_version(run),
        samples=tuple(sorted(_samples(items), key=lambda sample: sample.size_bytes)),
    )


def _gpus_per_node(run: Run, ranks: int, nodes: int) -> int | None:
    if run.plan.gpus is None:
        return None
    return ranks // nodes if nodes and ranks % nodes == 0 else None


def _gpu_name(run: Run) -> str | None:
    names = {hello.gpu.model for hello in run.ranks if hello.gpu is not None}
    if not names and run.plan.gpus is not None:
        names = {device.model for device in run.plan.gpus.devices}
    return names.pop() if len(names) == 1 else None


def _nccl_version(run: Run) -> str | None:
    said = {hello.gpu.nccl for hello in run.ranks if hello.gpu is not None}
    return said.pop() if len(said) == 1 else None


def _samples(items: tuple[Measurement, ...]) -> Iterator[Sample]:
    for item in items:
        busbw_Bps, algbw_Bps = rates_of(item.collective, item.ranks, item.size_bytes, item.median_s)
        if item.size_bytes == 0:
            continue
        choices = item.nccl.choices if item.nccl is not None else ()
        algorithm, protocol = _chosen(choices)
        channels = {choice.channels for choice in choices}
        known = has_interval(item)
        yield Sample(
            size_bytes=item.size_bytes,
            time_s=item.median_s,
            low_s=item.low_s if known else None,
            high_s=item.high_s if known else None,
            busbw_Bps=busbw_Bps,
            algbw_Bps=algbw_Bps,
            point=item.point,
            algorithm=algorithm,
            protocol=protocol,
            channels=channels.pop() if len(channels) == 1 else None,
            is_wrong=item.wrong is not None,
            spoiled=_spoiled(item),
        )


def _chosen(choices: tuple[NcclChoice, ...]) -> tuple[str | None, str | None]:
    """Return algorithm and protocol where all calls of the size used the same."""
    kinds = {(choice.function, choice.algorithm, choice.protocol) for choice in choices}
    if len(kinds) != 1:
        return None, None
    function, algorithm, protocol = kinds.pop()
    if function in _MESSAGES:
        return None, None
    if algorithm is None:
        return SYMMETRIC, None
    return algorithm_name(algorithm) or SYMMETRIC, protocol


def _spoiled(item: Measurement) -> str | None:
    if item.wrong is not None:
        return "the result is wrong"
    if not item.verified:
        return "nobody checked the result"
    if item.samples < _FEWEST_SAMPLES:
        return f"{item.samples} samples only"
    if is_disturbed(item):
        return f"other processes ran on the cores of the ranks at {format_size(item.size_bytes)}"
    return None
