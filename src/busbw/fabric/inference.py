"""The model of a fabric, fitted robustly: log value = overall + hops + round + rail + leaf up + leaf down + endpoints.

Values are logarithms of slowness: 0.1 is about 10 % slower. Terms are taken out in turn by medians (Tukey's median
polish, extended to tests that are few), so that single slow tests do not move them; terms of rounds, rails and leaves
count only where they stand out from their own scatter. What is left belongs to pairs, and to chance.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from busbw.fabric.places import Metric, PairTest, Places, slowness
from busbw.stats.distributions import median, normal_quantile

# The least effect that is told, whatever the scatter: a tight fabric raises no alarm.
LEAST_EFFECT = 0.05
# Scatter of a median of k values over that of one, for normal values.
_MEDIAN_SCATTER = math.sqrt(math.pi / 2)
_MAD_TO_SIGMA = 1.4826
_SWEEPS = 4
# Alarms expected of all elements together where nothing is wrong, before anything is retested.
_FALSE_ALARMS = 0.05
# A term of a leaf, a rail or a round needs so many tests.
_LEAST_OF_A_GROUP = 6
_ROUND_SIGNIFICANCE = 3.0
# Numerical dust: values of a noiseless table are equal to this.
_LEAST_NOISE = 1e-4
# With two leaves every test that crosses is of both.
_LEAST_LEAVES = 3
_REWEIGHTED = 25
_FEW = ("round", "rail")

# The leaves of sender and receiver, and the hop class.
_Cell = tuple[int, int, Hashable]
Groups = dict[Hashable, list[int]]
Terms = dict[Hashable, float]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The terms of the model, all as logarithms of slowness."""

    metric: Metric
    overall: float
    # By hop class; 0 where all are alike.
    hops: dict[Hashable, float]
    # By round and hop class.
    rounds: dict[Hashable, float]
    rails: dict[str | None, float]
    leaf_up: dict[int, float]
    leaf_down: dict[int, float]
    # By endpoint; of a metric without directions both are the same.
    senders: tuple[float, ...]
    receivers: tuple[float, ...]
    # Tests behind each of them.
    sent: tuple[int, ...]
    received: tuple[int, ...]
    # One for each test with a value, and the number of that test.
    residuals: tuple[float, ...]
    tests: tuple[int, ...]
    # Scatter of a single test.
    noise: float

    def scatter(self, count: int) -> float:
        """Return the scatter of a median of `count` tests."""
        return _MEDIAN_SCATTER * self.noise / math.sqrt(count) if count else math.inf

    def bound(self, count: int, elements: int) -> float:
        """Return the effect from which one of `elements` is suspicious, with `count` tests of it."""
        alarms = normal_quantile(1 - min(0.5, _FALSE_ALARMS / max(elements, 1)))
        return max(LEAST_EFFECT, alarms * self.scatter(count))


def logs(tests: Sequence[PairTest], metric: Metric) -> tuple[list[float], list[int]]:
    """Return the logarithms of slowness of the tests that have a value, and their numbers."""
    found = [(math.log(slowness(each.value, metric)), at) for at, each in enumerate(tests) if each.value]
    return [value for value, _ in found], [at for _, at in found]


class _Polish:
    """The residuals while terms are taken out of them."""

    def __init__(self, values: list[float]) -> None:
        self.left = values

    def take(self, groups: Groups, terms: Terms, least: Callable[[int], float]) -> None:
        """Move each group's median into its term, where the whole term is above `least` of its count."""
        left = self.left
        for key, members in groups.items():
            before = terms.get(key, 0.0)
            total = before + median(sorted([left[at] for at in members]))
            self.set(key, members, terms, total if abs(total) > least(len(members)) else 0.0)

    def set(self, key: Hashable, members: Sequence[int], terms: Terms, value: float) -> None:
        """Give a term its value."""
        change = value - terms.get(key, 0.0)
        terms[key] = value
        for at in members:
            self.left[at] -= change

    def noise(self) -> float:
        """Return the scatter of the residuals by their median absolute deviation."""
        ordered = sorted(self.left)
        middle = median(ordered)
        return max(_MAD_TO_SIGMA * median(sorted(abs(each - middle) for each in ordered)), _LEAST_NOISE)


