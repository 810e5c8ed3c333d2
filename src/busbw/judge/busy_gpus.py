"""GPUs that run other work beside a run: empty kernels wait there for their turn, launched as fast as elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from busbw.base.units import format_time
from busbw.facts.findings import finding
from busbw.judge.phrases import counted, listed
from busbw.model.finding import Finding
from busbw.model.measurement import EmptyLaunch, Measurement
from busbw.model.record import Hello

# An idle GPU is done a few microseconds after the last launch of a batch; one that is shared, after a time slice.
LEAST_WAIT_S = 200e-6
# And so many times what the idle GPUs of the run take.
_TIMES_OTHERS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class BusyGpu:
    """The GPU of a rank that lets kernels wait. Seconds, medians over the times that launches were taken."""

    rank: int
    wait_s: float
    # Of the idle GPUs; None: there is none.
    others_s: float | None


def busy_gpus(launches: tuple[EmptyLaunch, ...], measurements: tuple[Measurement, ...]) -> tuple[BusyGpu, ...]:
    """Return the GPUs that were busy with other work at least half of the times that launches were taken.

    `launches`: as the run began; beside small messages they were taken again.
    """
    waits_s: dict[int, list[float]] = {}
    for one in _taken(launches, measurements):
        if one.wait_s is not None:
            waits_s.setdefault(one.rank, []).append(one.wait_s)
    usual_s = {rank: _upper_median(waits) for rank, waits in waits_s.items()}
    idle_s = [wait_s for wait_s in usual_s.values() if wait_s <= LEAST_WAIT_S]
    others_s = _upper_median(idle_s) if idle_s else None
    return tuple(
        BusyGpu(rank=rank, wait_s=wait_s, others_s=others_s)
        for rank, wait_s in sorted(usual_s.items())
        if wait_s > max(LEAST_WAIT_S, _TIMES_OTHERS * (others_s or 0.0))
    )


def busy_findings(busy: tuple[BusyGpu, ...], hellos: tuple[Hello, ...]) -> tuple[Finding, ...]:
    """Return the warning that names the GPUs that run other work; none without."""
    if not busy:
        return ()
    waits = [f"rank {one.rank}: {format_time(one.wait_s)}" for one in busy]
    others_s = busy[0].others_s
    beside = f", {format_time(others_s)} on the idle GPUs" if others_s is not None else ", on every GPU of the run"
    return (
        finding(
            "RUN027",
            gpus=_names(busy, hellos),
            evidence=f"empty kernels are done that long after they were launched: {listed(waits)}{beside}",
            fix="find its process with `nvidia-smi`, and measure again when it has ended",
        ),
    )


def busy_words(busy: tuple[BusyGpu, ...], hellos: tuple[Hello, ...]) -> tuple[str, ...]:
    """Return why speed cannot be judged beside other work; () where there is none."""
    return (f"{_names(busy, hellos)} other work beside this run",) if busy else ()


def _names(busy: tuple[BusyGpu, ...], hellos: tuple[Hello, ...]) -> str:
    """Return `GPU 1 on node7 (rank 1) runs`."""
    if len(busy) == len(hellos) > 1:
        return f"all {counted(len(busy), 'GPU')} run"
    by_rank = {hello.rank: hello for hello in hellos}
    names = []
    for one in busy:
        hello = by_rank.get(one.rank)
        gpu = f"GPU {hello.gpu.ordinal} on {hello.host} " if hello is not None and hello.gpu is not None else "the GPU "
        names.append(f"{gpu}(rank {one.rank})" if hello is not None else f"the GPU of rank {one.rank}")
    return f"{listed(names)} {'runs' if len(busy) == 1 else 'run'}"


def _taken(launches: tuple[EmptyLaunch, ...], measurements: tuple[Measurement, ...]) -> Iterator[EmptyLaunch]:
    yield from launches
    for measurement in measurements:
        if measurement.launch is not None:
            yield from measurement.launch.before
            yield from measurement.launch.after


def _upper_median(values: Sequence[float]) -> float:
    """Return what at least half of the values reach."""
    return sorted(values)[len(values) // 2]
