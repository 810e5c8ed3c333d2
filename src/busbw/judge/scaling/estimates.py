"""Arithmetic on values with intervals: every end is taken at its least favourable."""

from collections.abc import Sequence

from busbw.model.scaling import Estimate
from busbw.stats.median import median, median_interval


def combined(estimates: Sequence[Estimate]) -> Estimate:
    """Return the median of several results and how far they lie apart; one alone is what it is.

    Results that print alike still lie as far apart as their rounding allows.
    """
    if len(estimates) == 1:
        return estimates[0]
    ordered = sorted(estimate.value for estimate in estimates)
    low, high = median_interval(ordered) or (ordered[0], ordered[-1])
    centre, rounding = median(ordered), rounding_of(estimates)
    return Estimate(
        value=centre,
        low=min(low, centre * (1 - rounding)),
        high=max(high, centre * (1 + rounding)),
        basis="launches",
    )


def rounding_of(estimates: Sequence[Estimate]) -> float:
    """Return how far the coarsest of several printed numbers may lie off by its rounding, as a share of it."""
    return max((half_width(each) for each in estimates if each.basis == "digits"), default=0.0)


def scaled(estimate: Estimate, factor: float) -> Estimate:
    """Return a positive multiple."""
    return Estimate(
        value=estimate.value * factor,
        low=estimate.low * factor if estimate.low is not None else None,
        high=estimate.high * factor if estimate.high is not None else None,
        basis=estimate.basis,
    )


def ratio(above: Estimate, below: Estimate) -> Estimate | None:
    """Return one over the other; without an interval where either has none, None where it cannot be divided."""
    if below.value <= 0:
        return None
    value = above.value / below.value
    if above.low is None or above.high is None or below.low is None or below.high is None or below.low <= 0:
        return Estimate(value=value)
    basis = below.basis if above.basis is None else above.basis
    return Estimate(value=value, low=above.low / below.high, high=above.high / below.low, basis=basis)


def half_width(estimate: Estimate) -> float:
    """Return how far the interval reaches to its farther side, as a share of the value; 0 without one."""
    if estimate.low is None or estimate.high is None or estimate.value <= 0:
        return 0.0
    return max(estimate.high - estimate.value, estimate.value - estimate.low) / estimate.value
