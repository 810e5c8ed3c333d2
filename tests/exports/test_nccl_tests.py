"""The text table is nccl-tests' own, to the blank, and what reads that tool reads it."""

import math
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.judge.factories import make_hello, make_plan, make_sweep

from busbw.base.errors import InputError
from busbw.formats.lines.driver import Reader
from busbw.formats.registry import FORMATS
from busbw.model.imported import Reading, Table
from busbw.show.exports.nccl_tests import nccl_tests_text, number
from busbw.show.exports.rows import export_of_import, export_of_run

from .factories import HOSTILE, make_import, make_right_run, make_run

# nccl-tests 2.19.6 on four H200 GPUs: all_reduce_perf and sendrecv_perf.
CAPTURED = (Path(__file__).parent / "captured" / "nccl-tests-2.19.6.txt").read_text()


def as_the_tool_wrote(text: str) -> list[str]:
    """Return the lines without those that only one of us writes, and the mean of rates before they were rounded."""
    return [line for line in text.splitlines() if not re.match("# (nccl-tests version|busbw|Avg)", line)]


def test_a_captured_table_is_written_again_to_the_blank():
    reader = Reader(FORMATS, source=0, first_table=0)
    found = [*reader.feed(CAPTURED.encode()), *reader.finish()]
    tables = tuple(each for each in found if isinstance(each, Table))
    imported = make_import(*tables)

    written = nccl_tests_text(export_of_import(imported, [each for each in found if isinstance(each, Reading)]))

    assert as_the_tool_wrote(written) == as_the_tool_wrote(CAPTURED)
    assert len(as_the_tool_wrote(written)) > 80
    means = [re.findall(r"# Avg bus bandwidth    : (\S+) \n", text) for text in (written, CAPTURED)]
    assert [float(mean) for mean in means[0]] == pytest.approx([float(mean) for mean in means[1]], rel=1e-4)


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (8.95, 7, "   8.95"),
        (9999.994, 7, "9999.99"),
        (9999.996, 7, "10000.0"),
        (17747.7, 7, "17747.7"),
        (123456.7, 7, " 123457"),
        (1234567.0, 7, "1234567"),
        (1e8, 7, "1.0e+08"),
        (365.18, 6, "365.18"),
        (1234.56, 6, "1234.6"),
        (12345678.0, 6, " 1e+07"),
        (0.0, 6, "  0.00"),
        (math.nan, 7, "    nan"),
    ],
)
def test_numbers_lose_decimals_before_they_lose_their_place(value: float, width: int, text: str):
    assert number(value, width) == text


@given(st.floats(min_value=0, max_value=1e99), st.sampled_from([6, 7]))
def test_a_number_always_fits_its_column(value: float, width: int):
    written = number(value, width)

    assert len(written) == width
    assert float(written) == pytest.approx(value, rel=0.5, abs=0.005)


def rows_of_13(text: str) -> list[list[str]]:
    """Return the rows as CloudAI takes them: lines that begin with a digit and have 13 words."""
    lines = [line.split() for line in text.splitlines() if re.match(r"\s*\d", line)]
    assert all(len(line) == 13 for line in lines)
    return lines


def superbench_reading(text: str) -> dict[int, float]:
    """Return busbw by size as SuperBench takes it: the last table, its column counted from the end of the header."""
    lines = text.splitlines()
    begin = max(number for number, line in enumerate(lines) if "out-of-place" in line)
    end = max(number for number, line in enumerate(lines) if "Out of bounds values" in line)
    header = next(line for line in lines[begin + 1 : end] if "time" in line and "busbw" in line)
    names = header.lstrip("#").split()
    place = names.index("busbw") - len(names)
    rows = [line.split() for line in lines[begin + 1 : end] if re.match(r"\s*\d", line)]
    return {int(row[0]): float(row[place]) for row in rows}


def test_other_readers_get_the_numbers_of_the_run():
    run = make_right_run()

    text = nccl_tests_text(export_of_run(run))

    expected = {item.size_bytes: item.busbw_Bps / 1e9 for item in run.measurements if not item.in_place}
    assert superbench_reading(text) == pytest.approx(expected, abs=0.006)
    assert [float(row[9]) for row in rows_of_13(text)] == [20.0, 20.0, 20.0]
    assert "# Avg bus bandwidth" in text


def test_a_wrong_result_is_counted_and_has_no_numbers():
    text = nccl_tests_text(export_of_run(make_run()))

    row = rows_of_13(text)[1]
    assert row[9:] == ["nan", "nan", "nan", "1"]
    assert row[5:9] == ["12.50", "0.33", "0.49", "N/A"]
    assert re.search(r"^# Out of bounds values : 1 FAILED$", text, re.MULTILINE)
    mean = re.search(r"^# Avg bus bandwidth    : (\S+) $", text, re.MULTILINE)
    assert mean is not None
    assert float(mean[1]) < 1


def test_a_table_that_lacks_points_has_no_footer():
    text = nccl_tests_text(export_of_run(make_run()))

    broadcast = text[text.index("starting: broadcast_perf") :]
    assert len(rows_of_13(broadcast)) == 1
    assert "# busbw: cut off: 1 of 2 points were not measured; so there is no footer" in broadcast
    assert "Out of bounds values" not in broadcast
    assert "Avg bus bandwidth" not in broadcast
    assert "concluded" not in broadcast


def test_a_half_that_was_not_measured_is_nan_and_not_checked():
    text = nccl_tests_text(export_of_run(make_run()))

    assert rows_of_13(text)[3][9:] == ["nan", "nan", "nan", "N/A"]


def test_what_nccl_tests_has_no_program_for_is_named_or_refused():
    run = make_run()
    assert "no program of nccl-tests measures it: latency\n" in nccl_tests_text(export_of_run(run))

    plan = make_plan(make_sweep("latency", (1024,)))
    with pytest.raises(InputError, match="no program") as refused:
        nccl_tests_text(export_of_run(msgspec.structs.replace(run, plan=plan)))

    assert "--format csv" in str(refused.value)


def test_hostile_words_make_no_line_of_their_own():
    calm = nccl_tests_text(export_of_run(make_run()))
    run = make_run(tag=HOSTILE)
    plan = msgspec.structs.replace(
        run.plan, run_id=HOSTILE, host=msgspec.structs.replace(run.plan.host, cpu_model=HOSTILE)
    )
    ranks = tuple(make_hello(rank, host=HOSTILE) for rank in range(4))

    text = nccl_tests_text(export_of_run(msgspec.structs.replace(run, plan=plan, ranks=ranks)))

    assert len(text.splitlines()) == len(calm.splitlines())
    assert rows_of_13(text) == rows_of_13(calm)
    assert not re.search(r"^# Avg bus bandwidth +: 999", text, re.MULTILINE)
    assert "\x1b" not in text
    assert "\u202e" not in text
