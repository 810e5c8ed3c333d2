"""nvbandwidth -j: matrices cell by cell."""

import copy
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.formats.nvbandwidth import JSON_FORMAT

from .offering import cuts, garbled, read_document, read_or_refuse, sample, survives_document


@pytest.fixture
def document():
    return json.loads(sample("nvbandwidth.json"))


def test_every_test_case_is_a_table_and_every_measured_cell_a_reading(document):
    found = read_document(JSON_FORMAT, document)
    assert [(table.number, table.program, len(readings)) for table, readings in found] == [
        (0, "host_to_device_memcpy_ce", 2),
        (1, "device_to_device_memcpy_write_ce", 2),
        (2, "device_to_device_bidirectional_memcpy_write_ce", 6),
        (3, "host_device_latency_sm", 2),
        (4, "multinode_bisect_write_ce", 0),
    ]
    assert all(reading.table == table.number for table, readings in found for reading in readings)


def test_the_arrow_of_the_description_gives_source_and_target(document):
    found = read_document(JSON_FORMAT, document)
    ends = [[(row.source, row.target, row.bandwidth_Bps) for row in readings] for _, readings in found[:2]]
    assert ends[0] == [("CPU0", "GPU0", pytest.approx(55.25e9)), ("CPU0", "GPU1", pytest.approx(55.31e9))]
    # GPU(row) <- GPU(column): the cell of row 0 and column 1 is what GPU1 writes to GPU0.
    assert ends[1] == [("GPU1", "GPU0", pytest.approx(396.41e9)), ("GPU0", "GPU1", pytest.approx(396.35e9))]


def test_the_three_matrices_of_a_bidirectional_test_are_told_apart(document):
    _, readings = read_document(JSON_FORMAT, document)[2]
    assert [row.what.rpartition(", ")[2] for row in readings] == ["direction 1"] * 2 + ["direction 2"] * 2 + [
        "total"
    ] * 2
    assert readings[-1].source == "GPU1"
    assert readings[-1].bandwidth_Bps == pytest.approx(783.69e9)


def test_one_matrix_of_a_bidirectional_test_is_not_split(document):
    case = document["nvbandwidth"]["testcases"][2]
    case["bandwidth_matrix"] = case["bandwidth_matrix"][4:]
    _, readings = read_document(JSON_FORMAT, document)[2]
    assert {row.what for row in readings} == {"device_to_device_bidirectional_memcpy_write_ce"}


def test_a_latency_is_a_time(document):
    _, readings = read_document(JSON_FORMAT, document)[3]
    assert [row.time_s for row in readings] == [pytest.approx(772.58e-9), pytest.approx(772.9e-9)]
    assert readings[0].bandwidth_Bps is None


def test_a_description_without_a_unit_leaves_the_number_as_it_is(document):
    case = document["nvbandwidth"]["testcases"][1]
    case["bandwidth_description"] = "Bisect benchmarking, simultaneous write CE BW"
    _, readings = read_document(JSON_FORMAT, document)[1]
    assert readings[0].bandwidth_Bps is None
    assert readings[0].more == (("value", 396.41),)
    assert (readings[0].source, readings[0].target) == ("row0", "column1")


@pytest.mark.parametrize(
    ("description", "ends"),
    [
        ("memcpy SM All Gpus -> GPU(column) total bandwidth (GB/s)", ("All Gpus", "GPU1")),
        ("multicast SM GPU(column) -> All Gpus total bandwidth (GB/s)", ("GPU1", "All Gpus")),
        ("memcpy local GPU(column) bandwidth (GB/s)", ("GPU1", "GPU1")),
    ],
)
def test_ends_that_are_all_gpus_or_one_are_named(document, description, ends):
    case = document["nvbandwidth"]["testcases"][1]
    case |= {"bandwidth_description": description, "bandwidth_matrix": [["N/A", "100.5"]]}
    _, (row,) = read_document(JSON_FORMAT, document)[1]
    assert (row.source, row.target) == ends


