"""No interval is narrower than the rounding of the figures that it follows from."""

import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.api.scaling_reports import ScalingRequest, scaling
from busbw.base.units import percent_range
from busbw.formats.scaling_table import read_table
from busbw.judge.scaling.application import application_view
from busbw.judge.scaling.places import LinePlace, combined, trend_of
from busbw.model.scaling import ScalingEstimate, ScalingReport
from busbw.show.text.scaling import scaling_text

from .observed import timed

TWO_NETWORKS = str(Path(__file__).parent / "samples" / "two-networks.log")
GROK = str(Path(__file__).parent / "samples" / "grok1-azure.csv")
CASES = settings(max_examples=200, deadline=None, derandomize=True)


def digits(value: float, rounding: float) -> ScalingEstimate:
    return ScalingEstimate(value=value, low=value * (1 - rounding), high=value * (1 + rounding), basis="digits")


def test_throughputs_that_were_computed_from_rounded_steps_have_the_rounding_of_the_steps() -> None:
    (view,) = scaling(
        ScalingRequest(sources=(GROK,), result="tokens_per_s", kind="weak", base=512, ignored=("gbs",))
    ).views
    fp8 = view.series[0].points[-1].efficiency
    assert fp8 is not None
    # 17.85/18.45 and 17.95/18.35, not the six digits of 911805 over 468637.
    assert (fp8.low, fp8.high) == pytest.approx((17.85 / 18.45, 17.95 / 18.35), abs=1e-5)


def test_throughputs_that_were_measured_keep_their_own_digits() -> None:
    # The works of these rows differ by what the steps were rounded by.
    text = "gpus,step_s,tokens_per_s\n8,19.4,215873\n16,9.7,433011\n32,4.9,857204\n"
    rows = read_table(text, "t.csv", wanted="tokens_per_s")
    for row in rows:
        assert row.rate is not None
        assert row.rate.high == row.rate.value + 0.5


def test_repeats_that_print_alike_still_lie_as_far_apart_as_their_rounding_allows() -> None:
    found = combined([digits(18.4, 0.05 / 18.4)] * 3)
    assert (found.low, found.high) == pytest.approx((18.35, 18.45))


def test_an_interval_that_prints_alike_at_both_ends_is_rounded_outward() -> None:
    assert percent_range(0.97281, 0.97284) == "97.2 to 97.3 %"
    assert percent_range(0.973, 0.973) == "97.3 to 97.3 %"
    assert percent_range(-0.0161, 0.0049) == "-1.7 to 0.5 %"


@CASES
@given(low=st.floats(-10, 10), width=st.floats(0, 10))
def test_a_printed_interval_holds_the_one_it_stands_for(low: float, width: float) -> None:
    ends = re.fullmatch(r"(-?[\d.]+) to (-?[\d.]+) %", percent_range(low, low + width))
    assert ends is not None
    assert float(ends[1]) <= 100 * low + 1e-5
    assert float(ends[2]) >= 100 * (low + width) - 1e-5


@CASES
@given(
    values=st.lists(st.floats(0.5, 2.0), min_size=3, max_size=8),
    ends=st.lists(st.sampled_from([-1.0, 1.0]), min_size=8, max_size=8),
    rounding=st.floats(1e-4, 0.1),
)
def test_a_slope_is_inside_its_interval_wherever_the_printed_figures_lay(
    values: list[float], ends: list[float], rounding: float
) -> None:
    at = [2**power for power in range(len(values))]

    def line(shift: float) -> list[LinePlace]:
        moved = [value * (1 + shift * end * rounding) for value, end in zip(values, ends, strict=False)]
        return [
            LinePlace(at=place, values=(value,), estimate=digits(value, rounding))
            for place, value in zip(at, moved, strict=True)
        ]

    printed_line, real = trend_of(line(0.0), "nodes"), trend_of(line(0.99 * math.log1p(rounding) / rounding), "nodes")
    assert printed_line.low is not None
    assert printed_line.high is not None
    assert real.per_doubling is not None
    # -log(1 - r) is a little more than log(1 + r): the ends are shares, the line is of logarithms.
    slack = 2 * rounding**2
    assert printed_line.low - slack <= real.per_doubling <= printed_line.high + slack


def test_a_point_says_how_many_results_and_an_answer_how_many_points_it_rests_on() -> None:
    places = [LinePlace(at=at, values=(1.0,), estimate=digits(1.0, 0.001)) for at in (2, 4, 8, 16)]
    assert "4 points" in trend_of(places, "nodes").words
    assert "from 2 points" in trend_of(places[:2], "nodes").words


def test_two_values_of_a_column_at_the_base_are_two_lines_and_no_traceback(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("gpus,dtype,mfu_pct,step_s,notes\n8,BF16,45.4,24.03,a\n8,FP8,27.4,19.89,b\n16,BF16,44.9,24.5,c\n")
    (view,) = scaling(ScalingRequest(sources=(str(table),), kind="weak")).views
    assert [series.label for series in view.series] == ["BF16", "FP8"]
    assert view.series[0].left_out == ()


def test_an_efficiency_far_above_100_percent_is_a_note_and_gives_no_trend(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("gpus,step_s\n8,24.03\n16,21.52\n32,10.64\n64,20.64\n")
    report = scaling(ScalingRequest(sources=(str(table),), kind="weak"))
    assert [(finding.code, finding.severity) for finding in report.findings] == [("SCAL005", "note")]
    trend = report.views[0].series[0].trend
    assert trend is not None
    assert trend.answer == "cannot_tell"
    assert "other work" in trend.words
    assert report.verdict is not None
    assert report.verdict.outcome == "cannot_tell"


def test_a_cell_that_tells_nothing_is_no_setting() -> None:
    rows = read_table("nodes,time_s,platform\n1,8,n/a\n2,4,\n4,2,x\n", "t.csv")
    assert [row.settings for row in rows] == [(), (), (("platform", "x"),)]


def test_results_that_are_no_repeats_are_told_by_a_note() -> None:
    (view,) = scaling(ScalingRequest(sources=(TWO_NETWORKS,))).views
    (line,) = view.series
    assert [(point.at, point.observations) for point in line.points] == [(8, 2)]
    assert any("70.1 times apart: probably no repeats" in note for note in view.notes)


def test_a_superlinear_point_has_no_serial_share_to_print(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [timed(1, 100.0), timed(2, 45.0), timed(4, 26.0)]
    scaling_text(ScalingReport(views=(application_view(rows, axis="nodes", kind="strong"),)))
    assert "none" in capsys.readouterr().out
