"""What every form writes: settings with what is to be said of each, checked to be writable at all."""

import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from busbw import __version__
from busbw.base.errors import InputError
from busbw.base.text import printable
from busbw.model.recommendation import Recommendation, Recommended
from busbw.model.settings import Setting, Settings

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}", re.ASCII)
# Linux passes at most 128 KiB in one variable, name and end included.
_LONGEST_BYTES = 2**17 - 512
_COMMENT_COLUMNS = 100
_NEEDS = {"needed": "needed", "helps": "helps", "check_first": "measure with and without it"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One variable to write; value None: to be unset. Comments are paragraphs, not yet set in lines."""

    name: str
    value: str | None
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingsPage:
    """Everything there is to write. Texts are printable and of one line each."""

    # For what, and by which command.
    title: tuple[str, ...]
    entries: tuple[Entry, ...]
    # What belongs to the settings and is an option of the launcher, in words.
    launch: tuple[str, ...] = ()
    # What the comments cite, each as `id: reference`.
    sources: tuple[str, ...] = ()
    # Nodes of the job; None: not said.
    nodes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """A text in some form, and what it could not say or should not be used for, a line each."""

    text: str
    notes: tuple[str, ...] = ()


def page_of(form: str, settings: Recommendation | Settings) -> SettingsPage:
    """Return what to write. Raises InputError for a name or a value that no form takes."""
    if isinstance(settings, Recommendation):
        made = _of_recommendation(form, settings)
    else:
        made = SettingsPage(
            title=(f"Written by busbw {__version__}",), entries=tuple(map(_of_setting, settings.in_force()))
        )
    for entry in made.entries:
        _check(entry)
    return made


def comment_lines(paragraphs: Iterable[str], mark: str = "#") -> list[str]:
    """Return paragraphs as comments, a mark before each line."""
    return [
        f"{mark} {line}"
        for paragraph in paragraphs
        for line in textwrap.wrap(
            _plain(paragraph), _COMMENT_COLUMNS - len(mark), break_long_words=False, break_on_hyphens=False
        )
    ]


def head_lines(page: SettingsPage, *uses: str, mark: str = "#") -> list[str]:
    """Return the comments that a text begins with: for what it is, how to use it, what the launcher has to be told."""
    return comment_lines((*page.title, *uses, *(f"launch: {each}" for each in page.launch)), mark)


def tail_lines(page: SettingsPage, mark: str = "#") -> list[str]:
    """Return the comments that a text ends with: the sources."""
    return ["", *comment_lines(page.sources, mark)] if page.sources else []


def cannot_unset(names: Iterable[str], why: str) -> Iterator[str]:
    """Yield the note about variables that a form has no way to unset."""
    listed = tuple(names)
    if listed:
        yield f"{', '.join(listed)} should be unset, and {why}"


def _of_recommendation(form: str, made: Recommendation) -> SettingsPage:
    nodes = "1 node" if made.nodes == 1 else f"{made.nodes} nodes"
    matters = f", mostly {made.collective}" if made.collective is not None else ""
    size = f" of {made.size_bytes} bytes" if made.size_bytes is not None else ""
    cited = {source for each in made.settings for source in each.source}
    return SettingsPage(
        title=(
            f"Settings for {made.platform}: {nodes}, {made.goal}{matters}{size}, {made.libraries}",
            f"Written by busbw {__version__}: {shlex.join(_command(form, made))}",
        ),
        entries=tuple(map(_of_recommended, made.settings)),
        launch=tuple(f"{each.option} ({each.reason})" for each in made.launch),
        sources=tuple(f"{source.id}: {source.reference}" for source in made.sources if source.id in cited),
        nodes=made.nodes,
    )


def _command(form: str, made: Recommendation) -> Iterator[str]:
    yield from ("busbw", "env", "export", "--format", form, "--platform", made.platform, "--nodes", str(made.nodes))
    for option, value in (
        ("--collective", made.collective),
        ("--size", made.size_bytes),
        ("--goal", made.goal),
        ("--follow", made.follow),
        ("--mpi", made.mpi),
        ("--nccl", made.nccl),
    ):
        if value is not None:
            yield from (option, str(value))


def _of_recommended(each: Recommended) -> Entry:
    said = (
        f"{_NEEDS[each.need]}: {each.reason}",
        each.conditions and f"holds: {each.conditions}",
        each.cost and f"costs: {each.cost}",
        *(f"check: {check}" for check in each.checks),
        f"source: {', '.join(each.source)}" if each.source else None,
    )
    return Entry(name=each.name, value=each.value, comments=tuple(one for one in said if one))


def _of_setting(each: Setting) -> Entry:
    said = (
        each.reason,
        each.conditions and f"holds: {each.conditions}",
        each.cost and f"costs: {each.cost}",
        f"source: {each.source}",
    )
    return Entry(name=each.name, value=each.value, comments=tuple(one for one in said if one))


def _check(entry: Entry) -> None:
    """Raise InputError for what a shell has no name for, or what would end or hide a line."""
    if _NAME.fullmatch(entry.name) is None:
        raise InputError(f"{entry.name[:80]!r} is not a name of a variable: letters, digits and _ make one")
    value = entry.value or ""
    if not value.isprintable():
        found = next(character for character in value if not character.isprintable())
        raise InputError(
            f"the value of {entry.name} holds U+{ord(found):04X}, which is not written: it could not be seen"
        )
    if len(value.encode()) > _LONGEST_BYTES:
        raise InputError(
            f"the value of {entry.name} has {len(value.encode())} bytes; the kernel passes {_LONGEST_BYTES}"
        )


def _plain(text: str) -> str:
    return printable(" ".join(text.split()))
