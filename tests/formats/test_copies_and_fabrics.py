"""GPCNeT, ucx_perftest, NVSHMEM's perftest, rocm_bandwidth_test and CUDA's bandwidthTest."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.formats import cuda_bandwidth_test, gpcnet, nvshmem_perftest, rocm_bandwidth_test, ucx_perftest
from busbw.formats.form import TextFormat

from .offering import SAMPLES, accounts_for_every_line, cuts, garbled, sample
from .reading import read

READERS: dict[str, TextFormat] = {
    "gpcnet": gpcnet.FORMAT,
    "ucx_perftest": ucx_perftest.FORMAT,
    "nvshmem": nvshmem_perftest.FORMAT,
    "rocm_bandwidth_test": rocm_bandwidth_test.FORMAT,
    "cuda_bandwidthTest": cuda_bandwidth_test.FORMAT,
}
OUTPUTS = sorted(path.name for path in SAMPLES.iterdir() if path.name.startswith(tuple(READERS)))


def reader_of(name: str) -> TextFormat:
    return next(reader for prefix, reader in READERS.items() if name.startswith(prefix))


def rows(name: str) -> dict[str, float]:
    """Return each rate or time by what it is of."""
    return {
        f"{reading.what} {reading.size_bytes}": reading.bandwidth_Bps or reading.time_s or 0.0
        for reading in read(sample(name)).readings
    }


def test_network_test_of_gpcnet():
    found = read(sample("gpcnet_network_test.txt"))

    assert (found.table.tool_version, found.table.ranks, found.table.complete) == ("1.3", 64, True)
    assert dict(found.table.parameters) == {"nodes": "8"}
    assert len(found.readings) == 8
    first, third = found.readings[0], found.readings[2]
    assert (first.what, first.size_bytes, first.time_s) == ("RR Two-sided Lat", 8, pytest.approx(2.9e-6))
    assert dict(first.more) == {"p99_s": pytest.approx(4.4e-6)}
    assert third.bandwidth_Bps == pytest.approx(4086.5 * 2**20)
    assert third.printed == "4086.5 MiB/s/rank"


def test_load_test_of_gpcnet_tells_its_sections_apart():
    found = read(sample("gpcnet_network_load_test.txt"))

    whats = [reading.what for reading in found.readings]
    assert found.table.program == "network_load_test"
    assert len(set(whats)) == len(whats) == 13
    assert dict(found.readings[-3].more) == {"mean_factor": 1.3, "p99_factor": 2.2}
    assert found.readings[-3].what == "RR Two-sided Lat, congestion impact"
    assert dict(found.table.parameters)["nodes of congestion tests"] == "64"


def test_a_load_test_without_its_key_results_was_cut_off():
    text = sample("gpcnet_network_load_test.txt")

    assert not read(text[: text.index("Key Results") - 200]).table.complete


def test_more_columns_of_gpcnet_are_read_by_their_names():
    text = (
        "Network Tests v1.3\n"
        "| Name | Min | Max | Avg | Avg(Worst) | 99% | 99.9% | Units |\n"
        "| RR Two-sided Lat (8 B) | 1.0 | 9.5 | 2.1 | 3.3 | 4.4 | 8.8 | usec |\n"
    )

    (reading,) = read(text).readings

    assert reading.time_s == pytest.approx(2.1e-6)
    assert set(dict(reading.more)) == {"min_s", "max_s", "mean_of_worst_s", "p99_s", "p99.9_s"}


def test_the_end_of_ucx_perftest_is_the_result_and_its_threads_are_progress():
    (reading,) = read(sample("ucx_perftest_bw.txt")).readings

    assert reading.bandwidth_Bps == pytest.approx(45394.37 * 2**20)
    assert reading.messages_per_s == 454
    assert dict(reading.more) == {"iterations": 1000.0, "p50_s": pytest.approx(0.353e-6)}


def test_the_server_of_ucx_perftest_tells_test_and_size():
    found = read(sample("ucx_perftest_server.txt"))
    (reading,) = found.readings

    assert (reading.what, reading.size_bytes) == ("tag match latency", 8)
    assert reading.time_s == pytest.approx(1.934e-6)
    assert dict(found.table.parameters)["Send memory"] == "cuda"
    assert found.table.statistic == "mean over all iterations"


_STAGELESS = (
    "+--------------+-----------------------------+---------------------+-----------------------+\n"
    "|              |      overhead (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |\n"
    "+--------------+---------+---------+---------+----------+----------+-----------+-----------+\n"
    "| # iterations | typical | average | overall |  average |  overall |   average |   overall |\n"
    "+--------------+---------+---------+---------+----------+----------+-----------+-----------+\n"
    "        704005     0.522     1.424     1.424    2743.19    2743.19      702258      702258\n"
    "       5000000     0.522     1.054     1.087    3706.65    3594.03      948902      920073\n"
)


def test_the_last_row_of_ucx_perftest_is_the_result_where_rows_name_no_stage():
    found = read(_STAGELESS)

    (reading,) = found.readings
    assert (reading.line, reading.bandwidth_Bps) == (7, pytest.approx(3594.03 * 2**20))
    assert found.table.complete
    assert found.unread == ()


def test_a_row_without_its_stage_is_no_result_of_a_table_that_names_stages():
    found = read(sample("ucx_perftest_bw.txt").replace("Final:", "      "))

    # The row before it tells what was measured until then.
    assert [reading.line for reading in found.readings] == [8]
    assert not found.table.complete


def test_of_a_test_of_ucx_perftest_without_an_end_the_last_row_of_its_only_thread_is_read():
    text = sample("ucx_perftest_bw.txt").partition("Final:")[0]
    found = read(text)

    (reading,) = found.readings
    assert (reading.line, reading.printed) == (8, "14245.16 MB/s")
    assert not found.table.complete
    assert found.unread == ()
    # Of several threads none speaks for the test.
    assert not read(text + text.splitlines()[-1].replace("[thread 0]", "[thread 1]") + "\n").readings


@pytest.mark.parametrize("prefix", ["", "[1736991281.943478] [n1:42638:0]   "])
def test_protocols_that_ucx_prints_between_the_rows_hold_no_result(prefix: str):
    choices = (
        f"{prefix}+---------------------------+---------------------------------------+\n"
        f"{prefix}| perftest inter-node cfg#0 | active message by ucp_am_send* from host memory |\n"
        f"{prefix}|               2049..9254K | zero-copy | rc_mlx5/mlx5_0:1/path0            |\n"
    )
    found = read(sample("ucx_perftest_bw.txt").replace("[thread 0]                34", f"{choices}[thread 0] 34"))

    assert len(found.readings) == 1
    assert found.unread == ()


def test_tests_of_a_batch_of_ucx_perftest_have_the_names_above_their_tables():
    table = sample("ucx_perftest_bw.txt")
    found = read(f"{'=' * 30} tag_bw {'=' * 30}\n{table}\n\n{'=' * 30} tag_sync_bw {'=' * 30}\n{table}")

    assert [each.what for each in found.readings] == ["tag_bw", "tag_sync_bw"]
    assert found.unread == ()


def test_commas_of_ucx_perftest():
    text = (
        "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
        "1000000,1.912,1.934,1.935,3.94,3.95,517063,517064\n"
    )

    (reading,) = read(text).readings

    assert (reading.time_s, reading.messages_per_s) == (pytest.approx(1.935e-6), 517064)


def test_a_put_of_nvshmem_counts_in_decimal_units_where_columns_show_it():
    found = read(sample("nvshmem_put_bw.txt"))

    assert found.readings[-1].bandwidth_Bps == pytest.approx(311.550117e9)
    assert (found.table.program, found.table.ranks) == ("shmem_put_bw", 2)
    assert found.table.devices[1].model == "NVIDIA H100 80GB HBM3"


def test_a_collective_of_nvshmem_has_its_name_type_and_operation():
    reading = read(sample("nvshmem_reduction.txt")).readings[-1]

    assert (reading.what, reading.dtype, reading.op) == ("all_reduce", "int", "sum")
    assert (reading.time_s, reading.busbw_Bps) == (pytest.approx(24.32e-6), pytest.approx(64.674e9))
    assert dict(reading.more) == {"min_s": pytest.approx(23.91e-6), "max_s": pytest.approx(25.01e-6)}


def test_boxes_and_machine_readable_lines_of_nvshmem():
    assert rows("nvshmem_2_box.txt") == {
        "shmem_p_latency 4": pytest.approx(1.423359e-6),
        "shmem_p_latency 8": pytest.approx(1.431552e-6),
    }
    assert rows("nvshmem_machine_readable.txt")["shmem_get_bw 1048576"] == pytest.approx(88.310274 * 2**30)


_PUT = "&&&& PERF shmem_put_bw___None___size__1048576___BW 88.310274 +GB/sec\n"
_PES = "mype: 0 mype_node: 0 device name: A100-SXM4-40GB bus id: 7 \n"
_BAR = "+------------------------+----------------------+\n"


@pytest.mark.parametrize(
    ("text", "gigabyte"),
    [
        pytest.param(f"{_PES}shmem_put_bw\n{_PUT}", 2**30, id="before 3.2.5"),
        pytest.param(
            f"Runtime options after parsing command line arguments \n{_PES}shmem_put_bw\n{_PUT}", 1e9, id="since 3.2.5"
        ),
        pytest.param(_PUT, 1e9, id="nothing but the line"),
        pytest.param(
            f"{_BAR}| shmem_put_bw           | None                 |\n{_BAR}"
            f"| size (Bytes)           |         BW GB/sec    |\n{_BAR}"
            f"| 1048576                | 88.310274            |\n{_BAR}",
            2**30,
            id="bars",
        ),
    ],
)
def test_the_gigabyte_of_nvshmem_is_that_of_the_release_that_prints_so(text: str, gigabyte: float) -> None:
    (reading,) = read(text).readings

    assert reading.bandwidth_Bps == pytest.approx(88.310274 * gigabyte)


def test_matrices_of_rocm_bandwidth_test_leave_out_what_is_not_measured():
    found = read(sample("rocm_bandwidth_test_all.txt"))

    assert len(found.readings) == 14
    one = next(reading for reading in found.readings if (reading.source, reading.target) == ("device 1", "device 2"))
    assert (one.what, one.bandwidth_Bps) == ("unidirectional_copy", pytest.approx(48.902e9))
    assert [device.bus_id for device in found.table.devices] == [None, "c1:0.0", "c6:0.0"]
    assert found.table.complete


@pytest.mark.parametrize(
    ("title", "what", "statistic"),
    [
        ("Unidirectional peak", "unidirectional_copy", "size over the least time of all iterations"),
        ("Bdirectional copy peak", "bidirectional_copy", "size over the least time of all iterations"),
        ("Bidirectional copy average", "bidirectional_copy", "mean over iterations, the slowest left out"),
    ],
)
def test_titles_of_rocm_bandwidth_test_by_version(title: str, what: str, statistic: str):
    found = read(
        "RocmBandwidthTest Version: 2.0.1\n\nDevice Access\n\nD/D       0         1\n\n1         1         1\n\n"
        f"{title} bandwidth GB/s\n\nD/D       0           1\n\n0         N/A         13.377405\n\n"
        "1         14.310061   404.438375\n"
    )

    assert [reading.what for reading in found.readings] == [what] * 3
    assert (found.table.statistic, found.table.complete) == (statistic, True)
    assert found.unread == ()


def test_sizes_of_rocm_bandwidth_test():
    found = read(sample("rocm_bandwidth_test_sizes.txt"))

    reading = found.readings[2]
    assert (reading.what, reading.size_bytes) == ("bidirectional_copy", 128 * 2**20)
    assert (reading.source, reading.target) == ("CPU0", "GPU2")
    assert reading.time_s == pytest.approx(5242.11e-6)
    assert reading.bandwidth_Bps == pytest.approx(2 * reading.size_bytes / reading.time_s, rel=1e-3)


def test_bandwidth_test_of_cuda():
    assert rows("cuda_bandwidthTest.txt") == {
        "host_to_device, pinned 32000000": 55.3e9,
        "device_to_host, pinned 32000000": 55.2e9,
        "device_to_device 32000000": 2345.0e9,
    }
    assert read(sample("cuda_bandwidthTest.txt")).table.devices[0].model == "NVIDIA H100 80GB HBM3"
    assert rows("cuda_bandwidthTest_old.txt")["host_to_device, pageable 33554432"] == pytest.approx(7760.1 * 2**20)
    assert rows("cuda_bandwidthTest_csv.txt") == rows("cuda_bandwidthTest.txt")


def test_a_time_of_a_bandwidth_test_that_its_digits_cannot_show_is_none():
    head = "[CUDA Bandwidth Test] - Starting...\n"
    row = "bandwidthTest-D2D, Bandwidth = 0.4 GB/s, Time = {} s, Size = 1000 bytes, NumDevsUsed = 1\n"
    times = [reading.time_s for reading in read(head + row.format("0.00000") + row.format("0.00004")).readings]
    assert times == [None, 4e-5]


def test_a_bandwidth_test_that_failed_says_so():
    text = (
        "[CUDA Bandwidth Test] - Starting...\nRunning on...\n\ncudaGetDeviceProperties returned 802\n"
        '-> system not yet initialized\nCUDA error at bandwidthTest.cu:256 code=802 "cudaSetDevice(currentDevice)" \n'
    )

    assert len(read(text).table.failures) == 3


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_adds_up_with_a_prefix_before_every_line(name: str):
    text = sample(name)
    prefixed = "".join(f"2026-11-23T10:00:00Z {line}" for line in text.splitlines(keepends=True))

    found, plain = read(prefixed), read(text)

    assert found.adds_up
    assert [(reading.what, reading.size_bytes) for reading in found.readings] == [
        (reading.what, reading.size_bytes) for reading in plain.readings
    ]


@pytest.mark.parametrize(
    "text",
    [
        "#reduction\n# broadcast\nsome text\n",
        "Waiting for connection...\n",
        "+------+------+\n| Name | Units |\n+------+------+\n",
        "Device: 0, something\nDevice 0: Tesla K80\n",
        "Device Access\nD/D 0 1\n0 1 1\nUnidirectional peak bandwidth\n",
        "| # iterations | typical | average |\n 1000 0.1 0.2 0.3 0.4 0.5 6 7\n",
        "training bandwidth: 12 GB/s\nmype: 3\n",
    ],
)
def test_lines_that_only_look_like_them_begin_nothing(text: str):
    assert not read(text).tables


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_is_found_between_lines_of_a_program(name: str):
    around = "INFO step 12 done, loss 1.5\n" * 5

    found = read(around + sample(name) + around)

    assert found.adds_up
    assert len(found.readings) == len(read(sample(name)).readings)
    assert len(found.tables) == 1


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_cut_off_anywhere_is_accounted_for(name: str):
    whole = len(accounts_for_every_line(reader_of(name), sample(name)).readings)
    for text in list(cuts(sample(name)))[::3]:
        assert len(accounts_for_every_line(reader_of(name), text).readings) <= whole


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_garbled_output_is_accounted_for(name: str):
    for text in garbled(sample(name), times=200, seed=23):
        accounts_for_every_line(reader_of(name), text)
        assert read(text).adds_up


_CELLS = r"\A[ |]{0,4}[0-9.X%naif]{0,12}(?:[ |,]{1,4}[0-9.X%naifGBs/]{1,12}){0,9}[ |]{0,3}\Z"


@pytest.mark.parametrize("name", OUTPUTS)
@settings(max_examples=20, deadline=None)
@given(lines=st.lists(st.one_of(st.text(max_size=60), st.from_regex(_CELLS)), max_size=6), at=st.integers(0, 40))
def test_any_lines_within_an_output_are_accounted_for(name: str, lines: list[str], at: int):
    given_lines = sample(name).split("\n")

    accounts_for_every_line(reader_of(name), "\n".join([*given_lines[:at], *lines, *given_lines[at:]]))
