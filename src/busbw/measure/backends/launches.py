"""What starting work on GPUs takes, from the records, and one measurement of several starts, which differ in it."""

from collections.abc import Sequence

import msgspec

from busbw.model.measurement import EmptyLaunch, LaunchShare, Measurement, StartView
from busbw.model.record import EmptyLaunches, Measured
from busbw.stats.median import median

_S_PER_NS = 1e-9


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
