"""Bands of latency: one for each number of switches on the way, as many as the data support; leaves that follow.

The logarithms of latency are a mixture of normal distributions over a thin uniform floor for disturbed tests. Of one to
five of them the number is taken that the Bayesian information criterion prefers (Schwarz, Annals of Statistics 6(2),
1978); bands that overlap, or that a few endpoints alone make up, are none. Values are counted in bins of 0.2 %, so that
time does not grow with their number.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from busbw.base.value import Integer, Value
from busbw.fabric.places import PairTest, Places
from busbw.stats.distributions import median

_BIN = 0.002
_MOST_BANDS = 5
_STEPS = 60
# A step that moves centres by less than this share of a bin, and weights by less, is the last.
_MOVED = 1e-3
# Centres of two bands lie so many of their scatters apart, and by so much of the value, at least.
_APART = 3.0
_LEAST_APART = 0.04
_LEAST_SHARE = 0.02
_LEAST_TESTS = 6
# The endpoints in a band's tests are at least this share of all: what one node does is no band.
_LEAST_ENDPOINTS = 0.25
_FLOOR = 0.02
_LEAST_SIGMA = _BIN
# A pair within a leaf is believed where others that both met agree.
_WITNESSES = 64
# Of few pairs leaves can be made up that many of them contradict.
_LEAST_AGREEMENT = 0.9


class LatencyBand(Value, kw_only=True, frozen=True):
    """Latencies of one number of hops, as far as the data tell them apart. Seconds; the range holds 95 of 100."""

    centre_s: float
    low_s: float
    high_s: float
    tests: Integer
    # What is published for it; None: nothing.
    published_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Component:
    weight: float
    centre: float
    sigma: float


def bands(latencies_s: Sequence[float]) -> tuple[LatencyBand, ...]:
    """Return the bands of latencies, ascending; one at least, of positive values."""
    values = [math.log(each) for each in latencies_s]
    counts = Counter(round(each / _BIN) for each in values)
    bins = sorted((key * _BIN, number) for key, number in counts.items())
    best = min((_mixture(bins, number) for number in range(1, _MOST_BANDS + 1)), key=lambda each: each[0])[1]
    components = _apart(sorted(best, key=lambda each: each.centre), len(values))
    cuts = [(one.centre * other.sigma + other.centre * one.sigma) / (one.sigma + other.sigma)
            for one, other in pairwise(components)]  # fmt: skip
    held: dict[int, int] = defaultdict(int)
    for value in values:
        held[sum(value > cut for cut in cuts)] += 1
    return tuple(
        LatencyBand(
            centre_s=math.exp(each.centre),
            low_s=math.exp(each.centre - 1.96 * each.sigma),
            high_s=math.exp(each.centre + 1.96 * each.sigma),
            tests=held[number],
        )
        for number, each in enumerate(components)
    )


def _mixture(bins: Sequence[tuple[float, int]], number: int) -> tuple[float, list[_Component]]:
    """Return the criterion (less is better) and the components that expectation maximisation comes to."""
    total = sum(count for _, count in bins)
    span = max(bins[-1][0] - bins[0][0], 10 * _BIN)
    found = _start(bins, total, number)
    for _ in range(_STEPS):
        sums = [[0.0, 0.0, 0.0] for _ in found]
        for value, count in bins:
            parts = [each.weight * _density(value, each) for each in found]
            whole = sum(parts) + _FLOOR / span
            for into, part in zip(sums, parts, strict=True):
                share = count * part / whole
                into[0] += share
                into[1] += share * value
                into[2] += share * value * value
        before, found = found, [_component(each[0], each[1], each[2], total) for each in sums if each[0] > 0.5]
        if _settled(before, found):
            break
    likelihood = sum(
        count * math.log((1 - _FLOOR) * sum(each.weight * _density(value, each) for each in found) + _FLOOR / span)
        for value, count in bins
    )
    return (3 * number - 1) * math.log(total) - 2 * likelihood, found


def _settled(before: Sequence[_Component], found: Sequence[_Component]) -> bool:
    """Whether a step moved no component by what would tell."""
    return len(before) == len(found) and all(
        abs(one.centre - other.centre) < _MOVED * _BIN and abs(one.weight - other.weight) < _MOVED
        and abs(one.sigma - other.sigma) < _MOVED * _BIN
        for one, other in zip(before, found, strict=True)
    )  # fmt: skip


def _start(bins: Sequence[tuple[float, int]], total: int, number: int) -> list[_Component]:
    """Return components between the largest gaps of the values."""
    dense = [(value, count) for value, count in bins if count >= max(1, total // 2000)] or list(bins)
    gaps = sorted(range(1, len(dense)), key=lambda at: dense[at - 1][0] - dense[at][0])[: number - 1]
    edges = [0, *sorted(gaps), len(dense)]
    parts = [dense[one:other] for one, other in pairwise(edges)]
    return [
        _component(
            sum(count for _, count in part),
            sum(count * value for value, count in part),
            sum(count * value * value for value, count in part),
            total,
        )
        for part in parts
        if part
    ]


def _component(weight: float, first: float, second: float, total: int) -> _Component:
    centre = first / weight
    variance = max(second / weight - centre * centre, _LEAST_SIGMA**2)
    return _Component(weight=weight / total, centre=centre, sigma=math.sqrt(variance))


def _density(value: float, component: _Component) -> float:
    distance = (value - component.centre) / component.sigma
    return math.exp(-0.5 * distance * distance) / (component.sigma * 2.5066282746310002) if abs(distance) < 12 else 0.0


def _apart(found: Sequence[_Component], total: int) -> list[_Component]:
    """Return the components that are large enough, with those that overlap as one."""
    large = [each for each in found if each.weight >= _LEAST_SHARE and each.weight * total >= _LEAST_TESTS]
    kept: list[_Component] = []
    for each in large or [max(found, key=lambda each: each.weight)]:
        last = kept[-1] if kept else None
        # The larger scatter would let a wide tail swallow the next band.
        if last is not None and each.centre - last.centre < max(_APART * (last.sigma + each.sigma) / 2, _LEAST_APART):
            kept[-1] = last if last.weight >= each.weight else each
        else:
            kept.append(each)
    return kept


def band_of(latency_s: float, found: Sequence[LatencyBand]) -> int:
    """Return the number of the band whose centre is nearest, by ratio."""
    return min(range(len(found)), key=lambda at: abs(math.log(latency_s / found[at].centre_s)))


def fabric_bands(
    tests: Sequence[PairTest], corrections: Sequence[float] | None = None
) -> tuple[tuple[LatencyBand, ...], tuple[int, ...]]:
    """Return the bands of tests and the band of each test; of one without a value, -1.

    `corrections`: what of the logarithm of each test is its endpoints', and no band's.
    """
    shifts = corrections if corrections is not None else [0.0] * len(tests)
    values = [each.value * math.exp(-shift) if each.value else None for each, shift in zip(tests, shifts, strict=True)]
    found = bands([each for each in values if each is not None])
    numbers = tuple(band_of(each, found) if each is not None else -1 for each in values)
    everybody = len({end for each in tests for end in (each.sender, each.receiver)})
    kept = []
    for number, band in enumerate(found):
        ends = {
            end for each, at in zip(tests, numbers, strict=True) if at == number for end in (each.sender, each.receiver)
        }
        if len(ends) >= _LEAST_ENDPOINTS * everybody:
            kept.append(band)
    kept = kept or list(found)
    return tuple(kept), tuple(band_of(each, kept) if each is not None else -1 for each in values)


@dataclass(frozen=True, kw_only=True)
class LeavesInferred:
    """Leaves that follow from bands of latency."""

    # None: none do, for `why_not` in words, "" where there is nothing to infer from.
    places: Places | None = None
    # How far all pairs agree (0 to 1).
    agreement: float | None = None
    why_not: str = ""


def inferred_leaves(places: Places, tests: Sequence[PairTest], numbers: Sequence[int]) -> LeavesInferred:
    """Return leaves of endpoints that meet in the lowest band.

    None are inferred from one band, where more than a quarter of the endpoints met nobody in the lowest one, and where
    more than one of ten pairs disagrees.
    """
    if len({each for each in numbers if each >= 0}) < 2:
        return LeavesInferred()
    near: dict[int, dict[int, bool]] = defaultdict(dict)
    for test, number in zip(tests, numbers, strict=True):
        if number >= 0:
            near[test.sender][test.receiver] = near[test.receiver][test.sender] = number == 0
    count = len(places.endpoints)
    roots = _joined(near, count)
    agreeing = [
        is_near == (roots[one] == roots[other]) for one, partners in near.items() for other, is_near in partners.items()
    ]
    alone = sum(number == 1 for number in Counter(roots).values())
    if alone > count / 4 or not agreeing:
        met = f"{alone} of {count} met no other within a leaf, and a quarter is the most"
        return LeavesInferred(why_not=f"{met}: --pairs all tests every pair")
    numbered = {each: at for at, each in enumerate(dict.fromkeys(roots))}
    if len(numbered) < 2:
        return LeavesInferred(why_not="all of them hang together in the lowest band")
    inferred = Places(
        endpoints=places.endpoints,
        leaves=tuple(numbered[each] for each in roots),
        leaf_names=tuple(f"leaf{number}" for number in range(len(numbered))),
        groups=(0,) * len(numbered),
    )
    agreement = sum(agreeing) / len(agreeing) * (1 - alone / count)
    if agreement < _LEAST_AGREEMENT:
        found = (
            f"{100 * agreement:.0f} % of the pairs agree with the best, and {100 * _LEAST_AGREEMENT:.0f} % is the least"
        )
        return LeavesInferred(why_not=f"{found}: --pairs all tells more, --topology names them")
    return LeavesInferred(places=inferred, agreement=agreement)


def _joined(near: Mapping[int, Mapping[int, bool]], count: int) -> list[int]:
    """Return for each endpoint one that stands for all that it is joined with."""
    leaf = list(range(count))

    def root(each: int) -> int:
        while leaf[each] != each:
            leaf[each] = leaf[leaf[each]]
            each = leaf[each]
        return each

    for one, partners in near.items():
        for other, is_near in partners.items():
            if is_near and one < other and _witnessed(partners, near[other]):
                leaf[root(one)] = root(other)
    return [root(each) for each in range(count)]


def _witnessed(one: Mapping[int, bool], other: Mapping[int, bool]) -> bool:
    """Whether those that both were tested with do not contradict that the two stand together."""
    common = [one[each] == other[each] for each in list(one)[:_WITNESSES] if each in other]
    return not common or 2 * sum(common) >= len(common)


def typical(values: Sequence[float]) -> float:
    """Return the median of values, one at least."""
    return median(sorted(values))
