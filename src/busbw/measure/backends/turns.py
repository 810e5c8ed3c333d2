"""A point from its turns: the records that each rank wrote of it, one after the other, put into one."""

from collections.abc import Sequence

import msgspec

from busbw.model.record import Measured, NcclPoint

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
    told = (record.nccl.choices for record in turns if record.nccl is not None and record.nccl.choices)
    return msgspec.structs.replace(last.nccl, choices=next(told, ()))
