"""What a launch has to say to a comparison: a time for each point."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeGuard

import msgspec

from busbw.base.value import Value
from busbw.model.comparison import RankPlacement
from busbw.model.imported import Reading, Table
from busbw.model.plan import Plan
from busbw.model.record import NcclChoice
from busbw.model.run import Measurement, Run


class PointKey(Value, kw_only=True, frozen=True):
    """What two launches must have in common for their times to be of the same thing."""

    collective: str
    size_bytes: int
    dtype: str
    op: str
    root: int
    in_place: bool
    pair: tuple[int, int] | None = None
    group: int | None = None


class TimedPoint(Value, kw_only=True, frozen=True):
    """The time of one point in one launch, and the interval of it within the launch; seconds and bytes per second."""

    key: PointKey
    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    # None: not known.
    busbw_Bps: float | None
    ranks: int
    wrong: bool
    # What NCCL says it used; () where it does not say.
    choices: tuple[NcclChoice, ...] = ()


class Launch(Value, kw_only=True, frozen=True):
    """One start of one side. Launches of the same block were started one after the other."""

    # Place in the sides of the comparison.
    side: int
    block: int
    name: str
    points: tuple[TimedPoint, ...]
    # How it ended, where that was not as it should.
    ended: Literal["complete", "time", "stopped", "failed"] = "complete"
    cause: str | None = None


def measured_points(measurements: Iterable[Measurement]) -> tuple[TimedPoint, ...]:
    """Return the points of a run; those without a time are left out."""
    return tuple(
        TimedPoint(
            key=PointKey(
                collective=each.collective,
                size_bytes=each.size_bytes,
                dtype=each.dtype,
                op=each.op,
                root=each.root,
                in_place=each.in_place,
                pair=each.pair,
                group=each.group,
            ),
            time_s=each.median_s,
            low_s=each.low_s,
            high_s=each.high_s,
            busbw_Bps=each.busbw_Bps,
            ranks=each.ranks,
            wrong=each.wrong is not None,
            choices=each.nccl.choices if each.nccl is not None else (),
        )
        for each in measurements
        if _is_time(each.median_s) or each.wrong is not None
    )


def over_most_ranks(readings: Sequence[Reading]) -> tuple[tuple[Reading, ...], int | None]:
    """Return each exchange's rows over its most ranks, and the most of all; all rows, and None, where none has several.

    IMB measures over 2, 4, 8 ... ranks by default: those are no launches of the same.
    """
    ranks: dict[PointKey, int | None] = {}
    sized = [(each, each.size_bytes) for each in readings if each.size_bytes is not None]
    if all(ranks.setdefault(_key(each, size_bytes), each.ranks) == each.ranks for each, size_bytes in sized):
        return tuple(readings), None
    most: dict[str, int] = {}
    for each in readings:
        most[each.what] = max(most.get(each.what, 0), each.ranks or 0)
    return tuple(each for each in readings if (each.ranks or 0) == most[each.what]), max(most.values())


def imported_points(readings: Iterable[Reading]) -> tuple[TimedPoint, ...]:
    """Return the points of a table, those that it repeats with the median of their times.

    Rows without a size, or with neither a time nor a bandwidth between two, are left out; so are those of one pair of
    many, which are a matrix.
    """
    rows: dict[PointKey, list[TimedPoint]] = {}
    for each in readings:
        if each.size_bytes is None or each.source is not None:
            continue
        rate_Bps = each.busbw_Bps if each.busbw_Bps is not None else each.bandwidth_Bps
        known_Bps = rate_Bps if _is_time(rate_Bps) else None
        # Of a bandwidth test: what a message takes at it.
        time_s = each.time_s if each.time_s is not None or known_Bps is None else each.size_bytes / known_Bps
        if not _is_time(time_s):
            continue
        key = _key(each, each.size_bytes)
        rows.setdefault(key, []).append(
            TimedPoint(key=key, time_s=time_s, busbw_Bps=known_Bps, ranks=each.ranks or 0, wrong=bool(each.wrong))
        )
    return tuple(_middle(row) for row in rows.values())


def _key(reading: Reading, size_bytes: int) -> PointKey:
    return PointKey(
        collective=reading.what,
        size_bytes=size_bytes,
        dtype=reading.dtype or "",
        op=reading.op or "",
        root=reading.root if reading.root is not None else -1,
        in_place=bool(reading.in_place),
    )


def _is_time(value: float | None) -> TypeGuard[float]:
    """Whether a value is a time or rate that a machine can have."""
    return value is not None and math.isfinite(value) and value > 0


def _middle(row: list[TimedPoint]) -> TimedPoint:
    """Return one point for several of the same: the lower one of the two in the middle, wrong if any is."""
    ordered = sorted(row, key=lambda point: point.time_s)
    return msgspec.structs.replace(ordered[(len(ordered) - 1) // 2], wrong=any(point.wrong for point in row))


def rank_placements_of(run: Run) -> tuple[RankPlacement, ...]:
    """Return where the ranks of a run were placed, as far as they tell; programs of the user do not."""
    return tuple(
        RankPlacement(
            rank=each.rank,
            host=each.host,
            cpus=each.cpus,
            numa=each.numa,
            gpu_numa=each.gpu.numa if each.gpu is not None else None,
        )
        for each in run.ranks
    )


# From here on nccl-tests warms up with one call instead of five, and opens sendrecv to two peers at most (with NCCL
# 2.30 and later). Source: nccl-tests' history, src/common.cu and src/sendrecv.cu.
_ONE_WARMUP_CALL = (2, 16, 8)
_FEWER_PEERS = (2, 18, 3)
_PEERS_SINCE_NCCL = (2, 30)
_LONGEST = 80

# Words of a circumstance, by the rule that speaks of it.
Circumstances = Mapping[str, str]


def of_plan(plan: Plan) -> Circumstances:
    """Return how a run is going to be measured, by rule: what is known before it is started."""
    tool = plan.programs[0].tool if plan.programs else "busbw"
    verification = f"verification {'on' if plan.sampling.verify else 'off'}"
    found = {
        "CMP001": plan.sampling.mode,
        "CMP002": f"{plan.placement.ranks} ranks",
        "CMP003": f"{tool}, median of {'samples' if tool == 'busbw' else 'what it prints'}",
        # OSU checks between the calls that it times; the others before or after them.
        "CMP004" if tool == "osu" else "CMP016": verification,
    }
    return {code: words for code, words in found.items() if words}


def of_run(run: Run) -> Circumstances:
    """Return how a run was measured, by rule; what is not known is left out."""
    plan = run.plan
    gpu = run.ranks[0].gpu if run.ranks else None
    program = plan.programs[0] if plan.programs else None
    tool, version = (program.tool, program.version) if program is not None else ("busbw", None)
    calls = f", {plan.sampling.calls} calls a sample" if plan.sampling.calls else ""
    crowded = ", more ranks than cores" if plan.placement.oversubscribed else ""
    found = {
        "CMP006": _warmup(tool, version, plan.sampling.warmup_calls) + calls,
        "CMP007": f"NCCL {gpu.nccl}" if gpu is not None else "",
        "CMP008": _buffers(plan),
        "CMP009": _peers(plan, tool, version, gpu.nccl if gpu is not None else None),
        "CMP010": _mpi(run),
        "CMP011": ", ".join(plan.placement.hosts),
        "CMP012": f"binding {plan.placement.binding}{crowded}",
        "CMP013": _settings(plan.surroundings.environment) if plan.surroundings is not None else "",
        "CMP018": f"busbw {plan.busbw_version}",
    }
    return {**of_plan(plan), **{code: words for code, words in found.items() if words}}


def of_table(table: Table) -> Circumstances:
    """Return how an imported table was measured, by rule, as far as the tool tells."""
    parameters = dict(table.parameters)
    versions = {name.lower(): version for name, version in table.versions}
    nccl = versions.get("nccl")
    ranks = table.ranks or table.ranks_from_rates
    hosts = sorted({device.host for device in table.devices if device.host})
    timing = [
        f"{name} {parameters[name]}" for name in ("graph", "agg iters", "blocking", "average") if name in parameters
    ]
    found = {
        "CMP001": ", ".join(timing),
        "CMP002": f"{ranks} ranks" if ranks else "",
        "CMP003": f"{table.tool}, {table.statistic}",
        "CMP004": f"validation {parameters.get('validation', '')}" if table.tool == "osu" else "",
        "CMP006": _warmup(table.tool, table.tool_version, None)
        + (f", {parameters['iters']} calls" if "iters" in parameters else ""),
        "CMP007": f"NCCL {nccl}" if nccl else "",
        "CMP008": f"registered {parameters['local_register']}" if "local_register" in parameters else "",
        "CMP011": ", ".join(hosts),
        "CMP013": _settings(dict(table.environment)) if table.environment else "",
        "CMP016": f"validation {parameters['validation']}" if "validation" in parameters else "",
    }
    return {code: words for code, words in found.items() if words}


def _warmup(tool: str, version: str | None, asked: int | None) -> str:
    if asked is not None:
        return f"{asked} warm-up calls at least"
    known = _version(version)
    if tool != "nccl-tests" or known is None:
        return "warm-up as usual"
    return "nccl-tests with 1 warm-up call" if known >= _ONE_WARMUP_CALL else "nccl-tests with 5 warm-up calls"


def _mpi(run: Run) -> str:
    """Return the MPI that the ranks loaded, by its own word; "" where they measured NCCL."""
    if not run.ranks or run.plan.gpu_setup is not None:
        return ""
    return run.ranks[0].mpi_version.partition(",")[0].strip("\0\n ")[:_LONGEST]


def _peers(plan: Plan, tool: str, version: str | None, nccl: str | None) -> str:
    if all(sweep.collective != "sendrecv" for sweep in plan.sweeps) or nccl is None:
        return ""
    tests, library = _version(version), _version(nccl)
    few = tool == "nccl-tests" and (tests or ()) >= _FEWER_PEERS and (library or ()) >= _PEERS_SINCE_NCCL
    return "sendrecv tuned for 2 peers" if few else "sendrecv not tuned for its peers"


def _buffers(plan: Plan) -> str:
    setup = plan.gpu_setup
    if setup is None:
        return ""
    memory = "ncclMemAlloc" if setup.nccl_memory else "cuMemAlloc"
    config = "".join(f", {name}={value}" for name, value in setup.config)
    return f"{setup.buffers} buffers of {memory}, {setup.cache} cache{config}"


def _settings(environment: Mapping[str, str]) -> str:
    # Numbers of jobs and places in a file system are no settings.
    kept = {name: value for name, value in environment.items() if not name.startswith("SLURM_")}
    return "\n".join(f'{name} = "{value}"' for name, value in sorted(kept.items())) or "no settings"


def _version(text: str | None) -> tuple[int, ...] | None:
    """Return the numbers of a version such as 2.28.9; None for a text without any."""
    return tuple(int(part) for part in re.findall(r"\d{1,6}", text or "")[:3]) or None
