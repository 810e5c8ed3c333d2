"""The tables of the OSU micro-benchmarks, 5 to 7, and of OMB-Py."""

import pytest

from .reading import read, sample


def test_a_latency_is_half_a_round_trip_between_two_ranks():
    found = read(sample("osu-5.6-latency.log"))

    assert (found.table.tool_version, found.table.ranks) == ("5.6.2", 2)
    assert found.table.statistic == "mean over iterations, half a round trip"
    assert [(reading.what, reading.size_bytes, reading.time_s) for reading in found.readings[::3]] == [
        ("latency", 0, 1.02e-6), ("latency", 4194304, 351.27e-6),
    ]  # fmt: skip


def test_a_title_of_the_oldest_releases():
    found = read("# OSU MPI Bandwidth Test (Version 2.0)\n# Size Bandwidth (MB/s)\n1 3.549325\n1024 1566.702234\n")

    assert (found.table.tool_version, [each.what for each in found.readings]) == ("2.0", ["bandwidth"] * 2)
    assert found.readings[1].bandwidth_Bps == pytest.approx(1566.702234e6)
    assert read("# OSU MPI Bandwidth Test of yesterday\n1 3.5\n").tables == ()


def test_pairs_and_rates_of_messages():
    found = read(sample("osu-5.7-mbw_mr.log"))

    assert dict(found.table.parameters) == {"pairs": "15", "window size": "64"}
    reading = found.readings[-1]
    assert (reading.what, reading.ranks) == ("message_rate", 30)
    assert (reading.bandwidth_Bps, reading.messages_per_s) == (2068140000.0, 2019668.41)
    assert found.unread == ()


@pytest.mark.parametrize(
    ("name", "what", "time_s", "more"),
    [
        ("osu-5.9-omb-py.log", "broadcast", 6.63e-6, {"min_s": 5.55e-6, "max_s": 7.71e-6, "iterations": 1000.0}),
        (
            "osu-6.2-reduce-full.log",
            "reduce",
            0.27627493,
            {"min_s": 0.00163058, "max_s": 0.28127816, "iterations": 100.0},
        ),
    ],
)
def test_full_columns_with_and_without_the_hash(name, what, time_s, more):
    found = read(sample(name))

    assert (found.readings[-1].what, found.readings[-1].time_s) == (what, time_s)
    assert dict(found.readings[-1].more) == more
    assert found.unread == ()


def test_the_forms_of_version_7():
    found = read(sample("osu-7.5-cuda.log"))

    assert [reading.what for reading in found.readings] == [
        "bandwidth", "bandwidth", "bandwidth", "bibw", "latency", "Barrier", "Non-blocking Allreduce", "alltoall",
        "alltoall",
    ]  # fmt: skip
    assert [reading.wrong for reading in found.readings[:4]] == [0, 0, 1, None]
    assert (found.tables[0].wrong, found.tables[0].unchecked) == (1, 0)
    # Version 7.1 printed the type below the header.
    assert found.readings[3].dtype == "int8"
    assert dict(found.tables[1].parameters)["buffers"].startswith("Send Buffer on DEVICE (D)")
    assert dict(found.readings[4].more) == {"p50_s": 19.6e-6, "p90_s": 20.01e-6, "p99_s": 25.33e-6}
    barrier, overlapped = found.readings[5:7]
    assert (barrier.size_bytes, barrier.time_s) == (None, 5.6e-6)
    assert dict(overlapped.more) == {"compute_s": 6.1e-6, "communication_s": 5.18e-6, "overlap": 0.0346}
    assert dict(found.tables[5].parameters)["size counts"] == "the part of one rank"
    assert found.unread == ()
    assert found.adds_up


def test_a_row_with_a_value_too_many_is_listed():
    text = sample("osu-5.6-latency.log").decode().replace("351.27", "351.27  12")
    assert [line.why for line in read(text).unread] == ["3 values where the header names 2 columns"]


def test_numbers_before_any_header_are_nobodys():
    found = read("# OSU MPI Latency Test v7.3\n1    1.05\n# Size       Avg Latency(us)\n2    1.10\n")

    assert [reading.size_bytes for reading in found.readings] == [2]
    assert [line.line for line in found.unread] == [2]


