"""How many ranks a table comes from: busbw over algbw gives it away."""

from math import ceil, floor, inf

from busbw.base.collectives import COLLECTIVES


def ranks_of_ratio(
    collective: str, *, busbw_Bps: float, algbw_Bps: float, half_digit_Bps: float = 5e6
) -> tuple[int, int | None] | None:
    """Return the fewest and the most ranks that two printed rates of one row fit; most None: without an end.

    `half_digit_Bps` is half of their last digit: 0.005 GB/s for two decimals of GB/s. None where the factor does not
    depend on the ranks, and where the rates fit no number of ranks at all.
    """
    per_rank = COLLECTIVES[collective].factor
    if per_rank(2) == per_rank(3) or algbw_Bps <= half_digit_Bps:
        return None
    # The factor is c (n-1)/n, and c its limit for many ranks: n = c / (c - ratio).
    limit = 2 * per_rank(2)
    low = max(0.0, (busbw_Bps - half_digit_Bps) / (algbw_Bps + half_digit_Bps))
    high = (busbw_Bps + half_digit_Bps) / (algbw_Bps - half_digit_Bps)
    if low >= limit:
        return None
    fewest = max(2, ceil(limit / (limit - low) - 1e-9))
    most = inf if high >= limit else floor(limit / (limit - high) + 1e-9)
    if most < fewest:
        return None
    return fewest, None if most == inf else int(most)
