"""What a collective takes: one interface, and those that answer through it: measured, expected, predicted, a bound."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from busbw.base.collectives import COLLECTIVES, not_a_collective
from busbw.base.errors import InputError
from busbw.base.text import listed
from busbw.base.units import format_rate
from busbw.facts.platforms import GpuFacts, spellings
from busbw.judge.explaining.expecting import Knowledge, empty_call, expectation
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.judge.explaining.scenarios import bounds, scenarios
from busbw.judge.explaining.series import Series, SizeSample, rates_of
from busbw.model.limit import Bound, NodeRates
from busbw.model.platform import Platform
from busbw.model.train.plan import CollectiveTime, GroupPlace
from busbw.predict.machines import CannotTellError
from busbw.predict.steps import group_call

_MOST_SOURCES = 3
_NOWHERE = GroupPlace(nodes=1, ranks_per_node=2, links="NVLink")
# A pair of ranks, one sends and the other receives.
_PAIR = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a predictor is asked: one call of so many ranks, and where they are."""

    collective: str
    size_bytes: int
    ranks: int
    place: GroupPlace


# What predicts a collective; None: it has nothing to say of this one, and the next is asked.
Predictor = Callable[[Asked], CollectiveTime | None]


def first_of(predictors: Sequence[Predictor]) -> Callable[[Asked], CollectiveTime]:
    """Return the answer of the first predictor that has one, else "cannot tell"; each question is asked once."""
    known: dict[Asked, CollectiveTime] = {}

    def answer(asked: Asked) -> CollectiveTime:
        if asked not in known:
            said = (predictor(asked) for predictor in predictors)
            nothing = CollectiveTime(time_s=None, basis=None, words="nothing is known of this collective here")
            known[asked] = next((each for each in said if each is not None), nothing)
        return known[asked]

    return answer


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredCollective:
    """A collective that was measured on so many ranks of so many nodes: sizes ascending, with times."""

    collective: str
    ranks: int
    nodes: int
    points: tuple[tuple[int, float], ...]
    name: str


def measured_in(series: Iterable[Series], name: str, platform: Platform) -> tuple[MeasuredCollective, ...]:
    """Return what series of a run or an import measured on GPUs such as a platform's.

    Sizes that were spoiled or wrong are left out. Raises InputError where nothing is left, with the reason.
    """
    every = tuple(series)
    others = {each.gpu_name or "" for each in every if _is_of_others(each, platform)}
    found = []
    for each in every:
        sound = {s.size_bytes: s.time_s for s in each.samples if s.spoiled is None and not s.is_wrong and s.size_bytes}
        if each.nodes is not None and sound and not _is_of_others(each, platform):
            points = tuple(sorted(sound.items()))
            found.append(
                MeasuredCollective(
                    collective=each.collective, ranks=each.ranks, nodes=each.nodes, points=points, name=name
                )
            )
    if not found:
        why = f"it is of {listed(sorted(others))}" if others else "no collective with its nodes and times is in it"
        raise InputError(
            f"nothing measured on GPUs of {platform.id}: {why}", where=f"--measured {name}", hint="busbw show says more"
        )
    return tuple(found)


def _is_of_others(series: Series, platform: Platform) -> bool:
    """Whether a series names GPUs that the platform does not have."""
    called = spellings(series.gpu_name) if series.gpu_name else ()
    names = platform.match.gpu_names
    return bool(called and names) and not any(fnmatchcase(name, glob) for name in called for glob in names)


def by_measurements(measured: Sequence[MeasuredCollective]) -> Predictor:
    """Return a predictor from results of one's own: the same ranks on as many nodes, between sizes by logarithms.

    Below the sizes that were measured it says nothing; larger messages than the largest keep its bandwidth.
    """

    def answer(asked: Asked) -> CollectiveTime | None:
        alike = [
            each
            for each in measured
            if (each.collective, each.ranks, each.nodes) == (asked.collective, asked.ranks, asked.place.nodes)
            and each.points[0][0] <= asked.size_bytes
        ]
        if not alike:
            return None
        best = max(alike, key=lambda each: each.points[-1][0])
        return CollectiveTime(
            time_s=_between(best.points, asked.size_bytes), basis="measured", words=f"measured: {best.name}"
        )

    return answer


def _between(points: Sequence[tuple[int, float]], size_bytes: int) -> float:
    place = bisect_left([size for size, _ in points], size_bytes)
    if place == len(points):
        size, time_s = points[-1]
        return time_s * size_bytes / size
    (above, above_s) = points[place]
    if above == size_bytes or place == 0:
        return above_s
    below, below_s = points[place - 1]
    part = math.log(size_bytes / below) / math.log(above / below)
    return math.exp(math.log(below_s) * (1 - part) + math.log(above_s) * part)


