"""Curves in a line of text: a bar for each size, its height by the logarithm of the value."""

from collections.abc import Sequence
from math import log

from busbw.base.units import format_size
from busbw.model.comparison import ComparedPoint
from busbw.model.measurement import Measurement
from busbw.show.columns import us

_BARS = "▁▂▃▄▅▆▇█"
# A line of 80 columns holds these and the words beside them.
_MOST_BARS = 24
_FEWEST = 3


def spark(values: Sequence[float], among: Sequence[float] = ()) -> str:
    """Return a bar for each value, lowest and highest at the ends of the scale; a blank for what is not positive.

    `among`: values of other lines with which it shares the scale.
    """
    known = [value for value in (*values, *among) if value > 0]
    if not any(value > 0 for value in values):
        return " " * len(values)
    low, wide = log(min(known)), log(max(known)) - log(min(known))
    top = len(_BARS) - 1
    return "".join(
        (_BARS[round(top * (log(value) - low) / wide)] if wide > 0 else _BARS[top // 2]) if value > 0 else " "
        for value in values
    )


def curve_lines(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """Return time and bus bandwidth over the sizes, a line each; () for fewer than three sizes, which show no curve.

    Of very many sizes some are left out between, as the line says.
    """
    items = [item for item in measurements if item.median_s > 0 and item.samples > 0]
    if len(items) < _FEWEST:
        return ()
    every = -(-len(items) // _MOST_BARS)
    shown = items[::every]
    sizes = f"{format_size(shown[0].size_bytes)} to {format_size(shown[-1].size_bytes)}"
    sizes += f" (1 in {every})" if every > 1 else ""
    times_s = [item.median_s for item in shown]
    rates_Bps = [item.busbw_Bps for item in shown]
    first = f"# time  {spark(times_s)} {us(min(times_s))} to {us(max(times_s))} us; {sizes}"
    if max(rates_Bps) <= 0:
        return (first,)
    lowest_Bps = min(rate for rate in rates_Bps if rate > 0)
    return (first, f"# busbw {spark(rates_Bps)} {lowest_Bps / 1e9:.2g} to {max(rates_Bps) / 1e9:.3g} GB/s; logarithmic")


def paired_lines(points: Sequence[ComparedPoint], letters: tuple[str, str]) -> tuple[str, ...]:
    """Return the bus bandwidth of two sides over the sizes, a line each on one scale; () for fewer than three sizes."""
    rates = [(point.size_bytes, point.first_busbw_Bps or 0.0, point.other_busbw_Bps or 0.0) for point in points]
    items = [(size_bytes, first_Bps, other_Bps) for size_bytes, first_Bps, other_Bps in rates if first_Bps * other_Bps]
    if len(items) < _FEWEST:
        return ()
    every = -(-len(items) // _MOST_BARS)
    shown = items[::every]
    sides = [first_Bps for _, first_Bps, _ in shown], [other_Bps for _, _, other_Bps in shown]
    sizes = f"{format_size(shown[0][0])} to {format_size(shown[-1][0])}"
    sizes += f" (1 in {every})" if every > 1 else ""
    return tuple(
        f"# busbw {letter} {spark(own, other)} {min(own) / 1e9:.2g} to {max(own) / 1e9:.3g} GB/s; {note}"
        for letter, own, other, note in zip(
            letters, sides, reversed(sides), (sizes, "same scale, logarithmic"), strict=True
        )
    )
