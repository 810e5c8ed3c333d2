"""Runs, comparisons and scaling from files that anybody may have written: drawn, whatever is in them."""

from pathlib import Path
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.report.factories import make_plan_of, make_run, subjects
from tests.report.valued import make_comparison, make_scaling

from busbw.model.comparison import Comparison
from busbw.model.predict.prediction import PredictedCall
from busbw.model.run import Run
from busbw.model.scaling import LinePrediction, PredictedPoint, Scaling, ScalingEstimate, ScalingReport
from busbw.show.page.html import report_html
from busbw.show.page.panels import FIGURE_NAMES, comparison_svg, runs_svg, scaling_svg
from busbw.show.text.terminal import run_text

INTEGERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
MAYBE = st.none() | FLOATS
WORDS = st.text(max_size=30)
# A page is made of it now and then: packing takes most of the time.
_SOME_PAGES = 8


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    usual = make_comparison(draw(WORDS))
    points = tuple(
        structs.replace(
            point,
            collective=draw(WORDS),
            size_bytes=draw(INTEGERS),
            first_s=draw(FLOATS),
            other_s=draw(FLOATS),
            estimate=structs.replace(point.estimate, ratio=draw(FLOATS), low=draw(MAYBE), high=draw(MAYBE)),
        )
        for point in usual.versus[0].points[: draw(st.integers(0, 4))]
    )
    versus = (structs.replace(usual.versus[0], points=points),)
    return structs.replace(usual, versus=versus, least_difference=draw(FLOATS), false_claims=draw(FLOATS))


@st.composite
def predicted(draw: st.DrawFn, at: int) -> PredictedPoint:
    """Draw what a file may say is predicted at a place."""
    rates = {name: draw(FLOATS) for name in ("time_s", "busbw_Bps", "algbw_Bps", "low_Bps", "high_Bps", "bound_Bps")}
    parts = {name: draw(FLOATS) for name in ("latency_s", "filling_s", "flags_s", "wire_s")}
    words = {name: draw(WORDS) for name in ("algorithm", "limited_by", "interval_words", "widest")}
    counts = {name: draw(INTEGERS) for name in ("nodes", "ranks", "size_bytes")}
    lists = {name: (draw(WORDS),) for name in ("extrapolated", "basis", "documents")}
    whole = PredictedCall(kinship="across", **rates, **parts, **words, **counts, **lists)
    call = whole if draw(st.booleans()) else None
    return PredictedPoint(at=at, call=call, is_inside=draw(st.none() | st.booleans()), cannot=draw(st.none() | WORDS))


@st.composite
def views(draw: st.DrawFn) -> tuple[Scaling, ...]:
    (usual,) = make_scaling(draw(WORDS)).views
    estimates = st.none() | st.builds(ScalingEstimate, value=FLOATS, low=MAYBE, high=MAYBE)
    series = tuple(
        structs.replace(
            each,
            points=tuple(
                structs.replace(
                    point,
                    at=draw(INTEGERS),
                    busbw_Bps=draw(estimates),
                    rate=draw(estimates),
                    time_s=draw(estimates),
                    of_limit=draw(estimates),
                    efficiency=draw(estimates),
                    limit_Bps=draw(MAYBE),
                    limit_words=draw(WORDS),
                )
                for point in each.points[: draw(st.integers(0, 3))]
            ),
        )
        for each in usual.series
    )
    kind = draw(st.sampled_from(["collective", "strong", "weak"]))
    predictions = tuple(
        LinePrediction(
            line=each.label, platform=draw(WORDS), points=tuple(draw(predicted(point.at)) for point in each.points)
        )
        for each in series
    )
    other = {"title": draw(WORDS), "rate_unit": draw(WORDS), "predictions": predictions}
    return (structs.replace(usual, kind=kind, series=series, **other),)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(comparisons())
def test_any_comparison_is_a_well_formed_drawing(comparison: Comparison) -> None:
    svg = comparison_svg(comparison, "light")

    assert svg is None or ET.fromstring(svg) is not None


@settings(max_examples=100, deadline=None, derandomize=True)
@given(views())
def test_any_scaling_is_a_well_formed_drawing(scaling: tuple[Scaling, ...]) -> None:
    svg = scaling_svg(scaling, "dark")

    assert svg is None or ET.fromstring(svg) is not None


@settings(max_examples=_SOME_PAGES, deadline=None, derandomize=True)
@given(comparisons(), views())
def test_any_of_them_is_a_page(comparison: Comparison, scaling: tuple[Scaling, ...]) -> None:
    report = ScalingReport(verdict=None, views=scaling)
    assert report_html((), comparison, report).startswith("<!DOCTYPE html>")


@st.composite
def runs(draw: st.DrawFn) -> Run:
    usual = make_run(make_plan_of("all_reduce"))
    items = tuple(
        structs.replace(
            item,
            size_bytes=draw(INTEGERS),
            ranks=draw(st.integers(0, 2**40)),
            samples=draw(INTEGERS),
            median_s=draw(FLOATS),
            low_s=draw(FLOATS),
            high_s=draw(FLOATS),
            min_s=draw(FLOATS),
            max_s=draw(FLOATS),
            busbw_Bps=draw(FLOATS),
            percentiles=draw(
                st.lists(st.tuples(st.sampled_from([25.0, 75.0, 90.0, 99.0]), FLOATS), max_size=3).map(tuple)
            ),
            slow_excess_s=draw(MAYBE),
            per_rank=tuple(
                structs.replace(view, median_s=draw(FLOATS), p99_s=draw(MAYBE), host=draw(WORDS))
                for view in item.per_rank
            ),
        )
        for item in usual.measurements[: draw(st.integers(0, 4))]
    )
    ceilings = tuple(structs.replace(each, busbw_Bps=draw(FLOATS), rate_Bps=draw(FLOATS)) for each in usual.ceilings)
    return structs.replace(usual, measurements=items, ceilings=ceilings)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(runs())
def test_any_run_is_drawn_and_printed(run: Run) -> None:
    svg = runs_svg(subjects(run), FIGURE_NAMES, "light")
    run_text(run, Path("run"))

    assert svg is None or ET.fromstring(svg) is not None


@settings(max_examples=_SOME_PAGES, deadline=None, derandomize=True)
@given(runs(), runs())
def test_any_runs_are_a_page(first: Run, second: Run) -> None:
    assert report_html(subjects(first, second)).startswith("<!DOCTYPE html>")
