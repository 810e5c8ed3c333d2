"""The figure that a page begins with holds every curve, what is expected of it, and what is possible."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.model.finding import Finding
from busbw.show.figures.axes import COLOURS, STYLES
from busbw.show.figures.drawing import Panel, figures_svg
from busbw.show.page.pictures import ReportSubject
from busbw.show.page.section import explanations_of
from busbw.show.page.summary import Curve, Reached, curve_of, curves_of_run, summary_figure, summary_of

from .factories import COLLECTIVES, make_run
from .valued import make_explained

SIZES = tuple(8 * 8**step for step in range(8))
RATES = st.floats(min_value=1e3, max_value=1e13)


def make_curve(label: str, share: float = 0.9, *, in_place: bool = False, **changes: float | None) -> Curve:
    """Return a curve that rises to a share of 400 GB/s; 400 expected, 340 the least, 450 possible."""
    values = {"least_Bps": 3.4e11, "expected_Bps": 4e11, "possible_Bps": 4.5e11} | changes
    points = [
        Reached(size_bytes=size, time_s=1e-5, busbw_Bps=share * 4e11 * size / (size + 2**20), **values)
        for size in SIZES
    ]
    return curve_of(label, points, in_place=in_place)


def names(curves: list[Curve]) -> list[str]:
    return [trace["name"] for trace in summary_figure(curves)["data"]]


def test_what_all_curves_share_is_drawn_once() -> None:
    assert names([make_curve("a"), make_curve("b", 0.5)]) == ["expected of a, b", "possible", "a", "b"]


def test_what_is_of_one_curve_alone_has_its_colour_and_goes_with_it() -> None:
    curves = [make_curve("a"), make_curve("b", least_Bps=1e11, expected_Bps=2e11, possible_Bps=3e11)]

    traces = {trace["name"]: trace for trace in summary_figure(curves)["data"]}

    assert traces["expected of b"]["fillcolor"] == f"{STYLES[1][0]}-band"
    assert traces["possible of b"]["line"]["color"] == STYLES[1][0]
    assert traces["possible of b"]["legendgroup"] == traces["b"]["legendgroup"] == "b"
    assert not traces["possible of b"]["showlegend"]


def test_a_curve_without_expectation_or_bound_has_none() -> None:
    assert names([make_curve("a", least_Bps=None, expected_Bps=None, possible_Bps=None)]) == ["a"]


def test_curves_in_place_beside_those_out_of_place_and_more_than_can_be_told_apart_are_quiet() -> None:
    curves = [make_curve(f"c{number}") for number in range(len(STYLES) + 2)] + [
        make_curve("c0, in place", in_place=True)
    ]

    found = names(curves)

    assert "3 other sweeps" in found
    assert "c0, in place" not in found
    assert "a, in place" in names([make_curve("a, in place", in_place=True)])


def test_an_axis_from_zero_shows_what_is_missing_and_logarithms_what_is_far_below() -> None:
    near, far = summary_figure([make_curve("a")]), summary_figure([make_curve("a", 0.05, expected_Bps=None)])

    assert near["layout"]["yaxis"]["type"] == "linear"
    assert near["layout"]["yaxis"]["range"][0] == 0
    assert far["layout"]["yaxis"]["type"] == "log"
    assert near["layout"]["xaxis"]["type"] == far["layout"]["xaxis"]["type"] == "log"


def test_a_run_has_a_curve_for_each_collective_with_what_its_sizes_are_held_against() -> None:
    run = make_run()
    explained = explanations_of(ReportSubject(run=run, label="r", explained=make_explained(run)))

    curves = curves_of_run(run, explained)

    assert tuple(curve.label for curve in curves) == COLLECTIVES
    first, large = curves[0].points[0], curves[0].points[-1]
    # Of the smallest 3 us are expected; their bus bandwidth is in the same relation to what was reached.
    assert first.expected_Bps == pytest.approx(first.busbw_Bps * (first.time_s or 0) / 3e-6)
    assert (large.least_Bps, large.expected_Bps) == (4e10, 4.6e10)
    # What the run measured of this machine goes before a physical bound.
    measured = {ceiling.point: ceiling.busbw_Bps for ceiling in run.ceilings}
    assert large.possible_Bps == measured[run.measurements[len(curves[0].points) - 1].point]
    assert first.possible_Bps == 5e10


def test_one_finding_of_each_rule_is_shown_and_the_rest_are_counted() -> None:
    findings = [
        Finding(code=code, severity="warn", title=f"t{number}", evidence="e")
        for number, code in enumerate(("PERF004", "PERF004", "RUN003", "PERF011", "PERF014"))
    ]

    summary = summary_of("k", [make_curve("a")], findings)

    assert [one.title for one in summary.findings] == ["t0", "t2", "t3"]
    assert summary.more == 2


def test_notes_are_shown_where_there_is_nothing_graver_and_a_step_that_is_a_fix_is_not_said_twice() -> None:
    note = Finding(code="IMP010", severity="note", title="t", evidence="e", fix="x")

    summary = summary_of("k", [], [note], steps=("x", "y"))

    assert summary.findings == (note,)
    assert summary.steps == ("y",)
    assert summary.figure is None


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(SIZES), RATES, st.none() | RATES, st.none() | RATES, st.none() | RATES),
            min_size=1,
        ),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
)
def test_any_curves_have_a_figure_and_a_drawing(rows, in_place) -> None:
    curves = [
        curve_of(
            f"c{number}",
            [
                Reached(
                    size_bytes=size, time_s=None, busbw_Bps=rate, least_Bps=low, expected_Bps=high, possible_Bps=most
                )
                for size, rate, low, high, most in row
            ],
            in_place=in_place and number % 2 == 0,
        )
        for number, row in enumerate(rows)
    ]

    figure = summary_figure(curves)

    low, high = figure["layout"]["yaxis"]["range"]
    assert math.isfinite(low)
    assert low < high
    assert "NaN" not in json.dumps(figure)
    for theme in COLOURS:
        assert figures_svg("t", "s", [Panel(title="", figure=figure)], theme).startswith("<svg")
