"""From the ratio of each block to what can be claimed of them; or, without blocks, what was measured.

The unit of a claim is what was drawn by itself: a block, or two blocks of which the second mirrors the first. Swapping
the sides of a unit is then as likely as not, whatever the machine does meanwhile, and that is all the test needs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from busbw.model.comparison import Claim, Design, SpeedEstimate
from busbw.stats.median import median, median_interval
from busbw.stats.signed_rank import holm, least_p_value, p_value, shown_from

# Rate of false claims over all points of a table together.
FALSE_CLAIMS = 0.05
# What a reader would change something for.
LEAST_DIFFERENCE = 0.01
CONFIDENCE = 0.95
# Of the ratios of a launch of each side, where these were not interleaved, the share that is printed as their spread.
SPREAD = 0.95
_MARGIN = math.log1p(LEAST_DIFFERENCE)
# Where exp() ends.
_LARGEST = 700.0


def estimates(series: Sequence[Mapping[int, float]], design: Design) -> tuple[SpeedEstimate, ...]:
    """Return what each series shows, with their p-values adjusted for all of them.

    A series holds the logarithm of one point's ratio by the number of the block: at least one
    and at most stats.signed_rank.MOST_PAIRS. The design is one that was interleaved.
    """
    level = FALSE_CLAIMS / max(len(series), 1)
    independent = [units(blocks, design) for blocks in series]
    return tuple(
        _estimate(blocks, values, own, level)
        for blocks, values, own in zip(series, independent, shown(independent), strict=True)
    )


def units(blocks: Mapping[int, float], design: Design) -> list[float]:
    """Return the values that were drawn independently: of each block, or of each mirrored pair the mean.

    A block whose mirror is missing stands for its pair: its own order was as random.
    """
    if design != "mirrored_pairs":
        return [blocks[block] for block in sorted(blocks)]
    pairs: dict[int, list[float]] = {}
    for block in sorted(blocks):
        pairs.setdefault(block // 2, []).append(blocks[block])
    return [math.fsum(values) / len(values) for values in pairs.values()]


def least_blocks(points: int, design: Design = "random_order") -> int:
    """Return how many blocks it takes before anything can be claimed of that many points together."""
    needed = 1
    while least_p_value(needed) > FALSE_CLAIMS / max(points, 1) or median_interval([0.0] * needed, CONFIDENCE) is None:
        needed += 1
    return 2 * needed if design == "mirrored_pairs" else needed


@dataclass(frozen=True, slots=True)
class Shown:
    """What is claimed of one series, by which interval of its median and which adjusted p-value."""

    claim: Claim
    interval: tuple[float, float] | None
    p_value: float


def shown(series: Sequence[Sequence[float]]) -> tuple[Shown, ...]:
    """Return what is claimed of each series of independent values.

    In a share FALSE_CLAIMS of such tables at most, any "faster" or "slower" is wrong.
    """
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


def _estimate(blocks: Mapping[int, float], values: Sequence[float], shown: Shown, level: float) -> SpeedEstimate:
    centre = median(sorted(values))
    detectable = shown_from(values, _MARGIN, level)
    low, high = shown.interval if shown.interval is not None else (None, None)
    if detectable is not None and low is not None and high is not None:
        # A claim needs the interval beyond the margin, too.
        detectable = max(detectable, _MARGIN + centre - low, _MARGIN + high - centre)
    return SpeedEstimate(
        ratio=_ratio(centre),
        low=_ratio(low) if low is not None else None,
        high=_ratio(high) if high is not None else None,
        confidence=CONFIDENCE,
        blocks=tuple(_ratio(blocks[block]) for block in sorted(blocks)),
        p_value=shown.p_value if detectable is not None else None,
        claim=shown.claim,
        detectable=_share(detectable),
    )


def described(ratio: float, ratios: Sequence[float]) -> SpeedEstimate:
    """Return how two sides that were not interleaved differ as measured: a description, and no claim.

    The logarithms of their ratio, and of the ratio of every launch of one and every launch of the other, if any.
    """
    ordered = sorted(ratios)
    left_out = math.floor(len(ordered) * (1 - SPREAD) / 2)
    spread = (ordered[left_out], ordered[-1 - left_out]) if len(ordered) > 1 else None
    return SpeedEstimate(
        ratio=_ratio(ratio),
        low=_ratio(spread[0]) if spread is not None else None,
        high=_ratio(spread[1]) if spread is not None else None,
        confidence=None,
        blocks=(),
        claim="cannot_tell",
    )


def _share(difference: float | None) -> float | None:
    """Return a difference of logarithms as a share; None for one that no machine has."""
    return math.expm1(difference) if difference is not None and difference < _LARGEST else None


def _ratio(logarithm: float) -> float:
    return math.exp(max(-_LARGEST, min(logarithm, _LARGEST)))
