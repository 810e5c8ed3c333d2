"""The whole study: all kinds of faults, 1,000 held-out cases each, as the tables of docs/measurements.

It goes on where it was when it is started again with the same file of results, and ends by itself at `--seconds`.

.venv/bin/python benchmarks/fabric/campaign.py /tmp/study.jsonl --jobs 2 --seconds 3600
.venv/bin/python benchmarks/fabric/campaign.py /tmp/study.jsonl --seconds 0        # the tables only
.venv/bin/python benchmarks/fabric/campaign.py /tmp/study.jsonl --only "1024 nodes" --fault node --cases 100
"""

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path

from study import Score, Setting, case

import busbw.fabric
from busbw.base.errors import InputError
from busbw.fabric.simulation import FAULTS, FaultKind, made_places

# Of one task: what is lost when the study is stopped.
CHUNK = 25
# Of fabrics whose cases take long.
LARGE_CHUNK, LARGE = 5, 256
HEADER = "| fault | cases | named (95 %) | precision | false node | rounds (most) | tests | ms |"
PEERS = " 93 %: named | 93 %: false node | values below 90 % | bisection: named | false node | rounds |"


@dataclass(frozen=True, kw_only=True)
class Task:
    """Some cases of a fault in a setting."""

    setting: Setting
    fault: FaultKind
    first: int
    count: int

    @property
    def key(self) -> str:
        """What tells it from others."""
        return f"{self.setting}|{self.setting.peers}|{self.fault}|{self.first}|{self.count}"


# Asked first, first.
SETTINGS = (
    Setting(nodes=8),
    Setting(nodes=16),
    Setting(nodes=64),
    *(Setting(nodes=64, cut=rounds) for rounds in (2, 3, 4, 5)),
    Setting(nodes=64, metric="latency"),
    Setting(topology="fat-tree-3", nodes=64),
    Setting(nodes=256),
    Setting(topology="fat-tree-3", nodes=256),
    Setting(topology="rail", nodes=64),
    Setting(topology="dragonfly", nodes=64),
    Setting(topology="dragonfly-adaptive", nodes=64),
    Setting(topology="dragonfly", nodes=256),
    Setting(topology="dragonfly-adaptive", nodes=256),
    Setting(nodes=1024),
    Setting(nodes=4096),
)


def tasks(cases: int, first: int, only: str, kinds: Sequence[FaultKind], *, peers: bool) -> Iterator[Task]:
    """Yield all tasks; within a setting the kinds in turn, so that all have as many cases when time is over."""
    for setting in (Setting(nodes=64, peers=True),) if peers else SETTINGS:
        if re.search(only, str(setting)) is None:
            continue
        chunk = LARGE_CHUNK if setting.nodes >= LARGE or setting.topology == "rail" or setting.peers else CHUNK
        for start in range(first, first + cases, chunk):
            for fault in kinds if setting.cut is None else ("none", "node"):
                yield Task(setting=setting, fault=fault, first=start, count=min(chunk, first + cases - start))


def carried_out(task: Task) -> Score | None:
    """Return what a task came to; None where its fabric has no such fault."""
    places, score = made_places(task.setting.topology, task.setting.nodes), Score()
    for seed in range(task.first, task.first + task.count):
        try:
            case(task.setting, task.fault, places, seed, score)
        except InputError:
            return None
    return score


def code() -> str:
    """Return what changes with the analysis: results of two of them are not mixed."""
    found = hashlib.sha256()
    for path in sorted(Path(busbw.fabric.__path__[0]).glob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def known(path: Path) -> dict[str, Score | None]:
    """Return the results of a file, empty where there is none. Exits where it is of another analysis."""
    if not path.exists():
        path.write_text(json.dumps({"code": code()}) + "\n")
        return {}
    lines = path.read_text().splitlines(keepends=True)
    if json.loads(lines[0]) != {"code": code()}:
        sys.exit(f"error: {path} holds results of another analysis than the one in src\nhint: name a new file")
    found: dict[str, Score | None] = {}
    # A line without its end was being written when the study was stopped.
    for line in lines[1:]:
        if line.endswith("\n"):
            own = json.loads(line)
            found[own["task"]] = None if own["score"] is None else Score(**own["score"])
    if not lines[-1].endswith("\n"):
        path.write_text("".join(lines[:-1]))
    return found


def carry_on(path: Path, left: Iterator[Task], found: dict[str, Score | None], jobs: int, end: float) -> None:
    """Carry out tasks until the time is over, and write each down."""
    with path.open("a") as into, ProcessPoolExecutor(jobs) as pool:
        under_way: dict[Future[Score | None], Task] = {}
        while True:
            while len(under_way) < jobs and time.monotonic() < end and (task := next(left, None)) is not None:
                under_way[pool.submit(carried_out, task)] = task
            if not under_way:
                return
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                task, score = under_way.pop(future), future.result()
                found[task.key] = score
                into.write(json.dumps({"task": task.key, "score": None if score is None else asdict(score)}) + "\n")
                into.flush()


def tables(found: dict[str, Score | None]) -> Iterator[str]:
    """Yield a table for each setting that has results, of all that the file holds."""
    rows: dict[str, dict[str, Score]] = {}
    for key, score in found.items():
        setting, peers, fault, _, _ = key.split("|")
        if score is not None:
            rows.setdefault(f"{setting}|{peers}", {}).setdefault(fault, Score()).add(score)
    for key, scores in rows.items():
        setting, peers = key.split("|")
        header = HEADER + (PEERS if peers == "True" else "")
        yield f"\n## {setting}\n\n{header}\n|{'---|' * (header.count('|') - 1)}"
        for fault, score in scores.items():
            yield score.line(fault, peers=peers == "True")


def main() -> None:
    """Carry the study on and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=2_000_000, help="seed of the first case: of none looked at before")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--peers", action="store_true", help="beside other procedures")
    parser.add_argument("--only", default="", help="settings whose heading this regular expression fits")
    parser.add_argument("--fault", choices=FAULTS, action="append")
    asked = parser.parse_args()
    every = list(tasks(asked.cases, asked.first, asked.only, asked.fault or FAULTS, peers=asked.peers))
    found = known(asked.results)
    left = (each for each in every if each.key not in found)
    carry_on(asked.results, left, found, asked.jobs, time.monotonic() + asked.seconds)
    print(f"{sum(each.key in found for each in every)} of {len(every)} tasks are done")
    print("\n".join(tables(found)))


if __name__ == "__main__":
    main()
