"""The figures of a report as panels of one drawing."""

from collections.abc import Iterator, Sequence
from typing import Literal

from busbw.model.comparison import Comparison
from busbw.model.predict.prediction import Prediction
from busbw.model.scaling import Scaling
from busbw.show.figures.axes import Theme
from busbw.show.figures.comparison import versus_figures
from busbw.show.figures.drawing import Panel, figures_svg
from busbw.show.figures.imports import MOST_CURVES, import_curves
from busbw.show.figures.prediction import prediction_figures
from busbw.show.figures.rank_placement import rank_placement_figure
from busbw.show.figures.scaling import scaling_figures
from busbw.show.figures.series import busbw_figure, time_figure
from busbw.show.figures.spread import spread_figure
from busbw.show.page.overview import joints_of
from busbw.show.page.pictures import ImportSubject, ReportSubject
from busbw.show.page.section import explanations_of, series_of
from busbw.show.words import OUTCOMES

FigureName = Literal["time", "busbw", "spread"]
FIGURE_NAMES: tuple[FigureName, ...] = ("time", "busbw", "spread")
_TITLES = {"time": "time", "busbw": "bus bandwidth", "spread": "spread of the time"}


def runs_svg(subjects: Sequence[ReportSubject], wanted: Sequence[FigureName], theme: Theme) -> str | None:
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


def import_svg(subject: ImportSubject, wanted: Sequence[FigureName], theme: Theme) -> str | None:
    """Return the curves of an import; None: it has none. A table of another tool has no samples, and no spread."""
    panels: list[Panel] = []
    for curve in import_curves(subject)[:MOST_CURVES]:
        if "time" in wanted and curve.time is not None:
            panels.append(Panel(title=f"{curve.name}: {_TITLES['time']}", figure=curve.time))
        if "busbw" in wanted and curve.rate is not None:
            panels.append(Panel(title=f"{curve.name}: {curve.rate_words}", figure=curve.rate))
    outcome = OUTCOMES[subject.explained.verdict.outcome].word
    sources = ", ".join(source.name for source in subject.imported.sources)
    return figures_svg(f"busbw on {subject.label}: {outcome}", sources, panels, theme) if panels else None


def comparison_svg(comparison: Comparison, theme: Theme) -> str | None:
    """Return how each side differs from the first, size by size, and rank placement; None: no size has two sides."""
    panels = [Panel(title=each.title, figure=each.figure) for each in versus_figures(comparison) if each.rows]
    placed = rank_placement_figure(comparison)
    panels += [Panel(title="rank placement", figure=placed)] if panels and placed is not None else []
    title = f"busbw compare: {comparison.verdict.outcome.replace('_', ' ')}"
    return figures_svg(title, comparison.verdict.sentence, panels, theme) if panels else None


def scaling_svg(views: Sequence[Scaling], theme: Theme) -> str | None:
    """Return what was reached against the size of the machine, and its share; None: there is no view."""
    panels: list[Panel] = []
    for each in scaling_figures(views):
        panels.append(Panel(title=each.title, figure=each.reached))
        panels += (
            [Panel(title=f"{each.title}: {each.share_words}", figure=each.share)] if each.share is not None else []
        )
    return figures_svg("busbw scaling", scaling_figures(views)[0].conditions, panels, theme) if panels else None


def prediction_svg(found: Prediction, theme: Theme) -> str | None:
    """Return what is predicted, where the time goes and what each input is worth; None: nothing is predicted."""
    panels = [Panel(title=each.title, figure=each.figure) for each in prediction_figures(found)]
    title = f"busbw predict: {found.collective} on {found.name}"
    words = "predicted, nothing of it is measured but what is marked as measured elsewhere"
    return figures_svg(title, words, panels, theme) if panels else None


def _of_one(subject: ReportSubject, wanted: Sequence[FigureName]) -> Iterator[Panel]:
    ceilings = {ceiling.point: ceiling for ceiling in subject.run.ceilings}
    explained = explanations_of(subject)
    for series in series_of(subject.run):
        figures = {
            "time": time_figure(series.measurements, ceilings, explained),
            "busbw": busbw_figure(series.measurements, ceilings, explained),
            "spread": spread_figure(series.measurements, ceilings),
        }
        for name in wanted:
            yield Panel(title=f"{series.name}: {_TITLES[name]}", figure=figures[name])


def _of_several(subjects: Sequence[ReportSubject], wanted: Sequence[FigureName]) -> Iterator[Panel]:
    for joint in joints_of(subjects):
        if "time" in wanted:
            yield Panel(title=f"{joint.name}: {_TITLES['time']}", figure=joint.time)
        if "busbw" in wanted:
            yield Panel(title=f"{joint.name}: {_TITLES['busbw']}", figure=joint.busbw)
