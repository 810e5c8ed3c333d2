"""A table of data/pair_noise.toml, from a sweep of pairs measured again and again or from launches side by side.

usage: python benchmarks/fabric/stored_noise.py NAME METRIC RESULTS --words TEXT --source TEXT --measured DATE

RESULTS is a run of `busbw fabric`, a table of pairs, or a JSON file of `benchmarks/nccl/side_by_side.py`, of which each
size of sendrecv from `--least` bytes on and each tool counts as a pair, and each start as a test of it.
"""

import argparse
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

from busbw.api.sweeping.fabrics import real_noise
from busbw.fabric.places import PairTest
from busbw.fabric.simulation import noise_of


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("metric")
    parser.add_argument("results")
    parser.add_argument("--least", type=int, default=2**24)
    for option in ("--words", "--source", "--measured"):
        parser.add_argument(option, required=True)
    asked = parser.parse_args()
    if asked.results.endswith(".json"):
        tests = tuple(launches(Path(asked.results), asked.least))
        drawn = noise_of(tests, asked.metric, (), asked.results).drawn
    else:
        drawn = real_noise(asked.results, asked.metric).drawn
    numbers = ", ".join(str(round(each * 1e5)) for each in sorted(drawn))
    print(f'[[noise]]\nname = "{asked.name}"\nmetric = "{asked.metric}"\nwords = "{asked.words}"')
    print(f'source = "{asked.source}"\nmeasured = {asked.measured}')
    print("residuals = [\n" + textwrap.fill(numbers, 116, initial_indent="  ", subsequent_indent="  ") + ",\n]")


def launches(path: Path, least_bytes: int) -> Iterator[PairTest]:
    """Yield a test for each start of each tool."""
    rows = [each for each in json.loads(path.read_text()) if each["collective"] == "sendrecv"]
    pair = 0
    for row in rows:
        if row["size_bytes"] >= least_bytes:
            for times_us in (row["nccl_tests_all_us"], row["busbw_all_us"]):
                for number, time_us in enumerate(times_us):
                    value = row["size_bytes"] / (time_us * 1e-6)
                    yield PairTest(sender=2 * pair, receiver=2 * pair + 1, round=number, value=value)
                pair += 1


if __name__ == "__main__":
    main()
