"""A row is held against size, time and the factor of its collective, as exactly as its digits allow and no more."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.formats.arithmetic import Check, RowRates, printed

from .reading import read, sample

FACTORS = {
    "all_reduce": lambda ranks: 2 * (ranks - 1) / ranks,
    "all_gather": lambda ranks: (ranks - 1) / ranks,
    "reduce_scatter": lambda ranks: (ranks - 1) / ranks,
    "alltoall": lambda ranks: (ranks - 1) / ranks,
    "broadcast": lambda _ranks: 1.0,
    "sendrecv": lambda _ranks: 1.0,
}


def as_printed(value, width):
    """Print as nccl-tests does since 2.17.3: the most decimals that fit."""
    for decimals in (2, 1, 0):
        text = f"{value:{width}.{decimals}f}"
        if len(text) <= width:
            return text.strip()
    return f"{value:.1e}"


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("8.95", 8.945, 8.955), ("63896", 63895.5, 63896.5), ("17747.7", 17747.65, 17747.75), ("1.0e+08", 9.5e7, 1.05e8)],
)
def test_a_number_is_the_interval_of_its_digits(text, low, high):
    assert printed(text)[1:] == pytest.approx((low, high), rel=1e-12)


def test_a_number_in_another_unit_keeps_its_digits():
    assert printed("263.975398", 9).value == 263975398000.0
    assert printed("8.95", -6).value == 8.95e-06
    assert printed("1.0e+08", -6)[1:] == pytest.approx((95.0, 105.0))


@pytest.mark.parametrize("text", ["nan", "inf", "N/A", "-1", "", "1e999", "0x10", "1_0", "٣"])
def test_what_is_no_amount_is_none(text):
    assert printed(text) is None


@given(
    what=st.sampled_from(sorted(FACTORS)),
    ranks=st.integers(2, 4096),
    size_bytes=st.integers(1, 2**40),
    time_us=st.floats(0.5, 1e7),
)
def test_what_a_tool_computes_and_rounds_is_never_doubted(what, ranks, size_bytes, time_us):
    algbw = size_bytes / time_us / 1e3
    busbw = algbw * FACTORS[what](ranks)
    if algbw > 19_000:
        return
    check = Check()

    check.row(
        what,
        1,
        RowRates(
            size_bytes,
            printed(as_printed(time_us, 7), -6),
            printed(as_printed(algbw, 6), 9),
            printed(as_printed(busbw, 6), 9),
        ),
    )
    check.compare(1, ranks)

    assert check.doubts() == ()
    assert check.ranks() in (None, ranks)


def test_the_real_number_of_ranks_comes_out_of_all_rows_together():
    text = sample("nccl-tests-2.13-mpirun-tags.log").decode()

    # One row of few digits allows 14 to 18 ranks, the next one 16 only.
    assert read(text).table.ranks_from_rates == 16


def changed(old, new, name="nccl-tests-2.17.3.log"):
    text = sample(name).decode()
    assert text.count(old) == 1
    return read(text.replace(old, new)).table


def test_a_time_that_does_not_give_the_rate_is_doubted():
    table = changed(" 98.65", " 78.65")
    assert [line for line, _ in table.doubts] == [15]
    assert "size over its time is 213.3 GB/s" in table.doubts[0][1]


def test_a_bus_bandwidth_that_fits_other_ranks_is_doubted():
    table = changed("255.10", "340.13")
    assert table.ranks_from_rates == 4
    assert any("no number of ranks" in why or "those of most rows 4 ranks" in why for _, why in table.doubts)


def test_a_rate_beyond_any_memory_is_doubted():
    table = changed(" 98.65  170.07  255.10", "  0.06  279620  419430")
    assert any("more than any memory moves" in why for _, why in table.doubts)


def test_a_thinned_out_table_is_told_by_its_average():
    lines = sample("nccl-tests-2.17.3.log").decode().splitlines(keepends=True)
    table = read("".join(line for line in lines if not line.startswith("     4194304"))).table

    assert [why.split(",")[0] for _, why in table.doubts] == ["the tool's average is 164.625 GB/s"]


def test_the_average_of_a_quoted_table_is_not_held_against_the_rows_that_are_left():
    lines = sample("nccl-tests-2.17.3.log").decode().splitlines(keepends=True)
    table = read("".join("[...]\n" if line.startswith("     4194304") else line for line in lines)).table

    assert table.doubts == ()
    assert dict(table.parameters)["left out of the text"] == "rows"


def test_a_list_of_devices_that_is_quoted_in_part_does_not_tell_the_ranks():
    text = sample("nccl-tests-2.17.3.log").decode()
    devices = [line for line in text.splitlines() if line.startswith("#  Rank")]
    quoted = text.replace("\n".join(devices), f"{devices[0]}\n[...]")
    table = read(quoted).table

    assert len(devices) > 1
    assert (table.ranks, table.devices) == (None, ())
    assert table.ranks_from_rates == len(devices)


def test_a_quoted_table_whose_head_is_of_another_run_says_so():
    lines = sample("nccl-tests-2.17.3.log").decode().splitlines(keepends=True)
    quoted = "".join("...\n" if line.startswith("     1048576") else line for line in lines)
    table = read(re.sub(r"maxBytes \d+", "maxBytes 2097152", quoted)).table

    assert dict(table.parameters)["left out of the text"] == (
        "rows; a row of 16777216 bytes where the head says 2097152 at most, as of another run"
    )


def test_declared_and_revealed_ranks_may_differ():
    text = sample("nccl-tests-2.17.3.log").decode()
    devices = "".join(
        f"#  Rank {rank:2d} Group  0 Pid   2806 on         vm device {rank:2d} [0000:00:{rank:02x}] H200\n"
        for rank in range(4, 8)
    )
    table = read(text.replace("#\n#                         ", devices + "#\n#                         ", 1)).table

    assert (table.ranks, table.ranks_from_rates, table.doubts) == (8, 4, ())


@pytest.mark.parametrize(("kept", "ranks"), [((0, 1, 2, 3, 4, 5, 6, 7), 8), ((7,), None), ((0, 7), None)])
def test_a_list_of_devices_with_gaps_does_not_say_how_many_ranks_there_are(kept, ranks):
    """As in coreweave/nccl-tests and oracle-quickstart/oci-hpc-oke: pages show the last device, or the first and it."""
    lines = sample("nccl-tests-2.17.9.log").decode().splitlines()
    devices = [line for line in lines if "device" in line and " Rank " in line]
    rest = [line for line in lines if line not in devices or devices.index(line) in kept]
    (table,) = read("\n".join(rest) + "\n").tables

    assert len(devices) == 8
    assert table.ranks == ranks
    assert table.ranks_from_rates is not None
    assert len(table.devices) == (8 if ranks else 0)
    assert dict(table.parameters).get("left out of the text") == (None if ranks else "devices")
