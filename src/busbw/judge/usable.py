"""Which measurements a judgement may rest on."""

from math import ceil, log2

from busbw.model.run import Measurement

# Fewer samples than this and the interval of a median is too coarse to judge by; also the least the plan asks for.
LEAST_SAMPLES = 30

# A message whose calls take the host this part of its time to issue says more of the host than of the GPUs.
HOST_SHARE = 0.5
# A point may be held against another point only if its interval and its drift stay below these shares of the median,
# and at most this share of its starts was missed.
STEADY_HALF_WIDTH = 0.05
STEADY_DRIFT = 0.10
STEADY_MISSED = 0.05
# A rank that loses its core in this share of the samples moves the median, ...
DISTURBED_SHARE = 0.25
# ... unless it is so seldom that the kernel's own short tasks explain it. Processes that share a core take turns every
# few milliseconds.
DISTURBED_PER_S = 20.0


def has_interval(measurement: Measurement) -> bool:
    """Whether there are enough samples for an interval of the median narrower than the extremes can promise."""
    enough = measurement.samples >= least_samples(measurement.confidence)
    return enough and 0 < measurement.low_s <= measurement.high_s


def least_samples(confidence: float) -> int:
    """Return how many samples an interval of the median takes.

    The extremes of n samples enclose the median with probability 1 - 2 / 2**n.
    """
    tail = 1 - min(confidence, 1 - 1e-12)
    return max(2, ceil(1 - log2(tail))) if tail < 1 else 2


def is_host_bound(measurement: Measurement) -> bool:
    """Whether most of the time is the host's, which issues calls to GPUs: it differs from one moment to the next."""
    share = measurement.launch
    return share is not None and share.issue_s >= HOST_SHARE * measurement.median_s


def is_usable(measurement: Measurement) -> bool:
    """Whether the time is that of a verified, right result and has an interval."""
    return measurement.verified and measurement.wrong is None and has_interval(measurement) and measurement.median_s > 0


def is_solid(measurement: Measurement) -> bool:
    """Whether it is usable and rests on enough samples to judge by."""
    return is_usable(measurement) and measurement.samples >= LEAST_SAMPLES


def half_width(measurement: Measurement) -> float:
    """Return how far the interval reaches to its farther side, as a share of the median."""
    reach_s = max(measurement.high_s - measurement.median_s, measurement.median_s - measurement.low_s)
    return reach_s / measurement.median_s if measurement.median_s > 0 else 0.0


def missed_share(measurement: Measurement) -> float:
    """Return the share of the starts that some rank learned of too late."""
    total = measurement.samples + measurement.missed
    return measurement.missed / total if total else 0.0


# A GPU works on while the rank that waits for it is off its core; that shows in the last tens of microseconds only.
GPU_SAMPLE_S = 2e-3


def core_losses(measurement: Measurement, *, besides: int | None = None) -> int:
    """Return how often the rank that suffered most was taken off its core; `besides` is a rank not to look at."""
    return max((view.involuntary_switches for view in measurement.per_rank if view.rank != besides), default=0)


def is_disturbed(measurement: Measurement, *, besides: int | None = None) -> bool:
    """Whether other processes took the cores of the ranks so often that the median is theirs too."""
    if measurement.nccl is not None and measurement.calls_per_sample * measurement.median_s > GPU_SAMPLE_S:
        return False
    losses = core_losses(measurement, besides=besides)
    measured_s = measurement.samples * measurement.calls_per_sample * measurement.mean_s
    return losses > 0 and losses >= DISTURBED_SHARE * measurement.samples and losses >= DISTURBED_PER_S * measured_s


def is_steady(measurement: Measurement) -> bool:
    """Whether it is usable and quiet enough to be held against another point, which was taken at another time."""
    return (
        is_usable(measurement)
        and not is_disturbed(measurement)
        and half_width(measurement) <= STEADY_HALF_WIDTH
        and abs(measurement.drift or 0.0) <= STEADY_DRIFT
        and missed_share(measurement) <= STEADY_MISSED
    )
