"""The axis of a figure, and the observations of one line by their place on it."""

from collections.abc import Sequence
from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.model.scaling import AXIS_WORDS, Axis, Observation, ScalingEstimate
from busbw.stats.median import median, median_interval

# In the order in which one is taken where nobody says.
AXES: tuple[Axis, ...] = ("nodes", "gpus", "ranks", "cores")


@dataclass(frozen=True, kw_only=True, slots=True)
class LinePlace:
    """What was measured at one point of a line: a value for each observation, and what they come to.

    `rounding`: how far each value may lie off because it was printed with few digits, as a share of it.
    """

    at: int
    values: tuple[float, ...]
    estimate: ScalingEstimate
    rounding: float = 0.0


def several(axis: Axis) -> str:
    """Return what an axis counts, in a sentence."""
    return AXIS_WORDS[axis][1]


def workers(number: int, axis: Axis) -> str:
    """Return a place of an axis in a sentence: `1 node`, `64 GPUs`."""
    return f"{number} {AXIS_WORDS[axis][number != 1]}"


def axis_of(observations: Sequence[Observation], asked: Axis | None) -> Axis:
    """Return what to draw over: what is asked for, else the first count that all know and that changes.

    Raises InputError where there is none.
    """
    known = [axis for axis in AXES if all(getattr(each, axis) is not None for each in observations)]
    if asked is not None:
        if asked not in known:
            lacking = next(each for each in observations if getattr(each, asked) is None)
            others = " or ".join(f"--by {axis}" for axis in known)
            hints = ["say it with --ranks-per-node"] if asked == "nodes" else []
            hints += [f"draw over what is known: {others}"] if others else []
            raise InputError(
                f"how many {several(asked)} this was measured on is not known",
                where=lacking.source,
                hint=", or ".join(hints) or None,
            )
        return asked
    if not known:
        lacking = next((each for each in observations if count_of(each, "ranks") is None), observations[0])
        raise InputError(
            "on how much of the machine this was measured is not known",
            where=lacking.source,
            hint="a table needs a column nodes, gpus, ranks or cores",
        )
    changing = [axis for axis in known if len({getattr(each, axis) for each in observations}) > 1]
    return (changing or known)[0]


def count_of(observation: Observation, axis: Axis) -> int | None:
    """Return the place of an observation on an axis."""
    count: int | None = getattr(observation, axis)
    return count


def by_place(observations: Sequence[Observation], axis: Axis) -> dict[int, list[Observation]]:
    """Return the observations of each place, the smallest first; those that do not know theirs are left out."""
    found: dict[int, list[Observation]] = {}
    for each in observations:
        at = count_of(each, axis)
        if at is not None:
            found.setdefault(at, []).append(each)
    return dict(sorted(found.items()))


def combined(estimates: Sequence[ScalingEstimate]) -> ScalingEstimate:
    """Return the median of several results and how far they lie apart; one alone is what it is.

    Results that print alike still lie as far apart as their rounding allows.
    """
    if len(estimates) == 1:
        return estimates[0]
    ordered = sorted(estimate.value for estimate in estimates)
    low, high = median_interval(ordered) or (ordered[0], ordered[-1])
    centre, rounding = median(ordered), rounding_of(estimates)
    return ScalingEstimate(
        value=centre,
        low=min(low, centre * (1 - rounding)),
        high=max(high, centre * (1 + rounding)),
        basis="launches",
    )


def rounding_of(estimates: Sequence[ScalingEstimate]) -> float:
    """Return how far the coarsest of several printed numbers may lie off by its rounding, as a share of it."""
    return max((half_width(each) for each in estimates if each.basis == "digits"), default=0.0)


def scaled(estimate: ScalingEstimate, factor: float) -> ScalingEstimate:
    """Return a positive multiple."""
    return ScalingEstimate(
        value=estimate.value * factor,
        low=estimate.low * factor if estimate.low is not None else None,
        high=estimate.high * factor if estimate.high is not None else None,
        basis=estimate.basis,
    )


def ratio(above: ScalingEstimate, below: ScalingEstimate) -> ScalingEstimate | None:
    """Return one over the other; without an interval where either has none, None where it cannot be divided."""
    if below.value <= 0:
        return None
    value = above.value / below.value
    if above.low is None or above.high is None or below.low is None or below.high is None or below.low <= 0:
        return ScalingEstimate(value=value)
    basis = below.basis if above.basis is None else above.basis
    return ScalingEstimate(value=value, low=above.low / below.high, high=above.high / below.low, basis=basis)


def half_width(estimate: ScalingEstimate) -> float:
    """Return how far the interval reaches to its farther side, as a share of the value; 0 without one."""
    if estimate.low is None or estimate.high is None or estimate.value <= 0:
        return 0.0
    return max(estimate.high - estimate.value, estimate.value - estimate.low) / estimate.value
