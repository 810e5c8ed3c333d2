"""A comparison as it is printed."""

import csv
import io
import re

import pytest

from busbw.judge.comparing.comparison import compare
from busbw.judge.comparing.launch import Launch
from busbw.model.record import NcclChoice
from busbw.show.exports.tables import comparison_csv
from busbw.show.text.comparison import comparison_text

from .made import launch, point, sides, steady

SIZES = (8, 1024, 2**20, 2**26)
TIMES_S = {8: (9e-6, 9e-6), 1024: (10e-6, 8e-6), 2**20: (50e-6, 60e-6), 2**26: (900e-6, 900e-6)}


def measured(noise=0.0):
    """Return launches of two sides; the first one's jump about, those of 8 bytes by `noise` more."""

    def time_s(side, block, size_bytes):
        jump = (block * 7 % 5 - 2) * (0.001 + noise * (size_bytes == 8))
        return TIMES_S[size_bytes][side] * (1 + jump * (1 - side))

    return [
        launch(side, block, *(point(time_s(side, block, size_bytes), size_bytes=size_bytes) for size_bytes in SIZES))
        for block in range(18)
        for side in (0, 1)
    ]


@pytest.fixture
def printed(capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    def text(found, columns=None):
        if columns is not None:
            monkeypatch.setenv("COLUMNS", str(columns))
            monkeypatch.setenv("FORCE_COLOR", "1")
        comparison_text(found)
        return capsys.readouterr().out

    return text


def test_the_table_is_this_one(printed):
    found = compare(sides("default", "NCCL_PROTO=LL"), measured(noise=0.05), [{}, {}], design="random_order")

    *lines, blank, legend, verdict = printed(found).splitlines()
    assert lines == [
        "A  default (0 launches)",
        "B  NCCL_PROTO=LL (0 launches)",
        "",
        "# all_reduce, float32 sum, 2 ranks: B against A",
        "    size      A      B      A      B  gain  95 % interval  shown",
        "     (B)   (us)   (us) (GB/s) (GB/s)   (%)            (%)",
        "       8   9.00   9.00   0.00   0.00  +0.0   -5.1 to +5.1      ~",
        "    1024  10.00   8.00   0.10   0.13 +25.0 +24.9 to +25.1 faster",
        " 1048576  50.00  60.00  20.97  17.48 -16.7 -16.7 to -16.6 slower",
        "67108864 900.00 900.00  74.57  74.57  +0.0   -0.1 to +0.1      =",
        "# busbw A ▁▄▇█ 0.00089 to 74.6 GB/s; 8 B to 64 MiB",
        "# busbw B ▁▄▇█ 0.00089 to 74.6 GB/s; same scale, logarithmic",
        "",
        "# by size: latency of small messages (us), bus bandwidth of medium and large ones (GB/s)",
        "collective sizes      A     B  gain  95 % interval  shown",
        "                                (%)            (%)",
        "all_reduce small   9.49  8.49 +11.8  +8.9 to +14.7 faster",
        "all_reduce medium 20.97 17.48 -16.7 -16.7 to -16.6 slower",
        "all_reduce large  74.57 74.57  +0.0   -0.1 to +0.1      =",
        "# small: below 64 KiB; medium below 8 MiB, large from there on",
    ]
    assert blank == ""
    assert legend == (
        "18 blocks with a launch of each; faster, slower: by more than 1 %; in at most 5 % of such tables one of these "
        "words is wrong; ~: no difference shown; =: the interval lies within 1 %"
    )
    assert verdict == (
        "mixed: B (NCCL_PROTO=LL) is faster at all_reduce 1 KiB, by 25 % and slower at all_reduce 1 MiB, by 17 %; "
        "no difference shown at 2 of 4 points"
    )


def test_of_stored_results_the_table_is_this_one(printed):
    found = compare(sides("before", "after", kind="run"), measured(), [{}, {}], design="descriptive")

    lines = printed(found).splitlines()

    assert lines[3:9] == [
        "# all_reduce, float32 sum, 2 ranks: B against A",
        "    size      A      B      A      B  gain         spread",
        "     (B)   (us)   (us) (GB/s) (GB/s)   (%)            (%)",
        "       8   9.00   9.00   0.00   0.00  +0.0   -0.2 to +0.2",
        "    1024  10.00   8.00   0.10   0.13 +25.0 +24.7 to +25.2",
        " 1048576  50.00  60.00  20.97  17.48 -16.7 -16.8 to -16.5",
    ]
    legend, finding, fix, verdict = lines[-4:]
    assert legend == (
        "as measured, nothing is claimed of stored results; spread: 95 % of the ratios of one launch of each side lie "
        "in it"
    )
    assert finding.startswith("warn CMP014 stored results, not measured in turn: ")
    assert fix == "  fix: for an answer: busbw compare --set default --set 'NAME=VALUE'"
    assert verdict == (
        "cannot tell: whether B (after) differs from A (before): these are stored results, not launches in random "
        "order, and a change of the machine between them looks the same; measured: gain -16.7 to +25.0 % at 4 points"
    )


def test_it_fits_into_80_columns(printed):
    found = compare(sides("default", "NCCL_PROTO=LL"), measured(), [{}, {}], design="random_order")

    lines = re.sub(r"\x1b\[[0-9;]*m", "", printed(found, columns=80)).splitlines()

    assert max(map(len, lines)) <= 80


def test_a_hostile_name_reaches_no_terminal(printed):
    hostile = "\x1b[2J\u202eevil"
    launches = [
        Launch(side=each.side, block=each.block, name=hostile, points=each.points, ended="failed", cause=hostile)
        for each in steady((1e-6, 2e-6))
    ]
    found = compare(sides(hostile, hostile + "2"), launches, [{}, {}], design="random_order")

    text = printed(found)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x1b" not in comparison_csv(found)


def test_what_nccl_used_is_told_where_it_tells(printed):
    ring = (NcclChoice(function="AllReduce", algorithm="RING", protocol="LL", channels=8),)
    more = (NcclChoice(function="AllReduce", algorithm="RING", protocol="LL", channels=32),)

    def with_choices(other):
        launches = [launch(side, 0, point(1e-6, choices=(ring, other)[side])) for side in (0, 1)]
        return printed(compare(sides("default", "more"), launches, [{}, {}], design="random_order"))

    assert "NCCL used the same algorithm, protocol and channels for A and B at every point" in with_choices(ring)
    assert "something else at 1 of 1 points: all_reduce 1 KiB: ring ll 8 -> ring ll 32" in with_choices(more)


def test_the_geometric_mean_is_printed_where_it_was_asked_for(printed):
    found = compare(
        sides("default", "tuned"), steady((10e-6, 8e-6)), [{}, {}], design="random_order", geometric_mean=True
    )

    assert "geometric mean over all points, as asked: gain +" in printed(found)


def test_csv_has_a_line_a_point_and_no_formula():
    found = compare(sides("=cmd()", "b"), measured(), [{}, {}], design="random_order")

    rows = list(csv.DictReader(io.StringIO(comparison_csv(found))))

    assert len(rows) == len(SIZES)
    assert rows[0]["first"] == "'=cmd()"
    assert [row["claim"] for row in rows] == ["same", "faster", "slower", "same"]
    assert float(rows[1]["ratio"]) == pytest.approx(1.25, rel=0.01)
