"""Programs that print what nccl-tests of several versions and OSU print; their times are made up."""

import sys
from pathlib import Path
from typing import Any

from .runner import program

USAGES = Path(__file__).parents[1] / "backends" / "usage"

# Run by Python; PLAN is what the test wants of it.
_SCRIPT = r"""
import json, os, signal, sys, time

USAGE = {usage!r}
PLAN = {plan!r}
NAME = os.path.basename(sys.argv[0])
arguments = sys.argv[1:]
if "-h" in arguments:
    print(USAGE)
    sys.exit(0)
known = {{line.split("[-")[1][0] for line in USAGE.splitlines() if "[-" in line}}
options = dict(zip(arguments[::2], arguments[1::2]))
if any(option[1:] not in known for option in options):
    print(USAGE)
    sys.exit(0)

here = os.environ.get
world = int(here("OMPI_COMM_WORLD_SIZE", here("SLURM_STEP_NUM_TASKS", 1)))
rank = int(here("OMPI_COMM_WORLD_RANK", here("SLURM_PROCID", 0)))
if not PLAN["mpi"]:
    world, rank = 1, 0
if PLAN.get("dies") == rank:
    os.kill(os.getpid(), signal.SIGKILL)
gpus = int(options["-g"])
ranks = world * gpus
if rank > 0:
    time.sleep(PLAN.get("lasts_s", 0.3))
    sys.exit(0)
out = lambda text: print(text, flush=True)
if "-J" in options:
    report = options["-J"]
    number = 0
    while os.path.exists(report):
        report = f"{{options['-J']}}.{{number}}"
        number += 1
    open(report, "w").close()
    out("# Writing JSON output to " + report)
if PLAN["new"]:
    out("# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809\n# Collective test starting: " + NAME)
iterations, cycles = int(options["-n"]), int(options.get("-N", 1))
aggregated = " agg iters: 1" if PLAN["new"] else ""
graph = (" graph: " + options.get("-G", "0")) if PLAN["new"] else ""
out(f"# nThread 1 nGpus {{gpus}} minBytes {{options['-b']}} maxBytes {{options['-e']}} step: 2(factor) "
    f"warmup iters: 5 iters: {{iterations}}{{aggregated}} validation: {{options['-c']}}{{graph}}")
out("#\n# Using devices")
for each in range(ranks):
    group = " Group  0" if PLAN["new"] else ""
    out(f"#  Rank {{each:2d}}{{group}} Pid {{os.getpid() + each:6d}} on node7 device {{each:2d}} [0x07] NVIDIA A100")
if "says" in PLAN:
    out(PLAN["says"].format(pid=os.getpid() + 1))
    sys.exit(PLAN.get("exits", 3))
timing = options.get("-I") == "1"
columns = "time   algbw   busbw  #wrong" if PLAN["new"] else "time   algbw   busbw  error"
columns += "  i_min  i_max  i_p99  i_cv%" if timing else ""
meta = "size count type redop root" if PLAN["new"] else "size count type redop"
out(f"#\n# {{meta}} {{columns}} {{columns}}")
wrong = "N/A" if options["-c"] == "0" else str(PLAN.get("wrong", 0)) if PLAN["new"] else "0e+00"
results, total = [], []
for cycle in range(cycles):
    size = int(options["-b"])
    while size <= int(options["-e"]):
        if PLAN.get("hangs_at") == size:
            time.sleep(600)
        time.sleep(PLAN.get("row_s", 0.01))
        halves, record = [], {{"size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "-1"}}
        for place in ("out_of_place", "in_place"):
            us = 10 + size / 1e4 + cycle % 3
            algbw = size / us / 1e3
            busbw = algbw * 2 * (ranks - 1) / ranks
            total.append(busbw)
            cell = f"{{us:.6f}} {{algbw:.6f}} {{busbw:.6f}} {{wrong}}"
            if timing:
                times = [us + each % 5 for each in range(iterations)]
                cell += f" {{min(times):.2f}} {{max(times):.2f}} {{max(times):.2f}} 1.0"
                record[place + "_per_iter"] = {{"skipped_iterations": 0, "times_us": times}}
            record[place] = {{"time": us, "alg_bw": algbw, "bus_bw": busbw,
                              "nwrong": None if wrong == "N/A" else float(wrong)}}
            halves.append(cell)
        root = " -1" if PLAN["new"] else ""
        out(f"{{size}} {{size // 4}} float sum{{root}} " + " ".join(halves))
        results.append(record)
        size *= int(options.get("-f", 2))
bad = wrong not in ("N/A", "0", "0e+00")
out(f"# Out of bounds values : {{int(bad)}} {{'FAILED' if bad else 'OK'}}")
out(f"# Avg bus bandwidth    : {{sum(total) / len(total):.6g}}\n#")
if "-J" in options:
    document = {{"version": 3, "args": sys.argv, "env": ["SECRET_TOKEN=abc123", "NCCL_ALGO=Ring"],
                 "config": {{"nthreads": 1, "ngpus": gpus,
                             "devices": [{{"rank": each, "group": 0}} for each in range(world)]}},
                 "results": results, "end_time": "now", "start_time": "then"}}
    with open(report, "w") as file:
        json.dump(document, file)
sys.exit(7 if bad else 0)
"""


