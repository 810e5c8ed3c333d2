"""Measured points to hold against gates, and gates to hold them against."""

from typing import Any

from hypothesis import strategies as st

from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, OPERATIONS
from busbw.judge.gates.deciding import GatedPoints
from busbw.judge.gates.expression import RATE_UNITS, TIME_UNITS
from busbw.model.gates import Gate, PointRow

GiB = 2**30


def make_row(**changes: Any) -> PointRow:
    """Return 1 GiB of all_reduce over 8 ranks at 390 GB/s, by a table without intervals."""
    values: dict[str, Any] = {
        "run_id": "r",
        "kind": "import",
        "created": "2026-01-01T00:00:00Z",
        "busbw_version": "0.1.0",
        "tag": None,
        "verdict": None,
        "hosts": "node1",
        "backend": "nccl-tests",
        "libraries": "NCCL 2.28.9",
        "read_from": "a.log:12",
        "table": 0,
        "collective": "all_reduce",
        "size_bytes": GiB,
        "count": GiB // 4,
        "dtype": "float32",
        "op": "sum",
        "root": None,
        "in_place": False,
        "ranks": 8,
        "statistic": "mean",
        "time_s": 1.75 * GiB / 390e9,
        "busbw_Bps": 390e9,
        "algbw_Bps": 390e9 / 1.75,
        "wrong": 0,
        "verified": True,
        "ended": None,
    }
    return PointRow(**(values | changes))


def make_sampled_row(busbw_Bps: float = 390e9, half: float = 0.01, **changes: Any) -> PointRow:
    """Return the same as a run measures it: with an interval of the median, `half` of it to either side."""
    time_s = 1.75 * GiB / busbw_Bps
    values: dict[str, Any] = {
        "kind": "run",
        "backend": "native-nccl",
        "statistic": "median",
        "mode": "stream",
        "samples": 100,
        "confidence": 0.95,
        "time_s": time_s,
        "median_s": time_s,
        "low_s": time_s * (1 - half),
        "high_s": time_s * (1 + half),
        "busbw_Bps": busbw_Bps,
        "algbw_Bps": busbw_Bps / 1.75,
        "ended": "interval",
    }
    return make_row(**(values | changes))


def make_held(*rows: PointRow, **changes: Any) -> GatedPoints:
    return GatedPoints(name="result", rows=rows, **changes)


SIZES = st.one_of(st.integers(0, 2**50), st.sampled_from([8, 1024, 2**20, GiB, 8 * GiB]))
NUMBERS = st.integers(1, 10**12).map(lambda millionths: millionths / 1e6)


@st.composite
def any_gate(draw: st.DrawFn) -> Gate:
    """Return any gate that an expression can spell."""
    requirement = draw(st.sampled_from(["at_least", "at_most", "within"]))
    units = {"at_least": list(RATE_UNITS), "at_most": list(TIME_UNITS), "within": ["%"]}[requirement]
    measures = {
        "at_least": [None, "algbw"],
        "at_most": [None, "p95", "p99", "slowest"],
        "within": [None, "algbw", "p95", "p99", "slowest"],
    }[requirement]
    ends = sorted([draw(SIZES), draw(SIZES)])
    low, high = draw(st.sampled_from([(None, None), (ends[0], ends[0]), (ends[0], None), (None, ends[1]), tuple(ends)]))
    names = st.sampled_from(sorted(COLLECTIVES))
    return Gate(
        requirement=requirement,
        number=draw(NUMBERS) if requirement != "within" else draw(st.integers(0, 99_999_999)) / 1e6,
        unit=draw(st.sampled_from(units)),
        collective=draw(st.none() | names) if requirement == "within" else draw(names),
        from_bytes=low,
        to_bytes=high,
        dtype=draw(st.none() | st.sampled_from(sorted(DTYPE_BYTES))),
        op=draw(st.none() | st.sampled_from(sorted(OPERATIONS))),
        in_place=draw(st.none() | st.booleans()),
        ranks=draw(st.none() | st.integers(1, 999_999)),
        measure=draw(st.sampled_from(measures)),
        checked=draw(st.booleans()),
    )
