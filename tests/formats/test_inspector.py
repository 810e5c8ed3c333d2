"""NCCL Inspector: one object an operation."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.formats.inspector import FORMAT

from .offering import cuts, garbled, read_document, read_or_refuse, sample, survives_document
from .reading import read

RECORDS = [json.loads(line) for line in sample("inspector.jsonl").splitlines()]


def record(index):
    return json.loads(json.dumps(RECORDS[index]))


def test_an_all_reduce_is_read_as_written():
    ((table, (row,)),) = read_document(FORMAT, record(0), line=5)
    assert (row.what, row.size_bytes, row.ranks, row.line) == ("all_reduce", 17179869184, 8, 5)
    assert row.time_s == pytest.approx(0.061974)
    assert row.algbw_Bps == pytest.approx(277.210914e9)
    assert row.busbw_Bps == pytest.approx(485.119099e9)
    assert dict(row.more) == {"sequence": 1407}
    assert (table.tool_version, table.ranks) == ("v4.0", 8)
    assert dict(table.parameters)["communicator"] == "0x7f8c496ae9f661"
    (device,) = table.devices
    assert (device.rank, device.host, device.process_id) == (2, "node-a", 1639453)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_size_and_time_give_the_algorithm_bandwidth(index):
    ((_, (row,)),) = read_document(FORMAT, record(index))
    assert row.algbw_Bps == pytest.approx(row.size_bytes / row.time_s, rel=1e-4)


def test_the_size_of_a_reduce_scatter_is_that_of_all_ranks_parts():
    ((_, (row,)),) = read_document(FORMAT, record(1))
    assert row.what == "reduce_scatter"
    assert row.size_bytes == 8 * 2147483648
    assert dict(row.more)["printed_bytes"] == 2147483648


def test_a_message_has_two_ends():
    received = read_document(FORMAT, record(2))[0][1][0]
    assert (received.what, received.source, received.target) == ("Recv", "0", "1")
    document = record(2)
    document["p2p_perf"]["p2p"] = "Send"
    sent = read_document(FORMAT, document)[0][1][0]
    assert (sent.source, sent.target) == ("1", "0")


def test_a_time_below_the_clocks_microsecond_gives_no_rates():
    document = record(0)
    document["coll_perf"] |= {"coll_exec_time_us": 0, "coll_algobw_gbs": 0.0, "coll_busbw_gbs": 0.0}
    ((_, (row,)),) = read_document(FORMAT, document)
    assert (row.time_s, row.algbw_Bps, row.busbw_Bps) == (None, None, None)


def test_a_size_that_no_longer_fits_is_unknown():
    document = record(1)
    document["coll_perf"]["coll_msg_size_bytes"] = 2**62
    ((_, (row,)),) = read_document(FORMAT, document)
    assert row.size_bytes is None


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("coll_perf", "coll", 1),
        ("coll_perf", "coll_msg_size_bytes", -1),
        ("coll_perf", "coll_msg_size_bytes", 2**64),
        ("coll_perf", "coll_exec_time_us", "61974"),
        ("coll_perf", "coll_busbw_gbs", "fast"),
        ("coll_perf", "coll_busbw_gbs", -1.0),
        ("header", "rank", True),
        ("metadata", "hostname", ["a"]),
    ],
)
def test_a_wrong_field_is_refused_with_its_path(part, field, value):
    document = record(0)
    document[part][field] = value
    with pytest.raises(InputError, match=rf"\$\.{part}\.{field}"):
        read_document(FORMAT, document)


def test_records_of_one_rank_and_communicator_are_one_table_however_they_alternate():
    documents = []
    for communicator in ("0x1", "0x2"):
        document = record(0)
        document["header"]["id"] = communicator
        documents.append(json.dumps(document))

    found = read(("\n".join(documents) + "\n") * 15_000)

    assert [(table.number, table.readings, table.first_line, table.last_line) for table in found.tables] == [
        (0, 15_000, 1, 29_999), (1, 15_000, 2, 30_000)
    ]  # fmt: skip
    assert [reading.table for reading in found.readings[:3]] == [0, 1, 0]
    assert found.adds_up


def test_records_cut_off_anywhere_give_no_other_error():
    for line in sample("inspector.jsonl").splitlines():
        for text in cuts(line):
            survives_document(FORMAT, text)


def test_garbled_records_give_no_other_error():
    for line in sample("inspector.jsonl").splitlines():
        for text in garbled(line, times=200, seed=5):
            survives_document(FORMAT, text)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.none(), max_size=1)
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([0, 1, 2]), st.data())
def test_any_value_anywhere_is_read_or_refused(index, data):
    document = record(index)
    part = data.draw(st.sampled_from(sorted(document)))
    field = data.draw(st.sampled_from(sorted(document[part])))
    document[part][field] = data.draw(VALUES)
    found = read_or_refuse(FORMAT, document)
    assert "$." in found if isinstance(found, str) else len(found) == 1
