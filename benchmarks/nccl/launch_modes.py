"""Why does a small message over NCCL take another time in the next start? Many short starts, in changing conditions.

Each start times an empty kernel launch on every GPU and an all_reduce of 1 KiB, between two GPUs of this host.
Conditions follow each other in random order, block by block, so that time of day is not mistaken for one of them.
Prints a row a start, rank correlations, and how each condition compares with the default. NVLink multicast stays off.
Run: python benchmarks/nccl/launch_modes.py --help
"""

import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launch_report import report, row_text
from one_start import GUARDS

from busbw import _core

_LIMIT_S = 25


@dataclass(frozen=True)
class Condition:
    """How the processes of a start are started."""

    name: str
    environment: dict[str, str] = field(default_factory=dict)
    # Cores of each rank; None leaves all of them.
    cores: tuple[tuple[int, ...], ...] | None = None
    one_process: bool = False
    no_thp: bool = False
    busy: bool = False


def conditions(cores: Sequence[int], nodes: Sequence[Sequence[int]]) -> list[Condition]:
    """Return what is tried on a host with these cores, and with the cores of each NUMA node."""
    middle = len(cores) // 2
    found = [
        Condition("default"),
        Condition("a core each, first", cores=((cores[0],), (cores[1 % len(cores)],))),
        Condition("a core each, last", cores=((cores[-1],), (cores[-2 % len(cores)],))),
        Condition("half the cores each", cores=(tuple(cores[:middle] or cores), tuple(cores[middle:]))),
        Condition("CUDA_DEVICE_MAX_CONNECTIONS=1", environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"}),
        Condition("CUDA_DEVICE_MAX_CONNECTIONS=32", environment={"CUDA_DEVICE_MAX_CONNECTIONS": "32"}),
        Condition("no huge pages", no_thp=True),
        Condition("other cores busy", busy=True),
        Condition("one process", one_process=True),
    ]
    if len(nodes) > 1:
        found += [Condition(f"NUMA node {node}", cores=(tuple(of), tuple(of))) for node, of in enumerate(nodes)]
    return found


@dataclass(frozen=True)
class Libraries:
    """What every start opens."""

    cuda: str
    nccl: str
    code: Path


def start(libraries: Libraries, condition: Condition, samples: int) -> dict[str, float | dict | list]:
    """Return what one start measured: the mean over ranks, launches rank by rank. Raises when a process fails."""
    ranks = [(0, [0, 1])] if condition.one_process else [(0, [0]), (1, [1])]
    ends = (None,) if condition.one_process else socket.socketpair()
    environment = {**os.environ, **GUARDS, **condition.environment}
    spinners = _spin(condition)
    processes = []
    try:
        for (first, gpus), end in zip(ranks, ends, strict=True):
            task = {
                "cuda": libraries.cuda, "nccl": libraries.nccl, "code": str(libraries.code), "ranks": 2, "first": first,
                "gpus": gpus, "socket": end.fileno() if end else None, "samples": samples, "no_thp": condition.no_thp,
                "cores": condition.cores[first] if condition.cores else None, "sweeps_cores": condition.cores is None,
            }  # fmt: skip
            process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("one_start.py"))], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, env=environment, pass_fds=[end.fileno()] if end else [],
            )  # fmt: skip
            processes.append(process)
            _say(process, json.dumps(task))
        unique_id = processes[0].stdout.readline()
        for process in processes[1:]:
            _say(process, unique_id)
        found = [json.loads(process.communicate(timeout=_LIMIT_S)[0]) for process in processes]
    finally:
        for process in (*processes, *spinners):
            process.kill()
            process.wait()
        for end in ends:
            if end:
                end.close()
    return _together(found)


def _say(process: subprocess.Popen, line: str) -> None:
    process.stdin.write(line.rstrip("\n") + "\n")
    process.stdin.flush()


