"""A fabric whose faults are known, to try the procedure on: topologies, faults, noise. Nothing of it is a measurement.

Every test is a flow from one leaf to another over one of the parallel uplinks that the two ends choose by a hash (as
routes chosen by flow do) or that the receiver alone chooses (routes by destination), or spread over all of them
(adaptive routing). A fault slows the flows that use what is bad.

In a dragonfly every two routers of a group have a link, and every two groups one, at a router of each: a flow passes
routers that are of neither end. With adaptive routes a share of its packets goes through each third group.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from busbw.base.errors import InputError
from busbw.fabric.places import ONE_WAY, Draws, Endpoint, Metric, Pairing, PairTest, Places, slowness

Topology = Literal["fat-tree-2", "fat-tree-3", "rail", "dragonfly", "dragonfly-adaptive"]
FaultKind = Literal[
    "none", "node", "nic-send", "nic-receive", "nic", "rail", "leaf-uplink", "cable-static", "cable-destination",
    "cable-adaptive", "spine-link", "local-link", "flapping", "slow", "congestion", "two",
]  # fmt: skip
TOPOLOGIES: tuple[Topology, ...] = get_args(Topology)
FAULTS: tuple[FaultKind, ...] = get_args(FaultKind)
# What the routes of a dragonfly pass besides their ends.
_OF_ROUTES: tuple[FaultKind, ...] = ("leaf-uplink", "local-link", "spine-link")
_OF_LEAVES: tuple[FaultKind, ...] = (
    "leaf-uplink", "cable-static", "cable-destination", "cable-adaptive", "congestion",
)  # fmt: skip
LEAST_NODES, MOST_NODES = 8, 4096
_RAILS = 8
_CABLES = 4
_DRAGONFLIES: tuple[Topology, ...] = ("dragonfly", "dragonfly-adaptive")
# Of the packets of a flow between groups, at most, that adaptive routes send through a third one; none where hardly
# anything else runs.
_MOST_DETOURS = 0.5
# Two hops 1.6 to 1.7 us and four 2.2 to 2.3 us were published of HBv4 (ms-hbv4); six continue the step.
_LATENCY_S = (1.65e-6, 2.25e-6, 2.85e-6)
# 380 Gb/s of 400 was published of the same machine, both ways 750 Gb/s.
# The message rate is of no machine: what is published counts many pairs of ranks at once.
_RATES: dict[Metric, float] = {"bandwidth": 47.5e9, "bibandwidth": 93.75e9, "message-rate": 3e6}
# A flow that its link drops and takes up again.
_FLAP_EFFECT = 0.6
# What congestion leaves of its effect where hardly anything else runs, and how many flows that is at most.
_ALONE_CONGESTION = 0.15
_FEW_FLOWS = 6
# Tests that noise of a real sweep rests on.
_LEAST_AGAIN = 20


@dataclass(frozen=True, kw_only=True)
class Noise:
    """How values scatter: log-normally, now and then far, and with a level that moves over the sweep."""

    sigma: float = 0.02
    spikes: float = 0.02
    # A spike makes a value slower by this share at least, and at most.
    spike_from: float = 0.05
    spike_to: float = 0.30
    # Slower at the end of ten rounds by this share.
    drift: float = 0.01
    # Logarithms of slowness, each as likely: what a test scatters by in place of all of these; (): these.
    drawn: tuple[float, ...] = ()


def noise_of(tests: Iterable[PairTest], metric: Metric, bad: Collection[int], where: str) -> Noise:
    """Return the noise that tests of the same pair, made again, show in a real sweep: each test against their mean.

    `bad`: endpoints that the sweep names, whose tests have no part in it. Of few tests a mean follows them: of *k* each
    difference counts as sqrt(k / (k - 1)). Raises InputError where too few tests were made again.
    """
    again: dict[tuple[int, int], list[float]] = defaultdict(list)
    for each in tests:
        if each.value is not None and each.value > 0 and each.sender not in bad and each.receiver not in bad:
            ends = (each.sender, each.receiver)
            again[ends if metric in ONE_WAY else (min(ends), max(ends))].append(math.log(slowness(each.value, metric)))
    drawn = [
        (value - sum(values) / len(values)) * math.sqrt(len(values) / (len(values) - 1))
        for values in again.values()
        if len(values) > 1
        for value in values
    ]
    if len(drawn) < _LEAST_AGAIN:
        have = f"{len(drawn)} tests" if drawn else "no test"
        raise InputError(
            f"{have} of {metric} between sound hosts of the same pair, made again: noise takes {_LEAST_AGAIN} or more",
            where=where,
            hint="name pairs several times in a file: busbw fabric --hosts n[0-7] --pairs FILE",
        )
    return Noise(drawn=tuple(drawn))


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is bad. `element`: the number of an endpoint, a leaf, a region, a rail; `other`: the second of a pair."""

    kind: FaultKind
    element: int = 0
    other: int = 0
    effect: float = 0.10


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """A fabric with its faults: give it rounds and it gives values."""

    topology: Topology
    places: Places
    faults: tuple[Fault, ...]
    noise: Noise
    metric: Metric
    draws: Draws
    # Of a dragonfly; None: of any other.
    routes: "_Routes | None" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        routes = _Routes(self.places) if self.topology in _DRAGONFLIES else None
        object.__setattr__(self, "routes", routes)

    def measure(self, pairs: Sequence[Pairing], number: int) -> tuple[float | None, ...]:
        """Return the value of each pair of one round, all at once; `number`: of the round."""
        busy = 0.3 + 1.4 * self.draws.random()
        flapping = [self.draws.random() < 0.5 for _ in self.faults]
        alone = len({frozenset((each.sender, each.receiver)) for each in pairs}) <= _FEW_FLOWS
        return tuple(self._value(each, number, busy, flapping, alone=alone) for each in pairs)

    def _value(self, pair: Pairing, number: int, busy: float, flapping: Sequence[bool], *, alone: bool) -> float:
        noise, draws = self.noise, self.draws
        slow = 1.0
        # Messages of 8 bytes meet no queues that would send them another way.
        has_detours = self.topology == "dragonfly-adaptive" and self.metric != "latency" and not alone
        detours = _MOST_DETOURS * draws.random() if has_detours else 0.0
        for fault, flaps in zip(self.faults, flapping, strict=True):
            share = self._share(fault, pair, busy, detours, flaps=flaps, alone=alone)
            slow *= 1 - max(0.0, min(share, 0.95))
        if noise.drawn:
            slow *= math.exp(-noise.drawn[int(draws.random() * len(noise.drawn))])
        else:
            slow *= math.exp(draws.gauss(0.0, noise.sigma)) / (1 + noise.drift * min(number, 10) / 10)
            if draws.random() < noise.spikes:
                slow /= 1 + noise.spike_from + (noise.spike_to - noise.spike_from) * draws.random()
        if self.metric == "latency":
            return _LATENCY_S[self.places.hops(pair.sender, pair.receiver) or 0] / slow
        return _RATES[self.metric] * slow

    def _share(self, fault: Fault, pair: Pairing, busy: float, detours: float, *, flaps: bool, alone: bool) -> float:
        """Return the share of its speed that a flow loses by a fault."""
        ends = (pair.sender, pair.receiver)
        if fault.kind == "flapping":
            return _FLAP_EFFECT if fault.element in ends and flaps else 0.0
        if self.routes is not None and fault.kind in _OF_ROUTES:
            return fault.effect * self.routes.share(fault, ends, detours)
        if fault.kind in _OF_LEAVES:
            return fault.effect * self._leaf_share(fault, ends, busy, alone=alone)
        return fault.effect if self._hits(fault, ends) else 0.0

    def _leaf_share(self, fault: Fault, ends: tuple[int, int], busy: float, *, alone: bool) -> float:
        """Return how much of a fault above a leaf a flow meets."""
        leaves = (self.places.leaves[ends[0]], self.places.leaves[ends[1]])
        if not self.places.crossing(*ends) or fault.element not in leaves:
            return 0.0
        # InfiniBand's tables know the destination alone.
        chosen_by = {"cable-static": ends, "cable-destination": (0, ends[1])}.get(fault.kind)
        if chosen_by is not None and _cable(chosen_by) != fault.other:
            return 0.0
        spread = {"cable-adaptive": 1 / _CABLES, "congestion": _ALONE_CONGESTION if alone else busy}
        return spread.get(fault.kind, 1.0)

    def _hits(self, fault: Fault, ends: tuple[int, int]) -> bool:
        """Whether a flow uses what is bad, of faults that are all of it or nothing."""
        places, twoway = self.places, self.metric not in ONE_WAY
        match fault.kind:
            case "node":
                bad = places.endpoints[fault.element].node
                return bad in (places.endpoints[ends[0]].node, places.endpoints[ends[1]].node)
            case "nic-send":
                return fault.element in (ends if twoway else ends[:1])
            case "nic-receive":
                return fault.element in (ends if twoway else ends[1:])
            case "rail":
                return places.endpoints[fault.element].rail == places.endpoints[ends[0]].rail
            case "spine-link" | "local-link":
                return places.link(*ends) == frozenset((fault.element, fault.other))
            case _:
                return fault.kind == "slow" or (fault.kind == "nic" and fault.element in ends)


