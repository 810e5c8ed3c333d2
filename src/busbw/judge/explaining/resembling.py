"""Slow results that equal a figure somebody published under other conditions: it names the cause."""

from collections.abc import Sequence

from busbw.judge.explaining.expecting import LEAST_SHARE
from busbw.judge.explaining.matching import conditions, is_of, value_Bps
from busbw.judge.explaining.series import Sample, Series
from busbw.model.platform import Published

# Within this a result equals a figure of the platform's own loopback; of its fall-back network, whose speed depends on
# hosts and interfaces, within this many times.
_EQUAL = 0.15
_TIMES = 3.0
# Of what is expected between nodes: less is seldom reached by anything but TCP.
_TCP_SHARE = 0.15


def resembling(series: Series, sample: Sample, published: Sequence[Published]) -> Published | None:
    """Return a figure that differs from this size in its network alone, and equals it."""
    for figure in published:
        if figure.network in (None, "fabric", series.network) or not is_of(figure, series):
            continue
        held = conditions(figure, series, sample, None)
        # NVLS is off wherever NCCL sends through NICs; size does not matter to a rate so far below.
        others = [each for each in held if each.name not in ("network", "NVLS", "size") and each.outcome != "matches"]
        if not others and _equals(figure, sample):
            return figure
    return None


def _equals(figure: Published, sample: Sample) -> bool:
    ratio = sample.busbw_Bps / value_Bps(figure)
    if figure.network == "loopback":
        return abs(ratio - 1) <= _EQUAL
    return 1 / _TIMES <= ratio <= _TIMES


def is_like_tcp(series: Series, sample: Sample, expected_Bps: float | None) -> bool:
    """Whether a result between nodes is so far below that TCP in place of the fabric is the likely cause."""
    if expected_Bps is None or (series.nodes or 1) < 2:
        return False
    return sample.busbw_Bps < min(_TCP_SHARE, LEAST_SHARE) * expected_Bps
