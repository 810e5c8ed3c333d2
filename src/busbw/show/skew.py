"""Which rank is slowest, in a line under a table."""

from collections import Counter
from collections.abc import Sequence

from busbw.base.units import format_size, format_time
from busbw.model.measurement import Measurement


def skew_words(measurements: Sequence[Measurement]) -> str:
    """Return the rank whose median is longest most often, and the largest distance to the fastest; "" for one rank.

    Ranks that take no part in a size (a pair among many) are left out.
    """
    slowest: Counter[int] = Counter()
    widest: tuple[float, Measurement, float] | None = None
    for item in measurements:
        taking = [view for view in item.per_rank if view.median_s > 0 and _takes_part(item, view.rank)]
        if len(taking) < 2 or item.wrong is not None:
            continue
        last, first = max(taking, key=lambda view: view.median_s), min(taking, key=lambda view: view.median_s)
        slowest[last.rank] += 1
        share = last.median_s / first.median_s - 1
        if widest is None or share > widest[0]:
            widest = (share, item, last.median_s - first.median_s)
    if widest is None:
        return ""
    (rank, times), share, item, gap_s = *slowest.most_common(1), *widest
    return (
        f"slowest rank: {rank} at {times} of {sum(slowest.values())} sizes; widest gap between ranks "
        f"{format_time(gap_s)} ({100 * share:.1f} %) at {format_size(item.size_bytes)}"
    )


def _takes_part(item: Measurement, rank: int) -> bool:
    return item.pair is None or rank in item.pair
