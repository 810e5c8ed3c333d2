"""What `busbw isolate` names over drawn cases, beside bisection without repeats and removal of single nodes.

python benchmarks/fabric/groups_study.py --cases 1000 --nodes 64 --group-nodes 8
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Sequence

from busbw.fabric.groups.judging import GroupTerms
from busbw.fabric.groups.simulation import GROUP_FAULTS, GroupFault, SimulatedGroups, drawn_fault, simulated_groups
from busbw.fabric.groups.splitting import Separated, separate

SINGLE = ("node", "two-nodes", "failing", "hanging-sometimes", "unsteady")
BETWEEN = ("pair", "between-halves")
LEAST = 0.05
MOST_OF_PEERS = 100
WORST_S = 1e9


def drawn(kind: str, nodes: int, group_nodes: int, seed: int) -> tuple[GroupFault, SimulatedGroups, random.Random]:
    draws = random.Random(seed)  # noqa: S311
    fault = drawn_fault(kind, nodes, group_nodes, draws)
    return fault, simulated_groups(fault, nodes, draws), draws


def times(machine: SimulatedGroups, groups: Sequence[tuple[int, ...]], number: int) -> list[float]:
    return [each.value if each.value is not None else WORST_S for each in machine.measure(groups, number)]


def bisected(machine: SimulatedGroups, nodes: int) -> tuple[set[int], int, int]:
    """Return what halving without repeats names, its rounds and group runs."""
    left, rounds = list(range(nodes)), 0
    while len(left) > 2:
        halves = left[: len(left) // 2], left[len(left) // 2 :]
        one, other = times(machine, [tuple(each) for each in halves], rounds)
        rounds += 1
        if abs(one - other) < LEAST * min(one, other):
            return set(), rounds, 2 * rounds
        left = halves[0] if one > other else halves[1]
    good = [node for node in range(nodes) if node not in left][:2]
    one, other = times(machine, [(left[0], good[0]), (left[1], good[1])], rounds)
    rounds += 1
    if abs(one - other) < LEAST * min(one, other):
        return set(), rounds, 2 * rounds
    return {left[0] if one > other else left[1]}, rounds, 2 * rounds


def removed(machine: SimulatedGroups, nodes: int) -> tuple[set[int], int, int]:
    """Return the nodes without which all others together are faster than usual."""
    found = [times(machine, [tuple(n for n in range(nodes) if n != out)], out)[0] for out in range(nodes)]
    usual = sorted(found)[nodes // 2]
    return {node for node, each in enumerate(found) if each < usual * (1 - LEAST)}, nodes, nodes


def between_named(found: Separated, fault: GroupFault) -> tuple[int, int]:
    """Return how many answers name the two sides of a fault, and how many other pairs of sides are named."""
    sides = {frozenset(fault.nodes), frozenset(fault.others)}
    exact = wrong = 0
    for each in found.combinations:
        if each.sides and found.scale.is_bad(each.alone):
            touches = any(set(fault.nodes) & set(a) and set(fault.others) & set(b)
                          for a, b in (each.sides, each.sides[::-1]))  # fmt: skip
            exact += {frozenset(side) for side in each.sides} == sides
            wrong += not touches
    return exact, wrong


def row(kind: str, nodes: int, group_nodes: int, cases: int, first: int) -> str:
    count: Counter[str] = Counter()
    began = time.process_time()
    for seed in range(first, first + cases):
        fault, machine, draws = drawn(kind, nodes, group_nodes, seed)
        found = separate(nodes, group_nodes, machine.measure, GroupTerms(higher_is_better=False), draws)
        bad = set(fault.nodes) if kind in SINGLE else set()
        named = {each.node for each in found.culprits}
        count["bad"] += len(bad)
        count["named"] += len(named & bad)
        count["false"] += bool(named - bad)
        count["rounds"] += found.rounds
        count["most"] = max(count["most"], found.rounds)
        count["runs"] += sum(len(each.results) for each in found.tests)
        exact, wrong = between_named(found, fault)
        among = sum(each.alone is not None and not found.scale.is_bad(each.alone) for each in found.combinations)
        count["exact"] += min(exact, 1)
        count["wrong"] += bool(wrong) if kind in BETWEEN else bool(wrong or exact)
        count["among"] += bool(among)
    spent = 1000 * (time.process_time() - began) / cases
    shares = []
    for method in (bisected, removed):
        peer: Counter[str] = Counter()
        for seed in range(first, first + min(cases, MOST_OF_PEERS)):
            fault, machine, _draws = drawn(kind, nodes, group_nodes, seed)
            bad = set(fault.nodes) if kind in SINGLE else set()
            named, rounds, runs = method(machine, nodes)
            peer["named"] += len(named & bad)
            peer["bad"] += len(bad)
            peer["false"] += bool(named - bad)
            peer["rounds"] += rounds
            peer["runs"] += runs
        total = min(cases, MOST_OF_PEERS)
        shares.append(
            f"{share(peer['named'], peer['bad'])} | {share(peer['false'], total)} | {peer['rounds'] / total:.0f}"
        )
    together = share(count["exact"], cases) if kind in BETWEEN else "-"
    return (
        f"| {kind} | {cases} | {share(count['named'], count['bad'])} | {together} | {share(count['among'], cases)} | "
        f"{share(count['false'], cases)} | {share(count['wrong'], cases)} | "
        f"{count['rounds'] / cases:.1f} ({count['most']}) | {count['runs'] / cases:.0f} | {spent:.0f} | "
        + " | ".join(shares)
        + " |"
    )


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--group-nodes", type=int, default=8)
    parser.add_argument("--first", type=int, default=100_000)
    asked = parser.parse_args()
    for kind in GROUP_FAULTS:
        print(row(kind, asked.nodes, asked.group_nodes, asked.cases, asked.first), flush=True)


if __name__ == "__main__":
    main()
