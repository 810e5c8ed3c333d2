"""ClusterKit's matrices."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.formats.clusterkit import FORMAT

from .offering import accounts_for_every_line, cuts, garbled, read_text, sample

MATRICES = ("clusterkit_bandwidth.txt", "clusterkit_latency.txt", "clusterkit_glued.txt")


@pytest.mark.parametrize("name", MATRICES)
def test_every_line_is_read_or_known_and_the_diagonal_is_left_out(name):
    account = read_text(FORMAT, sample(name).rstrip("\n"))
    assert account.unreadable == {}
    assert account.foreign == set()
    (table,) = account.tables
    assert table.complete
    assert len(account.readings) == table.ranks * (table.ranks - 1)


def test_bandwidths_are_read_as_printed():
    account = read_text(FORMAT, sample("clusterkit_bandwidth.txt"))
    row = next(row for row in account.readings if (row.source, row.target) == ("1", "2"))
    assert row.what == "bandwidth"
    assert row.bandwidth_Bps == pytest.approx(98247.0e6)
    assert row.line == 3
    assert [device.host for device in account.tables[0].devices] == ["GPU-10", "GPU-11", "GPU-8", "GPU-13"]
    assert dict(account.tables[0].footer)["Minimum bandwidth"] == "98247.0 MB/s between GPU-11 and GPU-8"


def test_latencies_are_read_as_printed():
    account = read_text(FORMAT, sample("clusterkit_latency.txt"))
    assert [row.time_s for row in account.readings[2:4]] == pytest.approx([1.83e-6, 1.85e-6])
    assert account.readings[0].bandwidth_Bps is None


def test_numbers_that_grew_together_are_separated_again():
    account = read_text(FORMAT, sample("clusterkit_glued.txt"))
    cells = {(row.source, row.target): row.bandwidth_Bps for row in account.readings}
    assert cells[("0", "1")] == pytest.approx(332928.0e6)
    assert cells[("2", "1")] == pytest.approx(332990.4e6)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("   0 (n0):  0.0  12.5  13.5", "3 cells under a header of 2 columns"),
        ("   7 (n7):  0.0  12.5", "rank 7"),
        ("   0 (n0):  0.0  12.55", "one decimal"),
        ("   0 (n0):  0.0  12", "one decimal"),
    ],
)
def test_a_row_that_does_not_fit_says_why(row, why):
    account = read_text(FORMAT, f"Rank: 0 1\n{row}\n")
    assert account.readings == []
    assert why in account.unreadable[2]


def test_a_rank_that_comes_twice_is_not_read_twice():
    account = read_text(FORMAT, "Rank: 0 1\n 0 (a): 0.0 5.0\n 0 (a): 0.0 6.0\n")
    assert len(account.readings) == 1
    assert "already" in account.unreadable[3]


def test_a_summary_in_the_other_unit_is_not_believed():
    account = read_text(FORMAT, "Rank: 0 1\n 0 (a): 0.0 5.0\nMinimum latency: 5.00 usec between a and b\n")
    assert "latency in usec under a matrix of bandwidth" in account.unreadable[3]


@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_cut_off_anywhere_is_accounted_for(name):
    for text in cuts(sample(name)):
        accounts_for_every_line(FORMAT, text)


@pytest.mark.parametrize("name", MATRICES)
def test_a_garbled_matrix_is_accounted_for(name):
    for text in garbled(sample(name), times=300, seed=13):
        accounts_for_every_line(FORMAT, text)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=60), st.from_regex(r"\A[0-2] \([a-z]?\):[ 0-9.]{0,40}\Z")), max_size=6))
def test_any_lines_are_accounted_for(lines):
    account = accounts_for_every_line(FORMAT, "Rank: 0 1 2\n" + "\n".join(lines))
    assert all(row.bandwidth_Bps is None or row.time_s is None for row in account.readings)
