"""From the ratio of each block to what can be claimed of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from busbw.model.comparison import Claim, Estimate
from busbw.stats.holm import holm
from busbw.stats.median import median, median_interval
from busbw.stats.signed_rank import least_p_value, p_value, shown_from

# Rate of false claims over all points of a table together.
FALSE_CLAIMS = 0.05
# What a reader would change something for.
LEAST_DIFFERENCE = 0.01
CONFIDENCE = 0.95
_MARGIN = math.log1p(LEAST_DIFFERENCE)
# Where exp() ends.
_LARGEST = 700.0


def estimates(series: Sequence[Sequence[float]]) -> tuple[Estimate, ...]:
    """Return what each series shows, with their p-values adjusted for all of them.

    A series holds the logarithm of one point's ratio in each block, in the order of time: at least one
    and at most stats.signed_rank.MOST_PAIRS.
    """
    level = FALSE_CLAIMS / max(len(series), 1)
    return tuple(_estimate(values, own, level) for values, own in zip(series, shown(series), strict=True))


@dataclass(frozen=True, slots=True)
class Shown:
    """What is claimed of one series, by which interval of its median and which adjusted p-value."""

    claim: Claim
    interval: tuple[float, float] | None
    p_value: float


def shown(series: Sequence[Sequence[float]]) -> tuple[Shown, ...]:
    """Return what is claimed of each series: in a share FALSE_CLAIMS of such tables at most, any of it is wrong."""
    adjusted = holm([p_value(values, _MARGIN) for values in series])
    level = FALSE_CLAIMS / max(len(series), 1)
    return tuple(_shown(values, p, level) for values, p in zip(series, adjusted, strict=True))


def _shown(values: Sequence[float], adjusted: float, level: float) -> Shown:
    interval = median_interval(sorted(values), CONFIDENCE)
    if interval is None or least_p_value(len(values)) > level:
        return Shown("cannot_tell", interval, adjusted)
    return Shown(_claim(*interval, adjusted), interval, adjusted)


def _claim(low: float, high: float, adjusted: float) -> Claim:
    """Return what may be said. A difference needs the test and the interval: a table must not contradict itself."""
    if adjusted <= FALSE_CLAIMS and low > _MARGIN:
        return "faster"
    if adjusted <= FALSE_CLAIMS and high < -_MARGIN:
        return "slower"
    return "same" if low > -_MARGIN and high < _MARGIN else "none"


def _estimate(values: Sequence[float], shown: Shown, level: float) -> Estimate:
    detectable = shown_from(values, _MARGIN, level)
    low, high = shown.interval if shown.interval is not None else (None, None)
    return Estimate(
        ratio=_ratio(median(sorted(values))),
        low=_ratio(low) if low is not None else None,
        high=_ratio(high) if high is not None else None,
        confidence=CONFIDENCE,
        blocks=tuple(map(_ratio, values)),
        p_value=shown.p_value if detectable is not None else None,
        claim=shown.claim,
        detectable=_share(detectable),
    )


def _share(difference: float | None) -> float | None:
    """Return a difference of logarithms as a share; None for one that no machine has."""
    return math.expm1(difference) if difference is not None and difference < _LARGEST else None


def _ratio(logarithm: float) -> float:
    return math.exp(max(-_LARGEST, min(logarithm, _LARGEST)))
