"""The log of an application, read by templates of its lines."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.formats.log_template import Template, match
from busbw.formats.scaling_columns import ScalingColumn, column, count, result
from busbw.formats.scaling_table import observation
from busbw.model.scaling import Observation, ScalingEstimate
from busbw.stats.median import median, median_interval


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
