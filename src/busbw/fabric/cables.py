"""One bad cable of several above a leaf: it slows some of the pairs that cross, always the same ones.

A leaf is suspicious where more of its tests across are slow than chance makes. Pairs that are slow are tested again:
those that stay slow while their ends are sound in other tests lie on what is bad, and the leaf they share is named.
"""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

from busbw import _core
from busbw.fabric.answers import MOST_OF, Least, Retest, Suspicion
from busbw.fabric.inference import DISTURBED, Fit, disturbed_share
from busbw.fabric.pair_table import PairTable, leaf_column
from busbw.fabric.places import Places
from busbw.fabric.schedule import Pair
from busbw.stats.distributions import binomial_tail, median

# A pair is surely slow that was so in two rounds; one pair may be slow on a way of its own.
_LEAST_AGAIN = 2
_LEAST_FIRM = 2
_LEAST_LEAVES = 3
# More pairs than chance makes slow twice, where tests beside the leaf are disturbed more than is taken for granted.
_TWICE_BY_CHANCE, _MORE_THAN_GRANTED = 0.02, 0.2
# Tests of an endpoint within its leaf are sound below this share of its term, and those across show this much of it.
_SOUND_WITHIN, _SLOW_ACROSS = 1 / 3, 2 / 3


def cable_suspicions(
    places: Places, tests: PairTable, fit: Fit, left: "array[float]", whole: Collection[int], least: Least
) -> Iterator[Suspicion]:
    """Yield leaves of which more ways out are slow than chance makes, while the others are sound.

    `left`: what is left of each test by the fit; `whole`: leaves whose uplinks are suspicious as a whole.
    """
    left, beyond = _beyond_leaves(places, tests, fit, left)
    crossed = _core.crossings(tests.senders, tests.receivers, left, leaf_column(places), fit.slower)
    crossing = {leaf: count for leaf, count in enumerate(crossed.by_leaf) if count}
    slow: dict[int, list[tuple[Pair, float]]] = defaultdict(list)
    for number in crossed.slow:
        pair = (tests.senders[number], tests.receivers[number])
        for end in pair:
            if (leaf := places.leaves[end]) is not None:
                slow[leaf].append((pair, left[number]))
    ranked = sorted(slow, key=lambda leaf: -len(slow[leaf]) / crossing[leaf])
    taken: set[Pair] = set()
    for leaf in ranked:
        own = _without_own_links([each for each in slow[leaf] if each[0] not in taken])
        if (
            leaf in whole
            or len(own) < least.cluster
            or (len(ends := {end for pair, _ in own for end in pair}) < 2 * least.cluster and not ends & beyond)
            or (len(crossing) > 2 and _to_one_other([pair for pair, _ in own], places))
        ):
            continue
        # What does not touch the leaf says how often a test is slow by chance.
        chance = disturbed_share(
            len(crossed.slow) - len(slow[leaf]), sum(crossing.values()) // 2 - crossing[leaf]
        )  # fmt: skip
        if len(own) > chance * crossing[leaf] and binomial_tail(len(own), crossing[leaf], chance) < least.chance:
            taken.update(pair for pair, _ in own)
            effect = median(sorted(effect for _, effect in own))
            strongest = sorted(own, key=lambda each: -each[1])
            yield Suspicion(kind="cable", elements=(leaf,), effect=effect, pairs=tuple(pair for pair, _ in strongest))


