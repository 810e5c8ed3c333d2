"""What stands around tables in pages: steps that begin with a number, rows of other programs, blocks of code."""

import pytest

from .reading import read

OSU = "# OSU MPI Bandwidth Test v5.7\n# Size      Bandwidth (MB/s)\n1                 1.96\n2                 3.92\n"
ROCM = (
    "          Bidirectional copy peak bandwidth GB/s\n          D/D       0           1\n"
    "          0         N/A         84.706\n          1         84.706      N/A\n"
)
NCCOM = (
    "    size(B)    count(elems)    type    time:avg(us)    algbw(GB/s)    busbw(GB/s)\n"
    "     524288          131072    fp32          343.84           1.42           2.80\n"
)
IMB = (
    "# Benchmarking {}\n# #processes = {}\n"
    "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n8 1000 4.50 18.59 11.69\n"
)


@pytest.mark.parametrize(
    "after",
    [
        "1. Create a host file with compute nodes connected to switch.\n",
        "4 Ranks, Msg Size:      1024 bytes, Node BW:    381.77 MB/sec/node,  Aggregate BW:   0.38 GB/sec\n",
        "static int my_rank;\n\nstatic void\nprint_usage()\n{\n   if (my_rank == 0) {\n   }\n}\n",
    ],
)
def test_what_is_no_row_after_a_table_is_no_damage(after):
    found = read(f"{OSU}\n{after}")
    assert len(found.readings) == 2
    assert found.adds_up
    assert {line.why for line in found.unread} == {"no reader knows this line"}


@pytest.mark.parametrize(
    "row",
    [
        "4   7.8x\n",
        "4   7.84 N/A N/A\n",
        "4   7.84 WARNING: there was an error initializing a device\n",
        "4   N/A said by a reader that is not known here\n",
    ],
)
def test_a_row_with_words_in_it_is_a_damaged_row(row):
    (line,) = read(f"{OSU}{row}").unread
    assert line.why != "no reader knows this line"


def test_a_document_that_was_cut_off_is_told_as_such():
    (line, _) = read('{\n  "version": 2,\n').unread
    assert "JSON" in line.why


def test_a_matrix_ends_with_its_last_row():
    found = read(f"{ROCM}\n       0        117876.8\n")
    assert [row.bandwidth_Bps for row in found.readings] == [84.706e9, 84.706e9]
    assert [line.why for line in found.unread] == ["no reader knows this line"]


def test_a_title_that_is_said_twice_begins_one_table():
    title = OSU.split("\n", 1)[0]
    assert [table.readings for table in read(f"{title}\n{OSU}").tables] == [2]
    assert [table.readings for table in read(OSU + OSU).tables] == [2, 2]
    assert [table.readings for table in read(f"# OSU MPI Latency Test v5.7\n{OSU}").tables] == [0, 2]


def test_a_table_of_another_tool_with_columns_like_nvshmems_is_not_nvshmems():
    assert read(NCCOM).tables == ()
    assert read("size(B)     count     type      redop     latency(us)     algbw(GB/s)   busbw(GB/s)\n").table.tool == (
        "nvshmem-perftest"
    )


def test_a_benchmark_of_imb_that_comes_again_after_another_begins_the_next_run():
    first = IMB.format("Allreduce", 4) + IMB.format("Bcast", 4)
    assert [table.readings for table in read(first + first).tables] == [2, 2]
    assert [table.readings for table in read(IMB.format("Bcast", 2) + IMB.format("Bcast", 4)).tables] == [2]
