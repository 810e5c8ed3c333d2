"""Recipes as text: a list, and one with its steps, its files and what to know."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from busbw.facts.recipes import RecipeFacts
from busbw.model.recipe import Recipe
from busbw.show.plain import printable
from busbw.show.text.terminal import console

# With fewer columns what a recipe needs is left out: `show` says it.
_WIDTH_FOR_NEEDS = 100
_ANY = "any"
_MARK = {"warning": "warning: ", "note": ""}


def recipes_text(known: Sequence[RecipeFacts]) -> None:
    """Print one line a recipe: name, what, for which machines, and where there is room what it needs."""
    out = console()
    headings = ("name", "what", "for", "needs") if out.width >= _WIDTH_FOR_NEEDS else ("name", "what", "for")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for place, heading in enumerate(headings):
        # The name can be pasted into the next command, and must not be cut.
        table.add_column(heading, no_wrap=place == 0, overflow="fold")
    for each in known:
        machines = ", ".join(each.platforms or each.fabrics) or _ANY
        cells = (each.name, each.title, machines, "; ".join(each.needs))
        table.add_row(*(Text(printable(cell)) for cell in cells[: len(headings)]))
    out.print(table)


def recipe_text(recipe: Recipe) -> None:
    """Print what a recipe is, its commands in order, what to know, its files and sources."""
    out = console()
    of = f" for {recipe.platform}" if recipe.platform is not None else ""
    out.print(Text(printable(f"{recipe.name}{of}: {recipe.title}"), style="bold"))
    out.print(Text(printable(recipe.about)))
    _lines(out, "needs", recipe.needs)
    _lines(out, "steps", recipe.steps)
    _lines(out, "to know", (_note(each.severity, each.text, each.source) for each in recipe.notes))
    _lines(out, "files", (f"{each.name}: {each.use}" for each in recipe.files))
    _lines(out, "versions without a package", [recipe.from_source])
    _lines(out, "sources", recipe.sources)


def _note(severity: str, text: str, source: str | None) -> str:
    return f"{_MARK[severity]}{text}{f' ({source})' if source else ''}"


def _lines(out: Console, title: str, lines: Iterable[str]) -> None:
    rows = list(lines)
    if rows:
        out.print()
        out.print(Text(title, style="bold"))
        for row in rows:
            out.print(Padding(Text(printable(row)), (0, 0, 0, 2)))
