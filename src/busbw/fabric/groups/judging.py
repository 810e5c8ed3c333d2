"""Tests of groups of nodes, and which of them are bad: against groups of the same size, and against a bound.

Levels are logarithms of slowness: 0.1 is about 10 % slower.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from busbw.stats.distributions import median, normal_quantile

# The least effect that is told, whatever the scatter, as in tests of pairs.
LEAST_EFFECT = 0.05
# What a group may lose against a value that was expected of it.
EXPECTED_LOSS = 0.10
# Alarms expected of all groups together where nothing is wrong, before anything is measured again.
_FALSE_ALARMS = 0.05
_MAD_TO_SIGMA = 1.4826
_MEDIAN_SCATTER = math.sqrt(math.pi / 2)
# Groups side by side from which their own median is the reference: with fewer, one bad group is a half of them.
_LEAST_PEERS = 3
# And from which their scatter about it counts: of four groups two bad ones would pass for scatter.
_LEAST_SCATTERING = 5
# Where there are fewer than three, the reference is the value that one in so many of all groups is better than.
_FAST_SHARE = 6
# Numerical dust.
_LEAST_NOISE = 1e-4

GroupState = Literal["sound", "unclear", "slow", "failed"]
GroupPurpose = Literal["whole", "first", "split", "confirm", "again", "alone", "together", "unsteady", "within"]
# Those that every node is in, whatever is found.
FIRST: tuple[GroupPurpose, ...] = ("within", "first")
# Those in which groups of the usual size run beside others.
_AMONG_PEERS: tuple[GroupPurpose, ...] = ("first", "split", "confirm", "again", "together", "unsteady", "within")


@dataclass(frozen=True, kw_only=True)
class GroupResult:
    """What one run of a group came to: a value above zero, or why there is none."""

    value: float | None = None
    failure: str | None = None


@dataclass(frozen=True, kw_only=True)
class GroupTest:
    """One group, run once or several times in rounds that follow each other."""

    nodes: tuple[int, ...]
    # Of its first run; and of the look, in which the same groups ran beside each other.
    round: int
    look: int
    purpose: GroupPurpose
    results: tuple[GroupResult, ...]

    @property
    def failures(self) -> int:
        """How many of its runs failed."""
        return sum(each.value is None for each in self.results)

    @property
    def has_failed(self) -> bool:
        """Whether one of its runs failed: that is no scatter."""
        return self.failures > 0

    @property
    def values(self) -> tuple[float, ...]:
        """The values of the runs that have one."""
        return tuple(each.value for each in self.results if each.value is not None)

    @property
    def typical(self) -> float | None:
        """The median of its values."""
        return median(sorted(self.values)) if self.values else None


@dataclass(frozen=True, kw_only=True)
class GroupTerms:
    """How values are to be read. `expected`: what a sound group reaches; None: not known."""

    higher_is_better: bool
    expected: float | None = None

    def level(self, value: float) -> float:
        """Return the logarithm of the slowness that a value stands for."""
        return -math.log(value) if self.higher_is_better else math.log(value)


@dataclass(frozen=True, kw_only=True)
class GroupScale:
    """What tests are held against: reference of each look, scatter, and the number of tests that may raise an alarm."""

    terms: GroupTerms
    centres: dict[int, float]
    # Of one run, from repeats of the same group; and between groups, 0 where there are too few to tell.
    noise: float
    between: float
    tests: int
    # Whether most groups miss what is expected: then it tells none of them from the others.
    is_slow_everywhere: bool

    def scatter(self, repeats: int) -> float:
        """Return the scatter of the median of so many runs of a group."""
        own = self.noise * (_MEDIAN_SCATTER if repeats > 2 else 1.0) / math.sqrt(max(repeats, 1))
        return max(own, self.between)

    def bound(self, repeats: int) -> float:
        """Return the effect from which a group is slow: all groups together raise 0.05 false alarms."""
        return max(LEAST_EFFECT, normal_quantile(1 - _FALSE_ALARMS / max(self.tests, 1)) * self.scatter(repeats))

    def effect(self, test: GroupTest) -> float | None:
        """Return by how much a group is slower than its peers; None: it has no value."""
        if test.typical is None:
            return None
        return self.terms.level(test.typical) - self.centres.get(test.look, 0.0)

    def misses(self, value: float) -> bool:
        """Whether a value is worse than expected by more than is allowed."""
        expected = self.terms.expected
        return expected is not None and self.terms.level(value) - self.terms.level(expected) > -math.log1p(
            -EXPECTED_LOSS
        )

    def state(self, test: GroupTest) -> GroupState:
        """Return what a test says of its group."""
        effect = self.effect(test)
        if test.has_failed or effect is None or test.typical is None:
            return "failed"
        bound = self.bound(len(test.values))
        missed = not self.is_slow_everywhere and self.misses(test.typical)
        if effect > bound or missed:
            return "slow"
        return "sound" if effect <= bound / 2 else "unclear"

    def is_bad(self, test: GroupTest) -> bool:
        """Whether a group is slow or fails."""
        return self.state(test) in ("slow", "failed")


def scale_of(tests: Sequence[GroupTest], terms: GroupTerms) -> GroupScale:
    """Return what tests are held against, from the tests themselves."""
    peers = [each for each in tests if each.purpose in _AMONG_PEERS]
    levels: dict[int, list[float]] = defaultdict(list)
    # Groups within a leaf may be faster than others without a fault of those.
    within: set[int] = set()
    for each in peers:
        if each.typical is not None and not each.has_failed:
            levels[each.look].append(terms.level(each.typical))
            within |= {each.look} if each.purpose == "within" else set()
    fast = {
        is_within: _fast(
            sorted(level for look, own in levels.items() if (look in within) == is_within for level in own)
        )
        for is_within in (False, True)
    }
    centres = {look: _reference(own, fast[look in within]) for look, own in levels.items()}
    usual = centres[min(set(centres) - within or centres)] if centres else 0.0
    for each in tests:
        centres.setdefault(each.look, usual)
    first = [terms.level(each.typical) for each in peers if each.purpose in FIRST and each.typical is not None]
    made = GroupScale(
        terms=terms,
        centres=centres,
        noise=_noise(tests, terms),
        between=_between(levels, centres),
        tests=len(peers),
        is_slow_everywhere=False,
    )
    missed = [each for each in first if terms.expected is not None and made.misses(_value(each, terms))]
    if 2 * len(missed) <= len(first):
        return made
    return GroupScale(
        terms=terms, centres=centres, noise=made.noise, between=made.between, tests=made.tests, is_slow_everywhere=True
    )


def _fast(levels: Sequence[float]) -> float:
    """Return what one in six of some levels, ascending, is better than."""
    return levels[(len(levels) - 1) // _FAST_SHARE] if levels else 0.0


def _value(level: float, terms: GroupTerms) -> float:
    return math.exp(-level if terms.higher_is_better else level)


def _reference(levels: Sequence[float], fast: float) -> float:
    """Return what the groups of a look are held against: their median, or where they are few what others reach.

    Of an even number the faster of the two in the middle; `fast`: what one in six of all groups is better than.
    """
    middle = sorted(levels)[(len(levels) - 1) // 2]
    if len(levels) >= _LEAST_SCATTERING or (len(levels) >= _LEAST_PEERS and middle - fast <= LEAST_EFFECT):
        return middle
    return fast


def _noise(tests: Sequence[GroupTest], terms: GroupTerms) -> float:
    """Return the scatter of one run: from differences between repeats, which differ in nothing else."""
    steps = []
    for each in tests:
        own = [terms.level(value) for value in each.values]
        steps += [abs(after - before) for before, after in pairwise(own)]
    if not steps:
        return _LEAST_NOISE
    return max(_MAD_TO_SIGMA * median(sorted(steps)) / math.sqrt(2), _LEAST_NOISE)


def _between(levels: dict[int, list[float]], centres: dict[int, float]) -> float:
    """Return the scatter of groups about the reference of their look; 0 where every look has too few groups."""
    apart = [
        abs(level - centres[look]) for look, own in levels.items() if len(own) >= _LEAST_SCATTERING for level in own
    ]
    return _MAD_TO_SIGMA * median(sorted(apart)) if apart else 0.0
