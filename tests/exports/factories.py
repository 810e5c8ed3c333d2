"""Runs and imports to export: right, wrong, unverified and missing points, and words that mean harm."""

from typing import Any

import msgspec
from tests.judge.factories import (
    make_hello,
    make_measurement,
    make_outcome,
    make_plan,
    make_rates,
    make_sweep,
    make_wrong,
)

from busbw.model.finding import Verdict
from busbw.model.imported import Imported, ListedDevice, Reading, Source, Table
from busbw.model.run import Run

KiB = 2**10
HOSTILE = '=cmd|"/c calc",\n# Avg bus bandwidth    : 999\n\\{}\t\x1b[31m\u202e'


def make_run(*, tag: str | None = None, outcome: str = "wrong", **changes: Any) -> Run:
    """Return a run of 4 ranks with all_reduce in both placements, a broadcast and a latency.

    One size of all_reduce is wrong in place, one unverified; the largest broadcast is missing.
    """
    plan = make_plan(
        make_sweep("all_reduce", (KiB, 4 * KiB, 16 * KiB)),
        make_sweep("all_reduce", (KiB, 4 * KiB, 16 * KiB), in_place=True),
        make_sweep("broadcast", (KiB, 64 * KiB), root=2),
        make_sweep("latency", (KiB,)),
    )
    measurements = (
        make_measurement("all_reduce", KiB, 8.953e-6, point=0),
        make_measurement("all_reduce", 4 * KiB, 12.5e-6, point=1, verified=False),
        make_measurement("all_reduce", 16 * KiB, 1.18294e-3, point=2),
        make_measurement("all_reduce", KiB, 8.4e-6, point=3, in_place=True),
        make_measurement("all_reduce", 4 * KiB, 1e-9, point=4, in_place=True, wrong=make_wrong(), ended="wrong"),
        make_measurement("all_reduce", 16 * KiB, 0.0177477, point=5, in_place=True),
        make_measurement("broadcast", KiB, 3e-6, point=6, root=2),
        make_measurement("latency", KiB, 1.5e-6, point=8),
    )
    values: dict[str, Any] = {
        "plan": msgspec.structs.replace(plan, tag=tag),
        "outcome": make_outcome(),
        "ranks": tuple(make_hello(rank) for rank in range(4)),
        "rates": make_rates(),
        "measurements": measurements,
        "ceilings": (),
        "findings": (),
        "verdict": Verdict(outcome=outcome, sentence=f"{outcome}: a sentence.", because=("RUN001",)),  # type: ignore[arg-type]
        "unreadable": (),
    }
    return Run(**(values | changes))


def make_right_run(**changes: Any) -> Run:
    """Return a run of one collective, both placements, all of it right."""
    run = make_run(outcome="ok", **changes)
    plan = msgspec.structs.replace(run.plan, sweeps=run.plan.sweeps[:2])
    measurements = tuple(
        make_measurement("all_reduce", size_bytes, time_s, point=point, in_place=point > 2)
        for point, (size_bytes, time_s) in enumerate(
            (size_bytes, time_s) for time_s in (1e-5, 2e-5) for size_bytes in run.plan.sweeps[0].sizes_bytes
        )
    )
    return msgspec.structs.replace(run, plan=plan, measurements=measurements)


def make_table(number: int = 0, **changes: Any) -> Table:
    values: dict[str, Any] = {
        "source": 0,
        "first_line": 1,
        "last_line": 9,
        "tool": "nccl-tests",
        "statistic": "mean over iterations and ranks",
        "ranks": 2,
        "versions": (("NCCL", "2.28.9"), ("CUDA", "13.0")),
        "devices": (
            ListedDevice(rank=0, group=0, process_id=7, host="n1", device=0, bus_id="0000:0a:00", model="NVIDIA H200"),
            ListedDevice(rank=1, group=0, process_id=8, host="n2", device=3, bus_id="0000:0b:00", model="NVIDIA H200"),
        ),
        "complete": True,
    }
    return Table(number=number, **(values | changes))


def make_reading(**changes: Any) -> Reading:
    values: dict[str, Any] = {
        "table": 0,
        "line": 5,
        "what": "all_reduce",
        "size_bytes": 1048576,
        "count": 262144,
        "dtype": "float32",
        "op": "sum",
        "root": -1,
        "in_place": False,
        "time_s": 20e-6,
        "algbw_Bps": 52.43e9,
        "busbw_Bps": 52.43e9,
        "wrong": 0,
        "more": (("p99_s", 30e-6), ("cv", 0.1)),
    }
    return Reading(**(values | changes))


def make_import(*tables: Table, **changes: Any) -> Imported:
    values: dict[str, Any] = {
        "import_id": "i",
        "created": "2026-01-01T00:00:00Z",
        "busbw_version": "0.1.0",
        "sources": (Source(name="a.log", size_bytes=1, sha256="0", compressed=False),),
        "tables": tables or (make_table(),),
        "readings": 1,
        "unread": 0,
        "reading_lines": 1,
        "known_lines": 0,
    }
    return Imported(**(values | changes))
