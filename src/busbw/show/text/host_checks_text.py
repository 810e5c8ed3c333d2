"""The checks of a host as text for a terminal: findings, errors first, then what is fine and what cannot be told."""

import textwrap

from rich.text import Text

from busbw.model.finding import Finding
from busbw.model.host_check import HostCheck, HostDiagnosis
from busbw.show.plain import printable
from busbw.show.text.terminal import console

_COLOURS = {"note": "cyan", "warn": "yellow", "error": "red"}
_ORDER = {"error": 0, "warn": 1, "note": 2}
_WIDTH = 79
_INDENT = "  "


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
        out.print(Text(printable(f"{_INDENT}{_INDENT}look: {check.look}")), soft_wrap=True)
    out.print()
    out.print(Text(printable(_summary(diagnosis))), soft_wrap=True)


def _explain(finding: Finding) -> None:
    """Print, once for each rule, what it means and what to do; commands are not wrapped: they are to be copied."""
    _lines(f"means: {finding.effect}")
    _lines(f"sure: {finding.confidence}; source: {finding.source or 'what this host says'}")
    for label, text in (("look", finding.where), ("fix", finding.fix)):
        if text:
            console().print(Text(printable(f"{_INDENT}{label}: {text}")), soft_wrap=True)


def _lines(text: str) -> None:
    for line in textwrap.wrap(
        printable(text), _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    ):
        console().print(Text(line), soft_wrap=True)


def _those(heading: str, diagnosis: HostDiagnosis) -> list[HostCheck]:
    """Return the checks of an outcome, below its heading where there is one."""
    checks = [check for check in diagnosis.checks if check.outcome == heading.replace(" ", "_")]
    if checks:
        console().print(Text(heading, style="bold"))
    return checks


def _summary(diagnosis: HostDiagnosis) -> str:
    counts = [
        f"{count} {word}{'s' if count > 1 else ''}"
        for count, word in ((diagnosis.errors, "error"), (diagnosis.warnings, "warning"), (diagnosis.notes, "note"))
        if count
    ]
    outcomes = [check.outcome for check in diagnosis.checks]
    told = f"{outcomes.count('ok')} checks ok, {outcomes.count('cannot_tell')} cannot tell"
    skipped = f"{outcomes.count('skipped')} about what is not here"
    where = f"{diagnosis.hostname} ({diagnosis.platform or 'platform unknown'})"
    return f"{where}: {', '.join(counts) or 'nothing found'}; {told}, {skipped}"
