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
    assert found.unread == ()
