"""How fast `busbw import` reads, and in how much memory: a mixed log of NCCL INFO lines with tables in between.

    python benchmarks/importing/importing.py [--size 1G] [--tag none|mpirun|srun] [--log nccl|training] [--keep FILE]

The log is made from the shapes of real outputs with a fixed seed. `--log training` has what training programs print
between the rows instead: lines that no reader knows, each of which is listed. Beside busbw, in the same run and on the
same file, a bare Python loop over the lines and `grep -c busbw` show what the machine does at best.
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from busbw.base.units import parse_size

TABLE_LINES = 31
SIZES = [8 * 2**power for power in range(TABLE_LINES)]
TAGS = {"none": "", "mpirun": "[1,{rank}]<stdout>:", "srun": "{rank}: "}
INFO = (
    "Channel {a:02d}/24 : {b}[{b}] -> {c}[{c}] via P2P/CUMEM",
    "AllReduce: {size} Bytes -> Algo RING proto SIMPLE channel{{Lo..Hi}}={{0..23}}",
    "comm 0x55d0c8a3f{a:03x} rank {b} nRanks 8 nNodes 1 localRanks 8 localRank {b} MNNVL 0",
    "NET/IB: [{b}] mlx5_{b}:uverbs{b}:1/IB provider=Mlx5 speed=400000 context=0x55d0c8 pciPath=/sys/devices/pci ar=0",
    "Trees [0] {b}/-1/-1->{c}->-1 [1] {b}/-1/-1->{c}->-1 [2] {b}/-1/-1->{c}->-1",
    "Connected all rings, use ring PXN 0 GDR 1",
)
TRAINING = (
    (
        " [2026-11-21 12:34:56.123456] iteration {step:8d}/  500000 | consumed samples: {step:12d} | elapsed time per "
        "iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): 401.2 | learning rate: 1.500000E-04 | global "
        "batch size:   256 | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: 0.931 | skipped iterations:   0 |"
    ),
    "{{'loss': {loss:.4f}, 'grad_norm': 1.2531, 'learning_rate': 1.5e-04, 'epoch': 0.12}}",
    (
        "[titan] 2026-11-21 12:34:56,123 - root - INFO - step: {step:5d}  loss: {loss:7.4f}  grad_norm:  0.9310  "
        "memory: 40.12GiB(50.7%)  tps: 9,123  tflops: 400.12  mfu: 40.1%"
    ),
    "2026-11-21 12:34:56,123 - INFO - trainer.py:77 - step {step} loss {loss:.4f} time {ms:.1f} ms",
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--size", default="1G", help="of the log")
    arguments.add_argument("--tag", choices=TAGS, default="none", help="what the launcher writes before a line")
    arguments.add_argument("--log", choices=("nccl", "training"), default="nccl", help="what stands between the rows")
    arguments.add_argument("--keep", type=Path, help="keep the log here")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = chosen.keep or Path(folder, "mixed.log")
        rows = write_log(log, parse_size(chosen.size), TAGS[chosen.tag], LINES[chosen.log])
        megabytes = log.stat().st_size / 1e6
        print(f"{megabytes:.0f} MB, {rows} rows of tables, tag: {chosen.tag}, between the rows: {chosen.log}")
        loop_s = timed(lambda: bare_loop(log))
        grep_s = timed(lambda: subprocess.run(["grep", "-c", "busbw", log], check=False, stdout=subprocess.PIPE))
        print(f"{'grep -c busbw':28}{megabytes / grep_s:8.0f} MB/s")
        print(f"{'Python, a bare line loop':28}{megabytes / loop_s:8.0f} MB/s")
        for name, options in (("busbw import", []), ("busbw import --no-copy", ["--no-copy"])):
            report(name, options, log, Path(folder, f"import-{len(options)}"), megabytes, loop_s)


def report(name: str, options: list[str], log: Path, directory: Path, megabytes: float, loop_s: float) -> None:
    """Time one import in a process of its own, of which the greatest memory is asked afterwards."""
    command = [sys.executable, "-c", "from busbw.cli import main; main()", "import", str(log), "-o", str(directory)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start_s = time.perf_counter()
    done = subprocess.run([*command, *options], check=False, stdout=subprocess.DEVNULL)
    wall_s = time.perf_counter() - start_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name} exits {done.returncode}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{name:28}{megabytes / cpu_s:8.0f} MB/s per core, {megabytes / wall_s:.0f} MB/s by the clock, "
        f"{loop_s / cpu_s:.2f} of the bare loop, at most {after.ru_maxrss / 1024:.0f} MiB"
    )


def timed(work) -> float:
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


def bare_loop(log: Path) -> int:
    found = 0
    with log.open("rb") as file:
        for line in file:
            found += b"NCCL INFO" in line
    return found


def write_log(path: Path, size_bytes: int, tag: str, other_line) -> int:
    """Write a log of at least this size, and return the rows of tables in it."""
    chance = random.Random(20260101)  # noqa: S311 - a log, no secret
    others = [other_line(chance, tag) for _ in range(4000)]
    written = rows = 0
    with path.open("w") as file:
        while written < size_bytes:
            for line in table(chance):
                text = tag.format(rank=0) + line + "\n"
                # Between two rows, what a rank logs for each call.
                text += "".join(chance.choices(others, k=chance.randrange(20, 60)))
                written += file.write(text)
            rows += TABLE_LINES
    return rows


def info_line(chance: random.Random, tag: str) -> str:
    rank = chance.randrange(8)
    numbers = {"a": chance.randrange(24), "b": rank, "c": (rank + 1) % 8, "size": 2 ** chance.randrange(3, 34)}
    text = chance.choice(INFO).format(**numbers)
    return f"{tag.format(rank=rank)}node{chance.randrange(64)}:{1000 + rank}:{2000 + rank} [{rank}] NCCL INFO {text}\n"


def training_line(chance: random.Random, tag: str) -> str:
    """Return a line as Megatron-LM, Hugging Face's Trainer, torchtitan or a plain logger prints it."""
    numbers = {"step": chance.randrange(500_000), "loss": chance.uniform(1, 9), "ms": chance.uniform(900, 1100)}
    text = chance.choice(TRAINING).format(**numbers)
    return f"{tag.format(rank=chance.randrange(8))}{text}\n"