def _beyond_leaves(places: Places, tests: PairTable, fit: Fit, left: "array[float]") -> "tuple[array[float], set[int]]":
    """Return what is left of each test, and endpoints that are slow across leaves and sound within theirs.

    Where routes go by destination a bad cable slows all that comes to some of the hosts below a leaf; the fit has that
    for slowness of those hosts, which is put back here.
    """
    terms = dict(_slow_ways(places, fit))
    across: dict[tuple[int, bool], list[int]] = {each: [] for each in terms}
    within: dict[tuple[int, bool], list[float]] = {each: [] for each in terms}
    for number in tests.among(places, [end for end, _ in terms]) if terms else ():
        pair = (tests.senders[number], tests.receivers[number])
        for way in ((pair[0], False), (pair[1], True)):
            if way in terms and places.crossing(*pair):
                across[way].append(number)
            elif way in terms:
                within[way].append(left[number] + terms[way])
    back: dict[int, float] = {}
    beyond = set[int]()
    for way, term in terms.items():
        slow = sum(left[number] > (_SLOW_ACROSS - 1) * term for number in across[way])
        enough = min(len(across[way]), len(within[way])) >= _LEAST_AGAIN
        if enough and 3 * slow >= 2 * len(across[way]) and median(sorted(within[way])) < _SOUND_WITHIN * term:
            beyond.add(way[0])
            for number in across[way]:
                back[number] = back.get(number, 0.0) + term
    if back:
        left = left[:]
        for number, term in back.items():
            left[number] += term
    return left, beyond


def _slow_ways(places: Places, fit: Fit) -> Iterator[tuple[tuple[int, bool], float]]:
    """Yield endpoints that are slow, whether receiving, with their term."""
    ways = 2 * len(places.endpoints)
    for end, leaf in enumerate(places.leaves):
        if leaf is not None and fit.senders[end] > fit.bound(fit.sent[end], ways):
            yield (end, False), fit.senders[end]
        if leaf is not None and fit.receivers[end] > fit.bound(fit.received[end], ways):
            yield (end, True), fit.receivers[end]


def _without_own_links(slow: Sequence[tuple[Pair, float]]) -> list[tuple[Pair, float]]:
    """Return slow pairs but for those of an endpoint that is slow both ways with two others: its own link does that."""
    pairs = {pair for pair, _ in slow}
    both = Counter(one for one, other in pairs if (other, one) in pairs)
    return [each for each in slow if max(both[end] for end in each[0]) < _LEAST_AGAIN]


def _to_one_other(pairs: Sequence[Pair], places: Places) -> bool:
    """Whether most of them have both leaves in common, not one."""
    links = Counter(places.link(*pair) for pair in pairs)
    return max(links.values()) > MOST_OF * len(pairs)


def firm_cables(
    places: Places, tests: PairTable, fit: Fit, named: Collection[int], links: Collection[frozenset[int]]
) -> Iterator[tuple[Suspicion, Retest]]:
    """Yield leaves that pairs share which are slow whenever they are tested, with those tests.

    `named`: leaves whose uplinks are bad as a whole; `links`: regions, two and two, between which all is slow.
    """
    seen, again = _pairs_again(places, tests, fit, named)
    left = {pair: numbers for pair, numbers in seen.items() if places.link(*pair) not in links}
    leaves = len({leaf for leaf in places.leaves if leaf is not None})
    while left:
        by_leaf: dict[int, list[Pair]] = defaultdict(list)
        for pair in left:
            for end in pair:
                if (leaf := places.leaves[end]) is not None:
                    by_leaf[leaf].append(pair)
        leaf = max(by_leaf, key=lambda each: len({end for pair in by_leaf[each] for end in pair}))
        pairs = by_leaf[leaf]
        ends = {end for pair in pairs for end in pair}
        slow = tuple(sorted(number for pair in pairs for number in left.pop(pair)))
        is_of_one = bool(set.intersection(*map(set, pairs)))
        if (is_of_one or len(ends) < 2 * _LEAST_FIRM) and not _is_beyond(leaf, pairs, slow, places, tests, fit):
            continue
        if leaves >= _LEAST_LEAVES and len({places.link(*pair) for pair in pairs}) == 1:
            # Both leaves, and the link between them, are on all of these ways.
            continue
        chance = _chance_beside(leaf, places, tests, fit)
        if chance > DISTURBED and binomial_tail(len(pairs), again[leaf], chance) > _TWICE_BY_CHANCE:
            # Where so many tests are disturbed, some pairs are so twice.
            continue
        effects = [effect for number in slow if (effect := _effect(number, places, tests, fit)) is not None]
        yield (
            Suspicion(kind="cable", elements=(leaf,), effect=median(sorted(effects)), pairs=tuple(pairs)),
            Retest(slow=len(slow), of=len(slow), tests=slow, alone_slow=None),
        )


