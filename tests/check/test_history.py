"""Failures over time: what counts as one, and the limits of the time between them."""

import pytest
from scipy import special

from busbw.check.history import history_of, poisson_limits
from busbw.model.check.report import NodePast

HOUR_S = 3600.0


def checks(host, outcomes):
    """Return checks an hour apart: `.` sound, `x` failing, `?` cannot tell."""
    words = {".": "ok", "x": "error", "?": "cannot_tell"}
    return [
        NodePast(
            host=host, unix_s=HOUR_S * number, profile="quick", outcome=words[each], codes=("CHK004",) * (each == "x")
        )
        for number, each in enumerate(outcomes)
    ]


def test_checks_that_fail_one_after_the_other_are_one_failure():
    (found,) = history_of(checks("n0", "..xxx..x.")).nodes

    assert (found.failures, found.checks, found.watched_s) == (2, 9, 4 * HOUR_S)
    assert found.codes == ("CHK004",)
    assert found.mtbf_s is None


def test_cannot_tell_is_no_failure():
    assert history_of(checks("n0", ".?.?")).nodes[0].failures == 0


def test_three_failures_have_a_mean_with_limits():
    (found,) = history_of(checks("n0", ".x" * 3)).nodes

    assert found.failures == 3
    assert found.mtbf_s == HOUR_S
    assert found.mtbf_low_s < found.mtbf_s < found.mtbf_high_s


def test_nodes_that_fail_most_stand_first():
    past = [*checks("a", "...."), *checks("b", ".x.x"), *checks("c", "...x")]

    found = history_of(reversed(past))

    assert [each.host for each in found.nodes] == ["b", "c", "a"]
    assert found.sentence == "2 nodes of 3 failed; b most often, 2 times in 4 checks"


def test_without_checks_there_is_nothing_to_tell():
    assert history_of(()).sentence == "no check is stored yet"


@pytest.mark.parametrize("count", [1, 3, 10, 200])
def test_limits_are_those_of_the_chi_square_distribution(count):
    low, high = poisson_limits(count, 0.9)

    assert low == pytest.approx(special.chdtri(2 * count, 0.95) / 2, rel=1e-6)
    assert high == pytest.approx(special.chdtri(2 * count + 2, 0.05) / 2, rel=1e-6)
