"""Records of NCCL Inspector over a job: what each collective of each communicator took (`formats.inspector`)."""

from collections.abc import Iterable, Iterator

import msgspec

from busbw.base.errors import InputError
from busbw.base.text import counted, percent
from busbw.formats.inspector import FORMAT
from busbw.model.train.trace import InspectorLog, RecordShare
from busbw.stats.distributions import median
from busbw.train.reading.lines import LineBlocks

_KEYS = (b'"coll_perf"', b'"p2p_perf"')
# More kinds of collectives than any job has.
_MOST_KINDS = 100_000
_LONGEST_LINE = 65_536


def is_record(head: bytes) -> bool:
    """Whether a file begins with a record of NCCL Inspector."""
    first = head.lstrip().split(b"\n", 1)[0]
    return first.startswith(b"{") and b'"header"' in first and any(key in first for key in _KEYS)


def read_records(blocks: Iterable[bytes], where: str) -> InspectorLog:
    """Return what the records say. Raises InputError where there is none that can be read."""
    lines = LineBlocks()
    times: dict[tuple[str, str, int, int], tuple[list[float], list[float]]] = {}
    ranks: set[int] = set()
    garbled = records = 0
    for line in _lines(blocks, lines):
        try:
            document = msgspec.json.decode(line)
            ((table, readings),) = FORMAT.read(document, line=1, number=1, source=0)
        except (msgspec.DecodeError, UnicodeDecodeError, InputError, RecursionError):
            garbled += 1
            continue
        ranks.update(device.rank for device in table.devices)
        named = dict(table.parameters)
        communicator = named.get("communicator name") or named.get("communicator", "without a name")
        for each in readings:
            if each.time_s is None:
                continue
            records += 1
            key = (communicator, each.what, each.size_bytes or 0, each.ranks or 0)
            if key not in times and len(times) == _MOST_KINDS:
                raise InputError(f"more than {_MOST_KINDS} kinds of collectives", where=where)
            kept = times.setdefault(key, ([], []))
            kept[0].append(each.time_s)
            if each.busbw_Bps is not None:
                kept[1].append(each.busbw_Bps)
    if not records:
        raise InputError("no record of NCCL Inspector with a time", where=where)
    shares = sorted((_share(key, *kept) for key, kept in times.items()), key=lambda each: -each.time_s)
    total_s = sum(each.time_s for each in shares)
    first = shares[0]
    return InspectorLog(
        source=where,
        records=records,
        recording_ranks=len(ranks),
        shares=tuple(shares),
        garbled=garbled,
        bytes_read=lines.bytes,
        sentence=f"{counted(records, 'record')} of {counted(len(ranks), 'rank')}: {percent(first.time_s / total_s)} of "
        f"their time is {first.collective} over {first.ranks} ranks",
        notes=(
            "records say how long collectives took, not what ran beside them: a trace tells exposed from hidden",
            "records can be missing where many operations end at once: counts are the least there were",
        ),
    )


def _lines(blocks: Iterable[bytes], lines: LineBlocks) -> Iterator[bytes]:
    for block in blocks:
        yield from _whole(lines.feed(block))
    yield from _whole(lines.finish())


def _whole(block: bytes) -> Iterator[bytes]:
    for line in block.splitlines():
        if line.strip() and len(line) <= _LONGEST_LINE:
            yield line


def _share(key: tuple[str, str, int, int], times_s: list[float], rates_Bps: list[float]) -> RecordShare:
    communicator, what, size_bytes, ranks = key
    return RecordShare(
        communicator=communicator,
        collective=what,
        size_bytes=size_bytes,
        ranks=ranks,
        records=len(times_s),
        time_s=sum(times_s),
        median_s=median(sorted(times_s)),
        busbw_Bps=median(sorted(rates_Bps)) if rates_Bps else None,
    )
