"""The columns of the results table, in the order of nccl-tests, then busbw's own."""

from dataclasses import dataclass

from busbw.base.collectives import COLLECTIVES
from busbw.model.finding import Ceiling
from busbw.model.measurement import Measurement
from busbw.show.words import choice_words, interval_percent, percentile_s

# nccl-tests' names where they differ from ours.
_TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "half"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A heading: its word, its unit, and what it means in a sentence."""

    name: str
    unit: str
    meaning: str


_SHARED = (
    Column(name="size", unit="B", meaning="bytes, the larger of what a rank sends and receives"),
    Column(name="count", unit="elem", meaning="elements"),
    Column(name="type", unit="", meaning="data type"),
    Column(name="redop", unit="", meaning="operation of a reduction"),
    Column(name="root", unit="", meaning="root rank, -1 without one"),
    Column(name="time", unit="us", meaning="median time of one exchange"),
    Column(name="algbw", unit="GB/s", meaning="size / time"),
    Column(name="busbw", unit="GB/s", meaning="algbw times the factor of the collective"),
    Column(name="#wrong", unit="", meaning="wrong elements; N/A: not verified"),
)
_MESSAGES = Column(name="msg/s", unit="1e6", meaning="messages a second, all pairs together")
_CEILING = Column(name="ceil", unit="%", meaning="busbw as a share of its ceiling")
_CHOICE = Column(name="NCCL used", unit="", meaning="algorithm, protocol and channels, by NCCL's own word")
_OWN = (
    Column(name="±", unit="%", meaning="how far the interval of the median reaches"),
    Column(name="n", unit="", meaning="samples"),
    Column(name="p99", unit="us", meaning="99th percentile of the time; n/a: too few samples for it"),
)


def columns_of(item: Measurement) -> tuple[Column, ...]:
    """Return the columns of the table that `item` stands in."""
    messages = (_MESSAGES,) if item.collective == "message_rate" else ()
    if item.nccl is not None:
        return (*_SHARED, *messages, *_OWN, _CHOICE)
    return (*_SHARED, *messages, _CEILING, *_OWN)


def cells_of(item: Measurement, ceiling: Ceiling | None) -> tuple[str, ...]:
    """Return the cells of one row, one for each of its collective's columns."""
    collective = COLLECTIVES.get(item.collective)
    reduces = collective is not None and collective.reduces
    rooted = collective is not None and collective.rooted
    p99_s = percentile_s(item, 99.0)
    rate = (f"{item.ranks // 2 / item.median_s / 1e6:.2f}" if item.median_s > 0 else "",)
    return (
        str(item.size_bytes),
        str(item.count),
        _TYPE_NAMES.get(item.dtype, item.dtype),
        item.op if reduces else "none",
        str(item.root) if rooted else "-1",
        us(item.median_s),
        f"{item.algbw_Bps / 1e9:.2f}",
        f"{item.busbw_Bps / 1e9:.2f}",
        str(item.wrong.mismatch.wrong) if item.wrong is not None else "0" if item.verified else "N/A",
        *(rate if item.collective == "message_rate" else ()),
        *(() if item.nccl is not None else (share_percent(item, ceiling),)),
        interval_percent(item),
        str(item.samples),
        us(p99_s) if p99_s is not None else "n/a",
        *((choice_words(item),) if item.nccl is not None else ()),
    )


def us(time_s: float) -> str:
    """Return microseconds with as many decimals as they deserve."""
    time_us = time_s * 1e6
    return f"{time_us:.2f}" if time_us < 1000 else f"{time_us:.1f}" if time_us < 100_000 else f"{time_us:.0f}"


def share_percent(item: Measurement, ceiling: Ceiling | None) -> str:
    """Return the share of the ceiling that was reached, in percent; "" without one."""
    if ceiling is None or ceiling.busbw_Bps <= 0:
        return ""
    return f"{100 * item.busbw_Bps / ceiling.busbw_Bps:.0f}"
