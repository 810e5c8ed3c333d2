"""Where the endpoints of a fabric stand: node, rail, leaf, group of leaves; and one test between two of them.

An endpoint is what sends and receives in a test: a node, or one of its NICs where those are tested by themselves. A
leaf is what the shortest paths have in common: a leaf switch, or a router of a dragonfly. A group is the next level:
the pod of a fat tree, the group of a dragonfly. A region is a leaf or a group, where either may be the end of a link.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from busbw.base.errors import InputError
from busbw.base.value import Value

Metric = Literal["latency", "bandwidth", "bibandwidth", "message-rate"]
UNITS: dict[Metric, str] = {"latency": "s", "bandwidth": "B/s", "bibandwidth": "B/s", "message-rate": "msg/s"}
# Of these a test goes from its sender to its receiver alone, and a pair has two.
ONE_WAY: tuple[Metric, ...] = ("bandwidth", "message-rate")
# As many as a list of hosts may name (`base.hostlist`).
MOST_ENDPOINTS = 65_536


class Draws(Protocol):
    """A source of random numbers: `random.Random`."""

    def random(self) -> float:
        """Return a number from 0 up to 1."""

    def gauss(self, mu: float, sigma: float) -> float:
        """Return a number of a normal distribution."""


class Endpoint(Value, kw_only=True, frozen=True):
    """What sends and receives. `rail`: the name of its NIC's place; None: the node is tested as a whole."""

    node: str
    rail: str | None = None

    def __str__(self) -> str:
        """Return the endpoint as tables name it: `node07`, `node07:mlx5_3`."""
        return self.node if self.rail is None else f"{self.node}:{self.rail}"


def endpoint_of(text: str) -> Endpoint:
    """Return the endpoint that a table names `node07` or `node07:mlx5_3`."""
    node, colon, rail = text.partition(":")
    return Endpoint(node=node, rail=rail if colon else None)


@dataclass(frozen=True, kw_only=True)
class Places:
    """All endpoints of a fabric by number, and where they stand."""

    endpoints: tuple[Endpoint, ...]
    # The leaf of each endpoint; None: not known.
    leaves: tuple[int | None, ...]
    leaf_names: tuple[str, ...] = ()
    # The group of each leaf.
    groups: tuple[int, ...] = ()
    rails: dict[str | None, tuple[int, ...]] = field(init=False, repr=False)
    members: dict[int, tuple[int, ...]] = field(init=False, repr=False)
    # Whether there are several groups of leaves.
    has_groups: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rails, members = defaultdict(list), defaultdict(list)
        for number, (endpoint, leaf) in enumerate(zip(self.endpoints, self.leaves, strict=True)):
            rails[endpoint.rail].append(number)
            if leaf is not None:
                members[leaf].append(number)
        object.__setattr__(self, "has_groups", len(set(self.groups)) > 1)
        object.__setattr__(self, "rails", {rail: tuple(found) for rail, found in rails.items()})
        object.__setattr__(self, "members", {leaf: tuple(found) for leaf, found in members.items()})

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, each once, in their order."""
        return tuple(dict.fromkeys(each.node for each in self.endpoints))

    @property
    def are_gpus(self) -> bool:
        """Whether the endpoints are the GPUs of one host, `node07:gpu3`: no name of a host has a colon."""
        return ":gpu" in self.endpoints[0].node

    def hops(self, one: int, other: int) -> int | None:
        """Return 0 within a leaf, 1 within a group of leaves, 2 beyond; None where a leaf is not known."""
        first, second = self.leaves[one], self.leaves[other]
        if first is None or second is None:
            return None
        if first == second:
            return 0
        return 1 if self.groups[first] == self.groups[second] else 2

    def crossing(self, one: int, other: int) -> bool:
        """Whether both leaves are known and differ."""
        first, second = self.leaves[one], self.leaves[other]
        return first is not None and second is not None and first != second

    def link(self, one: int, other: int) -> frozenset[int] | None:
        """Return the two regions that a test goes between: its leaves within a group, else its groups.

        None within a leaf, and where a leaf is not known.
        """
        first, second = self.leaves[one], self.leaves[other]
        if first is None or second is None or first == second:
            return None
        if self.groups[first] == self.groups[second]:
            return frozenset((first, second))
        return frozenset((self.group_region(self.groups[first]), self.group_region(self.groups[second])))

    def group_region(self, group: int) -> int:
        """Return the number of a group as a region: those of leaves come before."""
        return len(self.leaf_names) + group

    def region_leaves(self, region: int) -> tuple[int, ...]:
        """Return the leaves of a region, ascending."""
        if region < len(self.leaf_names):
            return (region,)
        return tuple(leaf for leaf, group in enumerate(self.groups) if self.group_region(group) == region)

    def region_members(self, region: int) -> tuple[int, ...]:
        """Return the endpoints of a region."""
        return tuple(end for leaf in self.region_leaves(region) for end in self.members.get(leaf, ()))


def flat(endpoints: Iterable[Endpoint]) -> Places:
    """Return places of which no leaf is known. Raises InputError for fewer than two nodes, and for one twice."""
    found = tuple(endpoints)
    if len({each.node for each in found}) < 2:
        given = f"only {found[0].node} is given" if found else "no host is given"
        raise InputError(f"a fabric needs two hosts or more: {given}", hint="pairs of ranks on different hosts")
    check_count(len(found))
    if twice := [str(each) for each, count in Counter(found).items() if count > 1]:
        raise InputError(f"{twice[0]} is there twice", hint="name each host once")
    return Places(endpoints=found, leaves=(None,) * len(found))


def check_count(endpoints: int) -> None:
    """Raise InputError for more endpoints than a fabric may have."""
    if endpoints > MOST_ENDPOINTS:
        raise InputError(f"{endpoints} endpoints are over the limit of {MOST_ENDPOINTS}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairing:
    """A test to be made: the sender, the receiver. No endpoint is in two pairings of a round, but for the way back."""

    sender: int
    receiver: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PairTest:
    """A test that was made. Seconds, or bytes per second."""

    sender: int
    receiver: int
    # From 0; tests of one round ran at the same time.
    round: int
    # None: no answer within the time limit.
    value: float | None
    # Whether it was made because of a suspicion, and whether nothing else ran meanwhile.
    retest: bool = False
    alone: bool = False


def slowness(value: float, metric: Metric) -> float:
    """Return how slow a value is as a multiple, so that 1.1 is 10 % slower whatever the metric."""
    return value if metric == "latency" else 1 / value


def members_text(names: Sequence[str]) -> str:
    """Return names as a sentence has them: the first four, and how many more."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
