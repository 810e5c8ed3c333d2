"""What `busbw runs` and `busbw trend` take over thousands of runs, against reading every run.json.

    python benchmarks/history/history.py RUN [--runs 10000] [--folder DIR] [--repeats 7]

RUN is a real run directory. Its copies differ in name, time, host and measured times; they lie in a folder that is
removed afterwards, unless --folder names one. "reading all" is the decoder of busbw over every run.json, already in
memory. Printed are medians, in seconds by the clock and of the processor, and the ratio of the latter to that; the aim
is less than 1 s after the first call on a machine with nothing else to do.
"""

import argparse
import datetime as dt
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from busbw.store import directory as directories
from busbw.store import outcome

HOSTS = 40
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
BUSBW = [sys.executable, "-m", "busbw"]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("run", type=Path)
    arguments.add_argument("--runs", type=int, default=10_000)
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--repeats", type=int, default=7)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        base = chosen.folder if chosen.folder is not None else Path(scratch, "runs")
        base.mkdir(parents=True, exist_ok=True)
        if not any(base.iterdir()):
            make_copies(chosen.run, base, range(chosen.runs))
        environment = {**os.environ, "BUSBW_RUNS": str(base), "XDG_CACHE_HOME": str(Path(scratch, "cache"))}
        print_times(chosen.run, base, environment, chosen.repeats)


def print_times(run: Path, base: Path, environment: dict[str, str], repeats: int) -> None:
    found = directories.directories(base)
    size_bytes = sum((each / "run.json").stat().st_size for each in found)
    measured = msgspec.json.decode((run / "run.json").read_bytes())["measurements"]
    print(f"{len(found)} runs, {len(found) * len(measured)} points, {size_bytes >> 20} MiB; {os.cpu_count()} cores")
    for each in found:
        outcome.read_run(each)
    every = taken(lambda: [outcome.read_run(each) for each in found])
    print(f"{'':34}{'clock':>8}{'cpu':>8}{'ratio':>8}")
    print_one("reading all", [every], every)
    last = measured[-1]
    one_point = ("--collective", last["collective"], "--size", str(last["size_bytes"]))
    questions = {
        "runs, the first call": ("runs",),
        "runs": ("runs",),
        "runs --host node07 --since": ("runs", "--host", "node07", "--since", "2024-06-01"),
        "runs --json, all of them": ("runs", "--json"),
        "trend, one point of each run": ("trend", "busbw", *one_point),
        "trend, every point": ("trend", "busbw"),
    }
    for name, question in questions.items():
        times = 1 if "first" in name else repeats
        print_one(name, [asked(question, environment) for _ in range(times)], every)
    new = []
    for number in range(len(found), len(found) + repeats):
        make_copies(run, base, range(number, number + 1))
        new.append(asked(("runs",), environment))
    print_one("runs, with one new run each time", new, every)


# Seconds by the clock, and of the processor.
Taken = tuple[float, float]


def print_one(name: str, times: list[Taken], every: Taken) -> None:
    clock_s, cpu_s = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{name:34}{clock_s:8.2f}{cpu_s:8.2f}{cpu_s / every[1]:8.2f}")


def asked(question: tuple[str, ...], environment: dict[str, str]) -> Taken:
    quiet = subprocess.DEVNULL
    return taken(lambda: subprocess.run([*BUSBW, *question], env=environment, stdout=quiet, stderr=quiet, check=True))


def taken(work: Callable[[], object]) -> Taken:
    began, began_cpu_s = time.perf_counter(), cpu_s()
    work()
    return time.perf_counter() - began, cpu_s() - began_cpu_s


def cpu_s() -> float:
    """Return what this process and those it has waited for took of the processor."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def make_copies(run: Path, base: Path, numbers: range) -> None:
    """Make run directories of a real one, an hour apart."""
    plan, result = (msgspec.json.decode((run / name).read_bytes()) for name in ("plan.json", "run.json"))
    outcome = (run / "outcome.json").read_bytes()
    noise = random.Random(numbers.start)  # noqa: S311 - noise, not a secret
    for number in numbers:
        created = START + dt.timedelta(hours=number)
        host = f"node{number % HOSTS:02d}"
        name = f"{created:%Y%m%dT%H%M%S}-{host}-{number:05d}"
        for each in (plan, result["plan"]):
            each["run_id"], each["created"], each["host"]["name"] = name, created.isoformat(), host
            each["placement"]["hosts"] = [host]
        result_there = {**result, "measurements": list(scattered(result["measurements"], noise))}
        directory = base / name
        (directory / "raw").mkdir(parents=True)
        (directory / "plan.json").write_bytes(msgspec.json.encode(plan))
        (directory / "outcome.json").write_bytes(outcome)
        (directory / "run.json").write_bytes(msgspec.json.format(msgspec.json.encode(result_there), indent=1))


def scattered(measurements: list[dict[str, Any]], noise: random.Random) -> Iterator[dict[str, Any]]:
    """Yield measurements with times that are another by a percent or so."""
    for each in measurements:
        factor = noise.lognormvariate(0, 0.01)
        times = {name: each[name] * factor for name in ("median_s", "low_s", "high_s", "mean_s")}
        yield {**each, **times, "busbw_Bps": each["busbw_Bps"] / factor}


if __name__ == "__main__":
    main()
