"""Time and memory of the analysis of a matrix of all pairs, drawn, with one bad node in it.

.venv/bin/python benchmarks/fabric/full_matrix.py --nodes 4096
.venv/bin/python benchmarks/fabric/full_matrix.py --nodes 1024 --table      # reading it from a table as well
"""

import argparse
import random
import resource
import time
from array import array
from collections.abc import Sequence

from busbw.fabric.pair_table import PairTable
from busbw.fabric.places import PairTest, Places
from busbw.fabric.procedure import analysed
from busbw.fabric.simulation import made_places
from busbw.fabric.table import pairs_text, read_pairs

BAD = 77


def drawn(places: Places, seed: int) -> "list[tuple[int, array[int], array[float]]]":
    """Return for each sender its number, the receivers, and a bandwidth for each of them."""
    draws = random.Random(seed)  # noqa: S311 - a simulation
    # Drawn once and taken from at random places: 16 million draws would take longer than what is measured.
    scatter = array("d", (47.5e9 * (1 + draws.gauss(0.0, 0.02)) for _ in range(1 << 16)))
    count = len(places.endpoints)
    rows = []
    for sender in range(count):
        start = int(draws.random() * (len(scatter) - count))
        receivers = array("i", (each for each in range(count) if each != sender))
        slow = 0.9 if sender == BAD else 1.0
        values = array("d", (slow * each for each in scatter[start : start + count - 1]))
        if sender != BAD:
            values[BAD - (sender < BAD)] *= 0.9
        rows.append((sender, receivers, values))
    return rows


def read_again(places: Places, tests: Sequence[PairTest]) -> PairTable:
    """Return the tests as they are read from a table of them, and print what reading took."""
    text = pairs_text(places, tests, "bandwidth")
    busy = time.process_time()
    _, found = read_pairs([text.encode()], "bandwidth", "table")
    busy = time.process_time() - busy
    print(f"{len(found)} lines, {len(text) / 2**20:.0f} MiB, read in {busy:.2f} s of processor, "
          f"{1e6 * busy / len(found):.2f} us a line")  # fmt: skip
    return found


def main() -> None:
    """Print what the analysis took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1024)
    parser.add_argument("--table", action="store_true", help="write it as a table first and time the reading of that")
    parser.add_argument("--rows", action="store_true", help="as values one by one, not by columns")
    asked = parser.parse_args()
    places = made_places("fat-tree-2", asked.nodes)
    rows = drawn(places, 1)
    tests: Sequence[PairTest]
    if asked.rows:
        tests = [
            PairTest(sender=sender, receiver=receiver, round=0, value=value)
            for sender, receivers, values in rows
            for receiver, value in zip(receivers, values, strict=True)
        ]
    else:
        tests = table = PairTable()
        for sender, receivers, values in rows:
            table.add_round(array("i", (sender,)) * len(receivers), receivers, 0, values)
    del rows
    if asked.table:
        tests = read_again(places, tests)
    began, busy = time.monotonic(), time.process_time()
    outcome = analysed(places, tests, "bandwidth")
    took, busy = time.monotonic() - began, time.process_time() - busy
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    named = ", ".join(each.place for each in outcome.answers)
    print(f"{asked.nodes} nodes, {len(tests)} tests: {took:.2f} s, {busy:.2f} s of processor, {most:.0f} MiB: {named}")


if __name__ == "__main__":
    main()
