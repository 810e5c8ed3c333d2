"""From the ratio of each block to what can be claimed of them."""

import math
from collections.abc import Sequence

from busbw.model.comparison import Claim, Estimate
from busbw.stats.holm import holm
from busbw.stats.median import median, median_interval
from busbw.stats.signed_rank import MOST_PAIRS, p_value, shown_from

# Rate of false claims over all points of a table together.
FALSE_CLAIMS = 0.05
# What a reader would change something for.
LEAST_DIFFERENCE = 0.01
CONFIDENCE = 0.95
_MARGIN = math.log1p(LEAST_DIFFERENCE)


def estimates(series: Sequence[Sequence[float]]) -> tuple[Estimate, ...]:
    """Return what each series shows, with their p-values adjusted for all of them.

    A series holds the logarithm of one point's ratio in each block, in the order of time; at least one.
    """
    kept = [list(values[:MOST_PAIRS]) for values in series]
    adjusted = holm([p_value(values, _MARGIN) for values in kept])
    level = FALSE_CLAIMS / max(len(kept), 1)
    return tuple(_estimate(values, p, level) for values, p in zip(kept, adjusted, strict=True))


def _estimate(values: list[float], adjusted: float, level: float) -> Estimate:
    ordered = sorted(values)
    centre, interval = median(ordered), median_interval(ordered, CONFIDENCE)
    detectable = shown_from(values, _MARGIN, level)
    low, high = interval if interval is not None else (None, None)
    return Estimate(
        ratio=math.exp(centre),
        low=math.exp(low) if low is not None else None,
        high=math.exp(high) if high is not None else None,
        confidence=CONFIDENCE,
        blocks=tuple(math.exp(value) for value in values),
        p_value=adjusted if detectable is not None else None,
        claim=_claim(low, high, adjusted if detectable is not None else None),
        detectable=math.expm1(detectable) if detectable is not None else None,
    )


def _claim(low: float | None, high: float | None, adjusted: float | None) -> Claim:
    """Return what may be said. A difference needs the test and the interval: a table must not contradict itself."""
    if low is None or high is None or adjusted is None:
        return "cannot_tell"
    if adjusted <= FALSE_CLAIMS and low > _MARGIN:
        return "faster"
    if adjusted <= FALSE_CLAIMS and high < -_MARGIN:
        return "slower"
    return "same" if low > -_MARGIN and high < _MARGIN else "none"