def _is_beyond(
    leaf: int, pairs: Sequence[Pair], slow: Sequence[int], places: Places, tests: PairTable, fit: Fit
) -> bool:
    """Whether two pairs or more have an endpoint of the leaf in common that is sound within it, and on the way back.

    By destination one cable of several carries all that comes to it: its NIC would be slow within the leaf as well, and
    a link that comes and goes in both directions.
    """
    shared = set.intersection(*map(set, pairs))
    if len(pairs) < _LEAST_FIRM or len(shared) != 1 or places.leaves[end := shared.pop()] != leaf:
        return False
    receives = pairs[0][1] == end
    effects = [each for number in slow if (each := _effect(number, places, tests, fit)) is not None]
    sound = _SOUND_WITHIN * median(sorted(effects))
    back = {(other, one) for one, other in pairs}
    within: list[bool] = []
    ways_back: list[bool] = []
    for number in tests.among(places, (end,)):
        pair = (tests.senders[number], tests.receivers[number])
        effect = _effect(number, places, tests, fit)
        if effect is not None and pair in back:
            ways_back.append(effect <= sound)
        elif effect is not None and pair[receives] == end and not places.crossing(*pair):
            within.append(effect <= sound)
    return sum(within) >= _LEAST_AGAIN and 3 * sum(within) >= 2 * len(within) and 2 * sum(ways_back) >= len(ways_back)


def _chance_beside(leaf: int, places: Places, tests: PairTable, fit: Fit) -> float:
    """Return how often a first test is slow by chance, by those that do not touch a leaf."""
    slow = of = 0
    for number in range(tests.first_retest):
        ends = (tests.senders[number], tests.receivers[number])
        if leaf not in (places.leaves[ends[0]], places.leaves[ends[1]]):
            of += not math.isnan(fit.residuals[number])
            slow += fit.residuals[number] > fit.slower
    return disturbed_share(slow, of, _MORE_THAN_GRANTED)


def _pairs_again(
    places: Places, tests: PairTable, fit: Fit, named: Collection[int]
) -> tuple[dict[Pair, list[int]], Counter[int | None]]:
    """Return pairs across leaves that were slow in two tests and in two of three, with the numbers of those.

    Both ends were sound in another test of that direction: else one of them is what is bad. And how many pairs of each
    leaf were tested across more than once.
    """
    slower = fit.slower
    sending, receiving = set[int](), set[int]()
    slow: dict[Pair, list[int]] = defaultdict(list)
    times: Counter[Pair] = Counter()
    for number in range(len(tests)):
        effect = _effect(number, places, tests, fit)
        if effect is None:
            continue
        pair = (tests.senders[number], tests.receivers[number])
        times[pair] += 1
        if effect > slower:
            slow[pair].append(number)
        else:
            sending.add(pair[0])
            receiving.add(pair[1])
            if not fit.has_directions:
                sending.add(pair[1])
                receiving.add(pair[0])
    again = Counter(
        leaf for pair, count in times.items() if count >= _LEAST_AGAIN and places.crossing(*pair)
        for leaf in (places.leaves[pair[0]], places.leaves[pair[1]])
    )  # fmt: skip
    return {
        pair: numbers
        for pair, numbers in slow.items()
        if len(numbers) >= _LEAST_AGAIN and 3 * len(numbers) >= 2 * times[pair]
        and places.crossing(*pair) and not {places.leaves[end] for end in pair} & set(named)
        and pair[0] in sending and pair[1] in receiving
    }, again  # fmt: skip


def _effect(number: int, places: Places, tests: PairTable, fit: Fit) -> float | None:
    """Return how slow a test is, whatever the fit took for slowness of its ends and their leaves."""
    residual = fit.residuals[number]
    if math.isnan(residual):
        return None
    one, other = tests.senders[number], tests.receivers[number]
    found = residual + fit.senders[one] + fit.receivers[other]
    if places.crossing(one, other):
        first, second = places.leaves[one], places.leaves[other]
        found += fit.leaf_up.get(first or 0, 0.0) + fit.leaf_down.get(second or 0, 0.0)
    return found
