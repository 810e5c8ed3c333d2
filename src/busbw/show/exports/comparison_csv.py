"""The points of a comparison as comma-separated values."""

from busbw.model.comparison import Comparison
from busbw.show.exports.tables import csv_lines

_COLUMNS = (
    "first", "other", "collective", "size_bytes", "dtype", "op", "root", "in_place", "pair", "group", "ranks", "band",
    "first_s", "other_s", "first_busbw_Bps", "other_busbw_Bps", "ratio", "low", "high", "confidence", "blocks",
    "p_value", "claim", "detectable", "design",
)  # fmt: skip


def comparison_csv(comparison: Comparison) -> str:
    """Return one line a point; a ratio is the first side's time over the other's, and unknown values are empty."""
    lines = []
    for versus in comparison.versus:
        names = (comparison.sides[0].name, comparison.sides[versus.other].name)
        for point in versus.points:
            pair = f"{point.pair[0]}-{point.pair[1]}" if point.pair is not None else None
            estimate = point.estimate
            lines.append(
                (
                    *names, point.collective, point.size_bytes, point.dtype, point.op, point.root, point.in_place, pair,
                    point.group, point.ranks, point.band, point.first_s, point.other_s, point.first_busbw_Bps,
                    point.other_busbw_Bps, estimate.ratio, estimate.low, estimate.high, estimate.confidence,
                    len(estimate.blocks), estimate.p_value, estimate.claim, estimate.detectable,
                    comparison.design,
                )
            )  # fmt: skip
    return csv_lines(_COLUMNS, lines)
