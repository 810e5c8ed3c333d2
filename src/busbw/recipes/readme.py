"""What a folder of a recipe says about itself."""

import textwrap
from collections.abc import Iterable, Iterator

from busbw import __version__
from busbw.model.recipe import Recipe, RecipeFile

_COLUMNS = 100


def readme(recipe: Recipe) -> RecipeFile:
    """Return the page as Markdown: what it is, the commands in order, what to know, files, sources."""
    return RecipeFile(name="README.md", use="this recipe in words", text="\n".join(_lines(recipe)) + "\n")


def _lines(recipe: Recipe) -> Iterator[str]:
    yield f"# {recipe.title}"
    yield ""
    of = f" for {recipe.platform}" if recipe.platform is not None else ""
    yield from _wrapped(f"Recipe {recipe.name}{of}, written by busbw {__version__}. {recipe.about}")
    yield from _list("Needs", recipe.needs)
    yield from ("", "## Steps", "", "```sh", *recipe.steps, "```", "")
    yield from _wrapped(
        "check.sh ends with exit code 0 where everything is proven, else with 1 and a list of what is not. "
        "Without Slurm: `HOSTS=FILE bash check.sh`, with a host file."
    )
    yield from _list("To know", (_note(note.text, note.source, note.severity) for note in recipe.notes))
    yield from _list("Files", (f"{file.name}: {file.use}" for file in recipe.files))
    yield from ("", "## Versions without a package", "", *_wrapped(recipe.from_source))
    yield from _list("Sources", recipe.sources)


def _note(text: str, source: str | None, severity: str) -> str:
    return f"{'warning: ' if severity == 'warning' else ''}{text}{f' ({source})' if source else ''}"


def _list(heading: str, items: Iterable[str]) -> Iterator[str]:
    rows = list(items)
    if rows:
        yield from ("", f"## {heading}", "")
        for row in rows:
            yield from _wrapped(row, "- ", "  ")


def _wrapped(text: str, first: str = "", others: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        _COLUMNS,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
