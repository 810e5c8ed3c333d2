"""Rules about the reports of NCCL's monitor: processes it does not reach, ranks that do not keep up."""

from collections.abc import Iterator, Sequence

from busbw.facts.findings import finding
from busbw.logs.ranks import words
from busbw.logs.ras import Level, RasReport, RasReports
from busbw.model.finding import Finding

_MOST_SHOWN = 8


def ras_findings(reports: RasReports, sources: tuple[str, ...]) -> Iterator[Finding]:
    """Yield what the latest report complains of."""
    report = reports.latest
    if report is None:
        return
    where = f"{sources[min(report.source, len(sources) - 1)]}:{report.line}"
    if report.lost or report.is_dead:
        yield _lost(report, where)
    for (communicator, operation), levels in report.levels.items():
        if len(levels) > 1:
            before = reports.before.levels.get((communicator, operation)) if reports.before is not None else None
            yield _apart(operation, levels, where, stands_still=before == levels)


def _lost(report: RasReport, where: str) -> Finding:
    shown = "; ".join(report.lost[:_MOST_SHOWN])
    more = f"; and {len(report.lost) - _MOST_SHOWN} more" if len(report.lost) > _MOST_SHOWN else ""
    state = "dead: no answer for a minute" if report.is_dead else "no answer to this query"
    return finding(
        "LOG038",
        evidence=f"{shown or 'the report does not name it'}{more}; {state}",
        fix="look at that process and its host: is it there, `py-spy dump --pid PID`, `dmesg | grep -i -e oom -e xid`; "
        "then ask ncclras again",
        where=where,
        confidence="certain" if report.is_dead else "likely",
    )


def _apart(operation: str, levels: Sequence[Level], where: str, *, stands_still: bool) -> Finding:
    least, most = (choose(level.count for level in levels) for choose in (min, max))
    behind = [level for level in levels if level.count < most]
    named = [place for level in behind for place in level.named]
    nodes = sorted({node for _rank, node in named})
    who = (
        f"{words(rank for rank, _node in named)} on {', '.join(nodes[:_MOST_SHOWN])}"
        if named
        else f"{sum(level.ranks for level in behind)} ranks, which the report does not name (ncclras -v does)"
    )
    counts = ", ".join(
        f"{level.ranks} rank{'s' if level.ranks > 1 else ''} at {level.count}"
        for level in sorted(levels, key=lambda level: level.count)
    )
    still = "; the report before says the same" if stands_still else ""
    return finding(
        "LOG039" if stands_still or most - least > 1 else "LOG045",
        evidence=f"{operation}: {counts}{still}; behind: {who}",
        fix="ask ncclras again some seconds later: counts that stand still are of a job that hangs; then "
        "`py-spy dump --pid PID` on ranks that are behind",
        where=where,
        confidence="likely" if stands_still else "possible",
    )
