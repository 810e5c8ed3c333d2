"""The log of an application, read by templates of its lines."""

from collections.abc import Iterable, Sequence

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.formats.launch_results import LaunchResult, observation_of_launch
from busbw.formats.log_template import Template, match
from busbw.formats.running_clock import steps_of
from busbw.formats.scaling_columns import Column, column, count, result
from busbw.model.scaling import Observation

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
    found = _Found(where=where, counts=dict(wanted.known))
    for number, line in enumerate(lines, start=1):
        if wanted.void is not None and wanted.void in line:
            found.drop_last()
        for pattern in wanted.templates:
            values = match(pattern, line)
            if values is not None:
                found.take(values, number)
    return found.observations(wanted)


_Key = tuple[tuple[tuple[str, int], ...], Column]


class _Found:
    """The results so far, by the counts that they were found under."""

    def __init__(self, *, where: str, counts: dict[str, int]) -> None:
        self._where = where
        self._counts = counts
        self._results: dict[_Key, list[LaunchResult]] = {}
        self._last: _Key | None = None
        self._number = 0

    def take(self, values: Sequence[tuple[Column, str]], line: int) -> None:
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


def _best(results: Sequence[LaunchResult], taken: Column) -> tuple[LaunchResult, ...]:
    """Return the fastest of several."""
    sign = -1 if taken.kind == "time" else 1
    return (max(results, key=lambda each: sign * each.estimate.value),)
