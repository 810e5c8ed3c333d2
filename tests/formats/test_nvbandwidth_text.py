"""nvbandwidth's text: matrices cell by cell, with the sum as a check."""

import pytest

from .reading import read, sample

TEXT = sample("nvbandwidth.txt").decode()


def test_each_cell_of_each_matrix_is_a_reading_with_its_two_ends():
    found = read(TEXT)

    assert [(each.what, each.source, each.target, each.bandwidth_Bps, each.time_s) for each in found.readings] == [
        ("host_to_device_memcpy_ce", "CPU0", "GPU0", pytest.approx(55.21e9), None),
        ("host_to_device_memcpy_ce", "CPU0", "GPU1", pytest.approx(55.34e9), None),
        # GPU(row) <- GPU(column): what GPU1 writes to GPU0 stands in row 0.
        ("device_to_device_memcpy_write_ce", "GPU1", "GPU0", pytest.approx(391.12e9), None),
        ("device_to_device_memcpy_write_ce", "GPU0", "GPU1", pytest.approx(392.25e9), None),
        *(
            ("device_to_device_bidirectional_memcpy_write_ce" + part, source, target, pytest.approx(rate), None)
            for part, source, target, rate in (
                (", direction 1", "GPU0", "GPU1", 378.11e9), (", direction 1", "GPU1", "GPU0", 379.02e9),
                (", total", "GPU0", "GPU1", 756.4e9), (", total", "GPU1", "GPU0", 757.9e9),
            )
        ),
        ("host_device_latency_sm", "CPU0", "GPU0", None, pytest.approx(771.4e-9)),
        ("host_device_latency_sm", "CPU0", "GPU1", None, pytest.approx(772.6e-9)),
    ]  # fmt: skip
    assert (found.unread, found.table.doubts) == ((), ())
    assert found.adds_up


def test_the_head_names_versions_and_gpus():
    table = read(TEXT).table

    assert (table.tool, table.tool_version, table.complete) == ("nvbandwidth", "v0.7", True)
    assert table.versions == (("CUDA", "12.4"), ("driver", "550.54.15"))
    assert [(gpu.rank, gpu.device, gpu.model, gpu.bus_id) for gpu in table.devices] == [
        (0, 0, "NVIDIA H200", "00000000:1b:00"), (1, 1, "NVIDIA H200", "00000000:43:00"),
    ]  # fmt: skip
    assert dict(table.footer)["multinode_device_to_device_memcpy_read_ce status"] == "Waived"


def test_a_row_that_is_missing_is_told_from_the_sum():
    found = read(TEXT.replace(" 1    392.25       N/A\n", ""))

    assert [text for _, text in found.table.doubts] == [
        "device_to_device_memcpy_write_ce: its sum is 783.37, that of the rows here 391.12"
    ]


def test_a_test_case_without_its_sum_is_cut_off():
    assert not read(TEXT[: TEXT.index("SUM host_device")]).table.complete
    assert not read(TEXT[: TEXT.index("memory latency")]).table.complete


def test_what_the_tool_says_of_its_failure_is_kept_with_the_test_case():
    cut = TEXT[: TEXT.index("memcpy CE GPU(row) <- GPU")]
    found = read(cut + " Invalid value when checking the pattern at 0x7f00\nASSERT in expression h_errorFlag == 0\n")

    assert [text.partition(":")[0] for _, text in found.table.failures] == ["device_to_device_memcpy_write_ce"] * 2
    assert (found.table.complete, found.unread) == (False, ())


def test_two_runs_are_two_tables_and_a_matrix_alone_is_one():
    assert [table.readings for table in read(TEXT * 2).tables] == [10, 10]
    matrix = TEXT[TEXT.index("memory latency") :]
    assert [each.what for each in read(matrix).readings] == ["memory latency SM CPU(row) <-> GPU(column)"] * 2


def test_a_build_without_git_and_what_is_waived_without_a_name_are_known():
    text = (
        "nvbandwidth Version: v0.6\nBuilt from Git version:\n\nRunning host_to_device_memcpy_ce.\n"
        "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n 0\n0 55.50\n\n"
        "SUM host_to_device_memcpy_ce 55.50\n\nWaived:\n"
    )
    found = read(text)

    assert [each.bandwidth_Bps for each in found.readings] == [pytest.approx(55.5e9)]
    assert found.unread == ()
