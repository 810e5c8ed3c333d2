"""The series of an import: tables of nccl-tests and its kin, row by row."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from busbw.base.collectives import COLLECTIVES
from busbw.judge.explaining.logged import Logged
from busbw.judge.explaining.series import Sample, Series, rates_of
from busbw.judge.explaining.told import Told, detour_of, told_by_settings
from busbw.model.imported import Imported, Reading, Table

# Tools whose size, time and ranks are counted as busbw counts them.
_NCCL = frozenset({"nccl-tests", "rccl-tests"})
_MPI = frozenset({"osu", "imb"})
# OSU counts the size of a message between two ranks so too; its collectives count otherwise.
_PAIRS = frozenset({"latency", "bandwidth", "bibw"})
_NO_RANKS = "how many ranks took part is not known: say --nodes and --gpus-per-node"


def series_of_import(
    imported: Imported,
    readings: Iterable[Reading],
    told: Told,
    *,
    node_gpus: int | None = None,
    logged: Logged,
) -> tuple[tuple[Series, ...], tuple[str, ...]]:
    """Return the series of an import's tables, and what was left out and why.

    `readings` in the order of their tables. `node_gpus`: GPUs of one node of the machine, by which nodes are counted
    where nothing else tells them. `logged`: what NCCL's log beside the tables says; what a reader says goes before it.
    """
    told = logged.told.then(told)
    series: list[Series] = []
    left: list[str] = []
    for number, rows in groupby(readings, key=lambda reading: reading.table):
        table = imported.tables[number]
        found, why = _of_table(imported, table, tuple(rows), told, node_gpus)
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
    imported: Imported, table: Table, rows: tuple[Reading, ...], told: Told, node_gpus: int | None
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
        ranks = table.ranks_from_rates or same[0].ranks or table.ranks or _ranks(what, told, imported, table, node_gpus)
        if ranks is None or ranks < 2:
            why.append(_NO_RANKS if ranks is None else "one rank alone sends nothing")
            continue
        samples = tuple(sorted(_samples(same, what, ranks), key=lambda sample: sample.size_bytes))
        if not samples:
            why.append(f"no row of {what} has a size and a time")
            continue
        found.append(_series(imported, table, same[0], ranks, samples, told, node_gpus))
    return found, list(dict.fromkeys(why))


def _ranks(what: str, told: Told, imported: Imported, table: Table, node_gpus: int | None) -> int | None:
    """Return how many ranks there are, by what is said, or as in the other tables of the file if they agree.

    Of a machine that is known all GPUs of its nodes take part, unless something else is said.
    """
    if what in _PAIRS:
        return 2
    each = told.gpus_per_node or node_gpus
    if told.nodes and each:
        return told.nodes * each
    others = {
        other.ranks_from_rates
        for other in imported.tables
        if (other.source, other.tool, other.parameters) == (table.source, table.tool, table.parameters)
    }
    return others.pop() if len(others := others - {None}) == 1 else None


def _series(
    imported: Imported,
    table: Table,
    row: Reading,
    ranks: int,
    samples: tuple[Sample, ...],
    told: Told,
    node_gpus: int | None,
) -> Series:
    said = told_by_settings(table.environment).then(told)
    nodes = said.nodes or _nodes(table, ranks) or _nodes_by_size(ranks, said.gpus_per_node or node_gpus)
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


def _samples(rows: tuple[Reading, ...], what: str, ranks: int) -> Iterator[Sample]:
    for row in rows:
        time_s = row.time_s or _time_of_rate(row, what, ranks)
        if not row.size_bytes or not time_s or time_s <= 0:
            continue
        busbw_Bps, algbw_Bps = rates_of(what, ranks, row.size_bytes, time_s)
        yield Sample(
            size_bytes=row.size_bytes,
            time_s=time_s,
            busbw_Bps=busbw_Bps,
            algbw_Bps=algbw_Bps,
            line=row.line,
            is_wrong=bool(row.wrong),
            spoiled="the result is wrong" if row.wrong else None,
        )


def _time_of_rate(row: Reading, what: str, ranks: int) -> float | None:
    """Return the time of a message where a tool prints only how many bytes a second pass between two ranks."""
    rate_Bps = row.busbw_Bps or row.bandwidth_Bps
    if what not in _PAIRS or not rate_Bps or row.size_bytes is None:
        return None
    return COLLECTIVES[what].factor(ranks) * row.size_bytes / rate_Bps
