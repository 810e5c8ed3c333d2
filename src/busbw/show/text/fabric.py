"""A swept fabric in the terminal, with colours where it has some.

Alone because the lines, which say the same without colour, are values of `fabric.drawing`, which knows no terminal.
"""

from collections.abc import Collection

from rich.text import Text

from busbw.base.text import printable
from busbw.fabric.drawing import ASCII, UNICODE, VIEW_NAMES, drawn_lines
from busbw.fabric.report import FabricReport
from busbw.show.text.terminal import VERDICT_COLOURS, console

_COLOURS = {"plain": "", "heading": "bold", "suspect": "bold red"}


def fabric_text(report: FabricReport, views: Collection[str] = VIEW_NAMES) -> None:
    """Print a verdict, its evidence and the views that are named."""
    out = console()
    colours = _COLOURS | {"verdict": VERDICT_COLOURS[report.verdict.outcome]}
    for line in drawn_lines(report, views, UNICODE if out.encoding.startswith("utf") else ASCII):
        out.print(Text(printable(line.text), style=colours[line.tone]), soft_wrap=True)
