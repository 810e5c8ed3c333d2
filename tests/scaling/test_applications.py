"""Speed-up and efficiency of applications, strong and weak."""

import pytest

from busbw.base.errors import InputError
from busbw.judge.scaling.application import application_view
from busbw.model.scaling import Observation, ScalingEstimate

from .observed import timed


def test_strong_scaling_is_against_the_smallest_machine_and_its_serial_share_is_found() -> None:
    # Amdahl with a twentieth that does not shrink.
    view = application_view([timed(p, 100 * (0.05 + 0.95 / p)) for p in (1, 2, 4, 8)], axis="nodes", kind="strong")
    (line,) = view.series
    speedups = [point.speedup.value for point in line.points if point.speedup is not None]
    assert speedups == pytest.approx([1, 1 / 0.525, 1 / 0.2875, 1 / 0.16875])
    assert [point.serial_share for point in line.points][1:] == pytest.approx([0.05] * 3)
    assert line.serial is not None
    assert line.serial.share == pytest.approx(0.05)


def test_efficiency_is_speedup_over_how_much_larger_the_machine_is_than_a_chosen_base() -> None:
    view = application_view([timed(2, 50.0), timed(4, 26.0), timed(8, 16.0)], axis="nodes", kind="strong", base=4)
    efficiencies = [point.efficiency.value for point in view.series[0].points if point.efficiency is not None]
    assert efficiencies == pytest.approx([26 / 50 * 2, 1.0, 26 / 16 / 2])
    with pytest.raises(InputError, match="nothing was measured on 3 nodes"):
        application_view([timed(2, 50.0)], axis="nodes", kind="strong", base=3)


def test_weak_scaling_by_time_and_by_throughput_agree() -> None:
    by_time = application_view([timed(1, 10.0), timed(2, 10.5), timed(4, 11.0)], axis="nodes", kind="weak")
    rates = [
        Observation(source="r", nodes=p, rate=ScalingEstimate(value=p * 1000 / time_s), rate_unit="tokens/s")
        for p, time_s in ((1, 10.0), (2, 10.5), (4, 11.0))
    ]
    by_rate = application_view(rates, axis="nodes", kind="weak")
    found = [
        [point.efficiency.value for point in view.series[0].points if point.efficiency is not None]
        for view in (by_time, by_rate)
    ]
    assert found[0] == pytest.approx([1, 10 / 10.5, 10 / 11])
    assert found[1] == pytest.approx(found[0])
    trends = [view.series[0].trend for view in (by_time, by_rate)]
    assert trends[0] is not None
    assert trends[1] is not None
    assert trends[0].per_doubling == pytest.approx(trends[1].per_doubling)
    assert by_rate.title == "tokens/s, weak scaling"


def test_a_column_that_differs_from_the_base_leaves_a_place_out_unless_it_may() -> None:
    here = [timed(p, 10.0, settings={"layers": str(layers), "gbs": str(p)}) for p, layers in ((1, 2), (2, 4), (4, 4))]
    view = application_view(here, axis="nodes", kind="weak", base=2, ignored=("gbs",))
    assert view.series[0].left_out == ((1, "other work than on the base: layers 2 instead of 4"),)
    assert [point.efficiency is None for point in view.series[0].points] == [True, False, False]
    assert not application_view(here, axis="nodes", kind="weak", ignored=("gbs", "layers")).series[0].left_out


def test_intervals_of_both_ends_widen_a_speedup() -> None:
    here = [
        Observation(source="a", nodes=p, time_s=ScalingEstimate(value=t, low=t - 0.5, high=t + 0.5, basis="digits"))
        for p, t in ((1, 20.0), (2, 10.0))
    ]
    point = application_view(here, axis="nodes", kind="strong").series[0].points[1]
    assert point.speedup is not None
    assert (point.speedup.low, point.speedup.high) == pytest.approx((19.5 / 10.5, 20.5 / 9.5))


def test_units_do_not_mix() -> None:
    here = [
        Observation(source="a", nodes=1, rate=ScalingEstimate(value=1.0), rate_unit="tokens"),
        Observation(source="b", nodes=2, rate=ScalingEstimate(value=1.0), rate_unit="samples"),
    ]
    with pytest.raises(InputError, match="samples, tokens cannot stand in one figure"):
        application_view(here, axis="nodes", kind="weak")


def test_rates_are_extrapolated_as_rates_in_their_own_unit() -> None:
    rates = [
        Observation(source="r", nodes=p, rate=ScalingEstimate(value=20 / (0.05 + 0.95 / p)), rate_unit="ns/day")
        for p in (1, 2, 4, 8)
    ]
    (found,) = application_view(rates, axis="nodes", kind="strong", at=(16,)).series[0].beyond
    assert found.time_s is None
    assert found.rate is not None
    assert found.rate.value == pytest.approx(20 / (0.05 + 0.95 / 16))
    assert "ns/day" in found.words
