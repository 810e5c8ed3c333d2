"""What measurements are held against: a platform, a captured host, or what the name of a GPU says."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from msgspec import structs

from busbw.base.collectives import COLLECTIVES
from busbw.base.errors import InputError
from busbw.base.text import percent
from busbw.base.units import format_rate
from busbw.facts.platforms import GpuFacts, spellings
from busbw.facts.rules import finding
from busbw.judge.explaining.references import Reference, of_figure, of_sweep, references_of
from busbw.judge.explaining.series import Series
from busbw.limits.ceiling import ceiling
from busbw.limits.rates import compute_ports, rates_of_gpus, rates_of_hardware, rates_of_platform
from busbw.model.finding import Finding
from busbw.model.host import Hardware
from busbw.model.limit import Bound, NodeRates
from busbw.model.platform import Platform, Published, Threshold

# A threshold below this part of what sound machines reach misses a lost link.
_LENIENT = 0.85
# More than what was published by this much is out of reach, not noise.
_BEYOND = 1.02
_NODES = re.compile(r"(\d{1,6}) nodes?(?: or more)?\b")
_COPIES = ("H2D", "HtoD")
_SEVERAL_SIZES = re.compile(r"\d+[A-Z]?B?-\d+")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Figure:
    """One figure in the units of a bound."""

    name: str
    value_Bps: float
    words: str
    source: tuple[str, ...]


def platform_findings(platform: Platform) -> tuple[Finding, ...]:
    """Return what is wrong with the thresholds that are in use for a platform, each by name."""
    try:
        rates = rates_of_platform(platform)
    except InputError:
        return ()
    return tuple(each for threshold in platform.thresholds for each in _of_threshold(threshold, platform, rates))


def doubt_of(published: Published, platform: Platform) -> str | None:
    """Return in words what is wrong with one published figure; None: nothing that is known."""
    if published.metric == "avg busbw" and published.size_bytes is None:
        return "an average over several sizes, which holds for no single one"
    if published.unit != "GB/s" or published.test not in COLLECTIVES or published.network == "loopback":
        return None
    try:
        each = published.gpus // published.nodes if published.gpus and published.nodes else None
        highest = _highest(rates_of_platform(platform, gpus=each), published.nodes or 2, published.test)
    except InputError:
        return None
    if highest is None or highest.busbw_Bps is None or published.value * 1e9 <= highest.busbw_Bps:
        return None
    return f"impossible: {format_rate(highest.busbw_Bps)} is the most that {highest.algorithm} can carry"


def _of_threshold(threshold: Threshold, platform: Platform, rates: NodeRates) -> Iterator[Finding]:
    unit = {"GB/s": 1e9, "Gb/s": 1e9 / 8}.get(threshold.unit)
    if unit is None or threshold.passes not in (">=", "expect"):
        return
    asked = _Figure(
        name=f"{threshold.check} ({threshold.test}{f', {threshold.scope}' if threshold.scope else ''})",
        value_Bps=threshold.value * unit,
        words=f"{threshold.value:g} {threshold.unit}{_in_bytes(threshold.value * unit, threshold.unit)}",
        source=threshold.source,
    )
    collective = re.split(r"[ ,]", threshold.test)[0]
    if collective in COLLECTIVES:
        yield from _of_collective(threshold, asked, collective, platform, rates)
    elif any(word in threshold.test for word in _COPIES):
        yield from _against_part(asked, rates.slot.rate_Bps if rates.slot else None, "a GPU's slot", lenient=False)
    elif threshold.test.startswith(("ib_write_bw", "EFA loopback")) and threshold.scope != "node":
        yield from _against_part(asked, rates.nic.rate_Bps if rates.nic else None, "one port", lenient=True)


def _in_bytes(value_Bps: float, unit: str) -> str:
    return "" if unit == "GB/s" else f" ({format_rate(value_Bps)})"


def _against_part(asked: _Figure, rate_Bps: float | None, part: str, *, lenient: bool) -> Iterator[Finding]:
    if rate_Bps is None:
        return
    if asked.value_Bps > rate_Bps:
        yield _impossible(asked, f"{part} carries {format_rate(rate_Bps)} at most")
    elif lenient and asked.value_Bps < _LENIENT * rate_Bps:
        yield _lenient(asked, rate_Bps, f"{part} carries {format_rate(rate_Bps)}")


def _of_collective(
    threshold: Threshold, asked: _Figure, collective: str, platform: Platform, rates: NodeRates
) -> Iterator[Finding]:
    if "average" in threshold.test and _SEVERAL_SIZES.match(threshold.size or ""):
        yield finding(
            "PUB003",
            check=asked.name,
            evidence=f"{asked.words} over {threshold.size}; {_sources(asked)}",
            fix="measure the same sizes and compare their averages, or judge sizes one by one as busbw judge does",
        )
    nodes = _nodes(threshold)
    if nodes is None or "loopback" in threshold.test or " over " in threshold.test:
        return
    highest = _highest(rates, nodes, collective)
    if highest is None or highest.busbw_Bps is None:
        return
    where = f"{nodes} node{'s' if nodes > 1 else ''}"
    if asked.value_Bps > highest.busbw_Bps:
        yield _impossible(
            asked,
            f"on {where} {highest.algorithm} carries {format_rate(highest.busbw_Bps)} at most, and no other algorithm "
            f"more: {highest.why}",
        )
        return
    best = _best_published(platform, collective, nodes)
    seen_Bps = max([*([best.value * 1e9] if best is not None else []), highest.attained_Bps or 0.0])
    if seen_Bps and asked.value_Bps > _BEYOND * seen_Bps:
        by = (
            f"{best.value:g} GB/s is published"
            if best is not None
            else f"{format_rate(seen_Bps)} was seen of such parts"
        )
        yield finding("PUB002", check=asked.name, value=asked.words, evidence=f"on {where} {by}; {_sources(asked)}")
    yield from _of_two_nodes(asked, nodes, rates)
    # Between nodes a check may name its algorithm in words alone, so only what was published for them counts.
    sound_Bps = seen_Bps if nodes == 1 else best.value * 1e9 if best is not None else 0.0
    if _is_of_large(threshold) and asked.value_Bps < _LENIENT * sound_Bps:
        yield _lenient(asked, sound_Bps, f"{format_rate(sound_Bps)} was published or seen for {where}")


def _is_of_large(threshold: Threshold) -> bool:
    """Whether a check measures nothing but large messages: an average over small ones is lower."""
    return "average" not in threshold.test or (threshold.size or "").startswith(("1G", "4G", "8G", "16G"))


def _of_two_nodes(asked: _Figure, nodes: int, rates: NodeRates) -> Iterator[Finding]:
    total_Bps = rates.nic.rate_Bps * rates.ports if rates.nic is not None and rates.ports else None
    if nodes == 2 and rates.domain_gpus is None and total_Bps is not None and asked.value_Bps > total_Bps:
        yield finding(
            "PUB005",
            check=asked.name,
            evidence=f"{asked.words}; the NICs of a node carry {format_rate(total_Bps)}; {_sources(asked)}",
            fix="on other numbers of nodes see: `busbw limit --platform "
            f"{rates.name or 'ID'} --nodes N --collective all_reduce`",
        )


def _highest(rates: NodeRates, nodes: int, collective: str) -> Bound | None:
    found = ceiling(rates, nodes=nodes, collective=collective).bounds
    return max((each for each in found if each.busbw_Bps is not None), key=_height, default=None)


def _height(bound: Bound) -> float:
    return bound.busbw_Bps or 0.0


def _best_published(platform: Platform, collective: str, nodes: int) -> Published | None:
    """Return the highest result that is published for these nodes; a health check's limit is none."""
    found = [
        each
        for each in platform.published
        if each.test == collective
        and each.metric == "busbw"
        and each.nodes == nodes
        and each.kind in ("measured", "reference")
        and each.network in (None, "fabric")
    ]
    return max(found, key=lambda each: each.value, default=None)


