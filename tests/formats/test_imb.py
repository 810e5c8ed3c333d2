"""Intel MPI Benchmarks: real outputs, cut ones, garbled ones."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.formats.imb import FORMAT

from .offering import accounts_for_every_line, cuts, garbled, read_text, sample, unclaimed
from .reading import read

REAL = ("imb_mpi1.txt", "imb_multi.txt", "imb_nbc.txt", "imb_rma.txt", "imb_p2p.txt", "imb_failed.txt", "imb_4.1.txt")
BENCHMARK = "# Benchmarking {}\n# #processes = 4\n"
TIMES = "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n"


@pytest.mark.parametrize("name", REAL)
def test_every_line_of_a_real_output_is_read_or_known(name):
    account = read_text(FORMAT, sample(name))
    assert account.unreadable == {}
    assert unclaimed(account, sample(name)) == []
    assert [table.complete for table in account.tables] == [True]


def test_rows_of_a_ping_pong_are_read_as_printed():
    account = read_text(FORMAT, sample("imb_mpi1.txt"))
    row = next(reading for reading in account.readings if reading.what == "PingPong" and reading.size_bytes == 1024)
    assert row.ranks == 2
    assert row.time_s == pytest.approx(2.20e-6)
    assert row.bandwidth_Bps == pytest.approx(466.03e6)
    assert row.more == (("iterations", 20.0),)
    assert (row.dtype, row.op) == (None, None)


def test_blocks_of_one_benchmark_with_other_numbers_of_processes_are_told_apart():
    account = read_text(FORMAT, sample("imb_mpi1.txt"))
    rows = {row.ranks: row for row in account.readings if row.what == "all_reduce" and row.size_bytes == 2048}
    assert rows[2].time_s == pytest.approx(2.69e-6)
    assert rows[4].time_s == pytest.approx(11.32e-6)
    assert dict(rows[4].more) == pytest.approx({"iterations": 20, "min_s": 6.55e-6, "max_s": 15.63e-6})
    assert (rows[4].dtype, rows[4].op) == ("float32", "sum")


def test_the_size_of_an_alltoall_is_all_parts_together_as_in_nccl_tests():
    account = read_text(FORMAT, sample("imb_mpi1.txt"))
    rows = [row for row in account.readings if row.what == "alltoall" and row.ranks == 4]
    assert [row.size_bytes for row in rows] == [0, 4096, 8192]
    assert dict(rows[1].more)["printed_bytes"] == 1024


def test_a_barrier_has_no_size():
    rows = [row for row in read_text(FORMAT, sample("imb_mpi1.txt")).readings if row.what == "Barrier"]
    assert [(row.size_bytes, row.ranks) for row in rows] == [(None, 2), (None, 4)]
    assert rows[1].time_s == pytest.approx(5.56e-6)


def test_the_introduction_gives_version_settings_and_arguments():
    (table,) = read_text(FORMAT, sample("imb_mpi1.txt")).tables
    assert (table.tool_version, table.program) == ("2021.11", "Intel MPI Benchmarks, MPI-1 part")
    assert dict(table.parameters)["MPI Version"] == "4.1"
    assert table.arguments[:5] == ("IMB-MPI1", "-npmin", "2", "-iter", "20")
    assert table.complete


def test_groups_that_run_at_once_are_told_apart():
    rows = [row for row in read_text(FORMAT, sample("imb_multi.txt")).readings if row.what == "Multi-Uniband"]
    assert [(row.size_bytes, dict(row.more)["group"], row.ranks) for row in rows[2:4]] == [(1024, 0, 2), (1024, 1, 2)]
    assert rows[3].messages_per_s == 721324
    assert rows[3].bandwidth_Bps == pytest.approx(738.64e6)
    assert rows[3].time_s is None


def test_a_nonblocking_collective_gives_its_own_time_and_the_overlapped_one():
    row = next(row for row in read_text(FORMAT, sample("imb_nbc.txt")).readings if row.what == "Ibarrier")
    cells = sample("imb_nbc.txt").splitlines()[row.line - 1].split()
    assert row.time_s == pytest.approx(float(cells[2]) * 1e-6)
    assert dict(row.more)["overlapped_s"] == pytest.approx(float(cells[1]) * 1e-6)
    assert dict(row.more)["overlap"] == pytest.approx(float(cells[4]) / 100)


def test_aggregate_and_other_mode_of_one_sided_tests_are_two_tests():
    rows = read_text(FORMAT, sample("imb_rma.txt")).readings
    assert {row.what for row in rows} == {"Unidir_put, non-aggregate", "Unidir_put, aggregate"}


def test_a_size_for_which_memory_was_short_is_a_failure_in_its_own_words():
    (table,) = read_text(FORMAT, sample("imb_failed.txt")).tables
    ((line, words),) = table.failures
    assert sample("imb_failed.txt").splitlines()[line - 1].startswith("       524288 out-of-mem.")
    assert words.startswith("Alltoall: 524288 out-of-mem.; needed X=")


@pytest.mark.parametrize(("name", "megabyte"), [("imb_4.1.txt", 2**20), ("imb_2018.txt", 10**6)])
def test_a_megabyte_is_what_the_version_counts(name, megabyte):
    row = read_text(FORMAT, sample(name)).readings[-1]
    # A ping-pong moves its size in its time: that is how the unit was found.
    assert row.bandwidth_Bps == pytest.approx(row.size_bytes / row.time_s, rel=1e-4)
    printed = float(sample(name).splitlines()[row.line - 1].split()[-1])
    assert row.bandwidth_Bps == pytest.approx(printed * megabyte)


@pytest.mark.parametrize("banner", ["", "#    Intel(R) MPI Benchmarks 2017, MPI-1 part\n"])
def test_a_megabyte_of_an_unknown_version_stays_a_number_by_its_own_name(banner):
    text = banner + BENCHMARK.format("PingPong") + "#bytes #repetitions t[usec] Mbytes/sec\n1024 10 2.00 512.00"
    (row,) = read_text(FORMAT, text).readings
    assert row.bandwidth_Bps is None
    assert ("Mbytes/sec", 512.0) in row.more


@pytest.mark.parametrize(
    ("version", "megabyte"),
    [
        ("2019 Update 1", 1e6), ("2018 Update 4", 1e6), ("2021.7", 1e6), ("4.1 Update 1", 2**20), (".7 Update 1", None),
        ("2017 Update 2", None),
    ],
)  # fmt: skip
def test_an_update_of_a_version_counts_as_the_version(version, megabyte):
    banner = f"#    Intel(R) MPI Benchmarks {version}, MPI-1 part\n"
    text = banner + BENCHMARK.format("PingPong") + "#bytes #repetitions t[usec] Mbytes/sec\n1024 10 2.00 512.00"
    (row,) = read_text(FORMAT, text).readings
    assert row.bandwidth_Bps == (None if megabyte is None else pytest.approx(512 * megabyte))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("1024 10 1.00 2.00", "4 cells under a header of 5 columns"),
        ("1024 10 1.00 2.00 -1.50", "below zero"),
        ("1024 10 1.00 2.00 1_5", "not a number"),
        ("99999999999999999999 10 1.00 2.00 1.50", "whole number"),
        ("1024 10 1.00 2.00 1e99", "too large"),
    ],
)
def test_a_row_that_cannot_be_right_says_why(row, why):
    account = read_text(FORMAT, BENCHMARK.format("Bcast") + TIMES + row)
    assert account.readings == []
    assert why in account.unreadable[4]


def test_no_number_is_none_and_no_error():
    (row,) = read_text(FORMAT, BENCHMARK.format("Bcast") + TIMES + "8 10 nan 2.00 nan").readings
    assert row.time_s is None
    assert "min_s" not in dict(row.more)


def test_a_second_run_in_one_file_is_a_second_table():
    account = read_text(FORMAT, sample("imb_2018.txt").replace("# All processes", "") * 2)
    assert [table.complete for table in account.tables] == [False, False]
    assert {row.table for row in account.readings} == {0, 1}


def test_lines_of_another_tool_are_not_claimed():
    text = sample("imb_2018.txt").replace(
        "# All processes entering MPI_Finalize", "# OSU MPI Latency Test v5.9\n8  1.25"
    )
    account = read_text(FORMAT, text)
    assert unclaimed(account, text) == ["# OSU MPI Latency Test v5.9"]


@pytest.mark.parametrize("name", ["imb_multi.txt", "imb_failed.txt"])
def test_an_output_cut_off_anywhere_is_accounted_for(name):
    whole = len(read_text(FORMAT, sample(name)).readings)
    for text in cuts(sample(name)):
        account = accounts_for_every_line(FORMAT, text)
        assert len(account.readings) <= whole


@pytest.mark.parametrize("name", REAL)
def test_a_garbled_output_is_accounted_for(name):
    for text in garbled(sample(name), times=100, seed=7):
        accounts_for_every_line(FORMAT, text)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=60), st.from_regex(r"\A[ 0-9.e+#a-z\[\]-]{0,60}\Z")), max_size=8))
def test_any_lines_are_accounted_for(lines):
    accounts_for_every_line(FORMAT, BENCHMARK.format("Bcast") + TIMES + "\n".join(lines))


def test_blanks_that_became_tabs_change_nothing():
    text = sample("imb_mpi1.txt")
    mangled = re.sub(r"(?m)^(#|[ \d]).*$", lambda line: re.sub(" +", "\t", line[0]), text[text.index("# Benchm") :])

    found, plain = read(mangled), read(text)

    assert [(each.what, each.ranks, each.size_bytes, each.time_s) for each in found.readings] == [
        (each.what, each.ranks, each.size_bytes, each.time_s) for each in plain.readings
    ]
    assert found.unread == ()


@pytest.mark.parametrize(("processes", "ranks"), [((6, 6), 6), ((2, 6), None)])
def test_a_table_has_the_ranks_that_all_its_benchmarks_had(processes, ranks):
    benchmark = "# Benchmarking Allreduce\n# #processes = {}\n#bytes #repetitions t_avg[usec]\n4 10 2.5\n"
    assert read("".join(map(benchmark.format, processes))).table.ranks == ranks
