"""Recipes as text: a list, and one with its steps, its files and what to know."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from busbw.facts.recipes import Misfit, Plugin, RecipeFacts, Release, Tried, Versions
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


_PLUGIN = "aws-ofi-nccl"
_NAMES = {"efa": "EFA software", "osu": "OSU micro-benchmarks"}
_VERSIONS_MARK = {"error": "refused", "warning": "warned of"}


def versions_text(known: Versions) -> None:
    """Print every fact on a line of its own, with its source."""
    out = console()
    for title, rows in _sections(known):
        out.print(Text(title, style="bold"))
        for row, source in rows:
            out.print(Padding(Text(printable(f"{row} ({source})")), (0, 0, 0, 2)))
        out.print()


def _sections(known: Versions) -> Iterator[tuple[str, Iterable[tuple[str, str]]]]:
    yield "NCCL as a wheel", ((f"{each.name}: {', '.join(each.versions)}", each.checked) for each in known.wheel)
    yield (
        "NCCL as a package",
        ((f"{each.nccl} for CUDA {', '.join(each.cuda)}", each.source) for each in known.package),
    )
    yield "releases, and what comes with them", ((_release(each), each.source) for each in known.release)
    yield (
        "images, and what is in them",
        (
            (f"{each.name}: {_parts(NCCL=each.nccl, CUDA=each.cuda, plugin=each.plugin, HPCX=each.hpcx)}", each.source)
            for each in known.image
        ),
    )
    yield f"{_PLUGIN}, and what it was tested with", ((_plugin(each), each.source) for each in known.plugin)
    yield "run together by somebody", ((_tried(each), each.source) for each in known.tried)
    yield "what does not fit, or may not", ((_misfit(each), each.source) for each in known.misfit)


def _release(release: Release) -> str:
    name = f"{_NAMES[release.of]} {release.version}"
    return f"{name}: {_parts(libfabric=release.libfabric, plugin=release.plugin)}" if release.of == "efa" else name


def _plugin(plugin: Plugin) -> str:
    since = _parts(NCCL=plugin.nccl_since, libfabric=plugin.libfabric_since)
    return f"{plugin.version}: NCCL {', '.join(plugin.nccl)}; works since {since}"


def _tried(tried: Tried) -> str:
    stack = _parts(NCCL=tried.nccl, CUDA=tried.cuda, plugin=tried.plugin, libfabric=tried.libfabric)
    image = f" in {tried.image}" if tried.image is not None else ""
    return f"{stack}{image}, {', '.join(tried.platforms)}: {tried.result or 'no result'}"


def _misfit(misfit: Misfit) -> str:
    where = ", ".join((*misfit.platforms, *misfit.fabrics)) or "anywhere"
    return f"{_VERSIONS_MARK[misfit.severity]}, {where}: {misfit.text}"


def _parts(**versions: str | None) -> str:
    names = {"plugin": _PLUGIN, "HPCX": "HPC-X"}
    known = [f"{names.get(name, name)} {version}" for name, version in versions.items() if version is not None]
    return ", ".join(known) or "not known here"
