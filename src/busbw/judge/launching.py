"""What part of a small message over NCCL is the host starting it, and what another start may make of it."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from busbw.base.text import counted, listed, percent
from busbw.base.units import format_time
from busbw.facts.rules import finding
from busbw.measure.backends.measurements import empty_s
from busbw.model.finding import Finding
from busbw.model.plan import SMALL_NCCL_BYTES, Plan
from busbw.model.record import Hello
from busbw.model.run import EmptyLaunch, LaunchShare, Measurement, label

# Below this share of a message nobody has to think of launches.
SHARE_NOTED = 0.1
# A host that needs this share of the time to issue the calls decides it: the rest is the last call on the GPU.
_DECIDES = 0.85
# Launches that differ by more between two batches, or two GPUs, are told apart.
_DIFFERENT = 0.3


def launch_share(measurement: Measurement) -> float:
    """Return what share of a small message one empty launch is; 0 where that is not known, or calls are not launched.

    In graph mode one launch starts all calls of a sample.
    """
    own_s, share = empty_s(measurement.launch), measurement.launch
    if own_s is None or share is None or measurement.mode == "graph" or measurement.size_bytes >= SMALL_NCCL_BYTES:
        return 0.0
    if measurement.median_s <= 0 or measurement.wrong is not None:
        return 0.0
    # A call that returns to the host sooner than a launch holds none.
    return min(own_s, share.issue_s) / measurement.median_s


def launch_findings(plan: Plan, measurements: tuple[Measurement, ...]) -> tuple[Finding, ...]:
    """Return a note where launches are a part of small messages, told by the one that they are most of."""
    points = [point for point in measurements if launch_share(point) >= SHARE_NOTED]
    if not points:
        return ()
    first = min(points, key=lambda point: (point.size_bytes, point.point))
    return (
        finding(
            "RUN026",
            points=counted(len(points), "point"),
            evidence=f"{share_words(first)}; {_host_words(first)}{_starts_words(first)}",
            fix=_fix(plan, first),
            point=first.point if len(points) == 1 else None,
        ),
    )


def share_words(measurement: Measurement) -> str:
    """Return `all_reduce 1 KiB: 10.4 us, of which 4.1 us launch on the host`, with what differs within the start."""
    every = _launches(measurement.launch)
    own_s = empty_s(measurement.launch) or 0.0
    before, after = (_mean_s(launches) for launches in _sides(measurement.launch))
    by_rank = {rank: _mean_s([one for one in every if one.rank == rank]) for rank in {one.rank for one in every}}
    slowest, fastest = max(by_rank, key=lambda rank: by_rank[rank]), min(by_rank, key=lambda rank: by_rank[rank])
    apart = []
    if max(before, after) > (1 + _DIFFERENT) * min(before, after):
        apart.append(f"{format_time(before)} before it, {format_time(after)} after it")
    if by_rank[slowest] > (1 + _DIFFERENT) * by_rank[fastest]:
        apart.append(f"rank {slowest} {format_time(by_rank[slowest])}, rank {fastest} {format_time(by_rank[fastest])}")
    words = f"{label(measurement)}: {format_time(measurement.median_s)}, of which {format_time(own_s)}"
    return f"{words} launch on the host{' (' + '; '.join(apart) + ')' if apart else ''}"


def _launches(share: LaunchShare | None) -> tuple[EmptyLaunch, ...]:
    return (*share.before, *share.after) if share is not None else ()


def _sides(share: LaunchShare | None) -> tuple[tuple[EmptyLaunch, ...], tuple[EmptyLaunch, ...]]:
    return (share.before, share.after) if share is not None else ((), ())


def _mean_s(launches: tuple[EmptyLaunch, ...] | list[EmptyLaunch]) -> float:
    return sum(one.host_s for one in launches) / max(len(launches), 1)


def _host_words(measurement: Measurement) -> str:
    """Say whether the host or the GPUs decide the time, by how long the host takes to issue a call."""
    issue_s = measurement.launch.issue_s if measurement.launch is not None else 0.0
    share = issue_s / measurement.median_s
    if share >= _DECIDES:
        return f"the host decides its time: it takes {format_time(issue_s)} to issue a call, NCCL's own work included"
    return f"the host issues a call in {format_time(issue_s)}, {percent(share)} of it"


def _starts_words(measurement: Measurement) -> str:
    """Say what other starts took; of one start, that it is one draw."""
    if not measurement.starts:
        return ". One start is one draw: the next one may take another time, as its launches do"
    times_s = [start.median_s for start in measurement.starts]
    words = (
        f". The median of {counted(len(times_s), 'start')}, {format_time(min(times_s))} to {format_time(max(times_s))}"
    )
    launches_s = [start.empty_s for start in measurement.starts if start.empty_s is not None]
    return (
        words + f"; launches {format_time(min(launches_s))} to {format_time(max(launches_s))}" if launches_s else words
    )


def _fix(plan: Plan, measurement: Measurement) -> str:
    """Return the command for the network's own time; where there was one start, also that for several."""
    size = str(measurement.size_bytes)
    setup, library = plan.gpu_setup, plan.gpus
    argv = ["busbw", "run", measurement.collective, "--backend", "nccl"]
    argv += (
        ["--ranks", str(plan.placement.ranks)] if plan.reach is None else ["--hosts", ",".join(plan.placement.hosts)]
    )
    argv += ["-b", size, "-e", size, *([] if plan.mpi is not None else ["--launcher", plan.launcher])]
    if setup is not None:
        argv += ["-g", str(setup.per_process)] if setup.per_process > 1 else []
        argv += ["--no-multicast"] if setup.multicast_off else []
    argv += ["--nccl", library.nccl.path] if library is not None and library.nccl.origin == "named" else []
    graph = f"the network's own time, without launches: {shlex.join([*argv, '--mode', 'graph'])}"
    if measurement.starts:
        return graph
    return f"{graph}; over several starts: {shlex.join([*argv, '--launches', '6'])}"


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
