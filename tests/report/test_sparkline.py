"""Curves in a line of text."""

import pytest
from msgspec import structs
from tests.judge.factories import make_measurement

from busbw.show.lines import curve_lines, paired_lines, spark

from .valued import make_comparison


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1.0, 10.0, 100.0], "▁▅█"),
        ([100.0, 1.0], "█▁"),
        ([5.0, 5.0], "▄▄"),
        ([1.0, 0.0, 2.0], "▁ █"),
        ([0.0], " "),
        ([], ""),
    ],
)
def test_heights_go_by_the_logarithm(values: list[float], shown: str):
    assert spark(values) == shown


def test_a_sweep_is_two_lines_with_their_ends_in_numbers():
    sweep = [make_measurement("all_reduce", 8 * 8**step, 1e-6 * 8**step, point=step) for step in range(4)]

    time, busbw = curve_lines(sweep)

    assert time == "# time  ▁▃▆█ 1.00 to 512.00 us; 8 B to 4 KiB"
    assert busbw.startswith("# busbw ▄▄▄▄ ")


def test_two_sizes_are_no_curve_and_wrong_results_have_no_time():
    sweep = [make_measurement("all_reduce", 8 * 8**step, 1e-6, point=step) for step in range(3)]

    assert curve_lines(sweep[:2]) == ()
    assert curve_lines([structs.replace(sweep[0], samples=0), *sweep[1:]]) == ()


def test_a_line_stays_narrow_however_many_sizes_there_are():
    sweep = [make_measurement("all_reduce", 4 * (step + 1), 1e-6 * (step + 1), point=step) for step in range(1000)]

    lines = curve_lines(sweep)

    assert max(map(len, lines)) <= 80
    assert "(1 in 42)" in lines[0]


def test_two_sides_share_one_scale_and_a_pair_of_sizes_makes_no_curve():
    points = make_comparison().versus[0].points[:5]

    first, other = paired_lines(points, ("A", "B"))

    # The first side is level at 1 GB/s; the other ends below it and begins above.
    assert first.split()[3] == first.split()[3][0] * 5
    assert other.split()[3][0] > first.split()[3][0] > other.split()[3][-1]
    assert first.endswith("8 B to 32 KiB")
    assert paired_lines(points[:2], ("A", "B")) == ()
