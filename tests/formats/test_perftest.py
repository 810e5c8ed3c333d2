"""perftest: its tables and its --out_json, which is JSON or nearly."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.formats import perftest
from busbw.formats.perftest import FORMAT, program

from .offering import (
    accounts_for_every_line,
    cuts,
    garbled,
    read_document,
    read_or_refuse,
    read_text,
    sample,
    survives_document,
    unclaimed,
)

TABLES = ("perftest_write_bw.txt", "perftest_gbits.txt", "perftest_read_lat.txt")
DOCUMENTS = ("perftest_bw.json", "perftest_bidirectional.json")
HEADER = " #bytes     #iterations    BW peak[{0}/sec]    BW average[{0}/sec]   MsgRate[Mpps]\n"


@pytest.mark.parametrize("name", TABLES)
def test_every_line_of_a_real_output_is_read_or_known(name):
    account = read_text(FORMAT, sample(name))
    assert account.unreadable == {}
    assert unclaimed(account, sample(name)) == []
    assert [table.complete for table in account.tables] == [True]


def test_bandwidths_of_all_sizes_are_read_as_printed():
    account = read_text(FORMAT, sample("perftest_write_bw.txt"))
    assert [row.size_bytes for row in account.readings] == [2, 4096, 65536, 1048576]
    row = account.readings[2]
    assert row.what == "RDMA_Write BW Test"
    assert row.bandwidth_Bps == pytest.approx(21167.79 * 2**20)
    assert row.messages_per_s == pytest.approx(338685)
    assert dict(row.more) == pytest.approx({"iterations": 2000, "peak_Bps": 23330.56 * 2**20})
    assert row.time_s is None


@pytest.mark.parametrize("name", ["perftest_write_bw.txt", "perftest_gbits.txt"])
def test_bandwidth_and_message_rate_agree_in_the_unit_of_the_header(name):
    row = read_text(FORMAT, sample(name)).readings[-1]
    assert row.bandwidth_Bps == pytest.approx(row.messages_per_s * row.size_bytes, rel=1e-3)


def test_a_peak_that_was_not_looked_for_is_left_out():
    (row,) = read_text(FORMAT, sample("perftest_gbits.txt")).readings
    assert dict(row.more) == {"iterations": 224958464}


def test_a_latency_is_the_median_with_its_percentiles():
    account = read_text(FORMAT, sample("perftest_read_lat.txt"))
    (row,) = account.readings
    assert (row.what, row.size_bytes, row.time_s) == ("RDMA_Read Latency Test", 2, pytest.approx(1.79e-6))
    expected = {
        "iterations": 1000,
        "min_s": 1.76e-6,
        "max_s": 6.12e-6,
        "mean_s": 1.80e-6,
        "stdev_s": 0.06e-6,
        "p99_s": 1.88e-6,
        "p99.9_s": 6.12e-6,
    }
    assert dict(row.more) == pytest.approx(expected)
    assert account.tables[0].statistic == "median over iterations"


def test_the_settings_before_the_table_are_its_parameters():
    (table,) = read_text(FORMAT, sample("perftest_write_bw.txt")).tables
    settings = dict(table.parameters)
    assert settings["Device"] == "ib0"
    assert settings["Number of qps"] == "1"
    assert settings["rdma_cm QPs"] == "OFF"
    assert table.program == "ib_write_bw"


@pytest.mark.parametrize(("unit", "factor"), [("MB", 2**20), ("MiB", 2**20), ("Gb", 1.25e8)])
def test_the_header_says_the_unit(unit, factor):
    text = HEADER.format(unit) + " 65536      5000             10.00              8.00 \t\t   0.123456\n"
    (row,) = read_text(FORMAT, text).readings
    assert row.bandwidth_Bps == 8.0 * factor


def test_two_ports_and_processor_use_are_further_numbers():
    header = (
        HEADER.format("Gb").rstrip()
        + "   BW Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]"
    )
    row_text = " 65536 5000 10.00 8.00 0.5 5.00 0.3 3.00 0.2 12.5"
    (row,) = read_text(FORMAT, f"{header}    CPU_Util[%]\n{row_text}\n").readings
    more = dict(row.more)
    assert more["port1_Bps"] == 5.0 * 1.25e8
    assert more["port2_messages_per_s"] == pytest.approx(0.2e6)
    assert more["cpu_utilisation"] == 0.125


def test_a_test_by_duration_gives_mean_and_rate():
    header = " #bytes        #iterations       t_avg[usec]    tps average\n"
    text = header + " 64       712340            1.40        712335.00\n"
    account = read_text(FORMAT, text)
    (row,) = account.readings
    assert row.time_s == pytest.approx(1.40e-6)
    assert dict(row.more)["transactions_per_s"] == 712335
    assert account.tables[0].statistic == "mean over iterations"


def test_cycles_are_no_seconds():
    text = " #bytes #iterations    t_min[cycles]    t_max[cycles]  t_typical[cycles]\n 64 1000 3200 9000 3300\n"
    (row,) = read_text(FORMAT, text).readings
    assert row.time_s is None
    assert dict(row.more)["t_typical[cycles]"] == 3300


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (" 65536 5000 10.00 8.00", "4 cells"),
        (" 65536 5000 10.00 -8.00 0.1", "below zero"),
        (" 65536 5000 10.00 8,00 0.1", "not a number"),
    ],
)
def test_a_row_that_cannot_be_right_says_why(row, why):
    account = read_text(FORMAT, HEADER.format("MB") + row)
    assert why in account.unreadable[2]


def test_a_header_with_an_unknown_column_is_not_read_by_position():
    text = HEADER.format("MB").rstrip() + "   BW furlongs\n 65536 5000 10.00 8.00 0.1 7\n"
    account = read_text(FORMAT, text)
    assert account.readings == []
    assert "furlongs" in account.unreadable[1]


def test_the_tools_own_failure_is_kept_with_its_line():
    text = sample("perftest_gbits.txt").replace(
        " 8          2249", " Failed to complete run_iter_bw function successfully\n 8 2249"
    )
    (table,) = read_text(FORMAT, text).tables
    assert table.failures == ((18, "Failed to complete run_iter_bw function successfully"),)


def test_two_runs_after_one_another_are_two_tables():
    account = read_text(FORMAT, sample("perftest_write_bw.txt") + sample("perftest_read_lat.txt"))
    assert [table.program for table in account.tables] == ["ib_write_bw", "ib_read_lat"]
    assert account.readings[-1].table == 1


def test_two_ends_in_one_log_are_one_table_with_every_row():
    lines = sample("perftest_write_bw.txt").split("\n")
    rows = [line for line in lines if line.strip()[:1].isdigit()]
    twice = [part for line in lines for part in ([line] if line in rows else [line, line])]
    account = read_text(FORMAT, "\n".join(twice))
    assert len(account.readings) == len(rows)
    assert account.unreadable == {}


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("RDMA_Write Bidirectional BW Test", "ib_write_bw"),
        ("Send_imm_BW_Test", "ib_send_bw"),
        ("RDMA_Read_Latency_Test", "ib_read_lat"),
        ("Atomic FETCH_AND_ADD BW Test", "ib_atomic_bw"),
        ("OSU MPI Latency Test", None),
    ],
)
def test_a_title_names_its_program(title, name):
    assert program(title) == name


@pytest.mark.parametrize(
    ("name", "gigabits", "unit"),
    [("perftest_bw.json", 196.52, 1.25e8), ("perftest_bidirectional.json", 46950.91, 2**20)],
)
def test_a_document_without_a_unit_is_read_in_the_one_its_message_rate_agrees_with(name, gigabits, unit):
    ((table, (row,)),) = read_document(perftest.JSON_FORMAT, json.loads(sample(name)))
    assert row.bandwidth_Bps == pytest.approx(gigabits * unit)
    assert row.bandwidth_Bps == pytest.approx(row.messages_per_s * row.size_bytes, rel=1e-3)
    assert table.complete
    assert dict(table.parameters)["Device"] == "mlx5_0"


def test_a_document_whose_rates_do_not_agree_keeps_the_number_and_no_unit():
    document = json.loads(sample("perftest_bw.json"))
    document["results"]["BW_average"] = 1234.5
    ((_, (row,)),) = read_document(perftest.JSON_FORMAT, document)
    assert row.bandwidth_Bps is None
    assert dict(row.more)["BW_average"] == 1234.5


def test_the_file_that_is_no_json_is_read_line_by_line():
    account = read_text(perftest.OLD_JSON_FORMAT, sample("perftest_json_old.txt"))
    assert account.unreadable == {}
    assert unclaimed(account, sample("perftest_json_old.txt")) == ["{"]
    (row,) = account.readings
    assert (row.what, row.size_bytes, row.time_s) == ("RDMA_Write Latency Test", 128, pytest.approx(2.42e-6))
    assert dict(row.more)["p99.9_s"] == pytest.approx(4.03e-6)
    (table,) = account.tables
    assert (table.program, table.complete) == ("ib_write_lat", True)
    assert dict(table.parameters)["TX_depth"] == "1"


def test_the_service_level_without_quotation_marks_is_read_too():
    text = sample("perftest_bw.json").replace('"n_iterations"', 'sl: 3,\n"n_iterations"')
    (row,) = read_text(perftest.OLD_JSON_FORMAT, text).readings
    assert dict(row.more)["service_level"] == 3
    assert row.bandwidth_Bps == pytest.approx(196.52 * 1.25e8)


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("BW_average", "fast", r"\$\.results\[\.\.\.\]"),
        ("BW_average", [1], r"\$\.results\[\.\.\.\]"),
        ("MsgSize", 2**64, r"\$\.results\[\.\.\.\]"),
        ("MsgSize", -1, r"\$\.results"),
        ("BW_average", -1.5, r"\$\.results"),
    ],
)
def test_a_document_with_a_wrong_value_is_refused_with_its_path(field, value, path):
    document = json.loads(sample("perftest_bw.json"))
    document["results"][field] = value
    with pytest.raises(InputError, match=path):
        read_document(perftest.JSON_FORMAT, document)


@pytest.mark.parametrize("name", TABLES)
def test_an_output_cut_off_anywhere_is_accounted_for(name):
    for text in cuts(sample(name)):
        accounts_for_every_line(FORMAT, text)


@pytest.mark.parametrize("name", [*DOCUMENTS, "perftest_json_old.txt"])
def test_a_document_cut_off_anywhere_gives_no_other_error_and_no_half_reading(name):
    for text in cuts(sample(name)):
        survives_document(perftest.JSON_FORMAT, text)
        account = accounts_for_every_line(perftest.OLD_JSON_FORMAT, text)
        assert account.readings == [] or text.count("}") >= 2


@pytest.mark.parametrize("name", [*TABLES, *DOCUMENTS, "perftest_json_old.txt"])
def test_a_garbled_output_is_accounted_for(name):
    for text in garbled(sample(name), times=150, seed=11):
        accounts_for_every_line(FORMAT, text)
        accounts_for_every_line(perftest.OLD_JSON_FORMAT, text)
        survives_document(perftest.JSON_FORMAT, text)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=60), st.from_regex(r"\A[ 0-9.e+#:a-z{}\[\]-]{0,60}\Z")), max_size=8))
def test_any_lines_are_accounted_for(lines):
    text = "\n".join(lines)
    accounts_for_every_line(FORMAT, HEADER.format("MB") + text)
    accounts_for_every_line(FORMAT, "RDMA_Write BW Test\n" + text)
    accounts_for_every_line(perftest.OLD_JSON_FORMAT, "test_info: {\n" + text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(JSON_VALUES, st.dictionaries(st.sampled_from(["MsgSize", "BW_average", "MsgRate", "t_avg", "x"]), JSON_VALUES))
def test_any_document_is_read_or_refused(info, results):
    for document in ({"test_info": info, "results": results}, {"test_info": {"test": info}, "results": results}):
        found = read_or_refuse(perftest.JSON_FORMAT, document)
        assert found
        assert isinstance(found, str) or len(found) == 1