def by_expectation(platform: Platform, gpus: Mapping[str, GpuFacts]) -> Predictor:
    """Return a predictor of what is expected of a platform.

    That is published results of such machines, else what its parts were seen to carry; where nobody measured anything
    of the kind, what `predict` makes of it, and where that cannot tell the bound alone.
    """
    machine = KnownMachine(platform=platform, platform_name=platform.id, gpus=gpus)
    every = machine.references(_series(Asked(collective="all_reduce", size_bytes=1, ranks=2, place=_NOWHERE)))

    def answer(asked: Asked) -> CollectiveTime:
        series = _series(asked)
        rates, found, why = _bounds(machine, series, asked.place)
        if not found:
            return CollectiveTime(time_s=None, basis=None, words=f"cannot tell: {why}")
        least_s = _least_s(series, found, asked.size_bytes)
        known = Knowledge(
            series=series,
            known_machine=machine,
            rates=rates,
            references=every,
            empty=empty_call(series, rates, machine.sm(series)),
        )
        busbw_Bps, algbw_Bps = rates_of(asked.collective, asked.ranks, asked.size_bytes, least_s)
        sample = SizeSample(size_bytes=asked.size_bytes, time_s=least_s, busbw_Bps=busbw_Bps, algbw_Bps=algbw_Bps)
        said = [expectation(known, sample, each) for each in scenarios(series, sample, rates, found)]
        # Without a word on NVLink SHARP the slower of both.
        chosen = max((each for each in said if each is not None), key=lambda each: each.time_s, default=None)
        if chosen is None:
            model = _predicted(platform, asked, least_s)
            if model is not None:
                return model
            words = "cannot tell: nobody has measured it on such machines; the bound is by line rates"
            return CollectiveTime(time_s=None, basis="bound", least_s=least_s, words=words)
        return CollectiveTime(
            time_s=chosen.time_s,
            basis="expected",
            least_s=least_s,
            words=f"{format_rate(chosen.busbw_Bps)} expected, {chosen.words}",
            source=chosen.source[:_MOST_SOURCES],
        )

    return answer


def _predicted(platform: Platform, asked: Asked, least_s: float) -> CollectiveTime | None:
    """Return what the model predicts, with its interval in words; None: it cannot tell."""
    place = asked.place
    try:
        call = group_call(
            platform,
            collective=asked.collective,
            size_bytes=asked.size_bytes,
            ranks=asked.ranks,
            nodes=place.nodes,
            ranks_per_node=place.ranks_per_node,
        )
    except CannotTellError:
        return None
    between = f"90 %: {format_rate(call.low_Bps)} to {format_rate(call.high_Bps)}"
    return CollectiveTime(
        time_s=max(call.time_s, least_s),
        basis="predicted",
        least_s=least_s,
        words=f"{format_rate(call.busbw_Bps)} predicted by {call.algorithm}, {between}; nobody has measured it",
        source=call.documents[:_MOST_SOURCES],
    )


def least_time_s(platform: Platform, asked: Asked) -> float | None:
    """Return the least time by line rates; None where they are not known."""
    machine = KnownMachine(platform=platform, platform_name=platform.id)
    series = _series(asked)
    _rates, found, _why = _bounds(machine, series, asked.place)
    return _least_s(series, found, asked.size_bytes) if found else None


def _bounds(
    machine: KnownMachine, series: Series, place: GroupPlace
) -> tuple[NodeRates | None, tuple[Bound, ...], str]:
    has = machine.platform.gpu.count if machine.platform is not None else 0
    if place.links == "NVLink" and place.nodes > 1 and place.ranks_per_node != has:
        return None, (), "some GPUs of each of several nodes within one NVLink domain"
    rates, where = machine.rates(series)
    found, why = bounds(rates, series)
    return rates, found, why or where


def _least_s(series: Series, found: tuple[Bound, ...], size_bytes: int) -> float:
    return series.factor * size_bytes / max(bound.busbw_Bps or 0.0 for bound in found)


def _series(asked: Asked) -> Series:
    if asked.collective not in COLLECTIVES:
        raise not_a_collective(asked.collective)
    place = asked.place
    return Series(
        title="", collective=asked.collective, dtype=None, op=None, in_place=None, ranks=asked.ranks, nodes=place.nodes,
        gpus_per_node=min(place.ranks_per_node, asked.ranks), gpu_name=None, library="nccl", statistic="",
    )  # fmt: skip


def pair_place(place: GroupPlace) -> tuple[int, GroupPlace]:
    """Return two neighbours of a group: within a node, or an NVLink domain, where the group is, else on two nodes."""
    if place.nodes == 1 or place.links == "NVLink":
        return _PAIR, GroupPlace(nodes=1, ranks_per_node=_PAIR, links=place.links)
    return _PAIR, GroupPlace(nodes=_PAIR, ranks_per_node=1, links="rail")
