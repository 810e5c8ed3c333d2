"""What a collective takes: one interface, and the three that answer through it: measured, expected, and a bound."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from busbw.base.collectives import COLLECTIVES
from busbw.base.errors import InputError
from busbw.base.text import listed
from busbw.base.units import format_rate
from busbw.facts.platforms import GpuFacts
from busbw.judge.explaining.expecting import Expectation, Knowledge, empty_call, expectation
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.judge.explaining.scenarios import bounds, scenarios
from busbw.judge.explaining.series import Series, SizeSample, rates_of
from busbw.model.platform import Platform
from busbw.model.train.plan import CollectiveTime, GroupPlace

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


def measured_in(series: Iterable[Series], name: str) -> tuple[MeasuredCollective, ...]:
    """Return what series of a run or an import measured; sizes that were spoiled or wrong are left out."""
    found = []
    for each in series:
        sound = {s.size_bytes: s.time_s for s in each.samples if s.spoiled is None and not s.is_wrong and s.size_bytes}
        if each.nodes is not None and sound:
            found.append(
                MeasuredCollective(
                    collective=each.collective, ranks=each.ranks, nodes=each.nodes, points=tuple(sorted(sound.items())),
                    name=name,
                )  # fmt: skip
            )
    return tuple(found)


def by_measurements(measured: Sequence[MeasuredCollective]) -> Predictor:
    """Return a predictor from results of one's own: the same ranks on as many nodes, between sizes by logarithms.

    Beyond the sizes that were measured it says nothing, except that messages larger than the largest keep its bandwidth.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedTimes:
    """What is expected of a platform: published results of such machines, else what its parts were seen to carry."""

    platform: Platform
    gpus: dict[str, GpuFacts] = field(default_factory=dict)

    def __call__(self, asked: Asked) -> CollectiveTime | None:
        """Return what to expect; where nobody measured anything of the kind the bound alone; None without rates."""
        series, has = self._series(asked), self.platform.gpu.count
        if asked.place.links == "NVLink" and asked.place.nodes > 1 and asked.place.ranks_per_node != has:
            words = "cannot tell: some GPUs of each of several nodes within one NVLink domain"
            return CollectiveTime(time_s=None, basis=None, words=words)
        machine = KnownMachine(platform=self.platform, platform_name=self.platform.id, gpus=self.gpus)
        rates, where = machine.rates(series)
        found, why = bounds(rates, series)
        if not found:
            return CollectiveTime(time_s=None, basis=None, words=f"cannot tell: {why or where}")
        factor, size = series.factor, asked.size_bytes
        most_Bps = max(bound.busbw_Bps or 0.0 for bound in found)
        least_s = factor * size / most_Bps
        known = Knowledge(
            series=series, known_machine=machine, rates=rates, references=machine.references(series),
            empty=empty_call(series, rates, machine.sm(series)),
        )  # fmt: skip
        busbw_Bps, algbw_Bps = rates_of(asked.collective, asked.ranks, size, least_s)
        sample = SizeSample(size_bytes=size, time_s=least_s, busbw_Bps=busbw_Bps, algbw_Bps=algbw_Bps)
        said = [expectation(known, sample, each) for each in scenarios(series, sample, rates, found)]
        expected: list[Expectation] = [each for each in said if each is not None]
        if not expected:
            return CollectiveTime(
                time_s=None, basis="bound", least_s=least_s,
                words=f"cannot tell: nobody has measured it on such machines; not under {format_rate(most_Bps)} bus bandwidth's time",
            )  # fmt: skip
        # Without a word on NVLink SHARP the slower of both.
        chosen = max(expected, key=lambda each: each.time_s)
        return CollectiveTime(
            time_s=chosen.time_s, basis="expected", least_s=least_s,
            words=f"{format_rate(chosen.busbw_Bps)} expected, {chosen.words}",
            source=tuple(listed(chosen.source, 3).split(", ")) if chosen.source else (),
        )  # fmt: skip

    def _series(self, asked: Asked) -> Series:
        place = asked.place
        if asked.collective not in COLLECTIVES:
            raise InputError(f"{asked.collective[:40]!r} is no collective")
        return Series(
            title="", collective=asked.collective, dtype=None, op=None, in_place=None, ranks=asked.ranks,
            nodes=place.nodes, gpus_per_node=min(place.ranks_per_node, asked.ranks), gpu_name=None, library="nccl",
            statistic="",
        )  # fmt: skip


def pair_place(place: GroupPlace) -> tuple[int, GroupPlace]:
    """Return two neighbours of a group: within a node where the group is, else on two."""
    if place.nodes == 1:
        return _PAIR, GroupPlace(nodes=1, ranks_per_node=_PAIR, links=place.links)
    return _PAIR, GroupPlace(nodes=_PAIR, ranks_per_node=1, links="rail")
