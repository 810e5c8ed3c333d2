"""Findings in a file as text for a terminal: where, the line itself, what it means, what to do."""

from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from busbw.model.finding import Finding
from busbw.model.settings_check import SettingsCheck
from busbw.model.topology_check import HeldAgainst, TopologyCheck
from busbw.show.lines import say_action
from busbw.show.plain import printable
from busbw.show.text.terminal import console

_COLOURS = {"note": "cyan", "warn": "yellow", "error": "red"}
_ORDER = {"error": 0, "warn": 1, "note": 2}
# Around the place in a line: enough to see it, in 80 columns.
_BEFORE = 24
_WINDOW = 64
_MOST_ALIKE = 8
_INDENT = 2
# With more of one kind, the first stands for all.
_FEW = 2


def check_text(checked: TopologyCheck) -> None:
    """Print the findings on a topology file, errors first, and the summary in one line."""
    quoted = {f"{checked.file}:{line.number}": line.text for line in checked.lines}
    against = _against(checked.held_against)
    _print(checked.findings, quoted, f"{checked.file}: {_counts(checked)}; {against}")


def settings_check_text(checked: SettingsCheck) -> None:
    """Print the findings on settings, errors first, and the summary in one line."""
    quoted = {f"{line.file}:{line.number}": line.text for line in checked.lines}
    count = f"{checked.settings} setting{'' if checked.settings == 1 else 's'}"
    against = f" and {checked.platform}" if checked.platform is not None else ""
    names = ", ".join(checked.files)
    _print(checked.findings, quoted, f"{names}: {count}, {_counts(checked)}; held against NCCL {checked.nccl}{against}")


def _print(findings: tuple[Finding, ...], quoted: dict[str, str], summary: str) -> None:
    """Print findings, errors first. `quoted`: lines by their file and number."""
    out = console()
    ordered = sorted(findings, key=lambda each: (_ORDER[each.severity], each.code))
    for _key, group in groupby(ordered, key=lambda each: each.code):
        alike = list(group)
        shown = alike if len(alike) <= _FEW else alike[:1]
        for finding in shown:
            _finding(out, finding, quoted)
        _rest(out, alike[len(shown) :])
        out.print()
    out.print(Text(printable(summary)), soft_wrap=not out.is_terminal)


def _finding(out: Console, finding: Finding, quoted: dict[str, str]) -> None:
    head = Text(printable(f"{finding.where}: "), style="bold")
    head.append(f"{finding.severity} {finding.code}", style=_COLOURS[finding.severity])
    head.append(printable(f": {finding.title}"), style="bold")
    out.print(head, soft_wrap=not out.is_terminal)
    number, column = _place(finding)
    line = quoted.get((finding.where or "").rpartition(":")[0])
    if line is not None:
        _line(out, number, column, line)
    for label, text in (
        ("", finding.evidence),
        ("effect", finding.effect),
        ("sure", finding.confidence),
        ("source", finding.source),
    ):
        if text:
            _indented(out, printable(f"{label}: {text}" if label else text))
    if finding.fix:
        say_action(out, "fix", finding.fix)


def _line(out: Console, number: int, column: int, text: str) -> None:
    """Print a line of the file, as much of it as shows the place, with a caret below."""
    start = max(0, column - 1 - _BEFORE) if len(text) > _WINDOW else 0
    before, behind = printable(text[start : column - 1]), printable(text[column - 1 : start + _WINDOW])
    lead = "..." if start else ""
    tail = "..." if len(text) > start + _WINDOW else ""
    margin = " " * len(str(number))
    out.print(Text(f"  {number} | {lead}{before}{behind}{tail}", style="dim"), soft_wrap=True)
    out.print(Text(f"  {margin} | {' ' * len(lead + before)}^", style="dim"), soft_wrap=True)


def _rest(out: Console, alike: list[Finding]) -> None:
    """Print, one line each, the findings that the first one of a rule stands for."""
    for finding in alike[:_MOST_ALIKE]:
        _indented(out, printable(f"also line {_place(finding)[0]}: {finding.title}"))
    if len(alike) > _MOST_ALIKE:
        out.print(Text(f"  and {len(alike) - _MOST_ALIKE} more; --json has all"), soft_wrap=True)


def _indented(out: Console, words: str) -> None:
    """Print words with all their lines indented, where there are lines to break."""
    if out.is_terminal:
        out.print(Padding.indent(Text(words), _INDENT))
    else:
        out.print(Text(" " * _INDENT + words), soft_wrap=True)


def _place(finding: Finding) -> tuple[int, int]:
    _file, line, column = (finding.where or ":0:1").rsplit(":", 2)
    return int(line), int(column)


def _counts(checked: TopologyCheck | SettingsCheck) -> str:
    counts = [
        f"{count} {word}{'s' if count > 1 else ''}"
        for count, word in ((checked.errors, "error"), (checked.warnings, "warning"), (checked.notes, "note"))
        if count
    ]
    return ", ".join(counts) or "nothing found"


def _against(held: HeldAgainst | None) -> str:
    if held is None:
        return "held against nothing but itself (--platform, --host and --here say what it is for)"
    if held.kind != "resembles":
        return f"held against {held.name}{f'; {held.reason}' if held.reason else ''}"
    also = f"; so have those of {', '.join(held.also)}" if held.also else ""
    return f"held against {held.name}, which it is most like: {held.reason}{also}"