class _Routes:
    """The ways of flows through a dragonfly, router by router."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._routers: dict[int, list[int]] = defaultdict(list)
        for leaf, group in enumerate(places.groups):
            self._routers[group].append(leaf)

    def share(self, fault: Fault, ends: tuple[int, int], detours: float) -> float:
        """Return the share of a flow's packets that pass what is bad. `detours`: that goes through third groups."""
        first, last = (self._places.leaves[each] or 0 for each in ends)
        groups = self._places.groups
        straight = float(self._hits(fault, [first, *self._between(groups[first], groups[last]), last]))
        thirds = [each for each in self._routers if each not in (groups[first], groups[last])]
        if groups[first] == groups[last] or not detours or not thirds:
            return straight
        hit = 0
        for third in thirds:
            way = [*self._between(groups[first], third), *self._between(third, groups[last])]
            hit += self._hits(fault, [first, *way, last])
        return (1 - detours) * straight + detours * hit / len(thirds)

    def _between(self, one: int, other: int) -> tuple[int, ...]:
        """Return the two routers that hold the link between two groups; none of a group with itself."""
        return () if one == other else (self._gate(one, other), self._gate(other, one))

    def _gate(self, group: int, towards: int) -> int:
        routers = self._routers[group]
        return routers[(towards - (towards > group)) % len(routers)]

    def _hits(self, fault: Fault, way: Sequence[int]) -> bool:
        """Whether a way passes what is bad: a router, or a link between two of a group or between two groups."""
        if fault.kind == "leaf-uplink":
            return fault.element in way and len(set(way)) > 1
        groups = self._places.groups
        bad = {fault.element, fault.other}
        for one, other in itertools.pairwise(way):
            if (groups[one] == groups[other]) == (fault.kind == "local-link"):
                passed = {one, other}
                if fault.kind == "spine-link":
                    passed = {self._places.group_region(groups[each]) for each in passed}
                if passed == bad:
                    return True
        return False


