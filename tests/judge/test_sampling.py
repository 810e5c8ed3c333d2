"""Warnings about samples: each fires on its case and not beside it, once for all points."""

import pytest

from busbw.judge.conditions import effective_samples, sampling_findings

from .factories import make_measurement, make_plan, make_views, make_wrong


def codes(*measurements):
    return [found.code for found in sampling_findings(make_plan(), measurements)]


def test_a_good_measurement_gives_no_warning():
    assert codes(make_measurement()) == []


@pytest.mark.parametrize(
    ("code", "case", "neighbour"),
    [
        ("RUN004", {"samples": 29}, {"samples": 30}),
        ("RUN005", {"spread": 0.011}, {"spread": 0.009}),
        ("RUN011", {"drift": 0.06}, {"drift": 0.04}),
        ("RUN011", {"drift": -0.06}, {"drift": None}),
        ("RUN012", {"autocorrelation": 0.31}, {"autocorrelation": 0.29}),
        ("RUN012", {"autocorrelation": 0.31}, {"autocorrelation": -0.9}),
        ("RUN013", {"warmup_stable": False}, {"warmup_stable": True}),
        ("RUN014", {"samples": 94, "missed": 6}, {"samples": 96, "missed": 4}),
        ("RUN019", {"clock_error_s": 1.1e-5}, {"clock_error_s": 0.9e-5}),
        ("RUN019", {"clock_error_s": 1.1e-5}, {"clock_error_s": 1.1e-5, "mode": "stream"}),
        ("RUN020", {"verified": False}, {"verified": True}),
        ("RUN022", {"per_rank": make_views(losses=250)}, {"per_rank": make_views(losses=249)}),
        (
            "RUN022",
            {"per_rank": make_views(losses=250), "mean_s": 0.01},
            {"per_rank": make_views(losses=250), "mean_s": 0.02},
        ),
    ],
)
def test_a_rule_fires_on_its_case_and_not_beside_it(code, case, neighbour):
    assert codes(make_measurement(**case)) == [code]
    assert codes(make_measurement(**neighbour)) == []


def test_drift_within_a_wide_interval_is_not_told():
    assert codes(make_measurement(drift=0.06, spread=0.04)) == ["RUN005"]


def test_one_finding_tells_of_all_points_and_of_the_worst():
    measurements = tuple(make_measurement(point=point, drift=drift) for point, drift in enumerate((0.06, 0.3, 0.1)))

    (found,) = sampling_findings(make_plan(), measurements)

    assert "3 points" in found.title
    assert found.evidence.startswith("all_gather 1 MiB: +30.0 %")
    assert found.point is None


def test_samples_of_a_wrong_result_are_not_discussed():
    assert codes(make_measurement(wrong=make_wrong(), samples=0, verified=False)) == []


def test_correlated_samples_count_for_fewer():
    assert effective_samples(make_measurement(autocorrelation=0.6, samples=4000)) == pytest.approx(1000)
    assert effective_samples(make_measurement(autocorrelation=-0.6, samples=4000)) == 4000
