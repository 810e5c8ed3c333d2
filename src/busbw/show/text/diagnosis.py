"""What the logs of a job say, as text for a terminal: the job, its connections, the findings, the answer."""

from collections.abc import Iterator

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from busbw.base.text import listed, printable
from busbw.base.units import format_size
from busbw.model.finding import Diagnosis, Finding, LoggedChoice, LoggedFact, LoggedTraffic
from busbw.show.lines import say, say_action
from busbw.show.text.terminal import console

_COLOURS = {"note": "cyan", "warn": "yellow", "error": "red"}
_OUTCOMES = {
    "ok": "bold green",
    "slow": "bold yellow",
    "failed": "bold red",
    "wrong": "bold red",
    "cannot_tell": "bold cyan",
}
_MOST_VALUES = 3
_MOST_NICS = 16
_DIRECT = "GPUDirect RDMA of "
_MOST_TEXT = 100
_MOST_ALIKE = 3
# In this order; what else is known stands in --json.
_FACTS = (
    "version", "CUDA driver", "network", "net plugin", "libfabric provider", "NICs", "interfaces", "bootstrap",
    "topology file", "channels", "NVLS", "NVLS tree", "tuner", "MSCCL", "MSCCL++", "cpu affinity",
)  # fmt: skip


def diagnosis_text(diagnosis: Diagnosis) -> None:
    """Print a diagnosis; the answer last."""
    out = console()
    _line(out, _heading(diagnosis))
    facts = {fact.name: fact for fact in diagnosis.facts}
    for name in _FACTS:
        if name in facts:
            _line(out, f"{name}: {_values(facts[name])}")
    _direct(out, diagnosis.facts)
    for fact in diagnosis.environment:
        _line(out, f"{fact.name}: {_values(fact, quoted=True)}")
    for title, lines in (("connections", _traffic(diagnosis.traffic)), ("chosen", _choices(diagnosis.choices))):
        rows = list(lines)
        if rows:
            out.print()
            _line(out, f"# {title}")
            for row in rows:
                _line(out, row)
    out.print()
    _findings(out, diagnosis.findings)
    text = Text(diagnosis.verdict.outcome.replace("_", " "), style=_OUTCOMES[diagnosis.verdict.outcome])
    text.append(printable(f": {diagnosis.verdict.sentence}"))
    out.print(text, soft_wrap=not out.is_terminal)


def _line(out: Console, text: str) -> None:
    out.print(Text(printable(text)), soft_wrap=not out.is_terminal)


def _heading(diagnosis: Diagnosis) -> str:
    ranks = (
        f"{diagnosis.ranks_seen} of {diagnosis.ranks} ranks"
        if diagnosis.ranks is not None
        else "no rank says its number"
    )
    nodes = f", {diagnosis.nodes} node{'s' if diagnosis.nodes > 1 else ''}" if diagnosis.nodes is not None else ""
    return (
        f"{diagnosis.nccl_lines} of {diagnosis.lines} lines are of NCCL: {ranks}{nodes}, "
        f"{diagnosis.processes} process{'es' if diagnosis.processes != 1 else ''} on {diagnosis.hosts} "
        f"host{'s' if diagnosis.hosts != 1 else ''}"
    )


def _direct(out: Console, facts: tuple[LoggedFact, ...]) -> None:
    """Print for which NICs GPUDirect RDMA is on, and for which off; for some it may differ by rank."""
    nics: dict[str, list[str]] = {}
    for fact in facts:
        if fact.name.startswith(_DIRECT):
            nics.setdefault(_values(fact), []).append(fact.name.removeprefix(_DIRECT))
    for state, names in nics.items():
        _line(out, f"{_DIRECT}{listed(names, _MOST_NICS)}: {state}")


def _values(fact: LoggedFact, *, quoted: bool = False) -> str:
    mark = '"' if quoted else ""
    shown = [
        f"{mark}{_short(held.value)}{mark}" + (f" ({held.who})" if len(fact.values) > 1 else "")
        for held in fact.values[:_MOST_VALUES]
    ]
    if len(fact.values) > _MOST_VALUES:
        shown.append(f"and {len(fact.values) - _MOST_VALUES} other values")
    return "; ".join(shown)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."


def _traffic(traffic: tuple[LoggedTraffic, ...]) -> Iterator[str]:
    for each in traffic:
        place = "place unknown" if each.place == "unknown" else each.place
        nics = f", NICs {listed(map(str, each.nics), _MOST_NICS)}" if each.nics else ""
        yield f"{place}: {each.lines} via {each.via}, {each.pairs} pair{'s' if each.pairs > 1 else ''} of ranks{nics}"


def _choices(choices: tuple[LoggedChoice, ...]) -> Iterator[str]:
    """Yield, for runs of sizes with the same choice, one line."""
    start = previous = None
    for choice in choices:
        if previous is not None and start is not None and _key(previous) != _key(choice):
            yield _span(start, previous)
            start = None
        start = choice if start is None else start
        previous = choice
    if start is not None and previous is not None:
        yield _span(start, previous)


def _key(choice: LoggedChoice) -> tuple[str, str, str]:
    return choice.collective, choice.algorithm, choice.protocol


def _span(first: LoggedChoice, last: LoggedChoice) -> str:
    sizes = format_size(first.size_bytes)
    if first.size_bytes != last.size_bytes:
        sizes += f" to {format_size(last.size_bytes)}"
    return f"{first.collective} {sizes}: {first.algorithm.lower()}, {first.protocol}"


def _findings(out: Console, findings: tuple[Finding, ...]) -> None:
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.code] = counts.get(finding.code, 0) + 1
        if counts[finding.code] <= _MOST_ALIKE:
            _finding(out, finding)
    for code, count in counts.items():
        if count > _MOST_ALIKE:
            _line(out, f"and {count - _MOST_ALIKE} more of {code}; --json has all")


def _finding(out: Console, finding: Finding) -> None:
    head = Text(f"{finding.severity} {finding.code}", style=_COLOURS[finding.severity])
    head.append(printable(f": {finding.title}"), style="bold")
    out.print(head, soft_wrap=not out.is_terminal)
    for label, text in (
        ("", finding.evidence),
        ("at", str(finding.place or "")),
        ("effect", finding.effect),
        ("sure", finding.confidence),
    ):
        if text:
            words = printable(f"{label}: {text}" if label else text)
            if out.is_terminal:
                out.print(Padding.indent(Text(words), 2))
            else:
                out.print(Text(f"  {words}"), soft_wrap=True)
    _causes(out, finding)
    if finding.fix:
        say_action(out, "fix", finding.fix)


def _causes(out: Console, finding: Finding) -> None:
    """Print what may be why, a line each, with what speaks for it and what tells it from the others."""
    if finding.causes:
        say(out, Text("why, the likeliest first:"), indent=2)
    for number, cause in enumerate(finding.causes, 1):
        shown = f" (in the log: {'; '.join(cause.shown)})" if cause.shown else ""
        say(out, Text(printable(f"{number}. {cause.words}{shown}")), indent=4, hang=3)
        if cause.test:
            say_action(out, "try", cause.test, indent=7)
