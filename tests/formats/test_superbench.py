"""SuperBench's results-summary.jsonl."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.formats.superbench import FORMAT

from .offering import cuts, garbled, read_document, read_or_refuse, sample, survives_document

NODES = [json.loads(line) for line in sample("superbench.jsonl").splitlines()]


def test_the_three_metrics_of_a_row_are_one_reading():
    ((table, readings),) = read_document(FORMAT, NODES[0])
    assert [row.size_bytes for row in readings] == [8, 8589934592]
    row = readings[1]
    assert row.what == "all_reduce"
    assert row.busbw_Bps == pytest.approx(235.36e9)
    assert row.algbw_Bps == pytest.approx(134.49e9)
    assert row.time_s == pytest.approx(0.06387)
    assert row.algbw_Bps == pytest.approx(row.size_bytes / row.time_s, rel=1e-4)
    assert dict(row.more) == {"rank": 0}
    assert dict(table.parameters) == {"node": "sb-validation-01", "metrics left out": "2"}


def test_groups_that_ran_in_parallel_are_told_apart():
    (_, readings), _ = read_document(FORMAT, NODES[1])
    assert readings[0].what == "alltoall"
    assert readings[0].busbw_Bps == pytest.approx(224.31e9)
    assert dict(readings[0].more) == {"serial": 0, "parallel": 3}


def test_traffic_between_two_hosts_has_two_ends():
    _, (_, (written, latency, failed)) = read_document(FORMAT, NODES[1])
    assert (written.what, written.source, written.target) == ("ib_write_bw gpu-to-gpu", "node-a", "node-b")
    assert written.bandwidth_Bps == pytest.approx(24.62e9)
    assert latency.time_s == pytest.approx(2.05e-6)
    assert (failed.bandwidth_Bps, failed.target) == (None, "node-c")


def test_benchmarks_with_annotations_of_their_own_are_tables_of_their_own():
    names = ("nccl-bw", "nccl-bw:default", "nccl-bw:gdr-only", "nccl-bw:half-in-place")
    document = {"node": "x", "mem-bw/H2D": 1.0} | {
        f"{name}/allreduce_8_busbw:0": float(index) for index, name in enumerate(names)
    }

    found = read_document(FORMAT, document)

    assert [row.busbw_Bps for _, (row,) in found] == [0.0, 1e9, 2e9, 3e9]
    assert [row.table for _, (row,) in found] == [table.number for table, _ in found] == [0, 1, 2, 3]
    assert [row.in_place for _, (row,) in found] == [None, None, None, True]
    assert [dict(table.parameters).get("annotation") for table, _ in found] == [
        None, "default", "gdr-only", "half-in-place",
    ]  # fmt: skip
    assert [dict(table.parameters).get("metrics left out") for table, _ in found] == ["1", None, None, None]


def test_hosts_whose_names_have_the_separator_in_them_stay_together():
    name = "ib-traffic/ib_write_bw_8_cpu-to-cpu_0_0:node_a_node_b:0"
    ((_, (row,)),) = read_document(FORMAT, {"node": "x", name: 1.0})
    assert (row.source, row.target) == ("node_a_node_b", None)


@pytest.mark.parametrize(
    ("document", "is_one"),
    [
        (NODES[0], True),
        ({"node": "x", "mem-bw/H2D": 1.0}, True),
        ({"node": "x"}, False),
        ({"mem-bw/H2D": 1.0}, False),
        ([], False),
        ({"node": 3, "mem-bw/H2D": 1.0}, False),
    ],
)
def test_a_summary_is_recognised_by_its_node_and_metrics(document, is_one):
    assert FORMAT.recognises(document) is is_one


@pytest.mark.parametrize("value", ["235.36", [1], True, -3.5, 2**64, 1e300])
def test_a_wrong_value_is_refused_with_its_path(value):
    with pytest.raises(InputError, match=r"\$"):
        read_document(FORMAT, {"node": "x", "nccl-bw/allreduce_8_busbw:0": value})


@pytest.mark.parametrize("value", [None, -1, float("nan"), float("inf")])
def test_a_metric_that_failed_is_none(value):
    ((_, (row,)),) = read_document(FORMAT, {"node": "x", "nccl-bw/allreduce_8_busbw:0": value})
    assert row.busbw_Bps is None


def test_lines_cut_off_anywhere_give_no_other_error():
    for line in sample("superbench.jsonl").splitlines():
        for text in cuts(line):
            survives_document(FORMAT, text)


def test_garbled_lines_give_no_other_error():
    for line in sample("superbench.jsonl").splitlines():
        for text in garbled(line, times=200, seed=9):
            survives_document(FORMAT, text)


NAMES = st.one_of(
    st.text(max_size=20),
    st.from_regex(
        r"\A(nccl|rccl)-bw(:[a-z]{1,3})?/[a-z]{1,9}(_\d{1,3}_\d{1,3}:|_)\d{1,20}_(busbw|algbw|time)(:\d{1,2})?\Z"
    ),
)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_any_metrics_are_read_or_refused(metrics):
    document = {**metrics, "node": "x", "a/b": 1.0}
    found = read_or_refuse(FORMAT, document)
    if not isinstance(found, str):
        readings = [reading for _, of_one in found for reading in of_one]
        assert int(dict(found[0][0].parameters)["metrics left out"]) + len(readings) <= len(document)
