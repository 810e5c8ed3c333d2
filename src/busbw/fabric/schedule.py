"""Rounds of disjoint pairs: every pair once, a few random rounds, and rounds about what is still open.

A pair of a round is tested in both directions, one after the other, where the metric has directions. Rails are paired
each within itself, all at once. Where leaves are known, rounds stay within them first.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from busbw.base.errors import InputError
from busbw.fabric.places import Draws, Places

Pair = tuple[int, int]
Round = tuple[Pair, ...]
SPARSE_ROUNDS = 5
# About what is suspicious; more where a fabric has many nodes.
RETEST_ROUNDS = 3
_FEW_NODES, MANY_NODES = 64, 256
# What may be asked for.
LEAST_OF_A_SWEEP, MOST_OF_A_SWEEP = SPARSE_ROUNDS + RETEST_ROUNDS, 1000
# Of the first rounds those that stay within leaves, where leaves are known, and those across, at most.
_WITHIN = 2
_MOST_ACROSS = 4
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
    for _ in range(count_full_rounds(places)):
        found: list[Pair] = []
        for members, each in zip(places.rails.values(), rounds, strict=True):
            found.extend((members[one], members[other]) for one, other in next(each, ()))
        yield tuple(found)


def count_full_rounds(places: Places) -> int:
    """Return how many rounds `full_rounds` has."""
    return max(len(members) + len(members) % 2 - 1 for members in places.rails.values())


def most_rounds(nodes: int) -> int:
    """Return how many rounds a sweep of so many nodes has at most, unless more are asked for: 8 to 12.

    Two leaves of many meet less often in as many rounds, so that more has to be asked again.
    """
    return 8 if nodes <= _FEW_NODES else 10 if nodes < MANY_NODES else 12


def check_rounds(most: int | None) -> None:
    """Raise InputError where a sweep cannot have so many rounds at most."""
    if most is not None and not LEAST_OF_A_SWEEP <= most <= MOST_OF_A_SWEEP:
        raise InputError(
            f"a sweep has {LEAST_OF_A_SWEEP} to {MOST_OF_A_SWEEP} rounds at most: five, and three about what is open",
            where=f"--rounds {most}",
            hint="--rounds 16, or leave it out",
        )


def sparse_rounds(places: Places, draws: Draws) -> Iterator[Round]:
    """Yield random rounds, five or a few more: within leaves first where leaves are known, then across them.

    More than five where leaves are so many that three rounds do not let every two of them meet.
    """
    met: set[Pair] = set()
    # Who is alone below its leaf rests while the others stay within theirs.
    paired = sum(len(each) for each in places.members.values() if len(each) > 1)
    has_leaves = len(places.members) > 1 and None not in places.leaves
    within = _WITHIN if has_leaves and 4 * paired >= 3 * len(places.endpoints) else 0
    meetings = [_Meetings(places, members, draws) for members in places.rails.values()]
    longest = max((each.longest for each in meetings), default=0)
    most = most_rounds(len(places.nodes)) - RETEST_ROUNDS - within
    across = max(SPARSE_ROUNDS - within, min(longest, _MOST_ACROSS, most))
    for number in range(within + across):
        found: list[Pair] = []
        for members, leaves in zip(places.rails.values(), meetings, strict=True):
            pairs: list[Pair] = []
            for _ in range(_TRIES):
                pairs = _within(places, members, draws) if number < within else leaves.round(number - within, draws)
                if met.isdisjoint(pairs):
                    break
            found.extend(pairs)
        met.update(found)
        yield tuple(found)


class _Meetings:
    """Rounds across the leaves of a rail in which every two of them meet about equally often, in turn.

    As far as leaves are known and of one size: what is over is paired at random.
    """

    def __init__(self, places: Places, members: Sequence[int], draws: Draws) -> None:
        self._places = places
        self._members = members
        by_leaf: dict[int | None, list[int]] = defaultdict(list)
        for each in members:
            by_leaf[places.leaves[each]].append(each)
        own = list(by_leaf.values())
        self._leaves = [own[each] for each in shuffled(range(len(own)), draws)]
        self._turns: list[Round] = []
        if None not in by_leaf and len(by_leaf) >= _LEAST_LEAVES:
            self._turns = list(tournament(len(self._leaves)))
        # How many leaves a leaf meets in a round.
        self._width = max(map(len, self._leaves), default=0)

    @property
    def longest(self) -> int:
        """The rounds in which every two leaves meet once."""
        return -(-len(self._turns) // self._width) if self._turns else 0

    def round(self, number: int, draws: Draws) -> list[Pair]:
        """Return the pairs of one round: the first of each leaf meet in one turn, the second in the next."""
        if not self._turns:
            return _across(self._places, self._members, draws)
        leaves = [shuffled(each, draws) for each in self._leaves]
        found: list[Pair] = []
        for at in range(self._width):
            for one, other in self._turns[(number * self._width + at) % len(self._turns)]:
                if at < min(len(leaves[one]), len(leaves[other])):
                    found.append(_pair(leaves[one][at], leaves[other][at]))
        paired = {end for pair in found for end in pair}
        return found + _across(self._places, [each for each in self._members if each not in paired], draws)


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


def retest_round(wanted: Sequence[Sequence[Pair]], places: Places, good: Sequence[int], draws: Draws) -> Round:
    """Return a round with as many of the wanted pairs as fit, each suspicion's in its order.

    Good endpoints that are left over are paired among themselves, so that the fabric is as busy as before.
    """
    queues = [list(pairs) for pairs in wanted]
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
    return tuple(found)
