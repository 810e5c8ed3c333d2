"""Groups of nodes whose faults are known, to try the procedure on. Nothing of it is a measurement.

A collective takes as long as its slowest member, more with every doubling of the group, times a scatter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from busbw.fabric.groups.judging import GroupResult
from busbw.fabric.groups.search import Group
from busbw.fabric.places import Draws
from busbw.fabric.simulation import Noise

GroupFaultKind = Literal[
    "none", "node", "two-nodes", "failing", "hanging-sometimes", "unsteady", "pair", "between-halves", "congestion",
    "slow",
]  # fmt: skip
GROUP_FAULTS: tuple[GroupFaultKind, ...] = get_args(GroupFaultKind)
_BASE_S = 0.010
_DOUBLING = 0.04
# How far sound nodes differ from each other.
_OWN_SCATTER = 0.005


@dataclass(frozen=True, kw_only=True)
class GroupFault:
    """What is bad: some nodes, or for `pair` and `between-halves` the two sides of what is bad between them."""

    kind: GroupFaultKind
    nodes: Group = ()
    others: Group = ()
    effect: float = 0.10


@dataclass(frozen=True, kw_only=True)
class SimulatedGroups:
    """A machine with a fault: give it the groups of a round, and it gives their times."""

    fault: GroupFault
    noise: Noise
    # By how much slower each node is by itself.
    own: tuple[float, ...]
    draws: Draws

    def measure(self, groups: Sequence[Group], number: int) -> tuple[GroupResult, ...]:
        """Return what each group of a round comes to; `number`: of the round."""
        return tuple(self._result(group, number, beside=len(groups) > 1) for group in groups)

    def _result(self, group: Group, number: int, *, beside: bool) -> GroupResult:
        kind, draws, noise = self.fault.kind, self.draws, self.noise
        has = bool(set(self.fault.nodes).intersection(group))
        if has and (kind == "failing" or (kind == "hanging-sometimes" and draws.random() < 0.7)):
            return GroupResult(failure="exit code 1" if kind == "failing" else "not finished in time")
        slow = max(self.own[node] for node in group) + self._effect(group, has=has, beside=beside)
        drift = noise.drift * min(number, 10) / 10
        value = _BASE_S * (1 + _DOUBLING * math.log2(len(group))) * (1 + slow) * (1 + drift)
        value *= math.exp(draws.gauss(0.0, noise.sigma))
        if draws.random() < noise.spikes:
            value *= 1 + noise.spike_from + (noise.spike_to - noise.spike_from) * draws.random()
        return GroupResult(value=value)

    def _effect(self, group: Group, *, has: bool, beside: bool) -> float:
        kind, effect = self.fault.kind, self.fault.effect / (1 - self.fault.effect)
        if kind == "slow":
            return effect
        if kind == "unsteady":
            return effect if has and self.draws.random() < 0.5 else 0.0
        if kind in ("pair", "between-halves"):
            return effect if has and set(self.fault.others).intersection(group) else 0.0
        if kind == "congestion":
            # One group's nodes share a switch with traffic of the others.
            return effect if beside and set(self.fault.nodes) == set(group) else 0.0
        return effect if has and kind in ("node", "two-nodes") else 0.0


def drawn_fault(kind: GroupFaultKind, nodes: int, group_nodes: int, draws: Draws, effect: float = 0.10) -> GroupFault:
    """Return a fault of a kind at a random place of `nodes` nodes that are tested in groups of `size`."""
    order = [node for _, node in sorted((draws.random(), node) for node in range(nodes))]
    if kind in ("none", "slow"):
        return GroupFault(kind=kind, effect=effect)
    begin = int(draws.random() * (nodes // group_nodes)) * group_nodes
    group = tuple(range(begin, begin + group_nodes))
    if kind == "congestion":
        return GroupFault(kind=kind, nodes=group, effect=effect)
    if kind == "pair":
        one, other = sorted(order[:2]) if nodes < 2 * group_nodes else sorted(group, key=lambda _: draws.random())[:2]
        return GroupFault(kind=kind, nodes=(one,), others=(other,), effect=effect)
    if kind == "between-halves":
        return GroupFault(kind=kind, nodes=group[: group_nodes // 2], others=group[group_nodes // 2 :], effect=effect)
    return GroupFault(kind=kind, nodes=tuple(order[: 2 if kind == "two-nodes" else 1]), effect=effect)


def simulated_groups(fault: GroupFault, nodes: int, draws: Draws, noise: Noise | None = None) -> SimulatedGroups:
    """Return a machine of `nodes` nodes with a fault."""
    own = tuple(abs(draws.gauss(0.0, _OWN_SCATTER)) for _ in range(nodes))
    return SimulatedGroups(fault=fault, noise=noise if noise is not None else Noise(), own=own, draws=draws)
