"""The model of a fabric, fitted robustly: log value = overall + hops + round + rail + leaf up + leaf down + endpoints.

Values are logarithms of slowness: 0.1 is about 10 % slower. Terms are taken out in turn by medians (Tukey's median
polish, extended to tests that are few), so that single slow tests do not move them; terms of rounds, rails and leaves
count only where they stand out from their own scatter. What is left belongs to pairs, and to chance. The loops are in
the native core (`core/fabric_fit.cpp`); here are the bounds that its terms are held against.
"""

import math
from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from busbw import _core
from busbw.fabric.pair_table import PairTable, leaf_column
from busbw.fabric.places import ONE_WAY, Metric, PairTest, Places, slowness
from busbw.stats.distributions import binomial_tail, median, normal_quantile

# The least effect that is told, whatever the scatter: a tight fabric raises no alarm.
LEAST_EFFECT = 0.05
# Scatter of a median of k values over that of one, for normal values.
_MEDIAN_SCATTER = math.sqrt(math.pi / 2)
# Alarms expected of all elements together where nothing is wrong, before anything is retested.
_FALSE_ALARMS = 0.05
# Of single tests in a row: their scatter, and how often chance alone goes beyond it, disturbed tests included.
_PAIR_SIGMAS = 3.0
DISTURBED = 0.03
# A larger share is taken for what it is where that one makes it so rarely.
_RARELY = 0.01
# The level of a round of retests is known from so many tests on.
_LEAST_OF_A_ROUND = 24


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The terms of the model, all as logarithms of slowness."""

    metric: Metric
    overall: float
    # By hop class; 0 where all are alike.
    hops: dict[int, float]
    # By round and hop class.
    rounds: dict[tuple[int, int], float]
    rails: dict[str | None, float]
    leaf_up: dict[int, float]
    leaf_down: dict[int, float]
    # By endpoint; of a metric without directions both are the same.
    senders: tuple[float, ...]
    receivers: tuple[float, ...]
    # Tests behind each of them.
    sent: tuple[int, ...]
    received: tuple[int, ...]
    # One for each test; NaN where it has no value.
    residuals: "array[float]"
    # Scatter of a single test.
    noise: float

    @property
    def has_directions(self) -> bool:
        """Whether a test goes from its sender to its receiver alone."""
        return self.metric in ONE_WAY

    @property
    def slower(self) -> float:
        """From which effect on a single test is slow."""
        return max(LEAST_EFFECT * 1.5, _PAIR_SIGMAS * self.noise)

    def scatter(self, count: int) -> float:
        """Return the scatter of a median of `count` tests."""
        return _MEDIAN_SCATTER * self.noise / math.sqrt(count) if count else math.inf

    def bound(self, count: int, elements: int, least: float = LEAST_EFFECT) -> float:
        """Return the effect from which one of `elements` is suspicious, with `count` tests of it; `least` at least."""
        return max(least, _scatters(elements) * self.scatter(count))


def disturbed_share(slow: int, of: int, rarely: float = _RARELY) -> float:
    """Return how often chance makes a test slow, where so many are of those that nothing is suspected of."""
    return slow / of if of and binomial_tail(slow, of, DISTURBED) < rarely else DISTURBED


@lru_cache(maxsize=64)
def _scatters(elements: int) -> float:
    """Return from how many scatters on one of `elements` is suspicious; it is asked for every one of them."""
    return normal_quantile(1 - min(0.5, _FALSE_ALARMS / max(elements, 1)))


def fit(places: Places, tests: PairTable, metric: Metric, classes: Sequence[int] | None = None) -> Fit:
    """Return the model of the tests that have a value; there is at least one of them.

    `classes`: what stands for the hops of each test where leaves are not known: the band of its latency.
    """
    kinds = tests.hop_kinds(places) if classes is None else array("i", (max(each, 0) for each in classes))
    residuals = array("d", bytes(8 * len(tests)))
    rails = list(places.rails)
    numbers = {rail: at for at, rail in enumerate(rails)}
    found = _core.fit_fabric(
        tests.senders, tests.receivers, tests.rounds, kinds, tests.logs(metric), leaf_column(places),
        array("i", (numbers[each.rail] for each in places.endpoints)), metric not in ONE_WAY, residuals,
    )  # fmt: skip
    return Fit(
        metric=metric,
        overall=found.overall,
        hops=_told(found.hops),
        rounds={(each.round, each.kind): each.value for each in found.rounds},
        rails={rails[at]: value for at, value in _told(found.rails).items()},
        leaf_up=_told(found.up),
        leaf_down=_told(found.down),
        senders=tuple(found.senders),
        receivers=tuple(found.receivers),
        sent=tuple(found.sent),
        received=tuple(found.received),
        residuals=residuals,
        noise=found.noise,
    )


def _told(terms: Sequence[float]) -> dict[int, float]:
    return {at: value for at, value in enumerate(terms) if not math.isnan(value)}


def extended(before: Fit, places: Places, tests: Sequence[PairTest], first: int, kinds: Sequence[int]) -> Fit:
    """Return a fit with the residuals of the tests from number `first` on, which its terms were not fitted to.

    `kinds`: hops of each of those. The level of a later round is that of the most of its tests.
    """
    left = before.residuals[:first]
    by_round: dict[int, list[int]] = defaultdict(list)
    for number, kind in zip(range(first, len(tests)), kinds, strict=True):
        test = tests[number]
        if test.value is None:
            left.append(math.nan)
            continue
        own = before.senders[test.sender] + before.receivers[test.receiver]
        own += before.rails.get(places.endpoints[test.sender].rail, 0.0) + before.hops.get(kind, 0.0)
        if places.crossing(test.sender, test.receiver):
            one, other = places.leaves[test.sender], places.leaves[test.receiver]
            assert one is not None
            assert other is not None
            own += before.leaf_up.get(one, 0.0) + before.leaf_down.get(other, 0.0)
        left.append(math.log(slowness(test.value, before.metric)) - before.overall - own)
        by_round[test.round].append(number)
    for members in by_round.values():
        if len(members) >= _LEAST_OF_A_ROUND:
            level = median(sorted(left[at] for at in members))
            for at in members:
                left[at] -= level
    return replace(before, residuals=left)
