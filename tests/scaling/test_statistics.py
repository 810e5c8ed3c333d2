"""What is said of lines is said at the stated rate: simulated with known scatter; quantiles are those of SciPy."""

import random

import pytest

from busbw.judge.scaling.application import beyond, serial_part
from busbw.judge.scaling.places import bend_of, trend_of
from busbw.stats.distributions import added_term, line_through, student_quantile

from .places import noisy

MANY = 1500
PLACES = ([2, 4, 8], [4, 8, 16, 32, 64, 128], [2**power for power in range(1, 11)])


def rate(claims: list[bool]) -> float:
    return sum(claims) / len(claims)


@pytest.mark.parametrize("launches", [1, 3])
@pytest.mark.parametrize("at", PLACES, ids=len)
def test_a_level_line_is_seldom_said_to_bend_or_to_slope(at: list[int], launches: int) -> None:
    source = random.Random(len(at) * 10 + launches)
    lines = [noisy(lambda _: 3e11, at, scatter=0.02, launches=launches, source=source) for _ in range(MANY)]
    # 5 % is stated; three standard deviations of 1500 tries are 1.7 %.
    assert rate([bend_of(line, "nodes").answer == "bends" for line in lines]) < 0.05
    assert rate([trend_of(line, "nodes").answer in ("falls", "rises") for line in lines]) < 0.067


@pytest.mark.parametrize(("launches", "least"), [(1, 0.7), (3, 0.97)])
def test_a_drop_of_a_twentieth_is_found(launches: int, least: float) -> None:
    source = random.Random(launches)
    at = [4, 8, 16, 32, 64, 128]
    lines = [
        noisy(lambda place: 3e11 * (0.95 if place == 128 else 1), at, scatter=0.01, launches=launches, source=source)
        for _ in range(MANY // 3)
    ]
    assert rate([bend_of(line, "nodes").at == 128 for line in lines]) > least


def test_no_bend_is_told_that_the_intervals_of_the_places_hide() -> None:
    source = random.Random(3)
    line = noisy(lambda place: 0.9 if place == 64 else 1, [4, 8, 16, 32, 64], scatter=1e-4, launches=1, source=source)
    wide = noisy(
        lambda place: 0.9 if place == 64 else 1,
        [4, 8, 16, 32, 64],
        scatter=1e-4,
        launches=1,
        source=source,
        interval=0.2,
    )
    assert bend_of(line, "nodes").answer == "bends"
    assert bend_of(wide, "nodes").answer == "cannot_tell"


@pytest.mark.parametrize("at", [[1, 2, 4, 8], [1, 2, 4, 8, 16, 32, 64], [4, 8, 12, 16, 24, 32, 48, 64]], ids=len)
def test_the_serial_share_and_what_lies_beyond_are_covered_by_their_intervals(at: list[int]) -> None:
    source = random.Random(len(at))
    share, first = 0.01, at[0]

    def time_s(place: int) -> float:
        return 100 * (share + (1 - share) * first / place)

    covered, changing, predicted = [], [], []
    for _ in range(MANY):
        line = noisy(time_s, at, scatter=0.01, launches=1, source=source)
        serial = serial_part(line, first, "nodes")
        covered.append(serial.low is not None and serial.high is not None and serial.low <= share <= serial.high)
        changing.append(serial.answer in ("grows", "shrinks"))
        (more,) = noisy(time_s, [2 * at[-1]], scatter=0.01, launches=1, source=source)
        found = beyond(line, first, more.at, "nodes", serial).time_s
        if found is not None and found.low is not None and found.high is not None:
            predicted.append(found.low <= more.values[0] <= found.high)
    assert rate(covered) == pytest.approx(0.95, abs=0.02)
    assert rate(predicted) == pytest.approx(0.95, abs=0.02)
    # Two looks at 97.5 % each.
    assert rate(changing) < 0.08


def test_a_share_that_grows_is_no_serial_part_and_nothing_is_extrapolated() -> None:
    source = random.Random(5)
    line = noisy(
        lambda place: 100 / place + 0.3 * place**0.5,
        [1, 2, 4, 8, 16, 32, 64, 128],
        scatter=0.005,
        launches=2,
        source=source,
    )
    serial = serial_part(line, 1, "nodes")
    assert serial.answer == "grows"
    assert beyond(line, 1, 256, "nodes", serial).time_s is None


def test_beyond_four_times_the_largest_machine_nothing_is_told() -> None:
    line = noisy(lambda place: 1 + 99 / place, [1, 2, 4, 8], scatter=0.001, launches=3, source=random.Random(6))
    serial = serial_part(line, 1, "nodes")
    assert beyond(line, 1, 32, "nodes", serial).time_s is not None
    found = beyond(line, 1, 33, "nodes", serial)
    assert found.time_s is None
    assert "more than 4 times the 8 nodes" in found.words


def test_two_places_tell_nothing() -> None:
    line = noisy(lambda _: 1.0, [2, 4], scatter=0.01, launches=5, source=random.Random(7))
    answers = (trend_of(line, "nodes"), bend_of(line, "nodes"), serial_part(line, 2, "nodes"))
    assert {answer.answer for answer in answers} == {"cannot_tell"}


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 30, 999, 1000, 5000])
@pytest.mark.parametrize("probability", [0.01, 0.3, 0.5, 0.9, 0.975, 0.9995])
def test_quantiles_are_those_of_scipy(degrees: int, probability: float) -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    assert student_quantile(probability, degrees) == pytest.approx(
        scipy_stats.t.ppf(probability, degrees), rel=3e-3 if degrees >= 1000 else 1e-9, abs=1e-9
    )


def test_a_line_is_that_of_scipy() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    points = [(0.0, 1.0), (1.0, 2.9), (2.0, 5.2), (4.0, 8.8), (5.0, 11.1)]
    reference = scipy_stats.linregress([x for x, _ in points], [y for _, y in points])
    line = line_through(points)
    assert line is not None
    half = scipy_stats.t.ppf(0.975, 3) * reference.stderr
    assert (line.slope, line.intercept) == pytest.approx((reference.slope, reference.intercept))
    assert line.slope_interval(0.95) == pytest.approx((reference.slope - half, reference.slope + half))


def test_an_added_term_of_a_line_is_its_slope() -> None:
    points = [(0.0, 1.0), (1.0, 2.9), (2.0, 5.2), (4.0, 8.8), (5.0, 11.1)]
    line = line_through(points)
    found = added_term([y for _, y in points], [[1.0] * 5], [x for x, _ in points], 0.95)
    assert line is not None
    assert found == pytest.approx((line.slope, *line.slope_interval(0.95)))


def test_there_is_no_line_through_two_points_or_one_place() -> None:
    assert line_through([(1.0, 1.0), (2.0, 2.0)]) is None
    assert line_through([(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]) is None
    assert added_term([1.0, 2.0, 3.0, 4.0], [[1.0] * 4], [2.0] * 4, 0.95) is None