class _Leaves:
    """The terms of leaves, up and down, fitted together to the medians of pairs of leaves.

    One leaf of four is in half of the tests that cross: medians taken in turn stop before the right answer there, so
    the sum of absolute deviations is made least by weighted means (iteratively reweighted least squares).
    """

    def __init__(self, ends: Sequence[tuple[int, int] | None], classes: Sequence[Hashable], *, twoway: bool) -> None:
        self._twoway = twoway
        self._cells: dict[_Cell, list[int]] = defaultdict(list)
        for at, each in enumerate(ends):
            if each is not None:
                self._cells[(*each, classes[at])].append(at)
        self.up: Terms = {}
        self.down: Terms = self.up if twoway else {}
        self.counts: dict[int, int] = defaultdict(int)
        for (one, other, _), members in self._cells.items():
            self.counts[one] += len(members)
            self.counts[other] += len(members) if twoway else 0

    def take(self, polish: _Polish) -> None:
        """Fit the terms to what is left, and take them out of it; small ones are 0."""
        leaves = {leaf for one, other, _ in self._cells for leaf in (one, other)}
        if len(leaves) < _LEAST_LEAVES:
            return
        noise = polish.noise()
        cells = [
            (key, len(members), median(sorted([polish.left[at] for at in members])) + self._of(key))
            for key, members in self._cells.items()
        ]
        up, down = self._fitted(cells, noise)
        self._keep_large(up, noise)
        if down is not up:
            self._keep_large(down, noise)
        for key, members in self._cells.items():
            change = up[key[0]] + down[key[1]] - self._of(key)
            for at in members:
                polish.left[at] -= change
        self.up.update(up.items())
        self.down.update(down.items())

    def _of(self, key: _Cell) -> float:
        return self.up.get(key[0], 0.0) + self.down.get(key[1], 0.0)

    def _keep_large(self, found: dict[int, float], noise: float) -> None:
        """Hold terms against their median, and leave what is small to the endpoints."""
        middle = median(sorted(found.values()))
        for leaf, value in found.items():
            scatter = _MEDIAN_SCATTER * noise / math.sqrt(max(self.counts[leaf], 1))
            least = max(_ROUND_SIGNIFICANCE * scatter, LEAST_EFFECT / 2)
            found[leaf] = value - middle if abs(value - middle) > least else 0.0

    def _fitted(
        self, cells: Sequence[tuple[_Cell, int, float]], noise: float
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Return the terms up and down of each leaf, the same where tests have no direction."""
        second = "up" if self._twoway else "down"
        keys = [(("up", one), (second, other), ("level", kind)) for (one, other, kind), _, _ in cells]
        terms: dict[tuple[str, Hashable], float] = dict.fromkeys((key for each in keys for key in each), 0.0)
        for _ in range(_REWEIGHTED):
            weights = [
                count / max(abs(value - sum(terms[key] for key in each)), noise / 4)
                for (_, count, value), each in zip(cells, keys, strict=True)
            ]
            for name in ("up", "down", "level", "up", "down", "level"):
                sums: dict[tuple[str, Hashable], list[float]] = defaultdict(lambda: [0.0, 1e-9])
                for (_, _, value), each, weight in zip(cells, keys, weights, strict=True):
                    left = value - sum(terms[key] for key in each)
                    for key in each:
                        if key[0] == name:
                            sums[key][0] += weight * left
                            sums[key][1] += weight
                # A term that is at both ends of a test moves by half.
                damping = 0.5 if name == second == "up" else 1.0
                for key, (total, weight) in sums.items():
                    terms[key] += damping * total / weight
        leaves = {leaf for (one, other, _), _, _ in cells for leaf in (one, other)}
        up = {leaf: terms.get(("up", leaf), 0.0) for leaf in leaves}
        return up, up if self._twoway else {leaf: terms.get(("down", leaf), 0.0) for leaf in leaves}


def fit(places: Places, tests: Sequence[PairTest], metric: Metric, classes: Sequence[Hashable] | None = None) -> Fit:
    """Return the model of the tests that have a value; there is at least one of them.

    `classes`: what stands for the hops of each test where leaves are not known: the band of its latency.
    """
    values, numbers = logs(tests, metric)
    polish = _Polish(list(values))
    kept = [tests[number] for number in numbers]
    kinds = [places.hops(each.sender, each.receiver) if classes is None else classes[number]
             for each, number in zip(kept, numbers, strict=True)]  # fmt: skip
    twoway = metric != "bandwidth"
    groups = _groups(places, kept, kinds, twoway=twoway)
    ends = [_leaves_of(places, each) for each in kept]
    leaves = _Leaves(ends, kinds, twoway=twoway)
    terms: dict[str, Terms] = {name: {} for name in groups}
    overall = 0.0
    for _ in range(_SWEEPS):
        centre = median(sorted(polish.left))
        polish.left = [each - centre for each in polish.left]
        overall += centre
        noise = polish.noise()
        for name, members in groups.items():
            polish.take(members, terms[name], _least_of(name, noise))
            if name == "rail":
                leaves.take(polish)
            if name == "round":
                _centre_rounds(polish, members, terms[name])
    count = len(places.endpoints)
    senders = tuple(terms["sender"].get(each, 0.0) for each in range(count))
    receivers = senders if twoway else tuple(terms["receiver"].get(each, 0.0) for each in range(count))
    sent = tuple(len(groups["sender"].get(each, ())) for each in range(count))
    spent = sum(len(each) for name, each in groups.items() if name in ("sender", "receiver"))
    freedom = max(len(values) - spent, len(values) // 4, 1)
    return Fit(
        metric=metric,
        overall=overall,
        hops=dict(terms["hops"]),
        rounds=dict(terms["round"]),
        rails=dict(terms["rail"]),  # type: ignore[arg-type]
        leaf_up=dict(leaves.up),  # type: ignore[arg-type]
        leaf_down=dict(leaves.down),  # type: ignore[arg-type]
        senders=senders,
        receivers=receivers,
        sent=sent,
        received=sent if twoway else tuple(len(groups["receiver"].get(each, ())) for each in range(count)),
        residuals=tuple(polish.left),
        tests=tuple(numbers),
        noise=polish.noise() * math.sqrt(len(values) / freedom),
    )


def _centre_rounds(polish: _Polish, groups: Groups, terms: Terms) -> None:
    """Leave to rounds only what differs between rounds of one hop class: some rounds are of one class alone."""
    by_class: dict[Hashable, list[Hashable]] = defaultdict(list)
    for key in groups:
        by_class[key[1]].append(key)  # type: ignore[index]
    for keys in by_class.values():
        middle = median(sorted(terms[key] for key in keys))
        for key in keys:
            polish.set(key, groups[key], terms, terms[key] - middle)


def extended(before: Fit, places: Places, tests: Sequence[PairTest], kinds: Sequence[Hashable]) -> Fit:
    """Return a fit with the residuals of more tests, which its terms were not fitted to. `kinds`: hops of each test.

    The level of a later round is that of the most of its tests.
    """
    values, numbers = logs(tests, before.metric)
    left = []
    for value, number in zip(values, numbers, strict=True):
        test, kind = tests[number], kinds[number]
        rail = before.rails.get(places.endpoints[test.sender].rail, 0.0)
        own = before.senders[test.sender] + before.receivers[test.receiver]
        if (leaves := _leaves_of(places, test)) is not None:
            own += before.leaf_up.get(leaves[0], 0.0) + before.leaf_down.get(leaves[1], 0.0)
        level = before.rounds.get((test.round, kind), 0.0)
        left.append(value - before.overall - before.hops.get(kind, 0.0) - rail - own - level)
    by_round: dict[int, list[int]] = defaultdict(list)
    for at, number in enumerate(numbers):
        if tests[number].retest:
            by_round[tests[number].round].append(at)
    for members in by_round.values():
        if len(members) >= 4 * _LEAST_OF_A_GROUP:
            level = median(sorted(left[at] for at in members))
            for at in members:
                left[at] -= level
    return replace(before, residuals=tuple(left), tests=tuple(numbers))


def _leaves_of(places: Places, test: PairTest) -> tuple[int, int] | None:
    """Return the leaves of a test that crosses between two; None of one that does not."""
    one, other = places.leaves[test.sender], places.leaves[test.receiver]
    return None if one is None or other is None or one == other else (one, other)


def _groups(places: Places, tests: Sequence[PairTest], kinds: Sequence[Hashable], *, twoway: bool) -> dict[str, Groups]:
    """Return which tests each term is in, in the order in which terms are taken out: the wider first."""
    found: dict[str, Groups] = {name: defaultdict(list) for name in ("hops", "rail", "round", "sender", "receiver")}
    for at, test in enumerate(tests):
        found["hops"][kinds[at]].append(at)
        found["round"][test.round, kinds[at]].append(at)
        found["rail"][places.endpoints[test.sender].rail].append(at)
        found["sender"][test.sender].append(at)
        found["sender" if twoway else "receiver"][test.receiver].append(at)
    return {
        name: {key: each for key, each in groups.items() if name not in _FEW or len(each) >= _LEAST_OF_A_GROUP}
        for name, groups in found.items()
    }


def _least_of(name: str, noise: float) -> Callable[[int], float]:
    if name in ("sender", "receiver", "hops"):
        return lambda _count: 0.0
    times = _ROUND_SIGNIFICANCE * _MEDIAN_SCATTER * noise
    # What a rail or a leaf does is told from the least effect on; below half of it its endpoints carry it.
    least = 0.0 if name == "round" else LEAST_EFFECT / 2
    return lambda count: max(times / math.sqrt(count), least)