def nccl_tests(folder: Path, version: str, *, name: str = "all_reduce_perf", mpi: bool = False, **plan: Any) -> Path:
    """Write a program that answers as this version of nccl-tests does, and return its folder.

    `plan`: what goes wrong with it: wrong, hangs_at (bytes), row_s, says (text), exits, dies (rank).
    """
    usage = (USAGES / f"{version}.txt").read_text(encoding="utf-8")
    new = not version.endswith("-2.0")
    script = _SCRIPT.format(usage=usage, plan={"mpi": mpi, "new": new, **plan})
    program(folder / name, f"#!{sys.executable}\n{script}")
    return folder


# Rank 0 prints, as the real one does.
_OSU = r"""
import os, sys, time

USAGE = {usage!r}
PLAN = {plan!r}
arguments = sys.argv[1:]
here = os.environ.get
world = int(here("OMPI_COMM_WORLD_SIZE", here("SLURM_STEP_NUM_TASKS", 1)))
rank = int(here("OMPI_COMM_WORLD_RANK", here("SLURM_PROCID", 0)))
if rank > 0:
    time.sleep(0.3)
    sys.exit(0)
if "-v" in arguments:
    print("# OSU MPI Latency Test v7.4")
    sys.exit(0)
if "-h" in arguments and "mute" in PLAN:
    print(PLAN["mute"], flush=True)
    os.abort()
if "-h" in arguments:
    print(USAGE)
    sys.exit(0)
if world != 2:
    print("This test requires exactly two processes", file=sys.stderr)
    sys.exit(1)
least, most = (int(word) for word in arguments[arguments.index("-m") + 1].split(":"))
checked = "-c" in arguments
print("\n# OSU MPI Latency Test v7.4\n# Datatype: MPI_FLOAT.")
print("# Size       Avg Latency(us)" + ("        Validation" if checked else ""), flush=True)
size = least
while size <= most:
    if PLAN.get("hangs_at") == size:
        time.sleep(600)
    verdict = ("   " + PLAN.get("verdict", "Pass")) if checked else ""
    print(f"{{size}}   {{1 + size / 1000:.2f}}{{verdict}}", flush=True)
    size *= 2
"""


def osu_latency(folder: Path, **plan: Any) -> Path:
    """Write an osu_latency that answers as version 7.4 does, and return its folder. `plan`: hangs_at, verdict, mute."""
    usage = (USAGES / "osu_latency-7.4.txt").read_text(encoding="utf-8")
    program(folder / "osu_latency", f"#!{sys.executable}\n{_OSU.format(usage=usage, plan=plan)}")
    return folder
