"""Slow GPUs and pairs in words: which GPU of which host, and the NICs next to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from busbw.base.text import percent
from busbw.base.units import format_rate, format_size
from busbw.facts.rules import finding
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.model.finding import Finding
from busbw.model.imported import Imported, Reading
from busbw.model.record import Hello
from busbw.model.run import Run
from busbw.topo.origins.from_hardware import topology_of_hardware
from busbw.topo.paths.view import view_of

# Of the median of the others: below this an end is a laggard. Links of one kind differ by a few per cent.
SLOW_SHARE = 0.75
# An end is known by its pairs only if it has so many, and the others have too.
_FEWEST_OWN = 2
_FEWEST_OTHERS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """The rate between two ends, whichever way; `kind` tells pairs apart that must not be compared."""

    ends: tuple[str, str]
    rate_Bps: float
    kind: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Laggard:
    """An end whose every pair is slow, or a pair that is slow although both its ends are sound with others."""

    ends: tuple[str, ...]
    # In the median of its pairs, and in the median of the others of the same kind.
    rate_Bps: float
    others_Bps: float
    pairs: int
    kind: str = ""

    @property
    def share(self) -> float:
        """What it reaches of the others."""
        return self.rate_Bps / self.others_Bps


def laggards(pairs: Iterable[Pair]) -> tuple[Laggard, ...]:
    """Return the ends and pairs that are slow, the slowest first."""
    kinds: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.rate_Bps > 0:
            kinds.setdefault(pair.kind, []).append(pair)
    found = [each for same in kinds.values() for each in _of_kind(same)]
    return tuple(sorted(found, key=lambda each: each.share))


def _of_kind(pairs: Sequence[Pair]) -> list[Laggard]:
    ends = sorted({end for pair in pairs for end in pair.ends})
    slow = [each for end in ends if (each := _slow_end(end, pairs)) is not None]
    guilty = {end for each in slow for end in each.ends}
    rest = [pair for pair in pairs if guilty.isdisjoint(pair.ends)]
    return [*slow, *_slow_pairs(rest)]


def _slow_end(end: str, pairs: Sequence[Pair]) -> Laggard | None:
    own = [pair.rate_Bps for pair in pairs if end in pair.ends]
    others = [pair.rate_Bps for pair in pairs if end not in pair.ends]
    if len(own) < _FEWEST_OWN or len(others) < _FEWEST_OTHERS:
        return None
    level_Bps = median(others)
    if max(own) >= SLOW_SHARE * level_Bps:
        return None
    return Laggard(ends=(end,), rate_Bps=median(own), others_Bps=level_Bps, pairs=len(own), kind=pairs[0].kind)


def _slow_pairs(pairs: Sequence[Pair]) -> list[Laggard]:
    if len(pairs) <= _FEWEST_OTHERS:
        return []
    level_Bps = median(pair.rate_Bps for pair in pairs)
    return [
        Laggard(ends=pair.ends, rate_Bps=pair.rate_Bps, others_Bps=level_Bps, pairs=1, kind=pair.kind)
        for pair in pairs
        if pair.rate_Bps < SLOW_SHARE * level_Bps
    ]


# Kinds of pairs: on one host, and on two.
_TOGETHER, _APART = "one host", "two hosts"


def pair_findings_of_run(run: Run, known_machine: KnownMachine) -> tuple[Finding, ...]:
    """Return what `--pairs` shows: GPUs, or ranks, that are slow with every other one, and single slow pairs."""
    pairs = _largest_pairs(run)
    if pairs is None:
        return ()
    size_bytes, found = pairs
    nics = nics_of_gpus(known_machine)
    where = f"sendrecv {format_size(size_bytes)}, pair by pair"
    return tuple(_finding(each, _names(run, nics if each.kind == _APART else ()), where) for each in laggards(found))


def pair_findings_of_import(imported: Imported, readings: Iterable[Reading]) -> tuple[Finding, ...]:
    """Return what matrices of bandwidth between every two devices show."""
    tables: dict[tuple[int, str], list[Pair]] = {}
    for row in readings:
        if row.source is None or row.target is None or row.source == row.target or row.bandwidth_Bps is None:
            continue
        pair = Pair(ends=(row.source, row.target), rate_Bps=row.bandwidth_Bps)
        tables.setdefault((row.table, row.what), []).append(pair)
    return tuple(
        _finding(each, _devices(imported, number), f"{what}, every pair")
        for (number, what), pairs in tables.items()
        for each in laggards(pairs)
    )


def _devices(imported: Imported, number: int) -> dict[str, str]:
    """Return what the ranks of a table are called, where it lists them with their hosts."""
    devices = imported.tables[number].devices
    return {str(each.rank): f"rank {each.rank} on {each.host}" for each in devices if each.host is not None}


def _largest_pairs(run: Run) -> tuple[int, list[Pair]] | None:
    measured = [item for item in run.measurements if item.pair is not None and item.wrong is None and item.median_s > 0]
    if not measured:
        return None
    size_bytes = max(item.size_bytes for item in measured)
    hosts = {hello.rank: hello.host for hello in run.ranks}
    found = [
        Pair(
            ends=(str(item.pair[0]), str(item.pair[1])),
            rate_Bps=item.busbw_Bps,
            kind=_TOGETHER if hosts.get(item.pair[0]) == hosts.get(item.pair[1]) else _APART,
        )
        for item in measured
        if item.size_bytes == size_bytes and item.pair is not None
    ]
    return size_bytes, found


def _names(run: Run, nics: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return what each rank is called, with the NICs next to its GPU where they are given."""
    return {str(hello.rank): _rank_words(hello, nics) for hello in run.ranks}


def _rank_words(hello: Hello, nics: Sequence[Sequence[str]]) -> str:
    if hello.gpu is None:
        return f"rank {hello.rank} on {hello.host}"
    over = nics[hello.gpu.ordinal] if hello.gpu.ordinal < len(nics) else ()
    through = f" over NIC {', '.join(over)}" if over else ""
    return f"GPU {hello.gpu.ordinal} on {hello.host} (rank {hello.rank}){through}"


def nics_of_gpus(known_machine: KnownMachine) -> tuple[tuple[str, ...], ...]:
    """Return the names of the NICs nearest to each GPU, in the order of the GPUs; () where they are not known."""
    if known_machine.hardware is not None:
        return tuple(spot.ports for spot in view_of(topology_of_hardware(known_machine.hardware), ()).gpus)
    if known_machine.platform is not None:
        return tuple(place.nics for place in sorted(known_machine.platform.gpus, key=lambda place: place.gpu))
    return ()


def _finding(slow: Laggard, named: Mapping[str, str], where: str) -> Finding:
    names = [named.get(end, end) for end in slow.ends]
    who = names[0] if len(names) == 1 else f"the pair of {names[0]} and {names[1]}"
    with_whom = f"each of {slow.pairs} others" if len(names) == 1 else "one another"
    fix = (
        "look at its own links there: `busbw doctor --here`; then measure its pairs again with another cable or port"
        if len(names) == 1
        else "look at what lies between these two alone: the cable, the switch port, the path in the topology"
    )
    return finding(
        "PERF013",
        who=who,
        share=percent(slow.share),
        evidence=f"{where}: {format_rate(slow.rate_Bps)} with {with_whom}; the median of all other pairs is "
        f"{format_rate(slow.others_Bps)}",
        fix=fix,
        confidence="likely",
    )