def test_versions_devices_and_status_are_kept(document):
    table, _ = read_document(JSON_FORMAT, document)[4]
    assert table.tool_version == "v0.8"
    assert dict(table.versions) == {"CUDA": "13.0", "driver": "580.105.08"}
    assert table.devices[1].bus_id == "00000009:06:00"
    assert (table.devices[1].host, table.devices[1].model) == ("node-a", "NVIDIA GB200")
    assert dict(table.footer) == {"status": "Waived"}


def test_what_failed_is_said_in_its_own_words(document):
    document["nvbandwidth"]["error"] = "Invalid arguments: x"
    document["nvbandwidth"]["testcases"][0] |= {"status": "Error", "error": "CUDA_ERROR_NO_DEVICE"}
    table, _ = read_document(JSON_FORMAT, document)[0]
    assert [words for _, words in table.failures] == [
        "Invalid arguments: x",
        "host_to_device_memcpy_ce: CUDA_ERROR_NO_DEVICE",
        "host_to_device_memcpy_ce: Error",
    ]


def test_an_error_before_the_first_test_case_is_a_table_without_readings():
    ((table, readings),) = read_document(JSON_FORMAT, {"nvbandwidth": {"error": "no device"}})
    assert readings == []
    assert table.failures == ((1, "no device"),)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda run: run.update(testcases={}), r"\$\.nvbandwidth\.testcases"),
        (lambda run: run["testcases"][0].update(name=3), r"\$\.nvbandwidth\.testcases\[0\]\.name"),
        (lambda run: run["testcases"][1].update(bandwidth_matrix=[[{}]]), "bandwidth_matrix"),
        (
            lambda run: run["testcases"][1].update(bandwidth_matrix=[["fast"]]),
            r"testcases\[1\]\.bandwidth_matrix\[0\]\[0\]",
        ),
        (
            lambda run: run["testcases"][1].update(bandwidth_matrix=[["-3.5"]]),
            r"testcases\[1\]\.bandwidth_matrix\[0\]\[0\]",
        ),
        (lambda run: run["testcases"][1].update(bandwidth_matrix=[["1e300"]]), "too large"),
        (lambda run: run["testcases"][1].update(bandwidth_description="a" * 2**20), "bandwidth_description"),
        (lambda run: run.update({"CUDA Runtime Version": -1}), "CUDA Runtime Version"),
    ],
)
def test_a_wrong_field_is_refused_with_its_path(document, change, path):
    change(document["nvbandwidth"])
    with pytest.raises(InputError, match=path):
        read_document(JSON_FORMAT, document)


def test_no_number_gives_no_reading(document):
    document["nvbandwidth"]["testcases"][1]["bandwidth_matrix"] = [["nan", "N/A"], [math.nan, None]]
    _, readings = read_document(JSON_FORMAT, document)[1]
    assert readings == []


def test_a_document_cut_off_anywhere_gives_no_other_error():
    for text in cuts(sample("nvbandwidth.json")):
        survives_document(JSON_FORMAT, text)


def test_a_garbled_document_gives_no_other_error():
    for text in garbled(sample("nvbandwidth.json"), times=400, seed=3):
        survives_document(JSON_FORMAT, text)


CELLS = st.one_of(
    st.none(), st.text(max_size=8), st.integers(), st.floats(), st.booleans(), st.lists(st.none(), max_size=1)
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.none(), st.lists(CELLS, max_size=4)), max_size=7), st.text(max_size=30))
def test_any_matrix_is_read_or_refused(matrix, description):
    document = copy.deepcopy({"nvbandwidth": {"testcases": [{"name": "x", "status": "Passed"}]}})
    for text in (description, "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)"):
        document["nvbandwidth"]["testcases"][0] |= {"bandwidth_matrix": matrix, "bandwidth_description": text}
        found = read_or_refuse(JSON_FORMAT, document)
        rows = [] if isinstance(found, str) else found[0][1]
        assert all(row.more or row.bandwidth_Bps is None or row.bandwidth_Bps > 0 for row in rows)
