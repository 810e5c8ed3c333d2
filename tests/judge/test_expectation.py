"""What is expected of large messages, and when they are slow."""

import pytest

from busbw.judge.ceiling import ceilings
from busbw.judge.expectation import cache_findings, expectation_of, expectations, slow_findings

from .factories import MiB, make_measurement, make_plan, make_rates, make_views

# all_gather of 1 MiB over 4 ranks, 40 GB/s: 2 (n-1)/n S at 10 GB/s a rank.
EXPECTED_S = 2 * 0.75 * MiB / 10e9


def test_all_gather_with_two_copies_reaches_half_of_its_ceiling():
    measurement = make_measurement("all_gather", MiB)

    expectation = expectation_of(make_plan(), make_rates(), measurement)
    (ceiling,) = ceilings(make_plan(), make_rates(), (measurement,))

    assert expectation is not None
    assert expectation.time_s == pytest.approx(EXPECTED_S)
    assert expectation.busbw_Bps == pytest.approx(ceiling.busbw_Bps / 2)


def test_twice_the_expected_time_is_not_slow_and_a_little_more_is():
    near = make_measurement("all_gather", MiB, median_s=2.0 * EXPECTED_S)
    beyond = make_measurement("all_gather", MiB, median_s=2.1 * EXPECTED_S)

    found = [slow_findings(make_plan(), expectations(make_plan(), make_rates(), (one,))) for one in (near, beyond)]

    assert found[0] == ()
    assert [one.code for one in found[1]] == ["PERF001"]
    assert "coll_tuned_allgather_algorithm" in (found[1][0].fix or "")


def test_only_the_favourable_end_of_the_interval_counts():
    wide = make_measurement("all_gather", MiB, median_s=2.1 * EXPECTED_S, spread=0.1)

    assert slow_findings(make_plan(), expectations(make_plan(), make_rates(), (wide,))) == ()


def test_several_slow_sizes_of_one_collective_are_one_finding_about_the_worst():
    measurements = tuple(
        make_measurement("all_gather", size, median_s=factor * EXPECTED_S * size / MiB, point=point)
        for point, (size, factor) in enumerate(((MiB, 2.5), (2 * MiB, 4.0), (4 * MiB, 3.0)))
    )

    (found,) = slow_findings(make_plan(), expectations(make_plan(), make_rates(), measurements))

    assert found.point == 1
    assert "also all_gather 1 MiB, all_gather 4 MiB" in found.evidence


def test_over_loopback_the_stream_rate_is_expected():
    share = (("lo", 0.99),)
    expected_s = 3 * MiB / 6e9
    good = make_measurement("all_gather", MiB, median_s=1.9 * expected_s, tcp_share=share)
    bad = make_measurement("all_gather", MiB, median_s=2.5 * expected_s, tcp_share=share)

    found = [
        slow_findings(make_plan(), expectations(make_plan(), make_rates(40e9, 6e9), (one,))) for one in (good, bad)
    ]

    assert found[0] == ()
    assert [one.code for one in found[1]] == ["PERF002"]


@pytest.mark.parametrize(
    "changes",
    [
        {"size_bytes": MiB // 2},
        {"samples": 29},
        {"verified": False},
        {"collective": "all_reduce", "dtype": "bfloat16"},
        {"ranks": 32},
        {"tcp_share": (("eth0", 1.0),)},
        {"per_rank": make_views(losses=900)},
    ],
    ids=["small", "few samples", "not verified", "16-bit sum", "small parts", "leaves the host", "disturbed"],
)
def test_nothing_is_expected_of(changes):
    assert expectation_of(make_plan(), make_rates(), make_measurement(**changes)) is None


def test_a_measurement_above_its_ceiling_is_noted_as_cached():
    above = make_measurement("all_gather", MiB, median_s=5e-5)
    below = make_measurement("all_gather", MiB, median_s=1e-4)

    found = [cache_findings((one,), ceilings(make_plan(), make_rates(), (one,))) for one in (above, below)]

    assert [one.code for one in found[0]] == ["PERF003"]
    assert found[1] == ()
