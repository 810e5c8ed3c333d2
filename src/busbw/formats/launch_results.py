"""What one launch of an application printed of its speed, several times over: one observation."""

from collections.abc import Sequence

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.formats.scaling_columns import Column
from busbw.formats.scaling_table import observation
from busbw.model.scaling import Estimate, Observation
from busbw.stats.median import median, median_interval


class LaunchResult(Value, kw_only=True, frozen=True):
    """A result, and the line of the log that it stands on."""

    line: int
    estimate: Estimate


def observation_of_launch(
    counts: dict[str, int],
    taken: Column,
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


def _median(estimates: Sequence[Estimate]) -> Estimate:
    if len(estimates) == 1:
        return estimates[0]
    ordered = sorted(estimate.value for estimate in estimates)
    low, high = median_interval(ordered) or (ordered[0], ordered[-1])
    return Estimate(value=median(ordered), low=low, high=high, basis="samples")