LINES = {"nccl": info_line, "training": training_line}


def table(chance: random.Random):
    """Yield the lines of one run of all_reduce_perf on eight GPUs, as version 2.17.9 prints them."""
    yield "# nccl-tests version 2.17.9 nccl-headers=22602 nccl-library=22602"
    yield "# Collective test starting: all_reduce_perf"
    yield (
        "# nThread 1 nGpus 8 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
        "validation: 1 graph: 0"
    )
    yield "#"
    yield "# Using devices"
    for rank in range(8):
        yield f"#  Rank {rank:2d} Group  0 Pid   2806 on      node0 device {rank:2d} [0000:0{rank}:00] NVIDIA H100"
    yield "#"
    half = "     time   algbw   busbw  #wrong"
    yield "#       size         count      type   redop    root" + 2 * half
    total = 0.0
    for size_bytes in SIZES:
        halves = ""
        for _ in range(2):
            time_us = 9 + size_bytes / 210e3 * chance.uniform(0.98, 1.02)
            algbw = size_bytes / time_us / 1e3
            total += algbw * 1.75
            halves += f"  {number(time_us, 7)}  {number(algbw, 6)}  {number(algbw * 1.75, 6)}       0"
        yield f"{size_bytes:12d}  {size_bytes // 4:12d}     float     sum      -1{halves}"
    yield "# Out of bounds values : 0 OK"
    yield f"# Avg bus bandwidth    : {total / 2 / len(SIZES):g} "
    yield "#"
    yield "# Collective test concluded: all_reduce_perf"


def number(value: float, width: int) -> str:
    for decimals in (2, 1):
        text = f"{value:{width}.{decimals}f}"
        if len(text) <= width:
            return text
    return f"{value:{width}.0f}"


if __name__ == "__main__":
    main()
