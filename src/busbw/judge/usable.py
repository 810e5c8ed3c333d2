"""Which measurements a judgement may rest on."""

from math import ceil, log2

from busbw.model.measurement import Measurement

# Fewer samples than this and the interval of a median is too coarse to judge by; also the least the plan asks for.
LEAST_SAMPLES = 30


def has_interval(measurement: Measurement) -> bool:
    """Whether there are enough samples for an interval of the median narrower than the extremes can promise.

    The extremes of n samples enclose the median with probability 1 - 2 / 2**n.
    """
    tail = 1 - min(measurement.confidence, 1 - 1e-12)
    needed = ceil(1 - log2(tail)) if tail < 1 else 2
    return measurement.samples >= max(2, needed) and 0 < measurement.low_s <= measurement.high_s


def is_usable(measurement: Measurement) -> bool:
    """Whether the time is that of a verified, right result and has an interval."""
    return measurement.verified and measurement.wrong is None and has_interval(measurement) and measurement.median_s > 0


def is_solid(measurement: Measurement) -> bool:
    """Whether it is usable and rests on enough samples to judge by."""
    return is_usable(measurement) and measurement.samples >= LEAST_SAMPLES
