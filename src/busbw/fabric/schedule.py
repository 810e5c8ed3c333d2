"""Rounds of disjoint pairs: every pair once, a few random rounds, and rounds about what is still open.

A pair of a round is tested in both directions, one after the other, where the metric has directions. Rails are paired
each within itself, all at once. Where leaves are known, rounds stay within them first.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from busbw.fabric.places import Draws, Places

Pair = tuple[int, int]
Round = tuple[Pair, ...]
SPARSE_ROUNDS = 5
# Of those, rounds that stay within leaves, where leaves are known.
_WITHIN = 2
# Two leaves meet each other alone.
_LEAST_LEAVES = 3
# How often a round is drawn again to avoid a pair that was there.
_TRIES = 20


def tournament(count: int) -> Iterator[Round]:
    """Yield the rounds in which every two of `count` meet once: count - 1, or count with a bye where it is odd.

    The circle method: one stays, the others move on by one place each round.
    """
    even = count + count % 2
    circle = list(range(1, even))
    for _ in range(even - 1):
        places = [0, *circle]
        pairs = [(places[at], places[even - 1 - at]) for at in range(even // 2)]
        yield tuple((one, other) for one, other in pairs if max(one, other) < count)
        circle = [circle[-1], *circle[:-1]]


def full_rounds(places: Places) -> Iterator[Round]:
    """Yield the rounds in which every two endpoints of a rail meet once."""
    rounds = [tournament(len(members)) for members in places.rails.values()]
    longest = max(len(members) + len(members) % 2 - 1 for members in places.rails.values())
    for _ in range(longest):
        found: list[Pair] = []
        for members, each in zip(places.rails.values(), rounds, strict=True):
            found.extend((members[one], members[other]) for one, other in next(each, ()))
        yield tuple(found)


def sparse_rounds(places: Places, draws: Draws, count: int = SPARSE_ROUNDS) -> Iterator[Round]:
    """Yield `count` random rounds: within leaves first where leaves are known, then across them."""
    met: set[Pair] = set()
    # Who is alone below its leaf rests while the others stay within theirs.
    paired = sum(len(each) for each in places.members.values() if len(each) > 1)
    has_leaves = len(places.members) > 1 and None not in places.leaves
    within = min(_WITHIN, count - 1) if has_leaves and 4 * paired >= 3 * len(places.endpoints) else 0
    for number in range(count):
        found: list[Pair] = []
        for members in places.rails.values():
            pairs: list[Pair] = []
            for _ in range(_TRIES):
                pairs = _within(places, members, draws) if number < within else _spread(places, members, draws)
                if met.isdisjoint(pairs):
                    break
            found.extend(pairs)
        met.update(found)
        yield tuple(found)


def shuffled(members: Sequence[int], draws: Draws) -> list[int]:
    """Return them in a random order."""
    return [each for _, each in sorted((draws.random(), each) for each in members)]


def _within(places: Places, members: Sequence[int], draws: Draws) -> list[Pair]:
    """Pair at random within each leaf; one of an odd leaf stays without."""
    order = sorted(shuffled(members, draws), key=lambda each: places.leaves[each] or 0)
    found, at = [], 0
    while at + 1 < len(order):
        if places.leaves[order[at]] == places.leaves[order[at + 1]]:
            found.append(_pair(order[at], order[at + 1]))
            at += 1
        at += 1
    return found


def _spread(places: Places, members: Sequence[int], draws: Draws) -> list[Pair]:
    """Pair at random so that every two leaves meet about equally often, as far as leaves are known and of one size."""
    by_leaf: dict[int | None, list[int]] = defaultdict(list)
    for each in shuffled(members, draws):
        by_leaf[places.leaves[each]].append(each)
    if None in by_leaf or len(by_leaf) < _LEAST_LEAVES:
        return _across(places, members, draws)
    own = list(by_leaf.values())
    leaves = [own[each] for each in shuffled(range(len(own)), draws)]
    # The first of each leaf meet as in one round of a tournament of leaves, the second as in the next.
    turns = list(tournament(len(leaves)))
    start = int(draws.random() * len(turns))
    found: list[Pair] = []
    for at in range(max(map(len, leaves))):
        for one, other in turns[(start + at) % len(turns)]:
            if at < min(len(leaves[one]), len(leaves[other])):
                found.append(_pair(leaves[one][at], leaves[other][at]))
    paired = {end for pair in found for end in pair}
    return found + _across(places, [each for each in members if each not in paired], draws)


def _across(places: Places, members: Sequence[int], draws: Draws) -> list[Pair]:
    """Pair at random, and across leaves as far as they are known and none holds more than half."""
    order = shuffled(members, draws)
    pairs = [(order[at], order[at + 1]) for at in range(0, len(order) - 1, 2)]
    leaves = places.leaves
    if len({leaves[each] for each in members}) > 1:
        for at, (one, other) in enumerate(pairs):
            if leaves[one] is None or leaves[one] != leaves[other]:
                continue
            # Two pairs of which one stays within a leaf exchange partners where both cross afterwards.
            start = int(draws.random() * len(pairs))
            for step in range(len(pairs)):
                third, fourth = pairs[(start + step) % len(pairs)]
                if leaves[third] != leaves[one] and leaves[fourth] != leaves[other]:
                    pairs[at], pairs[(start + step) % len(pairs)] = (one, third), (other, fourth)
                    break
    return [_pair(one, other) for one, other in pairs]


def _pair(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)


def retest_rounds(
    wanted: Sequence[Sequence[Pair]], places: Places, good: Sequence[int], draws: Draws, count: int
) -> tuple[Round, ...]:
    """Return `count` rounds with as many of the wanted pairs as fit, each suspicion's in its order.

    Good endpoints that are left over are paired among themselves, so that the fabric is as busy as before.
    """
    queues = [list(pairs) for pairs in wanted]
    rounds: list[Round] = []
    for _ in range(count):
        taken: set[int] = set()
        found: list[Pair] = []
        placed = True
        while placed:
            placed = False
            for queue in queues:
                at = next((at for at, pair in enumerate(queue) if taken.isdisjoint(pair)), None)
                if at is not None:
                    pair = queue.pop(at)
                    taken.update(pair)
                    found.append(_pair(*pair))
                    placed = True
        free = set(good) - taken
        for members in places.rails.values():
            found.extend(_across(places, [each for each in members if each in free], draws))
        rounds.append(tuple(found))
    return tuple(rounds)
