"""all_reduce_bench.py: rows between bars."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.formats.all_reduce_bench import FORMAT

from .offering import accounts_for_every_line, cuts, garbled, read_text, sample, unclaimed

OUTPUTS = ("all_reduce_bench.txt", "all_reduce_bench_profile.txt")


def test_rows_are_read_as_printed():
    account = read_text(FORMAT, sample("all_reduce_bench.txt"))
    assert account.unreadable == {}
    assert unclaimed(account, sample("all_reduce_bench.txt")) == ["Environment:"]
    assert [row.size_bytes for row in account.readings] == [2**15, 2**20, 2**29, 2**34]
    row = account.readings[-1]
    assert (row.what, row.ranks, row.dtype, row.op) == ("all_reduce", 8, "float32", "sum")
    assert row.busbw_Bps == pytest.approx(482.26e9)
    assert row.algbw_Bps == pytest.approx(275.58e9)
    assert row.busbw_Bps / row.algbw_Bps == pytest.approx(2 * 7 / 8, rel=1e-3)


def test_versions_trials_and_end_are_kept():
    (table,) = read_text(FORMAT, sample("all_reduce_bench.txt")).tables
    assert dict(table.versions) == {"torch": "2.7.1+cu128", "CUDA": "12.8", "NCCL": "2.26.2"}
    assert (table.ranks, table.complete) == (8, True)
    assert dict(table.parameters)["trials"] == "20"
    assert dict(table.footer) == {"Elapsed time": "0:03:11"}


def test_single_iterations_have_the_payload_of_the_title():
    account = read_text(FORMAT, sample("all_reduce_bench_profile.txt"))
    assert [row.size_bytes for row in account.readings] == [2**29] * 3
    assert account.readings[1].busbw_Bps == pytest.approx(335.42e9)
    (table,) = account.tables
    assert (table.statistic, table.complete) == ("each iteration, mean over ranks", False)


def test_a_bare_table_is_read_without_its_number_of_ranks():
    text = sample("all_reduce_bench.txt")
    account = read_text(FORMAT, text[text.index("| payload") :])
    assert len(account.readings) == 4
    assert account.tables[0].ranks is None


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("| 1MiB | 39.93GBps |", "2 cells"),
        ("| 1MB | 39.93GBps | 22.82GBps |", "not a payload"),
        ("| 1MiB | 39.93Gbps | 22.82GBps |", "not a rate"),
        ("| 1MiB | -39.93GBps | 22.82GBps |", "below zero"),
        ("| 9999PiB | 39.93GBps | 22.82GBps |", "not a size"),
        ("| 9999TiB | 39.93GBps | 22.82GBps |", "more than 1 PiB"),
    ],
)
def test_a_row_that_cannot_be_right_says_why(row, why):
    account = read_text(FORMAT, "| payload |    busbw   |    algbw   |\n" + row)
    assert account.readings == []
    assert why in account.unreadable[2]


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_cut_off_anywhere_is_accounted_for(name):
    for text in cuts(sample(name)):
        accounts_for_every_line(FORMAT, text)


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_garbled_output_is_accounted_for(name):
    for text in garbled(sample(name), times=200, seed=19):
        accounts_for_every_line(FORMAT, text)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=60), st.from_regex(r"\A\|[ 0-9.KMGiBps|]{0,50}\|\Z")), max_size=6))
def test_any_lines_are_accounted_for(lines):
    accounts_for_every_line(FORMAT, "| payload |    busbw   |    algbw   |\n" + "\n".join(lines))


def test_a_table_of_the_page_below_is_none_of_its_rows():
    page = sample("all_reduce_bench.txt").partition("Elapsed")[0]
    other = "| node | busbw | spec | share |\n| :-- | --: | --: | --: |\n| A100 | 234.89GBps | 300 | 78% |\n"
    found = read_text(FORMAT, f"{page}\nOf other nodes:\n\n{other}")

    assert found.readings == read_text(FORMAT, page).readings
    assert found.unreadable == {}
    rows = page[: page.rindex("|") + 1]
    assert len(read_text(FORMAT, f"{rows}\n{other}").unreadable) == 3
