"""Tables of nccl-tests in a log: values that are wrong, and rows that never came."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from busbw.facts.rules import finding
from busbw.formats.lines.prefix import split
from busbw.logs.case import JobLogs
from busbw.logs.differentials import differential_called
from busbw.logs.excerpts import lines_of
from busbw.model.finding import FilePlace, Finding

_HEAD = re.compile(r"#\s{1,40}(?:size|bytes)\s{1,40}(?:count|N)\s{1,40}type\b(?P<rest>[\w #]{0,200})", re.ASCII)
_ROW = re.compile(r"\s{0,40}\d{1,19}\s{1,40}\d{1,19}\s{1,40}[a-z][a-z0-9_]{1,20}\s(?P<rest>.{0,300})", re.ASCII)
_CHECKED = re.compile(r"#\s{0,4}Out of bounds values\s{0,4}: {0,4}(?P<count>\d{1,19}) (?P<word>OK|FAILED)", re.ASCII)
_END = re.compile(r"#\s{0,4}(?:Out of bounds values|Avg bus bandwidth|Collective test concluded)", re.ASCII)
_WRONG = "#wrong"
_LONGEST_ROW = 600


@dataclass(slots=True)
class LoggedTable:
    """The last table of nccl-tests in a log. `place`: source and line of its head, or of what is wrong in it."""

    place: tuple[int, int]
    rows: int = 0
    is_ended: bool = False
    # Rows with values that are wrong, and what the end of the table says of them.
    wrong_rows: int = 0
    checked: str | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether values did not come out as they should."""
        return self.wrong_rows > 0 or self.checked is not None


def last_table(lines: Iterable[tuple[int, int, str]]) -> LoggedTable | None:
    """Return the last table of nccl-tests in lines (source, number, text); None: there is none."""
    table: LoggedTable | None = None
    columns: list[int] = []
    for source, number, line in lines:
        if "#" not in line and not any(map(str.isdigit, line[:80])):
            continue
        text = split(line[:_LONGEST_ROW])[1]
        head = _HEAD.match(text)
        if head is not None:
            table = LoggedTable((source, number))
            columns = [at for at, name in enumerate(head["rest"].split()) if name == _WRONG]
            continue
        checked = _CHECKED.match(text)
        if checked is not None and checked["word"] == "FAILED":
            table = table or LoggedTable((source, number))
            table.place, table.checked = (source, number), checked["count"]
        if table is None:
            continue
        table.is_ended = table.is_ended or _END.match(text) is not None
        row = _ROW.match(text)
        if row is not None:
            table.rows += 1
            values = row["rest"].split()
            is_wrong = any(values[at].isdecimal() and int(values[at][:18]) > 0 for at in columns if at < len(values))
            if is_wrong and not table.wrong_rows:
                table.place = (source, number)
            table.wrong_rows += is_wrong
    return table


def table_findings(case: JobLogs, *, is_failed: bool) -> Iterator[Finding]:
    """Yield what the last table of nccl-tests tells. `is_failed`: another rule says why the job ended."""
    table = last_table(lines_of(case.excerpts))
    if table is None:
        return
    if table.is_wrong:
        yield _wrong(case, table)
    elif not table.is_ended and not table.rows and case.is_set_up and not is_failed:
        yield _standing(case, table)


def _place(case: JobLogs, table: LoggedTable) -> FilePlace:
    source, line = table.place
    return FilePlace(file=case.sources[min(source, len(case.sources) - 1)], line=line)


def _wrong(case: JobLogs, table: LoggedTable) -> Finding:
    seen = [f"{table.wrong_rows} of {table.rows} rows have wrong values"] if table.wrong_rows else []
    seen += [f"nccl-tests counts {table.checked} out of bounds"] if table.checked is not None else []
    return finding(
        "LOG049",
        evidence=" and ".join(seen),
        place=_place(case, table),
        confidence="certain",
        causes=differential_called(case, "wrong-results"),
    )


def _standing(case: JobLogs, table: LoggedTable) -> Finding:
    return finding(
        "LOG050",
        evidence="every rank that the log shows is ready, and below the head of the table is no row; the test still "
        "ran when this was taken, or nothing comes through",
        fix="nothing, where rows come later",
        effect="the first call may hang",
        place=_place(case, table),
        confidence="possible",
        causes=differential_called(case, "first-call-waits"),
    )