def _spin(condition: Condition) -> list[subprocess.Popen]:
    """Start loops that keep half the cores from idling."""
    if not condition.busy:
        return []
    loop = [sys.executable, "-c", "import os\nos.nice(19)\nwhile True: pass"]
    return [subprocess.Popen(loop) for _core in range(len(os.sched_getaffinity(0)) // 2)]


def _together(found: list[dict]) -> dict[str, float | dict | list]:
    numbers = {name: statistics.mean(one[name] for one in found) for name in found[0] if name.endswith(("_ns", "_s"))}
    for when in ("launch_at_start", "launch_joined", "launch_after"):
        every = [gpu for one in found for gpu in one[when]]
        numbers[when] = statistics.mean(gpu["host_ns"] for gpu in every)
        numbers[f"{when}_device"] = statistics.mean(gpu["device_ns"] for gpu in every)
        numbers[f"{when}_gpus"] = [gpu["host_ns"] for gpu in every]
    cores = [one["launch_by_core"] for one in found]
    return {**numbers, "cores": [one["core"] for one in found], "launch_by_core": cores}


def visible_state() -> dict[str, str]:
    """Return what this host shows of clocks, idle states, memory and the driver."""
    paths = {
        "clocksource": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "idle driver": "/sys/devices/system/cpu/cpuidle/current_driver",
        "idle governor": "/sys/devices/system/cpu/cpuidle/current_governor",
        "haltpoll": "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
        "huge pages": "/sys/kernel/mm/transparent_hugepage/enabled",
        "numa balancing": "/proc/sys/kernel/numa_balancing",
        "kernel": "/proc/sys/kernel/osrelease",
    }
    found = {name: _text(path) for name, path in paths.items()}
    models = [line for line in _text("/proc/cpuinfo").splitlines() if line.startswith("model name")]
    found["processor"] = f"{len(models)} x {models[0].partition(':')[2].strip()}" if models else "not told"
    found["NUMA nodes"] = str(len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))))
    found["MPS"] = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "not set")
    query = "name,driver_version,pci.bus_id,persistence_mode,pstate,clocks.sm,clocks.mem,clocks_throttle_reasons.active"
    ask = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
    rows = subprocess.run(ask, capture_output=True, text=True, check=False).stdout if shutil.which(ask[0]) else ""
    for number, line in enumerate(rows.splitlines()):
        bus = line.split(", ")[2].lower()[4:]
        found[f"GPU {number}"] = f"{line}, NUMA node {_text(f'/sys/bus/pci/devices/{bus}/numa_node')}"
    return found


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return "not told"


def node_cores() -> list[list[int]]:
    """Return the cores of each NUMA node that this process may use."""
    allowed = os.sched_getaffinity(0)
    found = []
    for path in sorted(Path("/sys/devices/system/node").glob("node[0-9]*/cpulist")):
        cores: list[int] = []
        for part in path.read_text().strip().split(","):
            first, _, last = part.partition("-")
            cores += range(int(first), int(last or first) + 1) if part else []
        found.append([core for core in cores if core in allowed])
    return [cores for cores in found if cores]


def steal_s() -> float:
    """Return the time that the hypervisor has kept from this host's cores."""
    fields = _text("/proc/stat").splitlines()[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0.0


def order_of(tried: Sequence[Condition], starts: int) -> list[Condition]:
    """Return the conditions of so many starts: every block has each once and the default twice, in random order."""
    draw = random.Random(1)  # noqa: S311 - the same order each time
    order: list[Condition] = []
    while len(order) < starts:
        # How much the default moves by itself is what the others are held against.
        order += draw.sample([tried[0], *tried], len(tried) + 1)
    return order[:starts]


def take(libraries: Libraries, options: argparse.Namespace, state: dict[str, str]) -> list[dict]:
    """Make the starts, print a row for each, and return them."""
    tried = conditions(sorted(os.sched_getaffinity(0)), node_cores())
    rows: list[dict] = []
    began_s = time.monotonic()
    for number, condition in enumerate(order_of(tried, options.starts)):
        before_s, stolen_s = time.monotonic(), steal_s()
        if before_s - began_s > options.seconds:
            break
        try:
            row = start(libraries, condition, options.samples)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            print(f"{number:3} {condition.name}: failed: {type(error).__name__}: {error}", flush=True)
            continue
        row |= {"number": number, "condition": condition.name, "at_s": before_s - began_s}
        row |= {"steal_s": steal_s() - stolen_s, "took_s": time.monotonic() - before_s}
        rows.append(row)
        print(row_text(row), flush=True)
        options.json.write_text(json.dumps({"state": state, "starts": rows}))
    return rows


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nccl", required=True, help="libnccl.so.2")
    parser.add_argument("--nvrtc", required=True, help="libnvrtc.so")
    parser.add_argument("--cuda", default="libcuda.so.1")
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=600, help="begin no start after this many")
    parser.add_argument("--samples", type=int, default=300, help="of each mode in each start")
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    cuda = _core.Cuda(options.cuda)
    code = options.json.with_suffix(".kernels")
    code.write_bytes(_core.Nvrtc(options.nvrtc).compile_kernels(cuda.facts(0).capability))
    state = visible_state()
    print("\n".join(f"{name}: {value}" for name, value in state.items()), flush=True)
    rows = take(Libraries(cuda=cuda.path, nccl=options.nccl, code=code), options, state)
    if len(rows) < 3:
        print("too few starts", file=sys.stderr)
        return 1
    report(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
