"""The series of a run and of tables of nccl-tests and its kin, with what NCCL's own log beside them says."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from busbw.base.collectives import COLLECTIVES
from busbw.base.units import format_size
from busbw.judge.explaining.series import (
    Detour,
    Series,
    SizeSample,
    StatedFacts,
    algorithm_name,
    detour_of,
    rates_of,
    stated_by_settings,
)
from busbw.judge.usable import has_interval, is_disturbed
from busbw.model.finding import Diagnosis
from busbw.model.imported import Imported, Reading, Table
from busbw.model.plan import Plan
from busbw.model.record import NcclChoice
from busbw.model.run import Measurement, Run

_FEWEST_SAMPLES = 6
# Calls among two ranks have no algorithm to choose.
_MESSAGES = frozenset({"Send", "Recv", "SendRecv"})
# A kernel of symmetric memory has a name of its own, and no bound but that of the links.
SYMMETRIC = "symmetric"


def series_of_run(run: Run, stated: StatedFacts) -> tuple[Series, ...]:
    """Return the sweeps of a run whose ranks all took part; pairs of ranks are looked at elsewhere."""
    stated = stated_by_settings(settings_of(run)).then(stated)
    measured = [item for item in run.measurements if item.pair is None and item.median_s > 0 and item.ranks > 1]
    kinds = groupby(measured, key=_kind)
    return tuple(_series(run, stated, tuple(items)) for _, items in kinds)


def settings_of(run: Run) -> tuple[tuple[str, str], ...]:
    """Return what the first rank found set, multicast off included; else what the run was started with."""
    for hello in run.ranks:
        if hello.gpu is not None:
            return hello.gpu.environment
    return started_with(run.plan)


def started_with(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return the settings that a plan starts its ranks with: of its asker, as recommended, and its own."""
    found = dict(plan.surroundings.environment) if plan.surroundings is not None else {}
    found |= plan.recommended.env() if plan.recommended is not None else {}
    found |= dict(plan.job.env)
    return tuple((name, value) for name, value in found.items() if name not in plan.job.unset)


def _kind(item: Measurement) -> tuple[str, str, str, int, bool, int | None, str | None]:
    return item.collective, item.dtype, item.op, item.root, item.in_place, item.group, item.within


def _series(run: Run, stated: StatedFacts, items: tuple[Measurement, ...]) -> Series:
    first, plan = items[0], run.plan
    within = plan.sweeps[first.point].within if first.within is not None else None
    own = [view for view in first.per_rank if within is None or within.seat(view.rank)[0] == within.seat(0)[0]]
    hosts = {view.host for view in own} or set(plan.placement.hosts)
    nodes = stated.nodes or len(hosts)
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
        nvls=False if multicast else stated.nvls,
        sharp=stated.sharp,
        algorithms=stated.algorithms,
        network=stated.network,
        detour=detour_of(stated, nodes),
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


