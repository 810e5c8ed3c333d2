"""What the page about one import is made of: no more than the tools said, and what that comes to."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from busbw.model.imported import Imported, Reading, Table
from busbw.show import words
from busbw.show.figures.drawing import Panel, figures_svg
from busbw.show.figures.imports import MOST_CURVES, ImportCurve, import_curves, place_words, table_words
from busbw.show.figures.series import Figure
from busbw.show.page.pictures import svg_address
from busbw.show.page.section import RunSection, explained_findings
from busbw.show.page.subject import ImportSubject
from busbw.show.page.summary import Curve, still_of, summary_of
from busbw.show.text.imported import Digest, table_cells
from busbw.show.weighing import by_weight

_MOST_TABLES = 200
_MOST_FACTS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadTable:
    """One table of a tool: its line in the list of them, what it says of itself, and its rows."""

    key: str
    name: str
    cells: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    headings: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownCurve:
    """One sweep: the ids of its figures (None: there is none), and what they show."""

    key: str
    name: str
    note: str
    summary: str
    rate_words: str
    time: str | None
    rate: str | None
    # A drawing for readers without JavaScript.
    still: str


# Heading, unit and text of each column that a row of numbers can have; one without any text is left out.
_Column = tuple[str, str, Callable[[Reading], str]]
_COLUMNS: tuple[_Column, ...] = (
    ("what", "", lambda row: row.what),
    ("from", "", lambda row: row.source or ""),
    ("to", "", lambda row: row.target or ""),
    ("size", "B", lambda row: _number(row.size_bytes)),
    ("count", "elem", lambda row: _number(row.count)),
    ("type", "", lambda row: row.dtype or ""),
    ("redop", "", lambda row: row.op or ""),
    ("root", "", lambda row: _number(row.root)),
    ("form", "", place_words),
    ("time", "us", lambda row: _scaled(row.time_s, 1e6)),
    ("algbw", "GB/s", lambda row: _scaled(row.algbw_Bps, 1e-9)),
    ("busbw", "GB/s", lambda row: _scaled(row.busbw_Bps, 1e-9)),
    ("bandwidth", "GB/s", lambda row: _scaled(row.bandwidth_Bps, 1e-9)),
    ("messages", "1e6/s", lambda row: _scaled(row.messages_per_s, 1e-6)),
    ("#wrong", "", lambda row: _number(row.wrong)),
    ("line", "", lambda row: str(row.line)),
)


def import_section_of(subject: ImportSubject, *, prefix: str, level: int) -> RunSection:
    """Return one import's part of a page. `prefix` stands before every id, `level` is that of its headings."""
    imported, explained = subject.imported, subject.explained
    curves = import_curves(subject)
    figures: dict[str, Figure] = {}
    shown = tuple(_shown(curve, f"{prefix}curve-{n}", figures) for n, curve in enumerate(curves[:MOST_CURVES], 1))
    findings = by_weight(explained.findings, explained.verdict)
    summary = summary_of(f"{prefix}summary-busbw", _told_apart(curves), findings, steps=explained.next_steps)
    figures |= {summary.key: summary.figure} if summary.figure is not None else {}
    values = {
        "p": prefix,
        "h": level,
        "label": subject.label,
        "imported": imported,
        "explained": explained,
        "outcome_words": words.OUTCOMES[explained.verdict.outcome],
        "summary": summary,
        "summary_still": still_of(summary),
        "findings": explained_findings(findings, {}),
        "curves": shown,
        "curves_left": len(curves) - len(shown),
        "tables": tuple(_tables(subject, prefix)),
        "tables_left": max(len(imported.tables) - _MOST_TABLES, 0),
        "rows_left": subject.left_out,
        "unread": subject.unread,
        "withheld": sum(table.environment_withheld for table in imported.tables),
    }
    return RunSection(values=values, figures=figures, ranks=[])


def _told_apart(curves: Sequence[ImportCurve]) -> list[Curve]:
    """Return the curves of bus bandwidth, each by a name of its own."""
    seen: Counter[str] = Counter()
    named = []
    for curve in (each.reached for each in curves if each.reached is not None):
        seen[curve.label] += 1
        number = f" ({seen[curve.label]})" if seen[curve.label] > 1 else ""
        named.append(replace(curve, label=f"{curve.label}{number}"))
    return named


def _shown(curve: ImportCurve, key: str, figures: dict[str, Figure]) -> ShownCurve:
    """Return how a curve is shown, and put its figures among the others."""
    ids: dict[str, str | None] = {"time": None, "rate": None}
    panels: list[Panel] = []
    for kind, title, figure in (("time", "time", curve.time), ("rate", curve.rate_words, curve.rate)):
        if figure is not None:
            ids[kind] = f"{key}-{kind}"
            figures[f"{key}-{kind}"] = figure
            panels.append(Panel(title=title, figure=figure))
    return ShownCurve(
        key=key,
        name=curve.name,
        note=curve.note,
        summary=curve.summary,
        rate_words=curve.rate_words,
        still=svg_address(figures_svg(curve.name, curve.note, panels, "light")),
        **ids,
    )


def _tables(subject: ImportSubject, prefix: str) -> Iterator[ReadTable]:
    rows: dict[int, list[Reading]] = {}
    for row in subject.readings:
        rows.setdefault(row.table, []).append(row)
    for table in subject.imported.tables[:_MOST_TABLES]:
        own = rows.get(table.number, ())
        columns = [each for each in _COLUMNS if any(each[2](row) for row in own)]
        yield ReadTable(
            key=f"{prefix}table-{table.number}",
            name=table_words(subject.imported, table),
            cells=tuple(table_cells(table, subject.digests.get(table.number, Digest()), wide=True)),
            facts=tuple(_facts(subject.imported, table))[:_MOST_FACTS],
            headings=tuple((name, unit) for name, unit, _ in columns),
            rows=tuple(tuple(text(row) for _, _, text in columns) for row in own),
        )


def _facts(imported: Imported, table: Table) -> Iterator[tuple[str, str]]:
    """Yield what a table says of itself; what a tool does not say is not there."""
    yield "tool", f"{table.tool} {table.tool_version or ''}".strip()
    yield "lines", f"{table.first_line} to {table.last_line} of {imported.sources[table.source].name}"
    yield "a time is", table.statistic
    yield from table.versions
    if table.arguments:
        yield "arguments", " ".join(table.arguments)
    yield from (("said of itself", f"{name}: {value}") for name, value in table.parameters)
    yield from (("environment", f'{name} = "{value}"') for name, value in table.environment)
    hosts = tuple(dict.fromkeys(device.host for device in table.devices if device.host))
    models = tuple(dict.fromkeys(device.model for device in table.devices if device.model))
    if table.devices:
        on = f" on {', '.join(hosts)}" if hosts else ""
        yield "devices", f"{len(table.devices)} x {', '.join(models) or 'devices'}{on}"
    yield from (("concluded", f"{name}: {value}") for name, value in table.footer)
    yield from (("failed", f"line {line}: {text}") for line, text in table.failures)
    yield from (("in doubt", f"line {line}: {text}") for line, text in table.doubts)
    if not table.complete:
        yield "end", "not seen: the table was cut off"


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _scaled(value: float | None, scale: float) -> str:
    return "" if value is None else f"{value * scale:.2f}"
