"""The verb `plot`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from busbw.api.report import comparison, page_of, scaling
from busbw.base.errors import InputError
from busbw.show.figures.axes import Theme
from busbw.show.figures.drawing import png
from busbw.show.page.panels import FIGURE_NAMES, FigureName, comparison_svg, import_svg, runs_svg, scaling_svg
from busbw.show.plain import printable
from busbw.store.files import write_whole

_USUAL: tuple[FigureName, ...] = ("time", "busbw")


def plot_results(names: Sequence[str], output: Path, figures: Sequence[str], *, dark: bool) -> None:
    """Draw the curves of some runs, of one import, or a comparison, into an SVG or a PNG."""
    _check(output)
    wanted = tuple(each for each in FIGURE_NAMES if each in figures) or _USUAL
    page = page_of(names or ("last",))
    if bool(page.subjects) + len(page.imports) + (page.comparison is not None) > 1:
        raise InputError("one drawing is of runs, of one import or of a comparison", hint="name one of them")
    if page.comparison is not None:
        _write(comparison_svg(page.comparison, _theme(dark=dark)), output)
    if page.imports:
        _write(import_svg(page.imports[0], wanted, _theme(dark=dark)), output)
    if page.subjects:
        if len(page.subjects) > 1 and "spread" in wanted:
            raise InputError("the spread is one run's, and several are named", hint="name one run, or leave out spread")
        _write(runs_svg(page.subjects, wanted, _theme(dark=dark)), output)


def plot_comparison(path: Path, output: Path, *, dark: bool) -> None:
    """Draw what `busbw compare --json` wrote, or a comparison by its name."""
    _check(output)
    _write(comparison_svg(comparison(path), _theme(dark=dark)), output)


def plot_scaling(path: Path, output: Path, *, dark: bool) -> None:
    """Draw what `busbw scaling --json` wrote."""
    _check(output)
    _write(scaling_svg(scaling(path).views, _theme(dark=dark)), output)


def _theme(*, dark: bool) -> Theme:
    return "dark" if dark else "light"


def _check(output: Path) -> None:
    if output.suffix.lower() not in (".svg", ".png"):
        raise InputError(f"{output.name} ends neither in .svg nor in .png", where=f"-o {output}", hint="-o curves.svg")


def _write(svg: str | None, output: Path) -> None:
    if svg is None:
        raise InputError("nothing was measured, and there is nothing to draw", hint="busbw show says why")
    write_whole(output.absolute(), svg.encode() if output.suffix.lower() == ".svg" else png(svg))
    print(f"wrote {printable(str(output))}", file=sys.stderr)
