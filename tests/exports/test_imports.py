"""What another tool measured comes out as it went in, and is never called ours."""

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from busbw.api.reports import export
from busbw.api.stored import find
from busbw.base import layout
from busbw.base.errors import InputError
from busbw.show.exports import rows
from busbw.show.exports.markdown import markdown_text
from busbw.show.exports.nccl_tests import nccl_tests_text
from busbw.show.exports.prometheus import prometheus_text
from busbw.show.exports.rows import export_of_import
from busbw.show.exports.superbench import superbench_lines
from busbw.store.imports import draft

from .factories import make_import, make_reading, make_table


def test_a_row_says_who_measured_it_and_where_it_was_read():
    (row,) = export_of_import(make_import(), [make_reading()]).rows

    assert (row.kind, row.backend, row.libraries, row.hosts) == (
        "import",
        "nccl-tests",
        "NCCL 2.28.9, CUDA 13.0",
        "n1,n2",
    )
    assert (row.read_from, row.ranks, row.verdict, row.ended) == ("a.log:5", 2, None, None)
    assert (row.statistic, row.time_s, row.median_s, row.p99_s) == (
        "mean over iterations and ranks",
        20e-6,
        None,
        30e-6,
    )
    assert (row.op, row.root) == ("sum", None)


def test_a_wrong_reading_loses_the_time_the_tool_gave_it():
    reading = make_reading(wrong=3, bandwidth_Bps=1e9, messages_per_s=1e6)

    (row,) = export_of_import(make_import(), [reading]).rows

    assert row.wrong == 3
    assert {row.time_s, row.p99_s, row.algbw_Bps, row.busbw_Bps, row.bandwidth_Bps, row.messages_per_s} == {None}


def test_what_was_not_checked_is_not_verified():
    (row,) = export_of_import(make_import(), [make_reading(wrong=None)]).rows

    assert (row.wrong, row.verified) == (None, False)


def test_repetitions_over_tables_are_numbered_and_stay_distinct_series():
    tables = (make_table(0), make_table(1))

    export = export_of_import(make_import(*tables), [make_reading(), make_reading(table=1, time_s=25e-6)])

    assert [row.repeat for row in export.rows] == [0, 1]
    times = [line for line in prometheus_text(export).splitlines() if line.startswith("busbw_time_seconds{")]
    assert len({line.rsplit(" ", 1)[0] for line in times}) == 2
    line = superbench_lines(export).decode()
    assert '"nccl-bw/allreduce_0_0:1048576_time":' in line
    assert '"nccl-bw/allreduce_1_0:1048576_time":' in line


def test_a_table_of_the_tool_comes_out_with_its_devices_and_its_statistic():
    text = nccl_tests_text(export_of_import(make_import(), [make_reading(), make_reading(in_place=True)]))

    assert "#  Rank  1 Group  0 Pid      8 on         n2 device  3 [0000:0b:00] NVIDIA H200\n" in text
    assert "# busbw: column time: mean over iterations and ranks; nan: there is none\n" in text
    assert text.count("   20.00   52.43   52.43       0") == 2
    assert "# Avg bus bandwidth    : 52.43 \n" in text


@pytest.mark.parametrize("changes", [{"complete": False}, {"failures": ((9, "Test NCCL failure"),)}])
def test_a_table_that_was_cut_off_or_failed_gets_no_footer(changes: dict[str, Any]):
    text = nccl_tests_text(export_of_import(make_import(make_table(**changes)), [make_reading()]))

    assert "# busbw: cut off; so there is no footer\n" in text
    assert "Avg bus bandwidth" not in text


def test_rccl_tests_go_under_their_own_benchmark():
    export = export_of_import(make_import(make_table(tool="rccl-tests")), [make_reading()])

    assert b'"rccl-bw/allreduce_0_0:1048576_busbw":52.43' in superbench_lines(export)


def test_readings_of_a_table_that_is_not_there_are_damage():
    with pytest.raises(InputError, match="damaged"):
        export_of_import(make_import(), [make_reading(table=7)])


def test_an_import_of_a_source_that_is_not_there_is_exported_without_its_name():
    (row,) = export_of_import(make_import(make_table(source=9)), [make_reading()]).rows

    assert row.read_from == "?:5"


def test_more_rows_than_can_be_held_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rows, "MOST_ROWS", 3)

    with pytest.raises(InputError, match="more than 3 readings"):
        export_of_import(make_import(), itertools.repeat(make_reading()))


def store(directory: Path) -> Path:
    with draft(directory) as made:
        made.keep([make_reading(), make_reading(in_place=True)], [])
        made.finish(make_import(readings=2))
    return directory


def test_an_import_directory_is_exported_from_disk(tmp_path: Path):
    where = store(tmp_path / "imported")

    written = export(find(str(where)), "csv").decode()

    assert written.count("\r\n") == 3
    assert ",import," in written
    assert ",a.log:5," in written


def test_an_import_is_found_by_the_beginning_of_its_name_unless_that_means_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BUSBW_RUNS", str(tmp_path))
    first, second = store(tmp_path / "2026-import-a"), store(tmp_path / "2026-import-ab")
    (tmp_path / "2026-run").mkdir()
    (tmp_path / "2026-run" / layout.PLAN_FILE).write_text("{}")

    assert find("2026-import-ab") == second
    assert find("2026-import-a") == first
    assert find("2026-r") == tmp_path / "2026-run"
    assert find("last") == tmp_path / "2026-run"
    with pytest.raises(InputError, match="means 3 runs and imports: 2026-run, 2026-import-a, 2026-import-ab"):
        find("2026")
    with pytest.raises(InputError, match="no run 'nothing'"):
        find("nothing")


BANDWIDTH = {"what": "RDMA_Read BW Test", "time_s": None, "algbw_Bps": None, "busbw_Bps": None, "bandwidth_Bps": 12.3e9}


def test_a_bandwidth_without_a_time_is_a_metric_of_its_own():
    line = superbench_lines(export_of_import(make_import(), [make_reading(**BANDWIDTH, messages_per_s=187000.0)]))

    assert msgspec.json.decode(line) == {
        "node": "n1",
        "busbw/return_code": 0,
        "busbw/RDMAReadBWTest_0_0:1048576_bandwidth": 12.3,
        "busbw/RDMAReadBWTest_0_0:1048576_messages": 187000.0,
    }


@pytest.mark.parametrize(
    ("readings", "heading"),
    [
        ((BANDWIDTH,), "| bandwidth |"),
        (({},), "| busbw |"),
        ((BANDWIDTH, {}), "| busbw or bandwidth |"),
    ],
)
def test_a_summary_calls_a_bandwidth_what_the_tool_calls_it(readings, heading):
    text = markdown_text(export_of_import(make_import(), [make_reading(**each) for each in readings]))

    assert heading in text
    assert ("12.30 GB/s" in text or "12.3 GB/s" in text) is (BANDWIDTH in readings)


def test_sizes_that_are_not_counted_as_in_nccl_tests_say_so_above_the_table():
    table = make_table(parameters=(("size counts", "the part of one rank"),))
    text = nccl_tests_text(export_of_import(make_import(table), [make_reading()]))

    assert "# busbw: sizes are not as nccl-tests counts them: the part of one rank\n" in text
    assert "sizes are not" not in nccl_tests_text(export_of_import(make_import(), [make_reading()]))
