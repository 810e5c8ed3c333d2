"""One measurement from the records that all ranks wrote of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from busbw.base.collectives import COLLECTIVES, Collective, busbw_Bps, part_count
from busbw.model.plan import Plan, Sweep
from busbw.model.record import EmptyLaunches, Hello, Measured, NcclPoint
from busbw.model.run import EmptyLaunch, LaunchShare, Measurement, RankView, StartView, WrongResult
from busbw.stats.distributions import median, median_interval, percentiles
from busbw.stats.tail import autocorrelation, blame, drift, slow_samples


def empty_launches(found: Sequence[EmptyLaunches | None]) -> tuple[EmptyLaunch, ...]:
    """Return one launch on each GPU; `found` in rank order. () when a rank has none."""
    return tuple(
        _one(rank, one)
        for rank, one in enumerate(found)
        if None not in found and one is not None and one.issue_ns and one.device_ns
    )


def launch_share(
    records: Sequence[Measured], partners: Sequence[int], kept: Sequence[int], scale: float
) -> LaunchShare | None:
    """Return how much of one exchange is the host starting it; None where that was not taken.

    `partners` are the ranks that take part, `kept` the samples that count; `scale` turns nanoseconds of a sample into
    seconds of an exchange.
    """
    if not kept or any(len(record.issued_ns) != len(record.duration_ns) for record in records):
        return None
    issued_s = [median(sorted(records[rank].issued_ns[index] * scale for index in kept)) for rank in partners]
    return LaunchShare(
        issue_s=sum(issued_s) / len(issued_s),
        before=empty_launches([record.empty_before for record in records]),
        after=empty_launches([record.empty_after for record in records]),
    )


def empty_s(share: LaunchShare | None) -> float | None:
    """Return a launch of an empty kernel beside a point, the mean over GPUs; None: not taken.

    Of each GPU the shorter of before and after: now and then all launches of a few milliseconds take three times as
    long.
    """
    if share is None or not share.before or not share.after:
        return None
    return sum(min(one.host_s, two.host_s) for one, two in zip(share.before, share.after, strict=True)) / len(
        share.before
    )


def middle_start(latest_first: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Return the measurement of a point whose median lies in the middle of its starts, with all of them; () for none.

    Of two in the middle the slower. A wrong result of any start counts before all times.
    """
    wrong = [one for one in latest_first if one.wrong is not None]
    if wrong or len(latest_first) < 2:
        return (*wrong, *latest_first)[:1]
    ordered = sorted(latest_first, key=lambda one: one.median_s)
    starts = tuple(StartView(median_s=one.median_s, empty_s=empty_s(one.launch)) for one in reversed(latest_first))
    return (msgspec.structs.replace(ordered[len(ordered) // 2], starts=starts),)


def _one(rank: int, batches: EmptyLaunches) -> EmptyLaunch:
    scale = _S_PER_NS / max(batches.launches, 1)
    host_s = sorted(value * scale for value in batches.issue_ns)
    device_s = sorted(value * scale for value in batches.device_ns)
    pairs = zip(batches.done_ns, batches.issue_ns, strict=False)
    waits_s = sorted((done - issue) * _S_PER_NS for done, issue in pairs)
    return EmptyLaunch(
        rank=rank,
        host_s=median(host_s),
        host_low_s=host_s[0],
        host_high_s=host_s[-1],
        device_s=median(device_s),
        wait_s=waits_s[len(waits_s) // 2] if waits_s else None,
    )


# One turn of a point as all ranks wrote it, in rank order.
RankRecords = Sequence[Measured]


def counting(turns: Sequence[RankRecords]) -> Sequence[RankRecords]:
    """Return the turns whose samples count. `turns`: at least one, in the order they were taken.

    A wrong result makes all other times void. The first sample, taken before the exchange was warm, counts for as long
    as there is no other.
    """
    wrong = [records for records in turns if any(record.mismatch is not None for record in records)]
    if wrong:
        return wrong[:1]
    later = [records for records in turns if records[0].turn > 0 and _has_sample(records)]
    calls = later[0][0].calls_per_sample if later else None
    return [records for records in later if records[0].calls_per_sample == calls] or turns[:1]


def _has_sample(records: RankRecords) -> bool:
    """Whether there is a sample whose start no rank missed."""
    missed = {index for record in records for index in record.missed}
    return len(missed) < len(records[0].duration_ns)


def joined(turns: Sequence[RankRecords]) -> tuple[Measured, ...]:
    """Return one record for each rank with the samples that count, in the order they were taken."""
    counted = counting(turns)
    return tuple(
        _joined([records[rank] for records in turns], [records[rank] for records in counted])
        for rank in range(len(turns[0]))
    )


def _joined(turns: Sequence[Measured], counted: Sequence[Measured]) -> Measured:
    last = counted[-1]
    # What was called besides is warm-up to the samples that count.
    others = [record for record in turns if record not in counted]
    return msgspec.structs.replace(
        last,
        warmup_calls=sum(record.warmup_calls for record in turns)
        + sum(len(record.duration_ns) * record.calls_per_sample for record in others),
        warmup_stable=all(record.warmup_stable for record in counted),
        duration_ns=tuple(value for record in counted for value in record.duration_ns),
        lateness_ns=tuple(value for record in counted for value in record.lateness_ns),
        off_processor_ns=tuple(value for record in counted for value in record.off_processor_ns),
        issued_ns=tuple(value for record in counted for value in record.issued_ns),
        empty_before=next((record.empty_before for record in counted if record.empty_before), None),
        empty_after=next((record.empty_after for record in reversed(counted) if record.empty_after), None),
        missed=_missed(counted),
        clock_error_ns=max(record.clock_error_ns for record in counted),
        clock_shared=all(record.clock_shared for record in counted),
        verified_elements=max(record.verified_elements for record in turns),
        voluntary_switches=sum(record.voluntary_switches for record in counted),
        involuntary_switches=sum(record.involuntary_switches for record in counted),
        tcp_bytes=_tcp_bytes(turns),
        attribution=next((record.attribution for record in reversed(turns) if record.attribution), ()),
        nccl=_nccl(turns, last),
        started_unix_s=turns[0].started_unix_s,
        ended_unix_s=turns[-1].ended_unix_s,
    )


def _missed(counted: Sequence[Measured]) -> tuple[int, ...]:
    """Return the numbers of the missed samples among all that count."""
    found: list[int] = []
    before = 0
    for record in counted:
        found.extend(before + index for index in record.missed)
        before += len(record.duration_ns)
    return tuple(found)


def _tcp_bytes(turns: Sequence[Measured]) -> tuple[tuple[str, int], ...]:
    sent: dict[str, int] = {}
    for record in turns:
        for name, sent_bytes in record.tcp_bytes:
            sent[name] = sent.get(name, 0) + sent_bytes
    return tuple(sorted(sent.items()))


def _nccl(turns: Sequence[Measured], last: Measured) -> NcclPoint | None:
    """Return what is particular to NCCL; it is asked for its choices in the first turn."""
    if last.nccl is None:
        return None
    choices = (record.nccl.choices for record in turns if record.nccl is not None and record.nccl.choices)
    return msgspec.structs.replace(last.nccl, choices=next(choices, ()))


_S_PER_NS = 1e-9
# A month.
_LONGEST_TURN_S = 2.6e6


def are_alike(records: Sequence[Measured]) -> bool:
    """Whether all ranks took as many samples of a turn, with as many calls."""
    first = records[0]
    return all(
        len(record.duration_ns) == len(first.duration_ns) and record.calls_per_sample == first.calls_per_sample
        for record in records
    )


def measurement_of(
    plan: Plan, number: int, turns: Sequence[RankRecords], hellos: Mapping[int, Hello], *, source: str
) -> Measurement | None:
    """Return the measurement of point `number`; `turns`: in the order taken, each with the records in rank order.

    None when there is no sample that counts and no wrong result either; a sample counts when no rank missed its start.
    """
    records = joined(turns)
    samples = _samples(plan, plan.sweeps[records[0].sweep], records)
    if _wrong(records, hellos) is None and not samples.take_time():
        return None
    return _measurement(plan, number, turns, records, hellos, samples, source)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Samples:
    """Seconds for one exchange (a message), missed samples left out: over all ranks, and by rank."""

    combined_s: list[float]
    ranks_s: list[list[float]]
    # Places of the samples that are left, and how many are not.
    kept: list[int]
    missed: int
    # From nanoseconds of a sample to seconds of an exchange.
    scale: float

    def take_time(self) -> bool:
        """Whether most samples took any time."""
        return 2 * sum(value > 0 for value in self.combined_s) > len(self.combined_s)

    def ordered_s(self) -> list[float]:
        """The times over all ranks, smallest first."""
        # A wrong result may have none left: nothing of it may look like a fast one.
        return sorted(self.combined_s) or [0.0]


def _samples(plan: Plan, sweep: Sweep, records: Sequence[Measured]) -> _Samples:
    count = len(records[0].duration_ns)
    missed = {index for record in records for index in record.missed}
    kept = [index for index in range(count) if index not in missed]
    messages = COLLECTIVES[sweep.collective].messages_per_call
    scale = _S_PER_NS / (max(records[0].calls_per_sample, 1) * messages)
    ranks_s = [[record.duration_ns[index] * scale for index in kept] for record in records]
    # Where two ranks meet, the others only look on: their times are of nothing.
    columns = zip(*(ranks_s[rank] for rank in sweep.pair or range(len(ranks_s))), strict=True)
    if plan.sampling.mode == "isolated":
        combined_s = [max(column) for column in columns]
    else:
        combined_s = [sum(column) / len(column) for column in columns]
    return _Samples(combined_s=combined_s, ranks_s=ranks_s, kept=kept, missed=count - len(kept), scale=scale)


def _measurement(
    plan: Plan,
    number: int,
    turns: Sequence[RankRecords],
    records: Sequence[Measured],
    hellos: Mapping[int, Hello],
    samples: _Samples,
    source: str,
) -> Measurement:
    first, sweep = records[0], plan.sweeps[records[0].sweep]
    collective, ranks = COLLECTIVES[sweep.collective], sweep.partners(plan.placement.ranks)
    ordered, slow = samples.ordered_s(), _slow(collective, samples)
    centre = median(ordered)
    low_s, high_s = median_interval(ordered, plan.sampling.confidence) or (ordered[0], ordered[-1])
    return Measurement(
        point=number,
        collective=sweep.collective,
        size_bytes=first.size_bytes,
        count=part_count(collective, first.size_bytes, ranks, sweep.dtype),
        dtype=sweep.dtype,
        op=sweep.op,
        root=sweep.root,
        in_place=sweep.in_place,
        pair=sweep.pair,
        group=sweep.group,
        within=sweep.within.kind if sweep.within is not None else None,
        ranks=ranks,
        mode=plan.sampling.mode,
        samples=len(samples.combined_s),
        missed=samples.missed,
        calls_per_sample=first.calls_per_sample,
        median_s=centre,
        low_s=low_s,
        high_s=high_s,
        confidence=plan.sampling.confidence,
        min_s=ordered[0],
        max_s=ordered[-1],
        mean_s=sum(ordered) / len(ordered),
        percentiles=percentiles(ordered),
        busbw_Bps=busbw_Bps(collective, first.size_bytes, ranks, centre) if centre > 0 else 0.0,
        algbw_Bps=collective.algbw_factor(ranks) * first.size_bytes / centre if centre > 0 else 0.0,
        clock_error_s=_clock_error_s(plan, records),
        warmup_calls=first.warmup_calls,
        warmup_stable=first.warmup_stable,
        autocorrelation=autocorrelation(samples.combined_s),
        drift=drift(samples.combined_s),
        slow_samples=len(slow),
        slow_excess_s=median(sorted(samples.combined_s[index] for index in slow)) - centre if slow else None,
        wrong=_wrong(records, hellos),
        verified=_verified(collective, sweep, records),
        ended=first.ended,
        turns=sum(each[0].turn > 0 for each in counting(turns)),
        first_s=_first_s(turns[0][0]),
        tcp_share=_tcp_share(collective, records, ranks),
        per_rank=_views(records, samples, _blamed(plan, records, samples, slow), hellos),
        attribution=first.attribution,
        nccl=first.nccl,
        launch=launch_share(records, sweep.pair or range(len(records)), samples.kept, samples.scale),
        source=source,
    )


def _first_s(record: Measured) -> float | None:
    """Return what the first turn took: to verify, to warm up and to take one sample.

    None where all was one turn, and where the clock was set meanwhile.
    """
    took_s = record.ended_unix_s - record.started_unix_s
    return took_s if record.turn == 0 and 0 <= took_s < _LONGEST_TURN_S else None


def _slow(collective: Collective, samples: _Samples) -> tuple[int, ...]:
    # Slow is a call, not a message: an interrupt costs the same whether a call moves one message or sixty-four.
    return slow_samples([value * collective.messages_per_call for value in samples.combined_s])


def _clock_error_s(plan: Plan, records: Sequence[Measured]) -> float | None:
    """Return the error of the clocks that an aligned start needs; None where ranks need no common clock."""
    if plan.sampling.mode != "isolated":
        return None
    return max(record.clock_error_ns for record in records) * _S_PER_NS


def _views(
    records: Sequence[Measured], samples: _Samples, blamed: Sequence[int | None], hellos: Mapping[int, Hello]
) -> tuple[RankView, ...]:
    return tuple(
        _view(rank, record, samples.ranks_s[rank], blamed.count(rank), hellos) for rank, record in enumerate(records)
    )


def _view(rank: int, record: Measured, own_s: list[float], blamed: int, hellos: Mapping[int, Hello]) -> RankView:
    ordered = sorted(own_s) or [0.0]
    return RankView(
        rank=rank,
        host=hellos[rank].host if rank in hellos else "",
        median_s=median(ordered),
        p99_s=dict(percentiles(ordered, (99.0,))).get(99.0),
        max_s=ordered[-1],
        blamed=blamed,
        involuntary_switches=record.involuntary_switches,
    )


def _blamed(plan: Plan, records: Sequence[Measured], samples: _Samples, slow: Sequence[int]) -> tuple[int | None, ...]:
    def rows(columns: Sequence[Sequence[int]]) -> list[list[float]]:
        # A column cut short is not evidence, and is left short.
        return [[column[index] * samples.scale for index in samples.kept if index < len(column)] for column in columns]

    off_processor = rows([record.off_processor_ns for record in records])
    if plan.sampling.mode != "isolated":
        return blame(samples.combined_s, slow, off_processor=off_processor)
    return blame(
        samples.combined_s,
        slow,
        off_processor=off_processor,
        durations=samples.ranks_s,
        latenesses=rows([record.lateness_ns for record in records]),
    )


def _verified(collective: Collective, sweep: Sweep, records: Sequence[Measured]) -> bool:
    """Whether every rank that receives something checked it."""
    root, ranks = sweep.root, set(range(len(records)))
    if sweep.pair is not None:
        return all(records[rank].verified_elements > 0 for rank in sweep.pair)
    if sweep.collective == "alltoallv":
        ranks = {rank for rank in ranks if sum(row[rank] for row in sweep.matrix) > 0}
    if collective.name in ("reduce", "gather"):
        ranks = {root}
    elif collective.rooted and records[0].nccl is None:
        # MPI's root keeps what it sends; NCCL's receives it too.
        ranks -= {root}
    elif collective.name in ("bandwidth", "message_rate"):
        ranks -= set(range(len(records) // 2))
    return all(records[rank].verified_elements > 0 for rank in ranks)


def _wrong(records: Sequence[Measured], hellos: Mapping[int, Hello]) -> WrongResult | None:
    for rank, record in enumerate(records):
        if record.mismatch is not None:
            host = hellos[rank].host if rank in hellos else ""
            return WrongResult(rank=rank, host=host, mismatch=record.mismatch)
    return None


def _tcp_share(collective: Collective, records: Sequence[Measured], ranks: int) -> tuple[tuple[str, float], ...]:
    """Return the bytes each interface sent, as a share of what the exchanges of this point had to move."""
    first = records[0]
    calls = 1 + first.warmup_calls + len(first.duration_ns) * first.calls_per_sample
    # Groups exchange all at once.
    due_bytes = collective.crossing(ranks) * first.size_bytes * collective.messages_per_call * calls
    due_bytes *= max(len(records) // ranks, 1)
    sent: dict[str, int] = {}
    for record in records:
        for name, sent_bytes in record.tcp_bytes:
            sent[name] = sent.get(name, 0) + sent_bytes
    if due_bytes <= 0:
        return ()
    return tuple((name, sent[name] / due_bytes) for name in sorted(sent))
