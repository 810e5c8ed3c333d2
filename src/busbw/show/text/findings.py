"""Findings in a file as text for a terminal: where, the line itself, what it means, what to do."""

import textwrap
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from busbw.base.text import printable
from busbw.model.finding import Checked, Finding, FindingCounts, HeldAgainst, HostCheck, HostDiagnosis
from busbw.show.lines import say_action
from busbw.show.text.network import network_text
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


def checked_text(checked: Checked) -> None:
    """Print the findings of a check, errors first, and the summary in one line."""
    quoted = {(line.file, line.number): line.text for line in checked.lines}
    out = console()
    ordered = sorted(checked.findings, key=lambda each: (_ORDER[each.severity], each.code))
    for _key, group in groupby(ordered, key=lambda each: each.code):
        alike = list(group)
        shown = alike if len(alike) <= _FEW else alike[:1]
        for finding in shown:
            _finding(out, finding, quoted)
        _rest(out, alike[len(shown) :])
        out.print()
    out.print(Text(printable(_checked_summary(checked))), soft_wrap=not out.is_terminal)


def _finding(out: Console, finding: Finding, quoted: dict[tuple[str, int], str]) -> None:
    place = finding.place
    head = Text(printable(f"{place}: ") if place is not None else "", style="bold")
    head.append(f"{finding.severity} {finding.code}", style=_COLOURS[finding.severity])
    head.append(printable(f": {finding.title}"), style="bold")
    out.print(head, soft_wrap=not out.is_terminal)
    if place is not None and (line := quoted.get((place.file, place.line))) is not None:
        _line(out, place.line, place.column or 1, line)
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
        at = f"line {finding.place.line}: " if finding.place is not None else ""
        _indented(out, printable(f"also {at}{finding.title}"))
    if len(alike) > _MOST_ALIKE:
        out.print(Text(f"  and {len(alike) - _MOST_ALIKE} more; --json has all"), soft_wrap=True)


def _indented(out: Console, words: str) -> None:
    """Print words with all their lines indented, where there are lines to break."""
    if out.is_terminal:
        out.print(Padding.indent(Text(words), _INDENT))
    else:
        out.print(Text(" " * _INDENT + words), soft_wrap=True)


def _checked_summary(checked: Checked) -> str:
    counts, names = _counts(checked.counts), ", ".join(checked.files)
    if checked.settings is None:
        return f"{names}: {counts}; {_against(checked.held_against)}"
    count = f"{checked.settings.count} setting{'' if checked.settings.count == 1 else 's'}"
    platform = f" and {checked.held_against.name}" if checked.held_against is not None else ""
    return f"{names}: {count}, {counts}; held against NCCL {checked.settings.nccl}{platform}"


def _counts(found: FindingCounts) -> str:
    """Return the counts in words: `1 error, 2 notes`."""
    counts = [
        f"{count} {word}{'s' if count > 1 else ''}"
        for count, word in ((found.errors, "error"), (found.warnings, "warning"), (found.notes, "note"))
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


_WIDTH = 79
_HOST_CHECKS_INDENT = "  "


def host_checks_text(diagnosis: HostDiagnosis) -> None:
    """Print a diagnosis; each finding of a rule that comes again in one line."""
    out = console()
    findings = [each for check in diagnosis.checks for each in check.findings]
    explained: set[str] = set()
    for each in sorted(findings, key=lambda each: (_ORDER[each.severity], each.code)):
        head = Text(f"{each.severity} {each.code}", style=_COLOURS[each.severity])
        head.append(printable(f": {each.title}"), style="bold")
        out.print(head, soft_wrap=True)
        _lines(f"seen: {each.evidence}")
        if each.code not in explained:
            _explain(each)
        explained.add(each.code)
    if findings:
        out.print()
    for check in _those("ok", diagnosis):
        _lines(f"{check.name}: {check.because}")
    for check in _those("cannot tell", diagnosis):
        _lines(f"{check.name}: {check.because}")
        out.print(Text(printable(f"{_HOST_CHECKS_INDENT}{_HOST_CHECKS_INDENT}look: {check.look}")), soft_wrap=True)
    network_text(diagnosis.network)
    out.print()
    out.print(Text(printable(_summary(diagnosis))), soft_wrap=True)


def _explain(finding: Finding) -> None:
    """Print, once for each rule, what it means and what to do; commands are not wrapped: they are to be copied."""
    _lines(f"means: {finding.effect}")
    _lines(f"sure: {finding.confidence}; source: {finding.source or 'what this host says'}")
    for label, text in (("look", finding.look), ("fix", finding.fix)):
        if text:
            console().print(Text(printable(f"{_HOST_CHECKS_INDENT}{label}: {text}")), soft_wrap=True)


def _lines(text: str) -> None:
    for line in textwrap.wrap(
        printable(text),
        _WIDTH,
        initial_indent=_HOST_CHECKS_INDENT,
        subsequent_indent=_HOST_CHECKS_INDENT,
        break_on_hyphens=False,
    ):
        console().print(Text(line), soft_wrap=True)


def _those(heading: str, diagnosis: HostDiagnosis) -> list[HostCheck]:
    """Return the checks of an outcome, below its heading where there is one."""
    checks = [check for check in diagnosis.checks if check.outcome == heading.replace(" ", "_")]
    if checks:
        console().print(Text(heading, style="bold"))
    return checks


def _summary(diagnosis: HostDiagnosis) -> str:
    outcomes = [check.outcome for check in diagnosis.checks]
    outcome_counts = f"{outcomes.count('ok')} checks ok, {outcomes.count('cannot_tell')} cannot tell"
    skipped = f"{outcomes.count('skipped')} about what is not here"
    where = f"{diagnosis.hostname} ({diagnosis.platform or 'platform unknown'})"
    return f"{where}: {_counts(diagnosis.counts)}; {outcome_counts}, {skipped}"
