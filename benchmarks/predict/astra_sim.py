"""Our prediction beside that of ASTRA-sim's analytical back end and what was measured: answers, and the time for them.

    python benchmarks/predict/astra_sim.py PROGRAM [GPUS ...]

PROGRAM is AstraSim_Analytical_Congestion_Unaware (the other one takes a single dimension). The call is all_reduce of
16 GiB on 1 to 128 nodes of 8 H100 with 8 x 400 Gb/s (tables 1 and 2 of the interconnect write-up, in
docs/data/training-cells.csv; our constants were fitted to these cells). ASTRA-sim gets the same line rates: 450 GB/s a
GPU within a node, 50 GB/s between them, as two switches with a ring in each, four splits of which two are under way (as
its own example for H100 has), and latencies of NCCL's own model. Both are run in turn, three times, and the median is
told; ours is timed without, theirs with the start of its process.
"""

import csv
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from busbw.base.collectives import COLLECTIVES
from busbw.facts.platforms import find_platform
from busbw.predict.closed import predicted
from busbw.predict.machines import machine_of
from busbw.predict.tiers import simulated

CELLS = Path(__file__).parents[2] / "docs" / "data" / "training-cells.csv"
PLATFORM = "azure-nd-h100-v5"
SIZE = 2**34
ROUNDS = 3
LIMIT_S = 300
# It counts GB as 2**30 bytes.
GB = 2**30
SYSTEM = """{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 2,
"preferred-dataset-splits": 4, "all-reduce-implementation": [%s], "all-gather-implementation": [%s],
"reduce-scatter-implementation": [%s], "all-to-all-implementation": [%s],
"collective-optimization": "localBWAware", "local-mem-bw": 3350, "boost-mode": 0}"""


def varint(number: int) -> bytes:
    """Return a number as protobuf has it."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field(number: int, content: bytes) -> bytes:
    """Return a field with a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(name: bytes, kind: int, value: int) -> bytes:
    """Return an attribute of a node."""
    return field(10, field(1, name) + varint(kind << 3) + varint(value))


def trace() -> bytes:
    """Return Chakra's trace of one all_reduce: its version, then the node (et_def.proto)."""
    head = field(1, b"0.0.4")
    node = field(2, b"all_reduce") + bytes([3 << 3, 7])
    node += attribute(b"is_cpu_op", 27, 0) + attribute(b"comm_type", 9, 0) + attribute(b"comm_size", 9, SIZE)
    return varint(len(head)) + head + varint(len(node)) + node


def configured(folder: Path, gpus: int) -> list[str]:
    """Write what ASTRA-sim needs for so many GPUs; return its options."""
    nodes = gpus // 8
    names = ", ".join(['"ring"'] * (2 if nodes > 1 else 1))
    (folder / "system.json").write_text(SYSTEM % (names, names, names, names))
    (folder / "memory.json").write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')
    rates = [450e9 / GB, 50e9 / GB][: 2 if nodes > 1 else 1]
    sides = [("topology", ["Switch"] * len(rates)), ("npus_count", [8, nodes][: len(rates)]), ("bandwidth", rates),
             ("latency", [3400, 14000][: len(rates)])]  # fmt: skip
    (folder / "network.yml").write_text(
        "".join(f"{name}: [ {', '.join(map(str, values))} ]\n" for name, values in sides)
    )
    for gpu in range(gpus):
        (folder / f"call.{gpu}.et").write_bytes(trace())
    return [
        f"--workload-configuration={folder / 'call'}", f"--system-configuration={folder / 'system.json'}",
        f"--remote-memory-configuration={folder / 'memory.json'}", f"--network-configuration={folder / 'network.yml'}",
    ]  # fmt: skip


def theirs(program: str, options: list[str], folder: Path) -> tuple[float, float]:
    """Return the seconds that ASTRA-sim tells, and those that it takes."""
    begin = time.perf_counter()
    done = subprocess.run([program, *options], capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=folder)
    took_s = time.perf_counter() - begin
    cycles = [int(each) for each in re.findall(r"finished, ([0-9]+) cycles", done.stdout)]
    if done.returncode or not cycles:
        sys.exit(f"{program} told no time (exit code {done.returncode}): {done.stdout[-300:]}{done.stderr[-300:]}")
    return max(cycles) * 1e-9, took_s


def ours(gpus: int) -> tuple[float, float, float, float]:
    """Return the seconds that the closed form tells and takes, and those of the steps."""
    machine = machine_of(find_platform(PLATFORM).platform)
    nodes = gpus // 8
    algorithm = "nvlstree" if nodes > 1 else "nvls"
    call = {"nodes": nodes, "collective": "all_reduce", "algorithm": algorithm, "size_bytes": SIZE}
    begin = time.perf_counter()
    closed_s = predicted(machine, **call)[0].time_s
    closed_took_s = time.perf_counter() - begin
    begin = time.perf_counter()
    steps_s = simulated(machine, **call, tier="steps").time_s if nodes > 1 else float("nan")
    return closed_s, closed_took_s, steps_s, time.perf_counter() - begin


def main() -> None:
    """Print a line for each number of GPUs."""
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        sys.exit(f"usage: {sys.argv[0]} PROGRAM [GPUS ...]")
    wanted = {int(each) for each in sys.argv[2:]}
    rows = [row for row in csv.DictReader(CELLS.open()) if row["document"] == "W1" and row["size_bytes"] == str(SIZE)]
    measured = {
        int(row["gpus"]): float(row["busbw_GBps"])
        for row in rows
        if (row["platform_id"], row["collective"]) == (PLATFORM, "all_reduce") and int(row["gpus"]) % 8 == 0
    }  # fmt: skip
    ours(16)
    print(f"{'GPUs':>5} {'measured':>9} {'closed':>14} {'steps':>14} {'ASTRA-sim':>15}   took: closed, steps, theirs")
    for gpus, busbw in sorted(measured.items()):
        if wanted and gpus not in wanted:
            continue
        with tempfile.TemporaryDirectory() as name:
            options = configured(Path(name), gpus)
            turns = [(ours(gpus), theirs(sys.argv[1], options, Path(name))) for _ in range(ROUNDS)]
        moved = COLLECTIVES["all_reduce"].factor(gpus) * SIZE / 1e9
        told = [moved / turns[0][0][0], moved / turns[0][0][2], moved / turns[0][1][0]]
        took = [statistics.median(own[which] for own, _ in turns) for which in (1, 3)]
        took.append(statistics.median(other[1] for _, other in turns))
        words = [f"{each:6.1f} {100 * (each / busbw - 1):+6.1f}%" for each in told]
        print(
            f"{gpus:5} {busbw:9.2f} {'  '.join(words)}   {', '.join(f'{each * 1e3:.2f} ms' for each in took)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
