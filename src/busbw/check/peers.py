"""A value held against those of others of the same kind: beyond a share, and beyond what these differ by themselves."""

from collections.abc import Sequence
from statistics import median

from busbw.base.value import Integer, Value

# Others that a median needs before anything is held against it.
LEAST_PEERS = 3
# A value must lie this many times the others' typical deviation from their median.
_DEVIATIONS = 4.0
# Of a normal distribution, the standard deviation over the median deviation (1 / 0.6745).
_OF_MEDIAN_DEVIATION = 1.4826


class WorseThanPeers(Value, kw_only=True, frozen=True):
    """A value that lies beyond the share; `is_clear`: and beyond the scatter of the others."""

    middle: float
    # Of the others, as shares of their median: how much worse, and their own scatter.
    worse: float
    scatter: float
    others: Integer
    is_clear: bool


def worse_than_peers(
    value: float, others: Sequence[float], share: float, *, is_lower_better: bool
) -> WorseThanPeers | None:
    """Return how a value lies beyond a share from the median of others; None: it does not, or they are too few."""
    if len(others) < LEAST_PEERS:
        return None
    middle = median(others)
    scatter = _OF_MEDIAN_DEVIATION * median(abs(each - middle) for each in others)
    worse = (value - middle) if is_lower_better else (middle - value)
    if worse <= share * middle:
        return None
    return WorseThanPeers(
        middle=middle, worse=worse / middle, scatter=scatter / middle, others=len(others),
        is_clear=worse > _DEVIATIONS * scatter,
    )  # fmt: skip
