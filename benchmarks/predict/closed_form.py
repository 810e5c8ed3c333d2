"""How long 1,000 predictions of the closed form take: a second at most, in one process, without its start.

    python benchmarks/predict/closed_form.py

Ten platforms, ten sizes, ten numbers of nodes, all_reduce by each way that is known; the best of three of CPU time.
"""

import itertools
import sys
import time

from busbw.facts.platforms import find_platform
from busbw.predict.closed import predicted
from busbw.predict.machines import CannotTellError, machine_of

PLATFORMS = (
    "azure-nd-h100-v5", "azure-ndv4", "aws-p5", "aws-p5en", "aws-p4de", "aws-p6-b200", "gcp-a3-ultra", "gcp-a3-mega",
    "isambard-ai-phase2", "oci-bm-gpu-h100-8",
)  # fmt: skip
NODES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1344)
SIZES = tuple(2**power for power in range(16, 36, 2))
MOST_S = 1.0
ROUNDS = 3


def main() -> None:
    """Print the time of all cells; exit with 1 where it is over the bound."""
    machines = [machine_of(find_platform(name).platform) for name in PLATFORMS]
    times_s = []
    told = ways = 0
    for _round in range(ROUNDS):
        told = ways = 0
        begin = time.process_time()
        for machine, nodes, size_bytes in itertools.product(machines, NODES, SIZES):
            try:
                ways += len(predicted(machine, nodes=nodes, collective="all_reduce", size_bytes=size_bytes))
                told += 1
            except CannotTellError:
                continue
        times_s.append(time.process_time() - begin)
    print(f"{told} cells told, {ways} ways: {min(times_s):.3f} s, bound {MOST_S:g} s")
    sys.exit(1 if min(times_s) > MOST_S else 0)


if __name__ == "__main__":
    main()
