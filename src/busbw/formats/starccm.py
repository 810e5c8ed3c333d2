"""What STAR-CCM+ says of its speed: the file of `starccm+ -benchmark`, and the log of a run.

The benchmark writes XML with `NumberOfWorkers` and `AverageElapsedTime Units="seconds"` for each number of processes
that it tried (the scripts of oci-hpc/oci-hpc-benchmarking read it so). Which stands first is not published, so the
first of one belongs to the first of the other. A log has a table of iterations; where the simulation has the
report "Total Solver Elapsed Time (s)", it is a column, and what passes from one row to the next is an iteration
(so do the performance tests of aws/aws-parallelcluster). Columns end where their titles end.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from busbw.base.errors import InputError
from busbw.formats.application_log import LaunchResult, observation_of_launch, steps_of
from busbw.formats.log_template import LONGEST_LINE
from busbw.formats.scaling_columns import column, count, result
from busbw.model.scaling import Observation

_TAG = re.compile(r"<(NumberOfWorkers|NumberOfHosts|NumberOfCells|AverageElapsedTime)(?: Units=\"(\w+)\")?>([^<>]*)<")
_TOTAL = "Total Solver Elapsed Time (s)"
_WORKERS = re.compile(r"Total number of processes\s*:\s*(\d{1,8})", re.ASCII)
_HOST = re.compile(r"\bHost (\d{1,8})\s+--\s+\S+\s+--\s+Ranks ", re.ASCII)
_WORD = re.compile(r"\S+")
_LAST = -1
_TIME = column("s_per_iteration")
_CLOCK = column("clock_s")


class _StarccmText(NamedTuple):
    """A text within a line: what it says, and where."""

    line: int
    text: str


def read_starccm(
    lines: Iterable[str], where: str, *, known: dict[str, int], last: int | None
) -> tuple[Observation, ...]:
    """Return the result of each number of processes in a benchmark's file, or that of a run's log.

    `known`: counts that the file's name says. `last`: only so many of the last iterations. Raises InputError.
    """
    tags: dict[str, list[_StarccmText]] = {}
    run = _StarccmRun(where=where, counts=dict(known))
    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE:
            continue
        for name, unit, text in _TAG.findall(line):
            if unit not in ("", "seconds"):
                raise InputError(f"{name} is in {unit}, not seconds", where=f"{where}:{number}")
            tags.setdefault(name, []).append(_StarccmText(number, text))
        run.take(line, number)
    if "AverageElapsedTime" in tags:
        return _benchmark(tags, known, where)
    steps = steps_of(run.clock)
    if not steps:
        raise InputError(
            "neither a file of starccm+ -benchmark, nor a log with a column 'Total Solver Elapsed Time (s)'",
            where=where,
            hint="add the report Solver Elapsed Time to the simulation, or write a table: nodes, time_s",
        )
    return (observation_of_launch(run.counts, _TIME, steps[-last:] if last else steps, where),)


def _benchmark(tags: dict[str, list[_StarccmText]], known: dict[str, int], where: str) -> tuple[Observation, ...]:
    times, workers = tags["AverageElapsedTime"], tags.get("NumberOfWorkers", [])
    if len(times) != len(workers):
        raise InputError(f"{len(times)} times for {len(workers)} numbers of workers", where=where)
    hosts = tags.get("NumberOfHosts", [])
    cells = {each.text.strip() for each in tags.get("NumberOfCells", [])}
    settings = [("cells", cells.pop())] if len(cells) == 1 else []
    return tuple(
        observation_of_launch(
            _counts(worker, hosts[number] if len(hosts) == len(times) else None, where) | known,
            _TIME,
            [LaunchResult(line=time.line, estimate=result(time.text, _TIME, f"{where}:{time.line}"))],
            where,
            settings=settings,
        )
        for number, (time, worker) in enumerate(zip(times, workers, strict=True))
    )


def _counts(workers: _StarccmText, hosts: _StarccmText | None, where: str) -> dict[str, int]:
    found = {"ranks": count(workers.text, f"{where}:{workers.line}")}
    # One number of hosts for several tries is that of the largest.
    return found | ({"nodes": count(hosts.text, f"{where}:{hosts.line}")} if hosts is not None else {})


class _StarccmRun:
    """What the log of a run says, line by line."""

    def __init__(self, *, where: str, counts: dict[str, int]) -> None:
        self.counts = counts
        self.clock: list[LaunchResult] = []
        self._where = where
        # Where the column of the clock ends; _LAST: it is the last.
        self._column: int | None = None

    def take(self, line: str, number: int) -> None:
        """Take what a line says of the machine, of the columns, or of an iteration."""
        place = f"{self._where}:{number}"
        if match := _WORKERS.search(line):
            self.counts["ranks"] = count(match[1], place)
        elif match := _HOST.search(line):
            self.counts["nodes"] = max(self.counts.get("nodes", 0), int(match[1]) + 1)
        elif _TOTAL in line:
            end = line.index(_TOTAL) + len(_TOTAL)
            self._column = end if line[end:].strip() else _LAST
        elif self._column is not None and (text := _cell(line, self._column)) is not None:
            self.clock.append(LaunchResult(line=number, estimate=result(text, _CLOCK, place)))


def _cell(line: str, end: int) -> str | None:
    """Return what stands in a column of a row: the last, or what ends where its title does; None: it is no row."""
    words: Sequence[re.Match[str]] = list(_WORD.finditer(line))
    if len(words) < 2 or not words[0][0].isdigit():
        return None
    found = words[-1] if end == _LAST else next((each for each in words if each.end() == end), None)
    return found[0] if found is not None and _is_number(found[0]) else None


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d{1,12}\.\d{1,12}(?:[eE][+-]?\d{1,3})?", text, re.ASCII) is not None