def _nodes(threshold: Threshold) -> int | None:
    """Return the nodes a check runs on; of `2 nodes or more` the fewest, where bounds are highest."""
    found = _NODES.match(threshold.scope or "")
    return int(found.group(1)) if found else None


def _impossible(asked: _Figure, why: str) -> Finding:
    return finding(
        "PUB001",
        check=asked.name,
        value=asked.words,
        evidence=f"{why}; {_sources(asked)}",
        fix="judge by what applies instead, as busbw judge does",
    )


def _lenient(asked: _Figure, sound_Bps: float, why: str) -> Finding:
    lost = percent(1 - asked.value_Bps / sound_Bps)
    return finding("PUB004", check=asked.name, lost=lost, evidence=f"{asked.words}; {why}; {_sources(asked)}")


def _sources(asked: _Figure) -> str:
    return f"source: {', '.join(asked.source)}" if asked.source else "no source is given"


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownMachine:
    """A machine to hold measurements against; the first of these that is there gives the rates."""

    hardware: Hardware | None = None
    platform: Platform | None = None
    # As it was asked for, which may be one of several sizes.
    platform_name: str | None = None
    # GPUs by the driver's name for them.
    gpus: Mapping[str, GpuFacts] = field(default_factory=dict)
    # What the site itself measured on these hosts before.
    own: tuple[Reference, ...] = ()

    @property
    def fabric(self) -> str | None:
        """What joins the nodes; None: not known, or several things."""
        if self.hardware is not None:
            kinds = {port.kind for port in compute_ports(self.hardware)}
            return kinds.pop() if len(kinds) == 1 else None
        return self.platform.fabric.kind if self.platform is not None else None

    def sm(self, series: Series) -> int | None:
        """Return the compute capability of the GPUs, times ten; None: not known, or not NVIDIA's."""
        if self.platform is not None and self.hardware is None:
            return self.platform.gpu.sm
        facts = self._facts(series)
        return facts.sm if facts is not None else None

    def references(self, series: Series) -> tuple[Reference, ...]:
        """Return what was measured on machines of this kind; on one node wherever it has the same GPUs."""
        facts = self._facts(series)
        of_gpus = () if facts is None else (*(of_sweep(each) for each in facts.sweeps), *_figures(facts.published))
        of_platform = references_of(self.platform, doubt_of) if self.platform is not None else ()
        own = tuple(each for each in self.own if each.collective == series.collective)
        return tuple(dict.fromkeys((*own, *of_platform, *of_gpus)))

    def _facts(self, series: Series) -> GpuFacts | None:
        """Return what is known of the GPUs by their name, wherever it comes from."""
        if self.hardware is not None:
            names = tuple(gpu.name for gpu in self.hardware.gpus if gpu.name)
        elif series.gpu_name is not None:
            names = spellings(series.gpu_name)
        else:
            names = self.platform.match.gpu_names if self.platform is not None else ()
        return next((self.gpus[name] for name in names if name in self.gpus), None)

    def rates(self, series: Series) -> tuple[NodeRates | None, str]:
        """Return the rates of a node of this series, and where they come from, or why there are none."""
        mismatch = self._mismatch(series)
        if mismatch is not None:
            return None, mismatch
        try:
            rates, where = self._rates(series)
        except InputError as error:
            return None, error.cause
        if rates is not None and not rates.gpus and series.nodes:
            # On CPUs as many ranks as were started, not as there are cores.
            rates = structs.replace(rates, cpu_ranks=max(1, series.ranks // series.nodes))
        return rates, where

    def _mismatch(self, series: Series) -> str | None:
        """Return why the series cannot be of this machine; None: nothing speaks against it."""
        if self.hardware is not None:
            whose, names = self.hardware.hostname, tuple({gpu.name for gpu in self.hardware.gpus if gpu.name})
            has = len(self.hardware.gpus)
        elif self.platform is not None:
            whose, names, has = self.platform.id, self.platform.match.gpu_names, self.platform.gpu.count
        else:
            return None
        called = spellings(series.gpu_name) if series.gpu_name else ()
        if called and names and not any(fnmatchcase(name, glob) for name in called for glob in names):
            return f"it is of {series.gpu_name}, and {whose} has {', '.join(names)}: another machine"
        each = series.gpus_per_node
        if each is not None and has and each > has:
            return f"it is of {each} GPUs a node, and {whose} has {has}: another machine, or more nodes"
        return None

    def _rates(self, series: Series) -> tuple[NodeRates | None, str]:
        used = series.gpus_per_node
        if self.hardware is not None:
            rates = rates_of_hardware(self.hardware, self._facts(series), gpus=used)
            return rates, f"captured on {self.hardware.hostname}"
        if self.platform is not None:
            where = f"published for {self.platform.id}"
            return rates_of_platform(self.platform, gpus=used, name=self.platform_name), where
        known = self._facts(series)
        if known is not None and used is not None:
            rates = rates_of_gpus(known, used)
            # A name does not say whether the links of several hosts are joined.
            joined = rates if series.nodes == 1 else structs.replace(rates, domain_gpus=None)
            return joined, f"by the name of the GPU, {known.name}: links only"
        return None, _why_unknown(series, is_known=known is not None)


def _figures(published: Iterable[Published]) -> Iterator[Reference]:
    return (each for figure in published if (each := of_figure(figure, None)) is not None)


def _why_unknown(series: Series, *, is_known: bool) -> str:
    if series.library == "mpi":
        return "no platform is named"
    if series.gpu_name is None:
        return "no platform is named, and no GPU either"
    if not is_known:
        return f"no platform is named, and nothing is published about {series.gpu_name}"
    return f"no platform is named, and how many {series.gpu_name} of a node took part is not known"
