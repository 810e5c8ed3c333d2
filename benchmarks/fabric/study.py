"""Cases drawn over the simulation: what the procedure names, beside simpler procedures.

These are a tournament with rules on single values, and bisection by collectives over halves of the nodes.

.venv/bin/python benchmarks/fabric/study.py --nodes 64 --cases 200 --seconds 60 --peers
.venv/bin/python benchmarks/fabric/study.py --nodes 64 --fault none --cut 3
"""

import argparse
import math
import random
import time
from dataclasses import dataclass, fields, replace

from busbw.base.errors import InputError
from busbw.fabric.places import Metric, Pairing, Places
from busbw.fabric.procedure import Swept, analysed, sweep
from busbw.fabric.report import ExpectedPair, FabricReport, report
from busbw.fabric.schedule import full_rounds
from busbw.fabric.simulation import (
    FAULTS,
    TOPOLOGIES,
    Fault,
    FaultKind,
    Noise,
    Simulated,
    Topology,
    drawn_faults,
    made_places,
)
from busbw.facts.pair_noise import stored_noise
from busbw.stats.distributions import normal_quantile

# What an answer to a fault may be called. Latencies have no direction: there a NIC of one direction is its node.
RIGHT: dict[FaultKind, tuple[str, ...]] = {
    "node": ("node",), "nic-send": ("nic_send",), "nic-receive": ("nic_receive",), "nic": ("nic",), "rail": ("rail",),
    "leaf-uplink": ("leaf_uplink",), "cable-static": ("cable",), "cable-destination": ("cable",), "slow": ("slow",),
    "cable-adaptive": ("leaf_uplink",), "spine-link": ("spine_link",), "flapping": ("unsteady",),
    # Of a link between two routers each is at one end: what they pass to others through it is slow, too.
    "local-link": ("spine_link", "cable", "leaf_uplink"), "congestion": ("congestion",),
}  # fmt: skip
WITHOUT_DIRECTION: dict[FaultKind, tuple[str, ...]] = {"nic-send": ("node", "nic"), "nic-receive": ("node", "nic")}
# Two leaves meet each other alone: what is slow above one is so for all ways between them, and no test tells more.
OF_TWO_LEAVES: dict[FaultKind, tuple[str, ...]] = {
    each: (*RIGHT[each], "crossing") for each in ("leaf-uplink", "cable-adaptive", "spine-link")
}
OF_LEAVES = ("leaf-uplink", "cable-static", "cable-destination", "cable-adaptive", "congestion")
# Of each collective, of which the median counts.
REPEATS = 3
NODE_KINDS = ("node", "nic", "nic_send", "nic_receive", "unsteady", "leaf")
SOUND: dict[Metric, tuple[ExpectedPair, ...]] = {
    "bandwidth": (ExpectedPair(value=47.5e9, kind="measured", source="simulation"),),
    "bibandwidth": (ExpectedPair(value=93.75e9, kind="measured", source="simulation"),),
    "latency": tuple(ExpectedPair(value=each, kind="measured", source="simulation") for each in (1.65e-6, 2.25e-6)),
}


def places_of(fault: Fault, places: Places) -> tuple[str, ...]:
    """Return the words of which a right answer holds one; none: any."""
    if fault.kind == "local-link":
        return (places.leaf_names[fault.element], places.leaf_names[fault.other])
    if fault.kind in OF_LEAVES:
        return (places.leaf_names[fault.element],)
    if fault.kind in ("spine-link", "slow"):
        return ()
    endpoint = places.endpoints[fault.element]
    if fault.kind == "rail":
        return (str(endpoint.rail),)
    return (endpoint.node if fault.kind == "node" else str(endpoint),)


def named(made: FabricReport, faults: tuple[Fault, ...], places: Places, metric: Metric) -> tuple[int, int]:
    """Return how many faults are rightly named, and how many answers name nothing that is bad."""
    left = list(made.answers)
    kinds = RIGHT if metric == "bandwidth" else RIGHT | WITHOUT_DIRECTION
    if len(places.leaf_names) == 2:
        kinds = kinds | OF_TWO_LEAVES
    right = 0
    for fault in faults:
        words = places_of(fault, places)
        for each in left:
            if each.kind in kinds[fault.kind] and (
                not words or each.kind == "crossing" or not {*words}.isdisjoint(each.place.replace(",", " ").split())
            ):
                right += 1
                left.remove(each)
                break
    return right, len(left)


