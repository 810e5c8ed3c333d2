"""A check of nodes, and the history of checks, as text for a terminal: the verdict, a line a node, what to do."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from busbw.base.moment import day_and_time
from busbw.base.text import counted, listed, printable
from busbw.model.check.report import CheckHistory, CheckReport, NodeAnswer, NodeRecord
from busbw.model.finding import Finding
from busbw.show.check_words import not_screened, still_open
from busbw.show.lines import say_action
from busbw.show.text.terminal import SEVERITY_COLOURS, console

_COLOURS = {"fit": "bold green", "not_fit": "bold red", "failed": "bold red", "cannot_tell": "bold cyan"}
_OF_NODES = {"ok": "green", "warn": "yellow", "error": "red", "cannot_tell": "cyan"}
_ORDER = {"error": 0, "warn": 1, "cannot_tell": 2, "ok": 3}
# Lines of nodes; those with nothing to say are counted beyond them.
_MOST_NODES = 40
_MOST_FINDINGS = 12
_MOST_SENTENCES = 6
_MOST_RECORDS = 50


def check_text(report: CheckReport, where: str | None) -> None:
    """Print a check: nodes that are bad first."""
    out = console()
    word, _, rest = printable(report.sentence).partition(":")
    _say(out, Text.assemble((word, _COLOURS[report.outcome]), f":{rest}"))
    out.print()
    nodes = sorted(report.nodes, key=lambda each: _ORDER[each.outcome])
    _nodes(out, nodes)
    for each in report.stages:
        took = f" ({each.wall_s:.1f} s)" if each.wall_s is not None else ""
        _say(out, Text(printable(f"{each.name}: {each.state.replace('_', ' ')}{took}: {each.because}")))
    findings = [each for node in nodes for each in node.findings if each.is_serious]
    findings += [each for stage in report.stages for each in stage.findings]
    _findings(out, sorted(findings, key=lambda each: _ORDER[each.severity]))
    _sentences(out, "cannot tell", still_open(nodes))
    _sentences(out, "not screened", not_screened(nodes))
    if report.drain:
        out.print()
        spare = [f"{each.host} by {each.spare}" for each in report.drain if each.spare is not None]
        hosts = listed([each.host for each in report.drain], 12)
        replaced = f"; in their place: {listed(spare, 6)}" if spare else ""
        _say(out, Text(printable(f"to drain: {hosts}{replaced}; --drain-list - prints the commands")))
    if where is not None:
        out.print()
        _say(out, Text(printable(f"stored: {where}"), style="dim"))


def _sentences(out: Console, what: str, said: Sequence[tuple[str, str]]) -> None:
    if said:
        out.print()
    for names, words in said[:_MOST_SENTENCES]:
        _say(out, Text(printable(f"{what}: {names}: {words}")))
    if len(said) > _MOST_SENTENCES:
        _say(out, Text(f"and {counted(len(said) - _MOST_SENTENCES, 'sentence')} more; --json has all"))


def _nodes(out: Console, nodes: Sequence[NodeAnswer]) -> None:
    width = max((len(each.host) for each in nodes), default=0)
    for each in nodes[:_MOST_NODES]:
        word = each.outcome.replace("_", " ")
        _say(
            out,
            Text.assemble(
                printable(f"{each.host:<{width}}  "),
                (f"{word:<11}", _OF_NODES[each.outcome]),
                f"  {printable(each.because)}",
            ),
        )
    if len(nodes) > _MOST_NODES:
        rest = nodes[_MOST_NODES:]
        bad = sum(each.outcome != "ok" for each in rest)
        _say(out, Text(f"and {counted(len(rest), 'node')} more, {bad} of them not ok; --json has all"))
    if nodes:
        out.print()


def _findings(out: Console, findings: Sequence[Finding]) -> None:
    for each in findings[:_MOST_FINDINGS]:
        out.print()
        head = Text(f"{each.severity} {each.code}", style=SEVERITY_COLOURS[each.severity])
        head.append(printable(f": {each.title}"), style="bold")
        _say(out, head)
        _say(out, Text(printable(f"  seen: {each.evidence}")))
        if each.confidence is not None:
            _say(out, Text(printable(f"  sure: {each.confidence}; source: {each.source or 'what the node says'}")))
        if each.fix is not None:
            say_action(out, "fix", each.fix)
    if len(findings) > _MOST_FINDINGS:
        _say(out, Text(f"and {counted(len(findings) - _MOST_FINDINGS, 'finding')} more; --json has all"))


def check_history_text(found: CheckHistory) -> None:
    """Print the nodes by their failures."""
    out = console()
    _say(out, Text(printable(found.sentence), style="bold"))
    if not found.nodes:
        return
    out.print()
    width = max(len(each.host) for each in found.nodes[:_MOST_RECORDS])
    _say(out, Text(f"{'node':<{width}}  failures  checks  watched  between failures          last"))
    for each in found.nodes[:_MOST_RECORDS]:
        codes = f"  {listed(each.codes, 3)}" if each.codes else ""
        _say(
            out,
            Text(
                printable(
                    f"{each.host:<{width}}  {each.failures:>8}  {each.checks:>6}  {_span(each.watched_s):>7}  "
                    f"{_between(each):<24}  {each.last.replace('_', ' ')} {day_and_time(each.last_unix_s)}{codes}"
                )
            ),
        )
    if len(found.nodes) > _MOST_RECORDS:
        _say(out, Text(f"and {counted(len(found.nodes) - _MOST_RECORDS, 'node')} more; --json has all"))
    out.print()
    _say(out, Text(printable(found.assumption), style="dim"))


def _between(record: NodeRecord) -> str:
    if record.mtbf_s is None or record.mtbf_low_s is None or record.mtbf_high_s is None:
        return "too few to tell" if record.failures else "n/a"
    return f"{_span(record.mtbf_s)} ({_span(record.mtbf_low_s)} to {_span(record.mtbf_high_s)})"


def _span(seconds: float) -> str:
    for unit, size_s in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size_s:
            return f"{seconds / size_s:.3g} {unit}"
    return f"{seconds:.3g} s"


def _say(out: Console, text: Text) -> None:
    out.print(text, soft_wrap=True)
