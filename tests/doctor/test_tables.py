"""Tables of nccl-tests in a log: values that are wrong, and rows that never came."""

import pytest

from busbw.logs.tables import last_table

from .made import Job, to_do, told
from .test_diagnosis import codes, read

HEAD = (
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong"
    "     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
)
ROW = "  1048576  262144     float     sum      -1    125.3    8.37    8.37 {:>6}    124.6    8.41    8.41 {:>6}\n"
OLD = (
    "#       size    count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
    "     1048576   262144   float     sum    125.3    8.37    8.37  2e-07    124.6    8.41    8.41  2e-07\n"
)
SOUND_END = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 5.1\n"
WRONG_END = "# Out of bounds values : 38 FAILED\n# Avg bus bandwidth    : 5.1\n"


def within_a_node() -> str:
    return Job(hosts=1, inside="P2P/direct pointer").text()


@pytest.mark.parametrize("table", [HEAD + ROW.format(9, 0) + SOUND_END, HEAD + ROW.format("N/A", "N/A") + WRONG_END])
def test_wrong_values_are_no_success(table):
    diagnosis = read(within_a_node() + table)
    (found,) = [each for each in diagnosis.findings if each.code == "LOG049"]

    assert diagnosis.verdict.outcome == "failed"
    assert "ACS" in told(found).split("(2)")[0]
    assert "NCCL_P2P_DISABLE=1" in to_do(found)


def test_with_tags_of_the_launcher_and_without_any_line_of_nccl_values_are_wrong_too():
    tagged = "".join(f"[1,0]<stdout>:{line}\n" for line in (HEAD + ROW.format(0, 7)).splitlines())

    assert "LOG049" in codes(read(within_a_node() + tagged))


@pytest.mark.parametrize(
    "table",
    [
        HEAD + ROW.format(0, 0) + SOUND_END,
        HEAD + ROW.format("N/A", "N/A"),
        # Older tables give the largest error, which is never quite 0.
        OLD,
    ],
)
def test_sound_values_are_silent(table):
    assert codes(read(within_a_node() + table)) == set()


def test_a_table_without_a_row_is_not_ok():
    diagnosis = read(within_a_node() + HEAD)
    (found,) = diagnosis.findings

    assert (found.code, diagnosis.verdict.outcome) == ("LOG050", "cannot_tell")
    assert "ACS" in told(found)


def test_what_ended_the_test_is_told_alone():
    text = "n0:77:99 [0] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error Network is unreachable\n"

    assert "LOG050" not in codes(read(within_a_node() + HEAD + text))


def test_of_several_tables_the_last_counts():
    lines = [(0, number, line) for number, line in enumerate((HEAD + ROW.format(9, 9) + HEAD).splitlines(), 1)]
    table = last_table(lines)

    assert table is not None
    assert (table.rows, table.is_wrong, table.is_ended) == (0, False, False)
