"""A search under way: what has been run, what it is held against, and how groups of a next look are made up."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from busbw.fabric.groups.judging import GroupPurpose, GroupResult, GroupScale, GroupTerms, GroupTest, scale_of
from busbw.fabric.places import Draws

Group = tuple[int, ...]
GroupMeasure = Callable[[Sequence[Group], int], Sequence[GroupResult]]
# Orders that are drawn for a look, of which the one is taken that lets fewest nodes meet again.
_DRAWN_ORDERS = 12
_FEW_NODES = 128


class BudgetSpent(Exception):  # noqa: N818 - not an error: the end of the measurement
    """The rounds that were allowed are used up."""


@dataclass(slots=True)
class GroupSearch:
    """The groups run so far."""

    nodes: int
    group_nodes: int
    measure: GroupMeasure
    terms: GroupTerms
    draws: Draws
    repeats: int
    most_rounds: int
    tests: list[GroupTest] = field(default_factory=list)
    rounds: int = 0
    looks: int = 0
    meetings: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))

    @property
    def side_by_side(self) -> int:
        """How many groups run at the same time."""
        return self.nodes // self.group_nodes

    @property
    def scale(self) -> GroupScale:
        """What tests are held against, from all of them."""
        return scale_of(self.tests, self.terms)

    def look(self, groups: Sequence[Group], purpose: GroupPurpose, repeats: int) -> list[GroupTest]:
        """Run groups side by side as often as told. Raises BudgetSpent where that is beyond the budget."""
        if self.rounds + repeats > self.most_rounds:
            raise BudgetSpent
        begun, self.looks = self.rounds, self.looks + 1
        found: list[list[GroupResult]] = [[] for _ in groups]
        for _ in range(repeats):
            self.rounds += 1
            for own, result in zip(found, self.measure(groups, self.rounds - 1), strict=True):
                own.append(result)
        made = [
            GroupTest(nodes=group, round=begun, look=self.looks, purpose=purpose, results=tuple(own))
            for group, own in zip(groups, found, strict=True)
        ]
        self.tests += made
        for group in groups:
            for pair in _pairs(group):
                self.meetings[pair] += 1
        return made

    def good(self) -> set[int]:
        """Return the nodes that a sound group of the usual size has had, and that are in no more bad ones."""
        scale = self.scale
        sound, bad = self.counts(scale)
        return {node for node in range(self.nodes) if sound[node] > 0 and sound[node] >= bad[node]}

    def in_sound(self) -> set[int]:
        """Return the nodes that were in a sound group that ran among others."""
        sound, _bad = self.counts(self.scale)
        return {node for node in range(self.nodes) if sound[node]}

    def counts(self, scale: GroupScale) -> tuple[list[int], list[int]]:
        """Return in how many sound, and in how many bad tests among others each node was."""
        sound, bad = [0] * self.nodes, [0] * self.nodes
        for test in self.tests:
            if test.purpose in ("whole", "alone") or len(test.nodes) != self.group_nodes:
                continue
            state = scale.state(test)
            for node in test.nodes:
                sound[node] += state == "sound"
                bad[node] += state in ("slow", "failed")
        return sound, bad

    def seldom_met(self, node: int, others: Sequence[int], last: Collection[int]) -> list[int]:
        """Return others in the order of how often they were in a group with a node; those of `last` behind."""
        met = {each: self.meetings.get((min(each, node), max(each, node)), 0) for each in others}
        return sorted(others, key=lambda each: (met[each], each in last))

    def shuffled(self, nodes: Iterable[int]) -> list[int]:
        """Return nodes in a drawn order."""
        return [node for _, node in sorted((self.draws.random(), node) for node in nodes)]

    def spread(self, suspects: Collection[int], good: Collection[int] | None = None) -> list[Group]:
        """Return all groups of a look, the suspects evenly over them; nodes that met seldom are put together."""
        tries = _DRAWN_ORDERS if self.nodes <= _FEW_NODES else 1
        drawn = [self._spread(suspects, good) for _ in range(tries)]
        return min(
            drawn, key=lambda groups: sum(self.meetings.get(pair, 0) for each in groups for pair in _pairs(each))
        )

    def _spread(self, suspects: Collection[int], good: Collection[int] | None) -> list[Group]:
        known = set(good) if good is not None else set()
        first = self.shuffled(suspects)
        rest = self.shuffled(set(range(self.nodes)) - set(suspects))
        rest.sort(key=lambda node: node not in known)
        return self.filled([first[at :: self.side_by_side] for at in range(self.side_by_side)], rest)

    def filled(self, begun: Sequence[Sequence[int]], others: Iterable[int]) -> list[Group]:
        """Return groups of the usual size: those begun, filled up with others in their order, and more while there are.

        A group that is too large loses its last ones; a group that cannot be filled is left out.
        """
        taken = {node for own in begun for node in own[: self.group_nodes]}
        rest = [node for node in others if node not in taken]
        made = []
        for own in begun:
            lacking = self.group_nodes - len(own[: self.group_nodes])
            if lacking <= len(rest):
                made.append(tuple(sorted((*own[: self.group_nodes], *rest[:lacking]))))
                del rest[:lacking]
        while len(rest) >= self.group_nodes and len(made) < self.side_by_side:
            made.append(tuple(sorted(rest[: self.group_nodes])))
            del rest[: self.group_nodes]
        return made


def _pairs(group: Group) -> Iterable[tuple[int, int]]:
    return ((one, other) for at, one in enumerate(group) for other in group[at + 1 :])
