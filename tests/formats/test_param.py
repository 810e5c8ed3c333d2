"""PARAM comms: COMMS-RES lines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.formats.param import FORMAT

from .offering import accounts_for_every_line, cuts, garbled, read_text, sample

OUTPUTS = ("param_collectives.txt", "param_pt2pt.txt", "param_quantized.txt")


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_row_is_read(name):
    account = read_text(FORMAT, sample(name))
    assert account.unreadable == {}
    assert len(account.readings) == sample(name).count("COMMS-RES-") - sample(name).count("COMMS-RES-QUANT\t ")


def test_a_collective_is_read_as_printed():
    account = read_text(FORMAT, sample("param_collectives.txt"))
    row = account.readings[1]
    assert (row.what, row.size_bytes, row.count, row.dtype) == ("all_reduce", 1073741824, 268435456, "float32")
    assert row.time_s == pytest.approx(8164.2e-6)
    assert row.algbw_Bps == pytest.approx(131.518e9)
    assert row.busbw_Bps == pytest.approx(230.157e9)
    assert row.algbw_Bps == pytest.approx(row.size_bytes / row.time_s, rel=1e-4)
    expected = {"p75_s": 8170.5e-6, "p95_s": 8181e-6, "min_s": 8160.1e-6, "max_s": 8190.7e-6, "total_s": 0.0}
    assert dict(row.more) == pytest.approx(expected)


def test_names_follow_nccl_tests_and_a_tag_is_kept():
    account = read_text(FORMAT, sample("param_collectives.txt"))
    assert (account.readings[2].what, account.readings[2].dtype) == ("alltoallv", "bfloat16")
    assert account.tables[0].parameters == (("tag", "nightly"),)


def test_the_percentiles_of_one_way_and_round_trip_are_told_apart():
    (row,) = read_text(FORMAT, sample("param_pt2pt.txt")).readings
    assert (row.what, row.size_bytes, row.time_s) == ("pt2pt", 4096, pytest.approx(11.2e-6))
    more = dict(row.more)
    assert more["p95_s"] == pytest.approx(11.9e-6)
    assert more["round_trip_s"] == pytest.approx(22.6e-6)
    assert more["round_trip_p95_s"] == pytest.approx(23.4e-6)
    assert more["avgBiBW_Bps"] == pytest.approx(0.702e9)


def test_a_quantized_collective_has_its_parts():
    (row,) = read_text(FORMAT, sample("param_quantized.txt")).readings
    assert row.what == "all_reduce quantized"
    assert row.time_s is None
    assert dict(row.more)["exchange_p95_s"] == pytest.approx(60.1e-6)
    assert dict(row.more)["p95_s"] == pytest.approx(89.3e-6)


def test_a_second_header_begins_a_second_table():
    account = read_text(FORMAT, sample("param_collectives.txt") + sample("param_pt2pt.txt"))
    assert len(account.tables) == 2
    assert account.readings[-1].table == 1


def test_rows_without_a_header_are_not_read_by_position():
    text = "\tCOMMS-RES-all_reduce-float32        1073741824         41.187      77.226\n"
    account = read_text(FORMAT, text)
    assert account.readings == []
    assert account.foreign == {1, 2}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [("131.518", "", "9 cells"), ("131.518", "-1.0", "below zero"), ("268435456", "2.5", "whole number")],
)
def test_a_row_that_cannot_be_right_says_why(old, new, why):
    account = read_text(FORMAT, sample("param_collectives.txt").replace(old, new))
    (said,) = account.unreadable.values()
    assert why in said


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_cut_off_anywhere_is_accounted_for(name):
    for text in cuts(sample(name)):
        accounts_for_every_line(FORMAT, text)


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_garbled_output_is_accounted_for(name):
    for text in garbled(sample(name), times=200, seed=17):
        accounts_for_every_line(FORMAT, text)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(st.text(max_size=60), st.from_regex(r"\A\tCOMMS-RES-[a-z0-9_-]{0,20}[ 0-9.e-]{0,60}\Z")), max_size=6
    )
)
def test_any_lines_are_accounted_for(lines):
    header = sample("param_collectives.txt").split("\n")[1]
    accounts_for_every_line(FORMAT, header + "\n" + "\n".join(lines))