UNTITLED = """\
#Using NCCL
# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)
# Size          Latency (us)        Validation
1024                   14.10
#Using NCCL
2048                   14.90
# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)
# Size      Bandwidth (MB/s)
1024                  160.50

# OSU NCCL-CUDA Allreduce Latency Test v7.4
# Size       Avg Latency(us)
1024                   15.20
"""


def test_tables_of_nccl_without_a_title_say_no_more_than_their_columns():
    found = read(UNTITLED)

    assert [(reading.what, reading.size_bytes, reading.ranks) for reading in found.readings] == [
        ("latency", 1024, 2), ("latency", 2048, 2), ("bandwidth or bibw", 1024, 2), ("all_reduce", 1024, None),
    ]  # fmt: skip
    # The column is there when -c is given, and nothing ever stands in it.
    assert [reading.wrong for reading in found.readings[:2]] == [None, None]
    assert [table.tool_version for table in found.tables] == [None, None, "7.4"]
    assert dict(found.tables[0].parameters)["library"] == "NCCL"


@pytest.mark.parametrize(
    ("title", "column", "what", "ranks"),
    [
        ("OSU MPI_Put Latency Test v5.7", "Latency (us)", "MPI_Put latency", 2),
        ("OSU MPI_Get Bandwidth Test v5.7", "Bandwidth (MB/s)", "MPI_Get bandwidth", 2),
        ("OSU MPI_Put Bi-directional Bandwidth Test v5.7", "Bandwidth (MB/s)", "MPI_Put bi-directional bandwidth", 2),
        ("OSU MPI_Fetch_and_op latency Test v5.7", "Latency (us)", "MPI_Fetch_and_op latency", 2),
        ("OSU OpenSHMEM Put Test v5.7", "Latency (us)", "OpenSHMEM put", None),
        ("OSU MPI Multi Latency Test v5.7", "Latency (us)", "Multi latency", None),
        ("OSU MPI Multi-threaded Latency Test v5.7", "Latency (us)", "Multi-threaded latency", None),
        ("OSU MPI Bidirectional Bandwidth Test v3.1.1", "Bi-Bandwidth (MB/s)", "bibw", 2),
    ],
)
def test_what_is_no_exchange_of_two_ranks_is_not_called_one(title, column, what, ranks):
    found = read(f"# {title}\n# Window creation: MPI_Win_create\n# Size  {column}\n4096  12.5\n")

    (reading,) = found.readings
    assert (reading.what, reading.ranks, found.unread) == (what, ranks, ())
    assert found.table.statistic == "mean over iterations and ranks"
    assert (reading.time_s, reading.bandwidth_Bps) == ((12.5e-6, None) if "Lat" in column else (None, 12.5e6))


def test_atomic_operations_are_named_in_their_rows():
    found = read(
        "# OSU OpenSHMEM Atomic Operation Rate Test v5.7\n"
        "# Operation            Million ops/s   Latency (us)\nshmem_int_fadd  0.25  4.00\nshmem_int_inc  0.50  2.00\n"
    )
    assert [(each.what, each.messages_per_s, each.time_s) for each in found.readings] == [
        ("shmem_int_fadd", 250000.0, 4e-6), ("shmem_int_inc", 500000.0, 2e-6),
    ]  # fmt: skip
    assert found.unread == ()


def test_tests_of_how_a_program_begins_have_no_table_that_could_be_cut_off():
    found = read(
        "# OSU MPI Init Test v5.7\nnprocs: 6, min: 130 ms, max: 150 ms, avg: 140 ms\n"
        "# OSU MPI Hello World Test v5.7\nThis is a test with 6 processes\n"
    )
    (reading,) = found.readings
    assert (reading.what, reading.ranks, reading.time_s) == ("MPI_Init", 6, 0.14)
    assert dict(reading.more) == {"min_s": 0.13, "max_s": 0.15}
    assert [table.complete for table in found.tables] == [True, True]
    assert found.unread == ()
