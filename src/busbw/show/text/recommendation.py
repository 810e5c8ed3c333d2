"""A recommendation as a page that can be pasted into a ticket."""

import re
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from busbw.base.text import printable
from busbw.base.units import format_size
from busbw.facts.recipes import Misfit, Plugin, RecipeFacts, Release, Tried, Versions
from busbw.measure.launchers.command_line import command_line
from busbw.model.launch import LaunchLine
from busbw.model.plan import JobFile
from busbw.model.recommendation import Alternative, LeftOut, Need, Recipe, Recommendation, Recommended
from busbw.model.request import Bind
from busbw.show.text.terminal import console

_HEADINGS: dict[Need, str] = {
    "needed": "needed: without it the job fails, hangs or takes another network",
    "helps": "helps: somebody measured or explained what it gains, or it follows from the platform's facts",
    "check_first": "check first: it may cost as much as it gains; measure with it and without",
}
_LEFT_OUT = {
    "default": "so anyway",
    "set_already": "set already",
    "unread": "not read",
    "not_yet": "not yet read",
    "removed": "no longer read",
    "other_job": "for another job",
    "no_effect": "no effect",
    "risky": "risky",
    "unreasoned": "no reason",
    "logging": "logging",
}
# What a shell would take for itself between double quotes.
_SPECIAL = re.compile(r'(["\\$`])')
_LABEL = 12

_Say = Callable[..., None]


def recommendation_text(found: Recommendation) -> None:
    """Print what to set, with reasons; what belongs to it; what is left out; what cannot be told; and the sources."""
    out = console()

    def say(words: str, *, hang: int | None = None, style: str = "") -> None:
        text = printable(words).replace("\n", "\\n")
        if out.is_terminal and hang is not None:
            text = textwrap.fill(
                text, out.width, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False
            )
        out.print(Text(text, style=style), soft_wrap=True)

    say(_title(found), hang=2, style="bold")
    for need, group in groupby(found.settings, key=lambda each: each.need):
        _heading(say, _HEADINGS[need])
        for each in group:
            _recommended(say, each, found)
    _rest(say, found)


def assigned(name: str, value: str | None) -> str:
    """Return a setting as it would be written in a shell; None: that it is unset."""
    if value is None:
        return f"unset {name}"
    quoted = _SPECIAL.sub(r"\\\1", value)
    return f'{name}="{quoted}"'


def _title(found: Recommendation) -> str:
    parts = [f"{found.nodes} node{'s' if found.nodes > 1 else ''}", f"for {found.goal}"]
    parts += [found.collective] if found.collective is not None else []
    parts += [format_size(found.size_bytes)] if found.size_bytes is not None else []
    parts += [found.libraries]
    parts += [f"following {found.follow}"] if found.follow is not None else []
    return f"{found.platform}: {', '.join(parts)}"


def _heading(say: _Say, words: str) -> None:
    say("")
    say(words, hang=2, style="bold")


def _recommended(say: _Say, each: Recommended, found: Recommendation) -> None:
    # Not wrapped, as all that is to be copied.
    say(f"  {assigned(each.name, each.value)}", style="bold" if each.need == "needed" else "")
    as_published = f" Published as {each.published_as}, its older name." if each.published_as is not None else ""
    _row(say, "why", f"{each.reason}{as_published}")
    _row(say, "if", each.conditions)
    _row(say, "costs", each.cost)
    for check in each.checks:
        _row(say, "check", check)
    for other in each.alternatives:
        _row(say, "or", _alternative(each.name, other, found))
    _row(say, "source", ", ".join(each.source))


def _row(say: _Say, label: str, words: str | None) -> None:
    if words:
        say(f"    {label:<{_LABEL - 4}}{words}", hang=_LABEL)


def _alternative(name: str, other: Alternative, found: Recommendation) -> str:
    follow = next((each for each in other.source if each in found.followable), None)
    how = f" (--follow {follow})" if follow is not None else ""
    reason = f": {other.reason}" if other.reason else ""
    return f"{assigned(name, other.value)}, {', '.join(other.source)}{reason}{how}"


def _rest(say: _Say, found: Recommendation) -> None:
    if found.launch:
        _heading(say, "with it")
    for advice in found.launch:
        say(f"  {advice.option}")
        _row(say, "why", advice.reason)
        _row(say, "source", ", ".join(advice.source))
    if found.left_out:
        _heading(say, "published, and left out")
    for left in found.left_out:
        say(f"  {_left_out(left)}", hang=4)
    if found.cannot_tell:
        _heading(say, "cannot tell")
    for words in found.cannot_tell:
        say(f"  {words}", hang=4, style="yellow")
    if found.sources:
        _heading(say, "sources")
    width = max((len(source.id) for source in found.sources), default=0)
    for source in found.sources:
        say(f"  {source.id:<{width}}  {source.reference}", hang=width + 4)


def _left_out(left: LeftOut) -> str:
    return f"{assigned(left.name, left.value)}  {_LEFT_OUT[left.kind]}: {left.reason} [{', '.join(left.source)}]"


_COLUMNS = 100
_END = "END_OF_FILE"


def launch_script(line: LaunchLine, directory: str, *, with_files: bool) -> str:
    """Return the script. `with_files`: it writes its files into `directory` first; else they are there."""
    found = line.recommendation
    nodes = "1 node" if found.nodes == 1 else f"{found.nodes} nodes"
    lines = [
        "#!/bin/bash",
        *_comment(f"{line.launcher} on {found.platform}, {nodes}, for {found.goal}; {found.libraries}"),
        *(each for setting in found.settings for each in _comment(f"{setting.name}: {setting.reason}")),
        *(each for mount in line.mounts for each in _comment(f"mounted: {_mount(mount)}")),
        *(each for note in line.notes for each in _comment(f"note: {note}")),
    ]
    if with_files:
        lines += [each for file in line.job.files for each in _written(file, directory)]
    return "\n".join([*lines, command_line(line.job)]) + "\n"


def _mount(bind: Bind) -> str:
    at = f" at {bind.target}" if bind.target not in (None, bind.source) else ""
    writable = "" if bind.read_only else ", writable"
    return f"{bind.source}{at}{writable}: {bind.why or 'asked for with --mount'}"


def _written(file: JobFile, directory: str) -> Iterator[str]:
    path = shlex.quote(f"{directory}/{file.path}")
    end = _END
    while end in file.text.splitlines():
        end += "_"
    yield f"cat > {path} <<'{end}'"
    yield from file.text.removesuffix("\n").split("\n")
    yield end
    if file.executable:
        yield f"chmod +x {path}"


def _comment(text: str) -> list[str]:
    wrapped = textwrap.wrap(printable(" ".join(text.split())), _COLUMNS, break_long_words=False, break_on_hyphens=False)
    return [f"# {each}" for each in wrapped]


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