def tournament(fabric: Simulated) -> tuple[set[str], int]:
    """Return the nodes whose median is below 93 % of the best pair, and the pairs below 90 % of the median of all."""
    values: list[float] = []
    by_node: dict[str, list[float]] = {}
    for number, pairs in enumerate(full_rounds(fabric.places)):
        asked = [Pairing(sender=one, receiver=other) for one, other in pairs]
        for (one, other), value in zip(pairs, fabric.measure(asked, number), strict=True):
            if value is not None:
                values.append(value)
                for end in (one, other):
                    by_node.setdefault(fabric.places.endpoints[end].node, []).append(value)
    best, middle = max(values), sorted(values)[len(values) // 2]
    flagged = {node for node, those in by_node.items() if sorted(those)[len(those) // 2] < 0.93 * best}
    return flagged, sum(each < 0.9 * middle for each in values)


def bisection(fabric: Simulated) -> tuple[set[str], int]:
    """Return the node that halving comes to, if any, and the rounds: collectives over both halves at once, three times.

    A collective is a ring over its nodes and as fast as its slowest step. The half that is 5 % slower is halved again.
    """
    number, suspects, cleared = 0, list(range(len(fabric.places.endpoints))), [0]
    while len(suspects) > 1:
        middle = len(suspects) // 2
        halves = [suspects[:middle], suspects[middle:]]
        # A node by itself has no partner but one that was cleared.
        rings = [half if len(half) > 1 else [*half, cleared[at]] for at, half in enumerate(halves)]
        values: list[list[float]] = [[], []]
        for _ in range(REPEATS):
            asked = [Pairing(sender=ring[at - 1], receiver=ring[at]) for ring in rings for at in range(len(ring))]
            steps = [each or 0.0 for each in fabric.measure(asked, number)]
            values[0].append(min(steps[: len(rings[0])]))
            values[1].append(min(steps[len(rings[0]) :]))
            number += 1
        one, other = (sorted(each)[REPEATS // 2] for each in values)
        if min(one, other) > 0.95 * max(one, other):
            return set(), number
        suspects, cleared = (halves[0], halves[1] * 2) if one < other else (halves[1], halves[0] * 2)
    return {fabric.places.endpoints[suspects[0]].node}, number


def proportion(right: int, of: int) -> tuple[float, float]:
    """Return the interval that holds a share with 95 % (Wilson, J. Am. Stat. Assoc. 22, 1927)."""
    z = normal_quantile(0.975)
    middle, wide = right + z * z / 2, z * math.sqrt(right * (of - right) / of + z * z / 4)
    return (middle - wide) / (of + z * z), (middle + wide) / (of + z * z)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a row of a table is about, but for its fault."""

    topology: Topology = "fat-tree-2"
    nodes: int = 64
    metric: Metric = "bandwidth"
    sigma: float = 0.02
    # Stored noise that takes the place of all of that; None: none does.
    stored: str | None = None
    # Sweeps are cut off after so many rounds; None: none is.
    cut: int | None = None
    # Beside a tournament with rules, and bisection.
    peers: bool = False

    def __str__(self) -> str:
        """Return the setting as the heading of a table has it."""
        cut = "" if self.cut is None else f", cut off after {self.cut} rounds"
        return f"{self.topology}, {self.nodes} nodes, {self.metric}, noise {self.stored or self.sigma}{cut}"


@dataclass
class Score:
    """What the cases of one fault came to."""

    cases: int = 0
    faults: int = 0
    right: int = 0
    wrong: int = 0
    # Cases in which a node is named that has no fault.
    accused: int = 0
    rounds: int = 0
    most: int = 0
    tests: int = 0
    rule_right: int = 0
    rule_wrong: int = 0
    rule_pairs: int = 0
    halving_right: int = 0
    halving_wrong: int = 0
    halving_rounds: int = 0
    spent_s: float = 0.0

    def add(self, other: "Score") -> None:
        """Add the cases of another score."""
        for each in fields(self):
            one, two = getattr(self, each.name), getattr(other, each.name)
            setattr(self, each.name, max(one, two) if each.name == "most" else one + two)

    def line(self, kind: str, *, peers: bool) -> str:
        """Return the score as a row of Markdown."""
        found = "-"
        if self.faults:
            low, high = proportion(self.right, self.faults)
            found = f"{100 * self.right / self.faults:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        precise = f"{100 * self.right / (self.right + self.wrong):.1f} %" if self.right + self.wrong else "-"
        row = f"| {kind} | {self.cases} | {found} | {precise} | {self.accused} | "
        row += f"{self.rounds / self.cases:.1f} ({self.most}) | "
        row += f"{self.tests / self.cases:.0f} | {1e3 * self.spent_s / self.cases:.0f} |"
        if peers:
            row += f" {100 * self.rule_right / self.cases:.0f} % | {100 * self.rule_wrong / self.cases:.0f} % | "
            row += f"{self.rule_pairs / self.cases:.0f} | {100 * self.halving_right / self.cases:.0f} % | "
            row += f"{100 * self.halving_wrong / self.cases:.0f} % | {self.halving_rounds / self.cases:.0f} |"
        return row


def swept(setting: Setting, fabric: Simulated, places: Places) -> Swept:
    """Return a sweep of a simulated fabric, or what of one that was cut off can be judged."""
    whole = sweep(places, fabric.measure, setting.metric, fabric.draws)
    if setting.cut is None:
        return whole
    first = [replace(each, retest=False, alone=False) for each in whole.tests if each.round < setting.cut]
    return analysed(places, first, setting.metric)


def case(setting: Setting, kind: FaultKind, places: Places, seed: int, score: Score) -> None:
    """Run one case and add it to the score. Raises InputError where the fabric has no such fault."""
    draws = random.Random(seed)  # noqa: S311 - a simulation
    faults = drawn_faults(kind, places, draws)
    drawn = () if setting.stored is None else stored_noise()[setting.stored][setting.metric].drawn
    noise = Noise(sigma=setting.sigma, drawn=drawn)
    fabric = Simulated(
        topology=setting.topology, places=places, faults=faults, noise=noise, metric=setting.metric, draws=draws
    )
    began = time.process_time()
    outcome = swept(setting, fabric, places)
    made = report(outcome, setting.metric, "case", expected=SOUND[setting.metric], simulated=True)
    score.spent_s += time.process_time() - began
    right, wrong = named(made, faults, places, setting.metric)
    placed = [each for each in faults if each.kind not in (*OF_LEAVES, "spine-link", "local-link", "slow")]
    truth = {places.endpoints[each.element].node for each in placed}
    score.cases += 1
    score.faults += len(faults)
    score.right += right
    score.wrong += wrong
    score.accused += any(each.kind in NODE_KINDS and not truth & set(each.nodes) for each in made.answers)
    score.rounds += outcome.rounds
    score.most = max(score.most, outcome.rounds)
    score.tests += len(outcome.tests)
    if setting.peers:
        flagged, pairs = tournament(fabric)
        score.rule_right += bool(truth) and truth <= flagged
        score.rule_wrong += bool(flagged - truth)
        score.rule_pairs += pairs
        flagged, rounds = bisection(fabric)
        score.halving_right += bool(truth) and truth <= flagged
        score.halving_wrong += bool(flagged - truth)
        score.halving_rounds += rounds


def main() -> None:
    """Print a table, one row a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topology", choices=TOPOLOGIES, default="fat-tree-2")
    parser.add_argument("--metric", choices=list(SOUND), default="bandwidth")
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first case")
    parser.add_argument("--seconds", type=float, default=60, help="for each fault, at most")
    parser.add_argument("--sigma", type=float, default=0.02)
    parser.add_argument("--noise", choices=list(stored_noise()), help="stored noise in place of the assumed")
    parser.add_argument("--fault", choices=FAULTS, action="append")
    parser.add_argument("--cut", type=int, help="judge what a sweep measured in so many rounds")
    parser.add_argument("--peers", action="store_true", help="beside a tournament with the 93 %% rule")
    asked = parser.parse_args()
    setting = Setting(topology=asked.topology, nodes=asked.nodes, metric=asked.metric, sigma=asked.sigma,
                      stored=asked.noise, cut=asked.cut, peers=asked.peers)  # fmt: skip
    places = made_places(asked.topology, asked.nodes)
    print(setting)
    for kind in asked.fault or FAULTS:
        score, began = Score(), time.monotonic()
        for seed in range(asked.first, asked.first + asked.cases):
            try:
                case(setting, kind, places, seed, score)
            except InputError:
                break
            if time.monotonic() - began > asked.seconds:
                break
        if score.cases:
            print(score.line(kind, peers=asked.peers), flush=True)


if __name__ == "__main__":
    main()
