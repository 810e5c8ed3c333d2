"""One measurement from the times that a foreign program printed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, busbw_Bps, part_count
from busbw.model.measurement import Measurement, WrongResult
from busbw.model.plan import Plan
from busbw.model.record import Mismatch
from busbw.model.sweep import points_of
from busbw.stats.median import median, median_interval
from busbw.stats.percentiles import percentiles
from busbw.stats.series import autocorrelation, drift
from busbw.stats.tail import slow_samples


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One time of one point as the program counts it, and what it says of the data."""

    time_s: float
    # Elements, or 1 where the program only says that it failed; None: not checked.
    wrong: int | None
    # As busbw counts it: a version of the program may align parts in its own way.
    size_bytes: int
    dtype: str | None = None
    # Calls that it is the mean of; None: the program's parameters say, or nothing does.
    calls: int | None = None


def measurement_of(
    plan: Plan, number: int, samples: Sequence[Sample], *, parameters: Mapping[str, str], planned: int, source: str
) -> Measurement:
    """Return the measurement of point `number`. `parameters`: what the program printed of itself.

    `planned`: how many samples would be complete. A wrong result has no time: nothing of it may look like a fast one.
    """
    point = points_of(plan.sweeps)[number]
    sweep, ranks = plan.sweeps[point.sweep], plan.placement.ranks
    collective = COLLECTIVES[sweep.collective]
    wrong = max((sample.wrong or 0 for sample in samples), default=0)
    times_s = [sample.time_s for sample in samples] if wrong == 0 else []
    ordered = sorted(times_s) or [0.0]
    centre = median(ordered)
    low_s, high_s = median_interval(ordered, plan.sampling.confidence) or (ordered[0], ordered[-1])
    slow = slow_samples([value * collective.messages_per_call for value in times_s]) if times_s else ()
    told, size_bytes = samples[0].dtype, samples[0].size_bytes
    dtype = told if told is not None and told in DTYPE_BYTES else sweep.dtype
    return Measurement(
        point=number,
        collective=sweep.collective,
        size_bytes=size_bytes,
        count=part_count(collective, size_bytes, ranks, dtype),
        dtype=dtype,
        op=sweep.op,
        root=sweep.root,
        in_place=sweep.in_place,
        ranks=ranks,
        mode=plan.sampling.mode,
        samples=len(times_s),
        missed=0,
        calls_per_sample=_calls(samples[0], parameters),
        median_s=centre,
        low_s=low_s,
        high_s=high_s,
        confidence=plan.sampling.confidence,
        min_s=ordered[0],
        max_s=ordered[-1],
        mean_s=sum(ordered) / len(ordered),
        percentiles=percentiles(ordered),
        busbw_Bps=busbw_Bps(collective, size_bytes, ranks, centre) if centre > 0 else 0.0,
        algbw_Bps=collective.algbw_factor(ranks) * size_bytes / centre if centre > 0 else 0.0,
        clock_error_s=None,
        warmup_calls=_number(parameters.get("warmup iters")) or plan.sampling.warmup_calls or 0,
        # Nobody looked whether the level stayed.
        warmup_stable=True,
        autocorrelation=autocorrelation(times_s) if times_s else None,
        drift=drift(times_s) if times_s else None,
        slow_samples=len(slow),
        slow_excess_s=median(sorted(times_s[index] for index in slow)) - centre if slow else None,
        wrong=WrongResult(rank=None, host="", mismatch=Mismatch(wrong=wrong, index=-1, got="", expected=""))
        if wrong
        else None,
        verified=all(sample.wrong is not None for sample in samples),
        ended="wrong" if wrong else "samples" if len(samples) >= planned else "stopped",
        tcp_share=(),
        per_rank=(),
        attribution=(),
        source=source,
    )


def _calls(sample: Sample, parameters: Mapping[str, str]) -> int:
    """Return the calls that one sample is the mean of; 0 when the program does not say."""
    if sample.calls is not None:
        return sample.calls
    factors = [_number(parameters.get(name)) for name in ("iters", "agg iters", "graph")]
    if factors[0] is None:
        return 0
    return factors[0] * max(factors[1] or 1, 1) * max(factors[2] or 1, 1)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None
