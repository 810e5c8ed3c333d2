"""What answers name, as numbers of endpoints, leaves, rails and regions: whether a test, a leaf or a link is of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from busbw.fabric.answers import FabricAnswer, Kind
from busbw.fabric.places import PairTest, Places

_OF_ENDPOINTS: tuple[Kind, ...] = ("node", "nic", "nic_send", "nic_receive", "unsteady", "unanswered")


@dataclass(frozen=True, kw_only=True)
class NamedParts:
    """What is suspected, each with the number of its answer."""

    places: Places
    endpoints: dict[int, int] = field(default_factory=dict)
    # Leaf switches as a whole; leaves by their uplinks.
    switches: dict[int, int] = field(default_factory=dict)
    uplinks: dict[int, int] = field(default_factory=dict)
    rails: dict[str | None, int] = field(default_factory=dict)
    # Two regions, as `Places.link` has them.
    links: dict[frozenset[int], int] = field(default_factory=dict)
    # Hop classes of which all tests are suspected.
    hops: dict[int, int] = field(default_factory=dict)
    # Endpoints that are suspected in one direction.
    sending: frozenset[int] = frozenset()
    receiving: frozenset[int] = frozenset()

    def of(self, test: PairTest) -> int | None:
        """Return the number of the answer that a test is about; None: of none."""
        one, other = test.sender, test.receiver
        if one in self.endpoints and one not in self.receiving:
            return self.endpoints[one]
        if other in self.endpoints and other not in self.sending:
            return self.endpoints[other]
        if self.rails and (rail := self.places.endpoints[one].rail) in self.rails:
            return self.rails[rail]
        return self._of_leaves(one, other) if self.switches or self.uplinks or self.links or self.hops else None

    def _of_leaves(self, one: int, other: int) -> int | None:
        first, second = self.places.leaves[one], self.places.leaves[other]
        if first is None or second is None:
            return None
        for leaf in (first, second):
            if leaf in self.switches:
                return self.switches[leaf]
            if first != second and leaf in self.uplinks:
                return self.uplinks[leaf]
        link, hops = self.places.link(one, other), self.places.hops(one, other)
        if link in self.links:
            return self.links[link]
        return None if hops is None else self.hops.get(hops)

    def endpoints_of(self, answer: int) -> frozenset[int]:
        """Return the endpoints that an answer names itself."""
        return frozenset(each for each, number in self.endpoints.items() if number == answer)

    def has_leaf(self, leaf: int) -> bool:
        """Whether a leaf or its uplinks are suspected."""
        return leaf in self.switches or leaf in self.uplinks


def parts_of(answers: Sequence[FabricAnswer], places: Places) -> NamedParts:
    """Return what answers name; that of the first one where two name the same."""
    found = NamedParts(places=places)
    endpoints = {str(each): at for at, each in enumerate(places.endpoints)} if answers else {}
    leaves = {name: at for at, name in enumerate(places.leaf_names)}
    sending: set[int] = set()
    receiving: set[int] = set()
    for number, answer in enumerate(answers):
        own = [endpoints[each] for each in answer.parts if each in endpoints]
        below = [leaves[each] for each in answer.parts if each in leaves]
        if answer.kind in _OF_ENDPOINTS:
            for each in own:
                found.endpoints.setdefault(each, number)
            sending.update(own if answer.kind == "nic_send" else ())
            receiving.update(own if answer.kind == "nic_receive" else ())
        elif answer.kind == "rail":
            rails = {str(rail): rail for rail in places.rails}
            for name in answer.parts:
                found.rails.setdefault(rails.get(name), number)
        else:
            _add_between(found, answer, number, below)
    return replace(found, sending=frozenset(sending), receiving=frozenset(receiving))


def _add_between(found: NamedParts, answer: FabricAnswer, number: int, leaves: Sequence[int]) -> None:
    """Add an answer about leaves, or what lies between them."""
    for hops in answer.hops:
        found.hops.setdefault(hops, number)
    if answer.kind != "leaf" and len(leaves) > 1:
        places = found.places
        groups = frozenset(places.group_region(places.groups[each]) for each in leaves)
        found.links.setdefault(groups if len(groups) > 1 else frozenset(leaves), number)
        return
    into = found.switches if answer.kind == "leaf" else found.uplinks
    for each in leaves:
        into.setdefault(each, number)
