"""The verbs `report` and `plot`: results as one HTML file, or as a drawing."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from busbw.api.reports import comparison as read_comparison
from busbw.api.reports import page_of
from busbw.api.reports import prediction as read_prediction
from busbw.api.reports import scaling as read_scaling
from busbw.api.reports import step as read_step
from busbw.base.errors import InputError
from busbw.base.text import printable
from busbw.base.units import format_size
from busbw.show.figures.axes import Theme
from busbw.show.page.panels import (
    FIGURE_NAMES,
    FigureName,
    comparison_svg,
    import_svg,
    prediction_svg,
    runs_svg,
    scaling_svg,
)
from busbw.show.page.step import step_svg
from busbw.store.files import write_whole

_USUAL_FIGURES: tuple[FigureName, ...] = ("time", "busbw")
_COMPARISON = click.option(
    "--comparison",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What `busbw compare --json` printed, or a name.",
)
_SCALING = click.option(
    "--scaling", type=click.Path(path_type=Path), metavar="FILE", help="What `busbw scaling --json` printed."
)


@click.command("report")
@click.argument("run_names", metavar="[RUN]...", nargs=-1)
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="The HTML file to write.",
)
@click.option("--machine", metavar="FILE|PLATFORM", help="The node to draw: a topology file, snapshot or platform.")
@_COMPARISON
@_SCALING
def report(
    run_names: tuple[str, ...], output: Path, machine: str | None, comparison: Path | None, scaling: Path | None
) -> None:
    """Write one self-contained HTML file about one RUN [default: last] or several.

    A RUN may be an import, a file of nccl-tests or another tool, or a comparison, too.
    """
    from busbw.show.page.html import report_html

    wanted = run_names or (("last",) if comparison is None and scaling is None else ())
    page = page_of(wanted, machine)
    if comparison is not None and page.comparison is not None:
        raise InputError("one page holds one comparison, and two are named", where=f"--comparison {comparison}")
    html = report_html(
        page.subjects,
        read_comparison(comparison) if comparison is not None else page.comparison,
        read_scaling(scaling) if scaling is not None else None,
        page.imports,
        page.bisection,
        page.fabrics,
        page.isolations,
    ).encode()
    write_whole(output.absolute(), html)
    for note in page.notes:
        print(f"note: {printable(note)}", file=sys.stderr)
    print(f"wrote {printable(str(output))}, {format_size(len(html))}", file=sys.stderr)


@click.command("plot")
@click.argument("run_names", metavar="[RUN]...", nargs=-1)
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    default=Path("curves.svg"),
    show_default=True,
    metavar="FILE",
    help="The file to write: .svg, or .png.",
)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    type=click.Choice(["time", "busbw", "spread"]),
    help="What to draw; may be given several times [default: time and busbw].",
)
@_COMPARISON
@_SCALING
@click.option(
    "--step",
    type=click.Path(path_type=Path),
    metavar="FILE|RUN",
    help="What `busbw train plan --json` printed, result.json of `busbw train proxy`, or a run of `busbw train run`.",
)
@click.option(
    "--prediction", type=click.Path(path_type=Path), metavar="FILE", help="What `busbw predict --json` printed."
)
@click.option("--dark", is_flag=True, help="Light lines on dark ground.")
def plot(
    run_names: tuple[str, ...],
    output: Path,
    figures: tuple[str, ...],
    comparison: Path | None,
    scaling: Path | None,
    step: Path | None,
    prediction: Path | None,
    dark: bool,
) -> None:
    """Draw one RUN [default: last] or several, an import or a document that another verb wrote, as SVG or PNG."""
    if bool(run_names or figures) + sum(each is not None for each in (comparison, scaling, step, prediction)) > 1:
        raise click.UsageError("a drawing is of runs, a comparison, scaling, a step or a prediction: name one of them")
    if comparison is not None:
        _plot_comparison(comparison, output, dark=dark)
    elif scaling is not None:
        _plot_scaling(scaling, output, dark=dark)
    elif step is not None:
        _plot_step(step, output, dark=dark)
    elif prediction is not None:
        _plot_prediction(prediction, output, dark=dark)
    else:
        _plot_results(run_names, output, figures, dark=dark)


def _plot_results(names: Sequence[str], output: Path, figures: Sequence[str], *, dark: bool) -> None:
    """Draw the curves of some runs, of one import, or a comparison, into an SVG or a PNG."""
    _check_picture(output)
    wanted = tuple(each for each in FIGURE_NAMES if each in figures) or _USUAL_FIGURES
    page = page_of(names or ("last",))
    if page.isolations and not (page.subjects or page.imports or page.comparison):
        raise InputError("a search over groups of nodes has no curves", hint="busbw report draws it")
    if page.fabrics and not (page.subjects or page.imports or page.comparison):
        raise InputError("a sweep over pairs of hosts has no curves", hint="busbw report draws it, busbw fabric too")
    if bool(page.subjects) + len(page.imports) + (page.comparison is not None) > 1:
        raise InputError("one drawing is of runs, of one import or of a comparison", hint="name one of them")
    if page.comparison is not None:
        _write_picture(comparison_svg(page.comparison, _theme(dark=dark)), output)
    if page.imports:
        _write_picture(import_svg(page.imports[0], wanted, _theme(dark=dark)), output)
    if page.subjects:
        if len(page.subjects) == 1 and not figures and page.subjects[0].run.step is not None:
            _plot_step(Path((*names, "last")[0]), output, dark=dark)
            return
        if len(page.subjects) > 1 and "spread" in wanted:
            raise InputError("the spread is one run's, and several are named", hint="name one run, or leave out spread")
        _write_picture(runs_svg(page.subjects, wanted, _theme(dark=dark)), output)


def _plot_comparison(path: Path, output: Path, *, dark: bool) -> None:
    """Draw what `busbw compare --json` wrote, or a comparison by its name."""
    _check_picture(output)
    _write_picture(comparison_svg(read_comparison(path), _theme(dark=dark)), output)


def _plot_scaling(path: Path, output: Path, *, dark: bool) -> None:
    """Draw what `busbw scaling --json` wrote."""
    _check_picture(output)
    _write_picture(scaling_svg(read_scaling(path).views, _theme(dark=dark)), output)


def _plot_step(path: Path, output: Path, *, dark: bool) -> None:
    """Draw where the time of a training step goes."""
    from busbw.model.run import Run
    from busbw.model.train.proxy import ProxyResult
    from busbw.show.figures.replayed_step import replayed_step_figure
    from busbw.show.figures.training import measured_step_figure, planned_step_figure

    _check_picture(output)
    found = read_step(path)
    if isinstance(found, Run):
        figure = replayed_step_figure(found)
    else:
        figure = measured_step_figure(found) if isinstance(found, ProxyResult) else planned_step_figure(found)
    if figure is None:
        raise InputError("the plan has no time of a step", where=str(path), hint="busbw train plan --step-time SECONDS")
    _write_picture(step_svg(figure, _theme(dark=dark)), output)


def _plot_prediction(path: Path, output: Path, *, dark: bool) -> None:
    """Draw what `busbw predict --json` wrote."""
    _check_picture(output)
    picture = prediction_svg(read_prediction(path), _theme(dark=dark))
    if picture is None:
        raise InputError("nothing is predicted, and there is nothing to draw", where=str(path), hint="rows say why")
    _write_picture(picture, output)


def _theme(*, dark: bool) -> Theme:
    return "dark" if dark else "light"


def _check_picture(output: Path) -> None:
    if output.suffix.lower() not in (".svg", ".png"):
        raise InputError(f"{output.name} ends neither in .svg nor in .png", where=f"-o {output}", hint="-o curves.svg")


def _write_picture(svg: str | None, output: Path) -> None:
    from busbw.show.figures.drawing import png

    if svg is None:
        raise InputError("nothing was measured, and there is nothing to draw", hint="busbw show says why")
    write_whole(output.absolute(), svg.encode() if output.suffix.lower() == ".svg" else png(svg))
    print(f"wrote {printable(str(output))}", file=sys.stderr)
