"""Rules about the tables of nccl-tests in a log: values that are wrong, rows that never came."""

from collections.abc import Iterator

from busbw.facts.rules import finding
from busbw.logs.case import JobLogs
from busbw.logs.differentials import differential_called
from busbw.logs.excerpts import lines_of
from busbw.logs.tables import LoggedTable, last_table
from busbw.model.finding import FilePlace, Finding


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
    why = differential_called(case, "wrong-results")
    seen = [f"{table.wrong_rows} of {table.rows} rows have wrong values"] if table.wrong_rows else []
    seen += [f"nccl-tests counts {table.checked} out of bounds"] if table.checked is not None else []
    return finding(
        "LOG049",
        evidence=f"{' and '.join(seen)}; why, the likeliest first: {why.words()}",
        fix=why.fix(),
        place=_place(case, table),
        confidence="certain",
    )


def _standing(case: JobLogs, table: LoggedTable) -> Finding:
    why = differential_called(case, "first-call-waits")
    return finding(
        "LOG050",
        evidence="every rank that the log shows is ready, and below the head of the table is no row; the test still "
        f"ran when this was taken, or nothing comes through: {why.words()}",
        fix=f"nothing, where rows come later; else: {why.fix()}",
        effect="the first call may hang",
        place=_place(case, table),
        confidence="possible",
    )
