"""Rows that do not tell their collective, repeated rows, rates as printed, and what old versions write around rows."""

import pytest

from .reading import read, sample

ZEROS = sample("nccl-tests-2.4-reduce_scatter-zeros.log").decode()
HEADER = "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
GATHER = "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error\n"


def head(ranks: int) -> str:
    return (
        "# nThread 1 nGpus 1 minBytes 0 maxBytes 9 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
        + "".join(
            f"#   Rank {rank:2d} Pid   3442 on      node1 device {rank:2d} [0x07] A100\n" for rank in range(ranks)
        )
    )


def whats(text: str) -> list[str]:
    found = read(text)
    assert found.adds_up
    return sorted({reading.what for reading in found.readings})


def test_ten_rows_of_nothing_belong_to_the_reduce_scatter_that_follows():
    found = read(ZEROS)

    assert {reading.what for reading in found.readings} == {"reduce_scatter"}
    assert [reading.size_bytes for reading in found.readings].count(0) == 10
    assert [reading.line for reading in found.readings] == sorted(reading.line for reading in found.readings)
    assert (found.reading_lines, found.unread, found.table.doubts) == (8, (), ())


def test_rows_of_nothing_of_an_all_gather_are_no_sendrecv():
    rows = (
        "           0             0   float    34.27    0.00    0.00    N/A    33.57    0.00    0.00    N/A\n"
        "     1048576         32768   float    40.02   26.20   22.93  0e+00    39.18   26.76   23.42  0e+00\n"
    )

    assert whats(head(8) + GATHER + rows) == ["all_gather"]


def test_small_rows_of_a_sendrecv_are_no_all_reduce():
    rows = (
        "           8             2   float     sum    12.00    0.00    0.00  0e+00    12.10    0.00    0.00  0e+00\n"
        "         128            32   float     sum    12.00    0.01    0.01  0e+00    12.10    0.01    0.01  0e+00\n"
        "     1048576        262144   float     sum    40.02   26.20   26.20  0e+00    39.18   26.76   26.76  0e+00\n"
    )

    assert whats(head(8) + HEADER + rows) == ["sendrecv"]


def test_small_rows_of_an_all_reduce_stay_what_they_are():
    rows = (
        "           8             2   float     sum    12.00    0.00    0.00  0e+00    12.10    0.00    0.00  0e+00\n"
        "     1048576        262144   float     sum    40.02   26.20   45.85  0e+00    39.18   26.76   46.83  0e+00\n"
    )

    assert whats(head(8) + HEADER + rows) == ["all_reduce"]


def test_of_rows_of_nothing_alone_nobody_can_tell():
    assert whats("".join(ZEROS.splitlines(keepends=True)[:18])) == ["all_reduce or reduce_scatter"]


def test_a_program_that_is_named_decides_for_every_row_at_once():
    assert whats("# Collective test starting: all_gather_perf\n" + ZEROS) == ["all_gather"]


@pytest.mark.parametrize("end", range(16, 24))
def test_a_table_that_is_cut_off_loses_no_row(end: int):
    found = read("".join(ZEROS.splitlines(keepends=True)[:end]))

    assert found.adds_up
    assert len(found.readings) == 2 * max(0, min(end, 23) - 15)


def test_a_repeated_last_row_is_told():
    lines = ZEROS.splitlines(keepends=True)

    found = read("".join([*lines[:23], lines[22], *lines[23:]]))

    assert found.table.repeated == (24,)
    assert not read(ZEROS).table.repeated


def test_rows_of_nothing_and_rows_of_another_run_may_be_alike():
    lines = ZEROS.splitlines(keepends=True)

    assert not any(table.repeated for table in read("".join([*lines[:16], lines[15], *lines[16:]])).tables)
    assert not any(table.repeated for table in read(ZEROS + ZEROS).tables)


def test_rates_are_kept_as_they_are_printed():
    reading = read(ZEROS).readings[-2]

    assert (reading.printed, reading.busbw_Bps) == ("117.28 GB/s", 117.28e9)


def test_a_comment_sign_before_every_row_changes_nothing():
    commented = "".join(line if line.startswith("#") else f"#{line[1:]}" for line in ZEROS.splitlines(keepends=True))

    plain, found = read(ZEROS), read(commented)

    assert [(row.what, row.size_bytes, row.busbw_Bps) for row in found.readings] == [
        (row.what, row.size_bytes, row.busbw_Bps) for row in plain.readings
    ]
    assert found.adds_up


def test_a_comment_that_looks_like_a_row_is_none():
    found = read(ZEROS.replace("# Out of", "# 2 8 nodes of the old kind\n# Out of"))

    assert found.adds_up
    assert len(found.tables[0].footer) >= 1
    assert not read("# 1048576 262144 float sum 40.02 26.20 22.93 0e+00 39.18 26.76 23.42 0e+00\n").readings


def test_devices_of_nccl_1_are_listed():
    table = read(sample("nccl-1.3-all_reduce.log")).table

    assert table.ranks == 4
    assert [(device.device, device.bus_id, device.model, device.host) for device in table.devices][:1] == [
        (0, "0x06", "Tesla P100-SXM2-16GB", None)
    ]
    assert table.ranks_from_rates == 4
    assert not table.doubts


@pytest.mark.parametrize("words", ["bytes             N    type", "size         count    type"])
def test_a_header_whose_comment_sign_a_page_took_says_the_columns_and_the_unit(words: str):
    header = f"      {words}      op  root    time  algbw  busbw      res     time  algbw  busbw      res\n"
    row = "67108864   67108864   char   sum   0   11.534   5.82   5.82   0e+00   11.570   5.80   5.80   0e+00\n"

    table = read(header + row).tables[0]

    # nccl-tests 1 and before printed milliseconds below `bytes`; below `size` the row would be 1,000 times too fast.
    assert bool(table.doubts) is words.startswith("size")
    assert not read(header.replace("busbw", "rate").replace("type", "kind")).tables


def test_the_delta_of_nccl_1_is_a_difference():
    text = sample("nccl-1.3-all_reduce.log").decode().replace("res", "delta")

    assert {reading.wrong for reading in read(text).readings} == {0}


def test_gpus_of_nvbandwidth_0_4_have_their_model():
    text = sample("nvbandwidth.txt").decode().replace("v0.7", "v0.4")
    old = text.replace(" (00000000:1b:00)", "").replace(" (00000000:43:00)", "")

    devices = read(old).tables[0].devices

    assert [(device.device, device.model, device.bus_id) for device in devices] == [
        (0, "NVIDIA H200", None),
        (1, "NVIDIA H200", None),
    ]