def _cable(ends: tuple[int, int]) -> int:
    """Return which of the parallel cables a flow takes: a hash of its ends, as routers choose by flow."""
    mixed = (ends[0] * 0x9E3779B1 ^ ends[1] * 0x85EBCA77) & 0xFFFFFFFF
    mixed ^= mixed >> 15
    mixed = mixed * 0x2C1B3C6D & 0xFFFFFFFF
    return (mixed >> 12) % _CABLES


def made_places(topology: Topology, nodes: int) -> Places:
    """Return the places of a topology. Raises InputError for fewer than 8 nodes, and for more than 4,096."""
    if not LEAST_NODES <= nodes <= MOST_NODES:
        raise InputError(
            f"a simulated fabric has {LEAST_NODES} to {MOST_NODES} nodes, not {nodes}",
            where="--nodes",
            hint="--nodes 64",
        )
    names = [f"n{number:04d}" for number in range(nodes)]
    flat_tree = topology == "fat-tree-2"
    size = 4 if nodes < 64 else 16 if flat_tree or nodes >= 128 else 8
    if topology == "rail":
        unit = max(4, min(32, nodes // 4))
        units = -(-nodes // unit)
        return Places(
            endpoints=tuple(Endpoint(node=name, rail=f"rail{rail}") for name in names for rail in range(_RAILS)),
            leaves=tuple(number // unit * _RAILS + rail for number in range(nodes) for rail in range(_RAILS)),
            leaf_names=tuple(f"leaf{number}-{rail}" for number in range(units) for rail in range(_RAILS)),
            groups=(0,) * (units * _RAILS),
        )
    leaves = -(-nodes // size)
    wide = leaves if flat_tree else 4 if nodes >= 256 else 2
    return Places(
        endpoints=tuple(Endpoint(node=name) for name in names),
        leaves=tuple(number // size for number in range(nodes)),
        leaf_names=tuple(f"leaf{number}" for number in range(leaves)),
        groups=tuple(number // wide for number in range(leaves)),
    )


def drawn_faults(kind: FaultKind, places: Places, draws: Draws, effect: float | None = None) -> tuple[Fault, ...]:
    """Return the faults of a kind at a random place, of 10 % unless told; cables of 50 %, a slow fabric of 15 %.

    Raises InputError where the fabric has nothing of the kind.
    """
    if kind == "none":
        return ()
    if kind == "two":
        first = drawn_faults("node", places, draws, effect)[0]
        while (second := drawn_faults("nic-send", places, draws, effect)[0]).element == first.element:
            pass
        return (first, second)
    _check_kind(kind, places)
    usual = {
        "cable-static": 0.5,
        "cable-destination": 0.5,
        "cable-adaptive": 0.5,
        "slow": 0.15,
        "congestion": 0.25,
    }.get(kind, 0.10)
    element = other = 0
    if kind == "spine-link":
        regions = (
            sorted({places.group_region(each) for each in places.groups})
            if places.has_groups
            else range(len(places.leaf_names))
        )
        element = regions[int(draws.random() * len(regions))]
        rest = [each for each in regions if each != element]
        other = rest[int(draws.random() * len(rest))]
    elif kind == "local-link":
        links = [(one, two) for one, two in itertools.combinations(range(len(places.groups)), 2)
                 if places.groups[one] == places.groups[two]]  # fmt: skip
        element, other = links[int(draws.random() * len(links))]
    elif kind in _OF_LEAVES:
        element = int(draws.random() * len(places.leaf_names))
        other = int(draws.random() * _CABLES)
    else:
        element = int(draws.random() * len(places.endpoints))
    return (Fault(kind=kind, element=element, other=other, effect=usual if effect is None else effect),)


def _check_kind(kind: FaultKind, places: Places) -> None:
    has_rails = len(places.rails) > 1
    if kind in ("rail", "nic") and not has_rails:
        raise InputError(f"this fabric has one NIC a node: it cannot have the fault {kind}", hint="--simulate rail")
    if kind in ("spine-link", "local-link") and has_rails:
        raise InputError("leaves of different rails have no link", hint="--simulate fat-tree-2")
    if kind == "local-link" and not places.has_groups:
        raise InputError("this fabric has no groups of leaves with links between them", hint="--simulate dragonfly")
