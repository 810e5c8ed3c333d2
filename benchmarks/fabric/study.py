"""Cases drawn over the simulation: what the procedure names, beside a tournament with rules on single pairs.

.venv/bin/python benchmarks/fabric/study.py --nodes 64 --cases 200 --seconds 60
"""

import argparse
import random
import time

from busbw.fabric.naming import FabricAnswer
from busbw.fabric.places import Metric, PairTest, Places
from busbw.fabric.procedure import Outcome, sweep
from busbw.fabric.simulation import Fault, FaultKind, Noise, Simulated, Topology, drawn_faults, made_places

KINDS: dict[FaultKind, tuple[str, ...]] = {
    "none": (), "node": ("node",), "nic-send": ("nic_send",), "nic-receive": ("nic_receive",), "nic": ("nic",),
    "rail": ("rail",), "leaf-uplink": ("leaf_uplink",), "cable-static": ("cable",), "cable-adaptive": ("leaf_uplink",),
    "spine-link": ("spine_link",), "flapping": ("unsteady",), "congestion": ("congestion",), "slow": (), "two": (),
}  # fmt: skip
NODE_KINDS = ("node", "nic", "nic_send", "nic_receive", "unsteady")


def place_of(fault: Fault, places: Places) -> str:
    """Return the name that an answer must hold."""
    endpoint = (
        places.endpoints[fault.element]
        if fault.kind not in ("leaf-uplink", "cable-static", "cable-adaptive", "congestion", "spine-link")
        else None
    )
    if fault.kind == "rail" and endpoint is not None:
        return str(endpoint.rail)
    if endpoint is not None:
        return endpoint.node if fault.kind == "node" else str(endpoint)
    if fault.kind == "spine-link":
        return ""
    return places.leaf_names[fault.element]


def is_right(outcome: Outcome, faults: tuple[Fault, ...]) -> tuple[int, int]:
    """Return how many faults are rightly named, and how many answers name nothing that is bad."""
    left: list[FabricAnswer] = list(outcome.answers)
    named = 0
    for fault in faults:
        place = place_of(fault, outcome.places)
        for each in left:
            if each.kind in KINDS[fault.kind] and (not place or place in each.place.replace(",", " ").split()):
                named += 1
                left.remove(each)
                break
    return named, len(left)


def tournament_flags(fabric: Simulated, outcome: Outcome, share: float) -> list[str]:
    """Return the nodes that a rule names whose median over a full tournament is below a share of the best pair."""
    by_node: dict[str, list[float]] = {}
    values = [each.value for each in outcome.tests if each.value]
    best = max(values)
    for test in outcome.tests:
        if test.value:
            for end in (test.sender, test.receiver):
                by_node.setdefault(fabric.places.endpoints[end].node, []).append(test.value)
    return [node for node, those in by_node.items() if sorted(those)[len(those) // 2] < share * best]


def peers(fabric: Simulated, draws: random.Random) -> tuple[list[str], int]:
    """Return nodes by the 93 % rule, and pairs below 90 % of the median, of a full tournament."""
    from busbw.fabric.schedule import full_rounds
    from busbw.fabric.places import Pairing

    tests: list[PairTest] = []
    for number, pairs in enumerate(full_rounds(fabric.places)):
        asked = [Pairing(sender=one, receiver=other) for one, other in pairs]
        tests += [PairTest(sender=pair.sender, receiver=pair.receiver, round=number, value=value)
                  for pair, value in zip(asked, fabric.measure(asked, number), strict=True)]  # fmt: skip
    values = sorted(each.value for each in tests if each.value)
    middle = values[len(values) // 2]
    outcome = type("Tests", (), {"tests": tests})
    return tournament_flags(fabric, outcome, 0.93), sum(each < 0.9 * middle for each in values)


def main() -> None:
    """Print one line a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topology", default="fat-tree-2")
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60, help="for each fault, at most")
    parser.add_argument("--sigma", type=float, default=0.02)
    parser.add_argument("--metric", default="bandwidth")
    parser.add_argument("--fault", action="append")
    parser.add_argument("--peers", action="store_true")
    asked = parser.parse_args()
    topology: Topology = asked.topology
    metric: Metric = asked.metric
    places = made_places(topology, asked.nodes)
    print("fault            cases  recall  precision  false/sweep  wrong nodes  rounds  most  tests  ms")
    for kind in asked.fault or KINDS:
        done = named = there = wrong = nodes = tests = rounds = most = sound = 0
        old_right = old_false = old_pairs = 0
        began = time.monotonic()
        for seed in range(asked.cases):
            draws = random.Random(1000 + seed)
            try:
                faults = drawn_faults(kind, places, draws)
            except Exception:
                break
            fabric = Simulated(
                topology=topology,
                places=places,
                faults=faults,
                noise=Noise(sigma=asked.sigma),
                metric=metric,
                draws=draws,
            )
            outcome = sweep(places, fabric.measure, metric, draws)
            right, false = is_right(outcome, faults)
            done, named, there, wrong = done + 1, named + right, there + len(faults), wrong + false
            sound += right == len(faults) and not false
            truth = {places.endpoints[each.element].node for each in faults}
            nodes += any(each.kind in NODE_KINDS and not truth & set(each.nodes) for each in outcome.answers)
            tests, rounds, most = tests + len(outcome.tests), rounds + outcome.rounds, max(most, outcome.rounds)
            if asked.peers:
                flags, pairs = peers(fabric, draws)
                old_right += bool(truth) and truth <= set(flags)
                old_false += bool(set(flags) - truth)
                old_pairs += pairs
            if time.monotonic() - began > asked.seconds:
                break
        if done:
            spent = (time.monotonic() - began) / done * 1e3
            recall = f"{100 * named / there:5.1f}%" if there else "    --"
            precise = f"{100 * named / (named + wrong):5.1f}%" if named + wrong else "    --"
            print(
                f"{kind:15} {done:6}  {recall}     {precise}  {wrong / done:11.3f}  {nodes:11}  {rounds / done:6.1f}  {most:4}  {tests / done:5.0f}  {spent:.0f}",
                end="",
            )
            print(
                f"  93%: found {100 * old_right / done:.1f}%, false in {100 * old_false / done:.1f}%; pairs {old_pairs / done:.0f}"
                if asked.peers
                else "",
                flush=True,
            )


if __name__ == "__main__":
    main()
