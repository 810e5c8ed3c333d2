"""What cells that were measured on a machine say of its other sizes: of few bytes, of the pipeline, of the bytes.

The logarithm of a time is off by what each of its parts is off, weighted with its share of the time, and by a rest that
sizes near each other have in common. All are taken as normal, with the spreads below, and are conditioned on the cells:
a cell of many bytes moves the rate and says little of small calls, and one of few bytes the time of the hops. Of a call
of whose like nobody measured any the parts are as many times as far off as its `doubt` says.
"""

import math
from collections.abc import Sequence

from busbw.model.predict.prediction import PredictedCall

# How far a part is usually off, on the logarithm: the time of a few bytes, the filling of the pipeline, the bytes.
# Round numbers; half or twice as much changes what is left of documents little (docs/measurements).
_LATENCY = 0.2
_FILLING = 0.3
_BYTES = 0.1
# What the form itself lacks, and over which distance of sizes, on the logarithm, it is the same.
_REST = 0.1
_ALIKE_SIZES = 1.5
# From one start to the next.
_NOISE = 0.01


def shift_of(call: PredictedCall, cells: Sequence[tuple[PredictedCall, float]]) -> float:
    """Return what is expected of ln(measured / predicted) of a call, from that of cells of the same machine."""
    return shift_with_rest(call, cells)[0]


def shift_with_rest(call: PredictedCall, cells: Sequence[tuple[PredictedCall, float]]) -> tuple[float, float]:
    """Return that, and the standard deviation that the cells leave of it."""
    calls = [call, *(cell for cell, _ in cells)]
    means = [0.0] * len(calls)
    covariance = [[_in_common(left, right) for right in calls] for left in calls]
    for place, (_, shift) in enumerate(cells, start=1):
        row = list(covariance[place])
        gains = [each[place] / (row[place] + _NOISE**2) for each in covariance]
        surprise = shift - means[place]
        means = [mean + gain * surprise for mean, gain in zip(means, gains, strict=True)]
        covariance = [
            [value - gain * other for value, other in zip(each, row, strict=True)]
            for each, gain in zip(covariance, gains, strict=True)
        ]
    return means[0], math.sqrt(max(covariance[0][0], 0.0))


def _in_common(left: PredictedCall, right: PredictedCall) -> float:
    """Return the covariance of what two calls are off."""
    # What makes one of them more doubtful is of that one alone.
    doubts = min(left.doubt, right.doubt) ** 2
    latency = doubts * _LATENCY**2 * _share(left, left.latency_s) * _share(right, right.latency_s)
    if (left.algorithm, left.limited_by) != (right.algorithm, right.limited_by):
        # Hops are over the same network whatever the way.
        return latency
    filling = doubts * _FILLING**2 * _share(left, left.filling_s) * _share(right, right.filling_s)
    bytes_ = doubts * _BYTES**2 * _share(left, left.wire_s + left.flags_s) * _share(right, right.wire_s + right.flags_s)
    apart = math.log(left.size_bytes / right.size_bytes) / _ALIKE_SIZES
    return latency + filling + bytes_ + _REST**2 * math.exp(-(apart**2) / 2)


def _share(call: PredictedCall, part_s: float) -> float:
    return part_s / call.time_s
