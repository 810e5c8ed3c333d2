"""What can be said of other tools' results: rows that cannot be right, ranks that were never joined, lines unread."""

from collections.abc import Iterator, Sequence

from busbw.base.text import counted, listed
from busbw.facts.rules import finding
from busbw.formats.nccl_tests_head import COPIES, LEFT_OUT, SEEMS, collective_of_program
from busbw.model.finding import Finding
from busbw.model.imported import Imported, Table

# Tools whose programs compare results unless they are told not to.
_CHECKING = frozenset({"nccl-tests", "rccl-tests"})

# Its programs are two, and one may be started behind the other.
_PAIRED = "perftest"


def judge_import(imported: Imported, *, unclaimed: int, incomplete: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings about an import, worst first.

    `unclaimed` counts the unread lines that no reader knows; the others belong to a table. `incomplete` says of each
    source that could not be read to its end why.
    """
    tables = _Named(imported)
    found = [
        *_failures(tables),
        *_wrong(tables),
        *_incomplete(incomplete),
        *_doubts(tables),
        *_ranks(tables),
        *_separate(tables),
        *_damaged(imported.unread - unclaimed - len(incomplete)),
        *_cut_off(tables),
        *_unchecked(tables),
        *_repeated(tables),
        *_left_out(tables),
        *_stated(imported, tables),
        *_unclaimed(unclaimed),
    ]
    order = {"error": 0, "warn": 1, "note": 2}
    return tuple(sorted(found, key=lambda each: order[each.severity]))


class _Named:
    """The tables of an import, and how each is called in a sentence."""

    def __init__(self, imported: Imported) -> None:
        self.tables = imported.tables
        self._sources = imported.sources

    def at(self, table: Table, line: int | None = None) -> str:
        """Return `all_reduce_perf (FILE:LINE)`."""
        name = table.program or table.tool
        return f"{name} ({self._sources[table.source].name}:{line if line is not None else table.first_line})"


def _failures(named: _Named) -> Iterator[Finding]:
    said = [f"{named.at(table, line)}: {text}" for table in named.tables for line, text in table.failures]
    said += [
        f"{named.at(table)}: {name} {value}"
        for table in named.tables
        for name, value in table.footer
        if name == "Avg bus bandwidth" and value.endswith("FAILED")
    ]
    if said:
        yield finding("IMP001", evidence=listed(said), failures=counted(len(said), "failure"))


def _wrong(named: _Named) -> Iterator[Finding]:
    wrong = [table for table in named.tables if table.wrong or _out_of_bounds(table)]
    if wrong:
        yield finding(
            "IMP002",
            evidence=listed([f"{named.at(table)}: {counted(table.wrong, 'wrong row')}" for table in wrong]),
            fix="measure nothing with this library and these settings before the cause is found",
            tables=counted(len(wrong), "table"),
        )


def _out_of_bounds(table: Table) -> bool:
    return any(name == "Out of bounds values" and value.endswith("FAILED") for name, value in table.footer)


def _incomplete(incomplete: Sequence[str]) -> Iterator[Finding]:
    if incomplete:
        yield finding("IMP003", evidence=listed(list(incomplete)), sources=counted(len(incomplete), "source"))


def _doubts(named: _Named) -> Iterator[Finding]:
    doubts = [f"{named.at(table, line)}: {text}" for table in named.tables for line, text in table.doubts]
    if doubts:
        yield finding("IMP004", evidence=listed(doubts, 6), lines=counted(len(doubts), "line"))


def _ranks(named: _Named) -> Iterator[Finding]:
    differing = [
        table
        for table in named.tables
        if table.ranks is not None and table.ranks_from_rates is not None and table.ranks != table.ranks_from_rates
    ]
    for revealed in sorted({table.ranks_from_rates for table in differing if table.ranks_from_rates is not None}):
        these = [table for table in differing if table.ranks_from_rates == revealed]
        declared = ", ".join(str(ranks) for ranks in sorted({table.ranks for table in these if table.ranks}))
        yield finding(
            "IMP005",
            evidence=listed([named.at(table) for table in these]),
            fix="compare these rows only with runs of the ranks that the rates reveal",
            declared="1 rank is" if declared == "1" else f"{declared} ranks are",
            revealed=revealed,
        )


def _separate(named: _Named) -> Iterator[Finding]:
    alone = [table for table in named.tables if 1 in (table.ranks_from_rates, table.ranks) and table.tool in _CHECKING]
    measured = [table for table in alone if table.readings]
    if not measured:
        return
    runs = sum(int(dict(table.parameters).get(COPIES, "1")) for table in alone)
    joined = counted(runs, "run")
    yield finding(
        "IMP006",
        evidence=f"{joined} of one rank: {listed([named.at(table) for table in alone])}",
        fix="build the tests with MPI=1 against the MPI that starts them; one run lists all ranks then",
        runs="a run has" if runs == 1 else f"{joined} have",
    )


def _damaged(lines: int) -> Iterator[Finding]:
    if lines > 0:
        yield finding(
            "IMP007",
            evidence="each is in unread.jsonl, with its reason",
            lines=counted(lines, "line"),
        )


def _cut_off(named: _Named) -> Iterator[Finding]:
    cut = [table for table in named.tables if not table.complete and (table.readings or not table.failures)]
    # Programs that were not joined print their beginnings one after the other, and only the last table has rows.
    cut = [table for table in cut if table.readings or table.ranks != 1]
    # Server and client of perftest on one terminal: the second goes on where the first has printed its beginning.
    followed = {
        (table.source, table.first_line - 1) for table in named.tables if table.tool == _PAIRED and table.readings
    }
    cut = [
        table
        for table in cut
        if table.readings or table.tool != _PAIRED or (table.source, table.last_line) not in followed
    ]
    if cut:
        yield finding("IMP008", evidence=listed([named.at(table) for table in cut]), tables=counted(len(cut), "table"))


def _unchecked(named: _Named) -> Iterator[Finding]:
    unchecked = [table for table in named.tables if table.tool in _CHECKING and table.unchecked == table.readings > 0]
    if unchecked:
        yield finding(
            "IMP009",
            evidence=listed([named.at(table) for table in unchecked]),
            fix="run the tests with -c 1",
            tables=counted(len(unchecked), "table"),
        )


def _repeated(named: _Named) -> Iterator[Finding]:
    rows = [named.at(table, line) for table in named.tables for line in table.repeated]
    if rows:
        yield finding(
            "IMP011",
            evidence=listed(rows),
            fix="look whether the log was copied together: what is printed twice was measured once",
            rows=counted(len(rows), "row"),
            repeat="repeats" if len(rows) == 1 else "repeat",
        )


def _left_out(named: _Named) -> Iterator[Finding]:
    lacking = [f"{named.at(table)}: {what}" for table in named.tables if (what := dict(table.parameters).get(LEFT_OUT))]
    if lacking:
        yield finding("IMP013", evidence=listed(lacking), tables=counted(len(lacking), "table"))


def _stated(imported: Imported, named: _Named) -> Iterator[Finding]:
    """Yield that a log says something else than was stated of it."""
    stated = imported.stated
    other = []
    for table in named.tables:
        said = collective_of_program(table.program) if table.program is not None else dict(table.parameters).get(SEEMS)
        if stated.collective is not None and said is not None and said != stated.collective:
            other.append(f"{named.at(table)} shows {said}, stated was {stated.collective}")
        known = table.ranks if "ranks" not in dict(table.stated) else None
        ranks = known if known is not None else table.ranks_from_rates
        if stated.ranks is not None and ranks is not None and ranks != stated.ranks:
            other.append(f"{named.at(table)} is of {ranks} ranks, stated were {stated.ranks}")
        hosts = {device.host for device in table.devices} - {None}
        if stated.nodes is not None and "nodes" not in dict(table.stated) and hosts and len(hosts) != stated.nodes:
            other.append(f"{named.at(table)} names {counted(len(hosts), 'host')}, stated were {stated.nodes}")
    if other:
        yield finding("IMP012", evidence=listed(other), fix="leave out what the log says itself, or correct it")


def _unclaimed(lines: int) -> Iterator[Finding]:
    if lines:
        yield finding("IMP010", evidence="each is in unread.jsonl", lines=counted(lines, "line"))
