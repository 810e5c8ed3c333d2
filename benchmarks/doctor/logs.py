"""How fast `busbw doctor` reads, and in how much memory: the log of one large job, all ranks in one file.

    python benchmarks/doctor/logs.py [--size 500M] [--ranks 10752] [--debug init|all|mixed|failures] [--tag none|srun]
                                     [--keep FILE]

The log is made with a fixed seed, in the form of NCCL 2.28: each rank prints what INFO prints at its start, and
connections until the size is reached; with `--debug all` also the graph and the choices of the other subsystems;
with `failures` every line after the start tells of a failure, with `mixed` every second one.
`grep -c NCCL` reads the same file in the same run. The file is in the page cache for both.
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

COMMAND = "from busbw.cli import main; main()"
GPUS = 8
TAGS = {"none": "", "srun": "{rank:5d}: "}
START = (
    "NCCL version 2.28.9+cuda12.9",
    "cudaDriverVersion 12090",
    "Bootstrap: Using eth0:10.{a}.{b}.{gpu}<0>",
    "NET/Plugin: Could not find: libnccl-net.so",
    "NCCL_IB_HCA set to mlx5_ib",
    "NET/IB : Using [0]mlx5_ib0:1/IB [1]mlx5_ib1:1/IB [2]mlx5_ib2:1/IB [3]mlx5_ib3:1/IB [RO]; OOB eth0:10.{a}.{b}.1<0>",
    "Initialized NET plugin IB",
    "Assigned NET plugin IB to comm",
    "Using network IB",
    "DMA-BUF is available on GPU device {gpu}",
    "ncclCommInitRankConfig {comm} commId 0x77aa55 - Init START",
    "Setting affinity for GPU {gpu} to ffffffff,00000000,ffffffff",
    "NVLS multicast support is available on dev {gpu} (NVLS_NCHANNELS 16)",
    "comm 0x5500{rank:06x} rank {rank} nRanks {ranks} nNodes {nodes} localRanks 8 localRank {gpu} MNNVL 0",
    "Trees [0] {next}/-1/-1->{rank}->{before} [1] {next}/-1/-1->{rank}->{before}",
    "P2P Chunksize set to 131072",
    "16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer",
    "ncclCommInitRankConfig {comm} commId 0x77aa55 - Init COMPLETE",
    "Init timings - ncclCommInitRankConfig: rank {rank} nranks {ranks} total 9.57 (kernels 0.42, rest 0.00)",
)
CONNECTION = "Channel {channel:02d}/0 : {rank}[{gpu}] -> {peer}[{gpu}] [send] via NET/IB/{gpu}/GDRDMA"
INSIDE = "Channel {channel:02d}/0 : {rank}[{gpu}] -> {beside}[{gpu}] via P2P/CUMEM"
ELSE = (
    "GPU/0-{gpu}0 :GPU/0-60 (0/5000.0/LOC) GPU/0-70 (2/370.8/NVL) GPU/0-80 (2/370.8/NVL) NET/0-0 (3/48.0/PHB)",
    "Ring {channel:02d} : {before} -> {rank} -> {next}",
    "AllReduce: {size} Bytes -> Algo RING proto SIMPLE channel{{Lo..Hi}}={{0..15}}",
    "Tree {channel} : {before} -> {rank} -> {next}/-1/-1",
)

# With heads of their own; times, addresses and lengths differ from line to line.
FAILURES = (
    (
        "{host}:{pid}:{thread} [{gpu}] transport/net_ib.cc:1310 NCCL WARN NET/IB : Got completion from peer "
        "10.1.{a}.{b}<{any}> with status=12 opcode=0 len={any} vendor err 129 (Recv) localGid fe80::{any:x}"
    ),
    (
        "{host}:{pid}:{thread} [{gpu}] {time} misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by "
        "remote peer {host}<{any}>"
    ),
    (
        "[rank{rank}]:[E1125 {time}.{any:06d} ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=4711, OpType=ALLREDUCE, NumelIn={any}, NumelOut={any}, Timeout(ms)=600000) "
        "ran for 600{any} milliseconds before timing out."
    ),
    (
        "[1700000000.{any:06d}] [{host}:{pid}:{gpu}]  ib_mlx5_log.c:177  UCX  ERROR Transport retry count exceeded on "
        "mlx5_{gpu}:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)"
    ),
    (
        "[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {any} MiB. GPU {gpu} has a total "
        "capacity of 79.10 GiB of which 3.{gpu} MiB is free."
    ),
    "{host}:{pid}:{thread} [{gpu}] NCCL INFO transport/net.cc:1298 -> 6",
)
CONNECTIONS = (CONNECTION, INSIDE)
LINES = {
    "init": CONNECTIONS,
    "all": (*CONNECTIONS, *ELSE),
    "mixed": tuple(line for failure in FAILURES for line in (CONNECTION, failure)),
    "failures": FAILURES,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--size", default="500M", help="of the log")
    arguments.add_argument("--ranks", type=int, default=10752)
    arguments.add_argument("--debug", choices=LINES, default="init", help="what is logged")
    arguments.add_argument("--tag", choices=TAGS, default="none", help="what the launcher writes before a line")
    arguments.add_argument("--keep", type=Path, help="keep the log here")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = chosen.keep or Path(folder, "job.log")
        write_log(log, parse_size(chosen.size), chosen.ranks, TAGS[chosen.tag], LINES[chosen.debug])
        megabytes = log.stat().st_size / 1e6
        print(f"{megabytes:.0f} MB, {chosen.ranks} ranks, subsystems: {chosen.debug}, tag: {chosen.tag}")
        grep_s, grep_cpu_s = timed(["grep", "-c", "NCCL", str(log)])
        doctor_s, doctor_cpu_s = timed([sys.executable, "-c", COMMAND, "doctor", "--json", str(log)])
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"grep -c NCCL    {megabytes / grep_s:6.0f} MB/s, {megabytes / grep_cpu_s:6.0f} MB per second of a core")
        print(
            f"busbw doctor    {megabytes / doctor_s:6.0f} MB/s, {megabytes / doctor_cpu_s:6.0f} MB per second of a core"
        )
        print(f"busbw doctor takes {doctor_cpu_s / grep_cpu_s:.1f} times as long as grep, and {memory:.0f} MiB")


def write_log(path: Path, size: int, ranks: int, tag: str, lines: tuple[str, ...]) -> None:
    chance = random.Random(1)  # noqa: S311
    random.seed(1)
    written = 0
    with path.open("w") as file:
        for line in START:
            block = "".join(text(line, rank, ranks, tag, 0, rank) for rank in range(ranks))
            written += file.write(block)
        channel = 0
        while written < size:
            for first in range(0, ranks, GPUS):
                block = "".join(
                    text(line, rank, ranks, tag, channel % 32, chance.choice((rank + GPUS, rank + 2 * GPUS)) % ranks)
                    for rank in range(first, min(first + GPUS, ranks))
                    for line in lines
                )
                written += file.write(block)
                if written >= size:
                    break
            channel += 1


def text(line: str, rank: int, ranks: int, tag: str, channel: int, peer: int) -> str:
    node, gpu = divmod(rank, GPUS)
    comm = f"comm 0x5500{rank:06x} rank {rank} nranks {ranks} cudaDev {gpu} nvmlDev {gpu} busId {gpu}000"
    host, any_number = f"node{node:05d}", random.randrange(10**7)  # noqa: S311
    filled = line.format(
        rank=rank, ranks=ranks, nodes=-(-ranks // GPUS), gpu=gpu, comm=comm, next=(rank + 1) % ranks, peer=peer,
        before=(rank - 1) % ranks, beside=node * GPUS + (gpu + 1) % GPUS, channel=channel,
        size=8 << channel, a=node // 250, b=node % 250, host=host, pid=10000 + rank, thread=30000 + rank,
        any=any_number, time=f"{any_number % 24:02d}:{any_number % 60:02d}:{any_number % 59:02d}",
    )  # fmt: skip
    head = "" if line in FAILURES else f"{host}:{10000 + rank}:{30000 + rank} [{gpu}] NCCL INFO "
    return f"{tag.format(rank=rank)}{head}{filled}\n"


def timed(command: list[str]) -> tuple[float, float]:
    """Run a command; return how long it took, and the processor's time in it."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=False, stdout=subprocess.PIPE)
    took_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took_s, max(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1e-3)


if __name__ == "__main__":
    main()
