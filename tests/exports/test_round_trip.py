"""What is written for other tools, our own readers of those tools read back as it was."""

import json

import msgspec
import pytest

from busbw.formats import superbench
from busbw.formats.lines.driver import Reader
from busbw.formats.registry import FORMATS
from busbw.model.imported import Reading, Table
from busbw.show.exports.nccl_tests import nccl_tests_text
from busbw.show.exports.rows import export_of_run
from busbw.show.exports.superbench import superbench_lines

from .factories import make_right_run, make_run


def test_superbench_metrics_come_back():
    run = make_right_run()
    plan = msgspec.structs.replace(run.plan, sweeps=run.plan.sweeps[:1])
    run = msgspec.structs.replace(run, plan=plan, measurements=run.measurements[:3])

    document = json.loads(superbench_lines(export_of_run(run)))
    assert superbench.FORMAT.recognises(document)
    ((_, readings),) = superbench.FORMAT.read(document, line=1, number=0, source=0)

    assert [(reading.what, reading.size_bytes) for reading in readings] == [
        (item.collective, item.size_bytes) for item in run.measurements
    ]
    for reading, item in zip(readings, run.measurements, strict=True):
        assert (reading.time_s, reading.algbw_Bps, reading.busbw_Bps) == pytest.approx(
            (item.median_s, item.algbw_Bps, item.busbw_Bps)
        )


def test_the_text_table_of_nccl_tests_comes_back():
    run = make_run()
    expected = {(item.collective, item.size_bytes, item.in_place): item for item in run.measurements}
    reader = Reader(FORMATS, source=0, first_table=0)

    found = [*reader.feed(nccl_tests_text(export_of_run(run)).encode()), *reader.finish()]

    tables = [each for each in found if isinstance(each, Table)]
    assert [(table.program, table.ranks, table.complete) for table in tables] == [
        ("all_reduce_perf", 4, True),
        ("broadcast_perf", 4, False),
    ]
    assert reader.ledger.unread_lines == 0
    assert not any(table.doubts for table in tables)
    assert {table.statistic.split(",")[0] for table in tables} == {"median of calls started together"}
    assert dict(tables[0].parameters)["measured by"].startswith("native-mpi")
    readings = [each for each in found if isinstance(each, Reading)]
    # What was not measured is `nan` there, and nothing here.
    assert len(readings) == 7
    for reading in readings:
        item = expected[reading.what, reading.size_bytes or 0, reading.in_place or False]
        if item.wrong is not None:
            assert (reading.time_s, reading.algbw_Bps, reading.busbw_Bps) == (None, None, None)
            assert reading.wrong == 1
        else:
            assert reading.time_s == pytest.approx(item.median_s, abs=0.006e-6, rel=1e-4)
            assert reading.busbw_Bps == pytest.approx(item.busbw_Bps, abs=0.006e9)
            assert reading.wrong == (0 if item.verified else None)
        assert reading.count == (reading.size_bytes or 0) // 4
