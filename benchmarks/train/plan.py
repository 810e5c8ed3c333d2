"""How long a plan takes, and how much memory: 1,024 GPUs in 1 s, about 100,000 in 10 s and 500 MB.

    python benchmarks/train/plan.py

Each plan is a process of its own; printed are the best of three, of the whole command and of its processor time.
"""

import resource
import subprocess
import sys
import time

CASES = (("grok1-314b", "azure-nd-h100-v5", 1024, 1.0), ("grok1-314b", "azure-nd-h100-v5", 99840, 10.0))
MOST_BYTES = 500e6
ROUNDS = 3


def main() -> None:
    """Print a line a case; exit with 1 where one is over its bound."""
    failed = False
    for workload, platform, gpus, most_s in CASES:
        walls, cpus = [], []
        for _round in range(ROUNDS):
            before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            command = [sys.executable, "-m", "busbw", "train", "plan", workload, "--platform", platform]
            subprocess.run([*command, "--gpus", str(gpus), "--json"], check=True, stdout=subprocess.DEVNULL)
            walls.append(time.monotonic() - begin)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        most_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        took = f"{min(walls):.2f} s ({min(cpus):.2f} s of a core), bound {most_s:g} s"
        print(f"{gpus:>7} GPUs: {took}; {most_bytes / 1e6:.0f} MB")
        failed |= min(walls) > most_s or most_bytes > MOST_BYTES
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
