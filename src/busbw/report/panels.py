"""The figures of a report as panels of one drawing."""

from collections.abc import Iterator, Sequence
from typing import Literal

from busbw.report.drawing import Panel, figures_svg
from busbw.report.figures import busbw_figure, time_figure
from busbw.report.overview import joints_of
from busbw.report.palette import Theme
from busbw.report.section import series_of
from busbw.report.spread import spread_figure
from busbw.report.subject import Subject
from busbw.report.words import OUTCOMES

FigureName = Literal["time", "busbw", "spread"]
FIGURE_NAMES: tuple[FigureName, ...] = ("time", "busbw", "spread")
_TITLES = {"time": "time", "busbw": "bus bandwidth", "spread": "spread of the time"}


def runs_svg(subjects: Sequence[Subject], wanted: Sequence[FigureName], theme: Theme) -> str | None:
    """Return the figures of one run, or the curves of several together; None: nothing was measured.

    Of several runs there is no spread: it is one run's.
    """
    panels = tuple(_of_one(subjects[0], wanted) if len(subjects) == 1 else _of_several(subjects, wanted))
    if not panels:
        return None
    if len(subjects) > 1:
        return figures_svg(f"busbw: {len(subjects)} runs", ", ".join(each.label for each in subjects), panels, theme)
    run = subjects[0].run
    outcome = OUTCOMES[run.verdict.outcome].word
    return figures_svg(
        f"busbw on {run.plan.host.name}: {outcome}", f"run {run.plan.run_id}, {run.plan.created}", panels, theme
    )


def _of_one(subject: Subject, wanted: Sequence[FigureName]) -> Iterator[Panel]:
    ceilings = {ceiling.point: ceiling for ceiling in subject.run.ceilings}
    drawn = {"time": time_figure, "busbw": busbw_figure, "spread": spread_figure}
    for series in series_of(subject.run):
        for name in wanted:
            figure = drawn[name](series.measurements, ceilings)
            yield Panel(title=f"{series.name}: {_TITLES[name]}", figure=figure)


def _of_several(subjects: Sequence[Subject], wanted: Sequence[FigureName]) -> Iterator[Panel]:
    for joint in joints_of(subjects):
        if "time" in wanted:
            yield Panel(title=f"{joint.name}: {_TITLES['time']}", figure=joint.time)
        if "busbw" in wanted:
            yield Panel(title=f"{joint.name}: {_TITLES['busbw']}", figure=joint.busbw)
