"""What to expect of one size in each scenario, from which bandwidth on it is sound, and below which it is slow.

What somebody measured on such machines comes first, the site's own runs before all others; then, for bandwidth alone,
the rate that was seen of the limiting part. Nothing here depends on the other sizes of the table under judgement.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from busbw.base.text import counted, listed, percent
from busbw.base.units import format_rate, format_size
from busbw.facts.expectations import SizeCurve, size_curve
from busbw.facts.nccl_model import nccl_constants, nccl_model_facts, newest_release
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.judge.explaining.references import (
    LARGE_MESSAGE_BYTES,
    WINDOWED,
    Reference,
    ReferenceEstimate,
    ReferencePlace,
    estimate,
    own_estimate,
)
from busbw.judge.explaining.scenarios import Scenario
from busbw.judge.explaining.series import Series, SizeSample
from busbw.limits.algorithms import shape_of
from busbw.model.limit import Bound, NodeRates
from busbw.model.predict.nccl_choice import MODELLED
from busbw.model.verdict import Basis, Regime
from busbw.predict.nccl_table import empty_call as predicted_call


@dataclass(frozen=True, kw_only=True, slots=True)
class EmptyCall:
    """The time to count on for a call of a few bytes, who says so, and how it comes about."""

    time_s: float
    # As in a sentence: "NCCL's cost model".
    by: str
    basis: Basis
    words: str
    source: tuple[str, ...]
    # Whether a call was measured on such GPUs and took as long.
    is_confirmed: bool


def empty_call(series: Series, rates: NodeRates | None, sm: int | None) -> EmptyCall | None:
    """Return what NCCL counts on with the LL protocol; None where it has no model, or none that holds."""
    facts = nccl_model_facts()
    if series.library != "nccl" or series.nodes != 1 or sm not in facts.confirmed_sm or rates is None:
        return None
    if (rates.island_gpus or 1) < series.ranks:
        return None
    # The constants for a node are the same in every release that was read.
    found = predicted_call(nccl_constants(newest_release()), series.collective, series.ranks)
    if found is None:
        return None
    return EmptyCall(
        time_s=found.time_us * 1e-6,
        by="NCCL's cost model",
        basis="model",
        words=f"{found.algorithm}, LL: {found.base_us:g} us + {found.hops} hops of {found.hop_us:g} us",
        source=(facts.source, *facts.confirmed),
        is_confirmed=True,
    )


def why_no_call(series: Series) -> str:
    """Return which evidence is missing for a small message."""
    if series.collective == "latency":
        return "no latency between two ranks is published for this machine"
    if series.library == "nccl" and series.nodes == 1 and series.collective not in MODELLED:
        return f"NCCL's cost model has no {series.collective}, and no time of a small one is published for this machine"
    return "no time of such a small message is published for this machine"


# Bandwidth decides where it rises by less than 9 % when the size doubles (between nodes, where stacks differ more below
# that, by less than 4 %), latency where by more than half of it.
_BANDWIDTH_SLOPE = 0.125
_BANDWIDTH_SLOPE_BETWEEN = 0.0625
_LATENCY_SLOPE = 0.6
# Large messages of one published machine against another of its kind differ by up to a tenth (H100: 473 to 483; OCI and
# HGX on two nodes: 470, 471; p5: 437 and 444); of one source alone nobody knows, and of the same stack older versions
# reach four fifths. What follows from parts is less sure still: rings over 8 x 400 Gb/s reach 0.82 or 0.96 of line.
_AGREE = 0.92
_PEERS = 3
_SEVERAL_SOURCES = 0.90
_ONE_SOURCE = 0.80
_OWN_RUNS = 0.93
_CARRIED_OVER = 0.75
_BY_PARTS_INSIDE, _BY_PARTS_BETWEEN = 0.78, 0.70
_TO_MANY = frozenset({"alltoall", "alltoall_2dh", "gather", "scatter"})
# Only where the curve of such machines is this near its end do parts alone make a result slow.
_AT_END = 0.9
# In the knee two stacks of one machine were seen a factor of two apart (two p5 at 256 MiB: 167 and 343 GB/s).
_KNEE_SOUND, _KNEE_SLOW = 0.75, 0.45
# A small message may take twice what was measured; from three times on it is slow.
MOST_TIMES = 2.0
SLOW_TIMES = 3.0
# Without a curve of such machines, messages from here on are large.
_LARGE_BYTES = 2**30
_FEW_BYTES = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """What to expect of a size in one scenario. Bandwidths are bus bandwidths."""

    scenario: Scenario
    busbw_Bps: float
    # From here on a result is sound; below the other it is slow. None: nothing that is known makes it slow.
    sound_Bps: float
    slow_Bps: float | None
    time_s: float
    regime: Regime
    basis: Basis
    # Who says so, and what had to be assumed.
    words: str
    source: tuple[str, ...]
    references: tuple[Reference, ...] = ()
    # Whether the references are of this very place and size.
    is_exact: bool = False
    # Whether it is the interval of a prediction, as nothing measured applies.
    is_predicted: bool = False
    # Of the site's own runs: what others expect of such a machine, which they do not excuse.
    elsewhere: "Expectation | None" = None

    @property
    def unseen(self) -> float:
        """The largest loss, as a share of what is expected, that would not be called slow."""
        return 1 - (self.slow_Bps or 0.0) / self.busbw_Bps


@dataclass(frozen=True, kw_only=True, slots=True)
class Knowledge:
    """What is known of the machine of one series."""

    series: Series
    known_machine: KnownMachine
    rates: NodeRates | None
    references: tuple[Reference, ...]
    empty: EmptyCall | None

    @property
    def place(self) -> ReferencePlace | None:
        """Where the series stands among others; None where its nodes are not known."""
        rates, nodes = self.rates, self.series.nodes
        if nodes is None:
            return None
        known = rates if rates is not None else NodeRates(gpus=0)
        return ReferencePlace(nodes=nodes, ranks=self.series.ranks, groups=lambda count: shape_of(known, count).groups)

    def curve(self, algorithm: str | None) -> SizeCurve | None:
        """Return how bandwidth rises with the size here; None where nobody has published it, or for pairs over MPI."""
        series, place = self.series, self.place
        if series.library != "nccl" or place is None or series.nodes is None:
            return None
        nodes = 1 if place.is_inside and series.network != "loopback" else max(2, series.nodes)
        return size_curve(
            nodes=nodes,
            sm=self.known_machine.sm(series),
            fabric=self.known_machine.fabric,
            algorithm=algorithm,
            collective=series.collective,
        )


def expectation(known: Knowledge, sample: SizeSample, scenario: Scenario) -> Expectation | None:
    """Return what to expect of a size in a scenario; None where nobody has measured anything of the kind."""
    if known.series.collective == "latency":
        return None
    found = _measured(known, sample, scenario) or _by_parts(known, sample, scenario)
    small = _by_model(known, sample, scenario)
    if small is not None and (found is None or (found.basis == "seen" and found.regime == "latency")):
        found = small
    own = _by_own_runs(known, sample, scenario, found)
    return own or found


def _by_own_runs(
    known: Knowledge, sample: SizeSample, scenario: Scenario, elsewhere: Expectation | None
) -> Expectation | None:
    place = known.place
    if place is None:
        return None
    found = own_estimate(known.series, sample.size_bytes, scenario, known.references, place)
    if found is None:
        return None
    regime = elsewhere.regime if elsewhere is not None else None
    own = _of_estimate(known, sample, scenario, found, regime)
    return replace(own, elsewhere=elsewhere)


def _measured(known: Knowledge, sample: SizeSample, scenario: Scenario) -> Expectation | None:
    place = known.place
    if place is None:
        return None
    curve = known.curve(scenario.algorithms[0] if scenario.algorithms else None)
    found = estimate(known.series, sample.size_bytes, scenario, known.references, place, curve)
    return _of_estimate(known, sample, scenario, found, None) if found is not None else None


def _of_estimate(
    known: Knowledge, sample: SizeSample, scenario: Scenario, found: ReferenceEstimate, regime: Regime | None
) -> Expectation:
    """Return what an estimate lets expect; `regime`: what decides the time, where others say it."""
    regime = regime or regime_of(known.series, sample.size_bytes, found.slope)
    sound, slow = _shares(known.series, found, regime)
    centre_Bps = _below_ceiling(found.centre_Bps, scenario)
    low_Bps = min(found.low_Bps, centre_Bps)
    return Expectation(
        scenario=scenario,
        busbw_Bps=centre_Bps,
        sound_Bps=low_Bps * sound,
        slow_Bps=low_Bps * slow if slow is not None else None,
        time_s=known.series.factor * sample.size_bytes / centre_Bps,
        regime=regime,
        basis=found.kind if found.kind != "threshold" else "measured",
        words=_measured_words(found),
        source=tuple(dict.fromkeys(name for each in found.references for name in each.source)),
        references=found.references,
        is_exact=found.is_exact,
    )


def _below_ceiling(busbw_Bps: float, scenario: Scenario) -> float:
    """Return an expectation that is never above what the algorithms can carry."""
    return min(busbw_Bps, scenario.ceiling_Bps) if scenario.ceiling_Bps > 0 else busbw_Bps


def regime_of(series: Series, size_bytes: int, slope: float) -> Regime:
    """Return what decides the time of a size whose bandwidth rises so."""
    if series.collective in WINDOWED:
        return "bandwidth" if size_bytes >= LARGE_MESSAGE_BYTES else "knee"
    if slope <= (_BANDWIDTH_SLOPE if series.nodes == 1 else _BANDWIDTH_SLOPE_BETWEEN):
        return "bandwidth"
    return "latency" if slope >= _LATENCY_SLOPE else "knee"


def _shares(series: Series, found: ReferenceEstimate, regime: Regime) -> tuple[float, float | None]:
    """Return which parts of the lowest reference are sound, and slow; None: none is."""
    if regime == "bandwidth":
        least = _least_share(found)
        return least, least
    if regime == "knee":
        return _KNEE_SOUND, _KNEE_SLOW if found.is_exact else None
    is_same = found.is_exact and (found.kind == "here" or _is_same_version(series, found))
    return 1 / MOST_TIMES, 1 / SLOW_TIMES if is_same else None


def _least_share(found: ReferenceEstimate) -> float:
    if found.kind == "here":
        return _OWN_RUNS
    if not found.is_exact:
        return _CARRIED_OVER
    is_known = found.documents > 1 or found.peers >= _PEERS
    return _SEVERAL_SOURCES if is_known and found.agreement >= _AGREE else _ONE_SOURCE


def _is_same_version(series: Series, found: ReferenceEstimate) -> bool:
    """Whether all references are of the same NCCL, by its first two numbers."""
    here = _release(series.nccl)
    return here is not None and {_release(each.nccl) for each in found.references} == {here}


def _release(version: str | None) -> str | None:
    return ".".join(version.split(".")[:2]) if version else None


def _measured_words(found: ReferenceEstimate) -> str:
    if found.kind == "here":
        return f"the median of {counted(len(found.references), 'run')} on these hosts"
    who = {"measured": "measured", "stated": "stated", "reference": "given by the maker"}.get(found.kind, found.kind)
    where = "" if found.is_exact else f" on {_place_words(found.references)}"
    sources = listed(list(dict.fromkeys(each.document for each in found.references)))
    return f"{who}{where}: {sources}"


def _place_words(references: Sequence[Reference]) -> str:
    places = dict.fromkeys(
        counted(each.nodes, "node") if each.nodes > 1 else counted(each.gpus, "GPU")
        for each in references
        if each.nodes is not None and each.gpus is not None
    )
    sizes = {size for each in references for size, _ in each.points}
    first, last = format_size(min(sizes)), format_size(max(sizes))
    return f"{' and '.join(places) or 'several nodes'} at {first if first == last else f'{first} to {last}'}"


def _by_parts(known: Knowledge, sample: SizeSample, scenario: Scenario) -> Expectation | None:
    """Return what the rate that was seen of the limiting part lets expect; None unless every algorithm has one."""
    series, bounds = known.series, scenario.bounds
    if series.network == "fallback" or not bounds or any(bound.attained_Bps is None for bound in bounds):
        # What was seen of the fabric says nothing of what takes its place.
        return None
    best = max(bounds, key=lambda bound: bound.attained_Bps or 0.0)
    attained_Bps = best.attained_Bps or 0.0
    shaped = _shaped(known, sample, best, attained_Bps)
    if shaped is None:
        return None
    busbw_Bps, slope, curve = shaped
    regime = regime_of(series, sample.size_bytes, slope)
    is_large = regime == "bandwidth" and busbw_Bps >= _AT_END * attained_Bps
    # Rates of rings and pairs do not say what is left where every rank sends to many others through the network.
    accuses = is_large and (series.nodes == 1 or series.collective not in _TO_MANY)
    least = _BY_PARTS_INSIDE if series.nodes == 1 else _BY_PARTS_BETWEEN
    shape = f"; at this size as {curve.words} rise" if curve is not None and busbw_Bps < 0.99 * attained_Bps else ""
    return Expectation(
        scenario=scenario,
        busbw_Bps=_below_ceiling(busbw_Bps, scenario),
        sound_Bps=busbw_Bps * (least if is_large else 1 / MOST_TIMES),
        slow_Bps=busbw_Bps * least if accuses else None,
        time_s=series.factor * sample.size_bytes / busbw_Bps,
        regime=regime,
        basis="seen",
        words=f"by parts: {best.algorithm} at {_seen_words(best)}{shape}",
        source=best.source,
    )


def _shaped(
    known: Knowledge, sample: SizeSample, bound: Bound, attained_Bps: float
) -> tuple[float, float, SizeCurve | None] | None:
    """Return the bandwidth at a size, its slope, and the curve that says so."""
    series, size_bytes = known.series, sample.size_bytes
    curve = known.curve(bound.algorithm)
    if curve is None:
        least = LARGE_MESSAGE_BYTES if series.collective in WINDOWED else _LARGE_BYTES
        return (attained_Bps, 0.0, None) if size_bytes >= least else None
    if size_bytes < curve.from_bytes:
        return None
    factor = series.factor
    here_Bps, above_Bps, below_Bps = (
        curve.below_attained_Bps(factor, attained_Bps, size_bytes * part) for part in (1.0, 1.1, 1 / 1.1)
    )
    return here_Bps, math.log(above_Bps / below_Bps) / (2 * math.log(1.1)), curve


def _seen_words(bound: Bound) -> str:
    seen = [line.attained_words for line in bound.lines if line.limits and line.attained_words]
    return seen[0] if seen else bound.why


def _by_model(known: Knowledge, sample: SizeSample, scenario: Scenario) -> Expectation | None:
    """Return what NCCL counts on for a small message, where its constants were confirmed.

    The time of a call of a few bytes, and the bytes at the rate that was seen. Only while latency decides.
    """
    empty, rates_Bps = known.empty, [bound.attained_Bps for bound in scenario.bounds if bound.attained_Bps]
    if empty is None or not rates_Bps:
        return None
    moved = known.series.factor * sample.size_bytes
    time_s = empty.time_s + moved / max(rates_Bps)
    if moved / max(rates_Bps) > (1 - _LATENCY_SLOPE) * time_s:
        return None
    busbw_Bps = moved / time_s
    return Expectation(
        scenario=scenario,
        busbw_Bps=busbw_Bps,
        sound_Bps=busbw_Bps / MOST_TIMES,
        slow_Bps=busbw_Bps / SLOW_TIMES if empty.is_confirmed else None,
        time_s=time_s,
        regime="latency",
        basis=empty.basis,
        words=f"{empty.by}: {empty.words}, and the bytes at {format_rate(max(rates_Bps))}",
        source=empty.source,
    )


def unseen_words(expected: Expectation) -> str:
    """Return which loss would have gone unnoticed."""
    if expected.slow_Bps is None:
        return "no loss would be called slow at this size, as it has not been measured on such a machine"
    return f"losses below {percent(expected.unseen)} would not be seen"