def _samples(items: tuple[Measurement, ...]) -> Iterator[SizeSample]:
    for item in items:
        busbw_Bps, algbw_Bps = rates_of(item.collective, item.ranks, item.size_bytes, item.median_s)
        if item.size_bytes == 0:
            continue
        choices = item.nccl.choices if item.nccl is not None else ()
        algorithm, protocol = _chosen(choices)
        channels = {choice.channels for choice in choices}
        known = has_interval(item)
        yield SizeSample(
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
        return "the result was not checked"
    if item.samples < _FEWEST_SAMPLES:
        return f"{item.samples} samples only"
    if is_disturbed(item):
        return f"other processes ran on the cores of the ranks at {format_size(item.size_bytes)}"
    return None


_COLLECTIVES = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Logged:
    """What the log of one job says; nothing, where there is none."""

    stated: StatedFacts = field(default_factory=StatedFacts)
    # Algorithm, in busbw's spelling, and protocol, by collective and size; sizes with several choices are left out.
    choices: Mapping[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    # What ranks were connected over where links or the fabric could have been.
    detour: Detour | None = None


def logged_of(diagnosis: Diagnosis) -> Logged:
    """Return what decides about expectations in the log of a job."""
    settings = [(fact.name, fact.values[0].value) for fact in diagnosis.environment if len(fact.values) == 1]
    return Logged(
        stated=stated_by_settings(settings).then(StatedFacts(nodes=diagnosis.nodes)),
        choices=_choices(diagnosis),
        detour=_detour(diagnosis),
    )


def _detour(diagnosis: Diagnosis) -> Detour | None:
    ways = [kind.via for kind in diagnosis.traffic]
    if any(via.startswith("NET/Socket") for via in ways):
        return "sockets"
    return "shm" if any(via.startswith("SHM") for via in ways) else None


def _choices(diagnosis: Diagnosis) -> dict[tuple[str, int], tuple[str, str]]:
    found: dict[tuple[str, int], set[tuple[str, str]]] = {}
    for choice in diagnosis.choices:
        name, algorithm = _COLLECTIVES.get(choice.collective), algorithm_name(choice.algorithm)
        if name is not None and algorithm is not None:
            found.setdefault((name, choice.size_bytes), set()).add((algorithm, choice.protocol))
    return {key: same.pop() for key, same in found.items() if len(same) == 1}


# Tools whose size, time and ranks are counted as busbw counts them.
_NCCL = frozenset({"nccl-tests", "rccl-tests"})
_MPI = frozenset({"osu", "imb"})
# OSU counts the size of a message between two ranks so too; its collectives count otherwise.
_PAIR = frozenset({"latency", "bandwidth", "bibw"})
# Of several pairs OSU prints what all of them together send.
_PAIRS = _PAIR | {"message_rate"}
_NO_RANKS = "how many ranks took part is not known: say --nodes and --gpus-per-node"


def series_of_import(
    imported: Imported,
    readings: Iterable[Reading],
    stated: StatedFacts,
    *,
    node_gpus: int | None = None,
    logged: Logged,
) -> tuple[tuple[Series, ...], tuple[str, ...]]:
    """Return the series of an import's tables, and what was left out and why.

    `readings` in the order of their tables. `node_gpus`: GPUs of one node of the machine, by which nodes are counted
    where nothing else tells them. `logged`: what NCCL's log beside the tables says; what a reader says goes before it.
    """
    stated = logged.stated.then(stated)
    series: list[Series] = []
    left: list[str] = []
    for number, rows in groupby(readings, key=lambda reading: reading.table):
        table = imported.tables[number]
        found, why = _of_table(imported, table, tuple(rows), stated, node_gpus)
        series += [_with_log(each, logged) for each in found]
        left += [f"{_named(imported, table)}: {reason}" for reason in why]
    return tuple(series), tuple(left)


def _with_log(series: Series, log: Logged) -> Series:
    """Return a series with what NCCL's log says it chose, and which network it used."""
    chosen = [
        (sample, log.choices.get((series.collective, sample.size_bytes), (None, None))) for sample in series.samples
    ]
    samples = tuple(replace(sample, algorithm=algorithm, protocol=protocol) for sample, (algorithm, protocol) in chosen)
    return replace(series, samples=samples, detour=log.detour or series.detour)


def _named(imported: Imported, table: Table) -> str:
    name = imported.sources[table.source].name.rpartition("/")[2]
    return f"{table.program or table.tool} ({name}:{table.first_line})"


def _of_table(
    imported: Imported, table: Table, rows: tuple[Reading, ...], stated: StatedFacts, node_gpus: int | None
) -> tuple[list[Series], list[str]]:
    if table.tool not in _NCCL | _MPI:
        return [], [f"tables of {table.tool} are not judged by size"]
    found, why = [], []
    ordered = sorted(rows, key=lambda row: (row.what, row.dtype or "", row.op or "", bool(row.in_place)))
    for _, group in groupby(ordered, key=lambda row: (row.what, row.dtype, row.op, row.in_place)):
        same = tuple(group)
        what = same[0].what
        if what not in COLLECTIVES or (table.tool in _MPI and what not in _PAIRS):
            why.append(f"{what} is counted otherwise by {table.tool}, or unknown")
            continue
        # What the rates say goes before what was declared: programs that were not joined declare too many.
        ranks = (
            table.ranks_from_rates or same[0].ranks or table.ranks or _ranks(what, stated, imported, table, node_gpus)
        )
        if ranks is None and what in _PAIRS:
            why.append("how many pairs took part is not known: the line `[ pairs: N ]` is missing")
            continue
        if ranks is None or ranks < 2:
            why.append(_NO_RANKS if ranks is None else "one rank alone sends nothing")
            continue
        samples = tuple(sorted(_from_tables_samples(same, what, ranks), key=lambda sample: sample.size_bytes))
        if not samples:
            why.append(f"no row of {what} has a size and a time")
            continue
        found.append(_from_tables_series(imported, table, same[0], ranks, samples, stated, node_gpus))
    return found, list(dict.fromkeys(why))


def _ranks(what: str, stated: StatedFacts, imported: Imported, table: Table, node_gpus: int | None) -> int | None:
    """Return how many ranks there are, by what is said, or as in the other tables of the file if they agree.

    Of a machine that is known all GPUs of its nodes take part, unless something else is said.
    """
    if what in _PAIRS:
        return 2 if what in _PAIR else None
    each = stated.gpus_per_node or node_gpus
    if stated.nodes and each:
        return stated.nodes * each
    others = {
        other.ranks_from_rates
        for other in imported.tables
        if (other.source, other.tool, other.parameters) == (table.source, table.tool, table.parameters)
    }
    return others.pop() if len(others := others - {None}) == 1 else None


def _from_tables_series(
    imported: Imported,
    table: Table,
    row: Reading,
    ranks: int,
    samples: tuple[SizeSample, ...],
    stated: StatedFacts,
    node_gpus: int | None,
) -> Series:
    said = stated_by_settings(table.environment).then(stated)
    nodes = (
        said.nodes
        or _stated_nodes(table)
        or _nodes(table, ranks)
        or _nodes_by_size(ranks, said.gpus_per_node or node_gpus)
    )
    models = {device.model for device in table.devices if device.model}
    each = said.gpus_per_node or (ranks // nodes if nodes and ranks % nodes == 0 else None)
    placement = "" if row.in_place is None else ", in place" if row.in_place else ", out of place"
    kind = " ".join(part for part in (row.what, row.dtype) if part)
    return Series(
        title=f"{kind}{placement}, {_named(imported, table)}",
        collective=row.what,
        dtype=row.dtype,
        op=row.op,
        in_place=row.in_place,
        ranks=ranks,
        nodes=nodes,
        gpus_per_node=each if table.tool in _NCCL else None,
        gpu_name=models.pop() if len(models) == 1 else None,
        library="nccl" if table.tool in _NCCL else "mpi",
        statistic=table.statistic,
        nvls=said.nvls,
        sharp=said.sharp,
        algorithms=said.algorithms,
        network=said.network,
        detour=detour_of(said, nodes),
        nccl=dict(table.versions).get("NCCL"),
        table=table.number,
        samples=samples,
    )


def _stated_nodes(table: Table) -> int | None:
    """Return the nodes that whoever imported the table stated, where it does not name its hosts itself."""
    stated = dict(table.stated).get("nodes")
    return int(stated) if stated is not None else None


def _nodes(table: Table, ranks: int) -> int | None:
    """Return the hosts that the devices name, where every rank is among them."""
    hosts = {device.host for device in table.devices}
    if None in hosts or len(table.devices) < ranks:
        return None
    return len(hosts) or None


def _nodes_by_size(ranks: int, node_gpus: int | None) -> int | None:
    if not node_gpus:
        return None
    return 1 if ranks <= node_gpus else ranks // node_gpus if ranks % node_gpus == 0 else None


def _from_tables_samples(rows: tuple[Reading, ...], what: str, ranks: int) -> Iterator[SizeSample]:
    for row in rows:
        time_s = row.time_s or _time_of_rate(row, what, ranks)
        if not row.size_bytes or not time_s or time_s <= 0:
            continue
        busbw_Bps, algbw_Bps = _rates(row, rates_of(what, ranks, row.size_bytes, time_s))
        yield SizeSample(
            size_bytes=row.size_bytes,
            time_s=time_s,
            busbw_Bps=busbw_Bps,
            algbw_Bps=algbw_Bps,
            line=row.line,
            is_wrong=bool(row.wrong),
            spoiled="the result is wrong" if row.wrong else None,
        )


# A rate with fewer digits than this says less than size and time: 0.02 GB/s.
_PRINTED_WELL_Bps = 1e9
_AGREE = 0.01


def _rates(row: Reading, computed: tuple[float, float]) -> tuple[float, float]:
    """Return bus and algorithm bandwidth as printed, where that has digits enough and is counted as here."""
    printed = (row.busbw_Bps, row.algbw_Bps)
    if None in printed or min(rate or 0.0 for rate in printed) < _PRINTED_WELL_Bps:
        return computed
    busbw_Bps, algbw_Bps = (
        own if own is not None and abs(own - other) <= _AGREE * other else other
        for own, other in zip(printed, computed, strict=True)
    )
    return busbw_Bps, algbw_Bps


def _time_of_rate(row: Reading, what: str, ranks: int) -> float | None:
    """Return the time of a message where a tool prints only how many bytes a second pass between two ranks."""
    if what not in _PAIRS or row.size_bytes is None:
        return None
    pairs = 1 if what in _PAIR else ranks // 2
    if row.messages_per_s and what not in _PAIR:
        # Printed with more digits than the bytes of small messages.
        return pairs / row.messages_per_s
    rate_Bps = row.busbw_Bps or row.bandwidth_Bps
    return COLLECTIVES[what].factor(ranks) * pairs * row.size_bytes / rate_Bps if rate_Bps else None
