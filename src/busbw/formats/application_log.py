"""The log of an application, read by templates of its lines."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.formats.scaling_table import LONGEST_LINE, ScalingColumn, Template, column, count, match, observation, result
from busbw.model.scaling import Observation, ScalingEstimate
from busbw.stats.distributions import median, median_interval


class LaunchResult(Value, kw_only=True, frozen=True):
    """A result, and the line of the log that it stands on."""

    line: int
    estimate: ScalingEstimate


def observation_of_launch(
    counts: dict[str, int],
    taken: ScalingColumn,
    here: Sequence[LaunchResult],
    where: str,
    *,
    settings: Sequence[tuple[str, str]] = (),
) -> Observation:
    """Return the median of what was printed, with its interval; of one result, what its digits stand for.

    Raises InputError where it is not told on how much of the machine that was.
    """
    lines = [each.line for each in here]
    place = f"{where}:{lines[0]}" if len(lines) == 1 else f"{where}:{lines[0]}-{lines[-1]}"
    if not counts:
        raise InputError(
            "on how much of the machine this was measured is not told",
            where=place,
            hint="add a template with {nodes}, or take it from the file's name: --name 'run-{nodes}n'",
        )
    return observation(counts, taken, _median([each.estimate for each in here]), source=place, settings=settings)


def _median(estimates: Sequence[ScalingEstimate]) -> ScalingEstimate:
    if len(estimates) == 1:
        return estimates[0]
    ordered = sorted(estimate.value for estimate in estimates)
    low, high = median_interval(ordered) or (ordered[0], ordered[-1])
    return ScalingEstimate(value=median(ordered), low=low, high=high, basis="samples")


_MOST_STRETCHES = 20


def steps_of(readings: Sequence[LaunchResult]) -> tuple[LaunchResult, ...]:
    """Return the times of a step; none for fewer than two readings. A clock that goes back was started anew."""
    steps = [
        (after.line, after.estimate.value - before.estimate.value)
        for before, after in pairwise(readings)
        if after.estimate.value >= before.estimate.value
    ]
    count = min(len(steps), _MOST_STRETCHES)
    found = []
    for number in range(count):
        stretch = steps[number * len(steps) // count : (number + 1) * len(steps) // count]
        step_s = sum(time_s for _, time_s in stretch) / len(stretch)
        if step_s > 0:
            found.append(LaunchResult(line=stretch[-1][0], estimate=ScalingEstimate(value=step_s)))
    return tuple(found)


_MOST_RESULTS = 1_000_000


class LogLines(Value, kw_only=True, frozen=True):
    """What to look for in a log, and which of several results counts."""

    templates: tuple[Template, ...]
    # Counts that something else than the log says.
    known: tuple[tuple[str, int], ...] = ()
    # Only so many of the last results of each place; None: all.
    last: int | None = None
    # The best result of each place is the result; else it is the median of all, as of one launch.
    best: bool = False
    # A line with this text says that the result before it does not count.
    void: str | None = None


def read_log(lines: Iterable[str], where: str, wanted: LogLines) -> tuple[Observation, ...]:
    """Return one observation for each place that a log has results of.

    A count stands for the results after it. Raises InputError for a log without results, and for one without counts.
    """
    found = _FoundResults(where=where, counts=dict(wanted.known))
    for number, line in enumerate(lines, start=1):
        if wanted.void is not None and wanted.void in line:
            found.drop_last()
        for pattern in wanted.templates:
            values = match(pattern, line)
            if values is not None:
                found.take(values, number)
    return found.observations(wanted)


_Key = tuple[tuple[tuple[str, int], ...], ScalingColumn]


class _FoundResults:
    """The results so far, by the counts that they were found under."""

    def __init__(self, *, where: str, counts: dict[str, int]) -> None:
        self._where = where
        self._counts = counts
        self._results: dict[_Key, list[LaunchResult]] = {}
        self._last: _Key | None = None
        self._number = 0

    def take(self, values: Sequence[tuple[ScalingColumn, str]], line: int) -> None:
        """Take the numbers of a line. Counts of one axis are a grid: they multiply."""
        place = f"{self._where}:{line}"
        grid: dict[str, int] = {}
        for field, text in values:
            if field.axis is not None:
                grid[field.axis] = grid.get(field.axis, 1) * count(text, place)
        self._counts |= grid
        for field, text in values:
            if field.axis is None:
                self._last = (tuple(sorted(self._counts.items())), field)
                here = self._results.setdefault(self._last, [])
                here.append(LaunchResult(line=line, estimate=result(text, field, place)))
                self._number += 1
        if self._number > _MOST_RESULTS:
            raise InputError(f"more than {_MOST_RESULTS} results", where=self._where)

    def drop_last(self) -> None:
        """Forget the result that was found last."""
        if self._last is not None:
            del self._results[self._last][-1:]

    def observations(self, wanted: LogLines) -> tuple[Observation, ...]:
        """Return one for each place."""
        found = []
        for (counts, field), here in self._results.items():
            taken, results = (_STEP, steps_of(here)) if field.kind == "clock" else (field, tuple(here))
            if results:
                kept = _best(results, taken) if wanted.best else results[-wanted.last :] if wanted.last else results
                found.append(observation_of_launch(dict(counts), taken, kept, self._where))
        if not found:
            raise InputError(
                f"no line fits {' or '.join(repr(each.text) for each in wanted.templates)}"
                if not self._results
                else "no result counts: void, or a clock that was printed once",
                where=self._where,
                hint="a template is the line's own text, with {time_s} and the like where the numbers are",
            )
        return tuple(found)


# What the differences of a running clock are.
_STEP = column("s_per_step")


def _best(results: Sequence[LaunchResult], taken: ScalingColumn) -> tuple[LaunchResult, ...]:
    """Return the fastest of several."""
    sign = -1 if taken.kind == "time" else 1
    return (max(results, key=lambda each: sign * each.estimate.value),)


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
    """Return what stands in a column of a row: the last, or what ends where its title does; None: it is not a row."""
    words: Sequence[re.Match[str]] = list(_WORD.finditer(line))
    if len(words) < 2 or not words[0][0].isdigit():
        return None
    found = words[-1] if end == _LAST else next((each for each in words if each.end() == end), None)
    return found[0] if found is not None and _is_number(found[0]) else None


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d{1,12}\.\d{1,12}(?:[eE][+-]?\d{1,3})?", text, re.ASCII) is not None
