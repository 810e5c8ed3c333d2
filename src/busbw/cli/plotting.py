"""The verb `plot`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from busbw.api.reporting import subjects
from busbw.errors import InputError
from busbw.report.palette import Theme
from busbw.report.panels import FIGURE_NAMES, FigureName, runs_svg
from busbw.report.plain import printable
from busbw.report.png import png
from busbw.store.files import write_whole

_USUAL: tuple[FigureName, ...] = ("time", "busbw")


def plot_runs(names: Sequence[str], output: Path, figures: Sequence[str], *, dark: bool) -> None:
    """Draw the curves of some runs into an SVG or a PNG."""
    ending = output.suffix.lower()
    if ending not in (".svg", ".png"):
        raise InputError(f"{output.name} ends neither in .svg nor in .png", where=f"-o {output}", hint="-o curves.svg")
    wanted = cast("tuple[FigureName, ...]", tuple(each for each in FIGURE_NAMES if each in figures)) or _USUAL
    theme: Theme = "dark" if dark else "light"
    chosen = subjects(names)
    if len(chosen) > 1 and "spread" in wanted:
        raise InputError("the spread is one run's, and several are named", hint="name one run, or leave out spread")
    svg = runs_svg(chosen, wanted, theme)
    if svg is None:
        raise InputError("nothing was measured, and there is nothing to draw", hint="busbw show says why")
    write_whole(output.absolute(), svg.encode() if ending == ".svg" else png(svg))
    print(f"wrote {printable(str(output))}", file=sys.stderr)
