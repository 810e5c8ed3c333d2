"""Runs and imports as one HTML file that needs nothing else: no network, no other file.

What is large is packed (gzip, base64) and unpacked by the page when it is looked at: the program that draws, the
figures, and, where there are several runs, what the page says of each.
"""

import gzip
import pkgutil
import re
import shlex
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from typing import Any

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from busbw import __version__
from busbw.base.text import printable
from busbw.base.units import format_rate, format_size, format_time
from busbw.fabric.groups.isolation import Isolation
from busbw.fabric.report import FabricReport
from busbw.model import codec
from busbw.model.comparison import Bisection, Comparison
from busbw.model.imported import Imported, Reading, Table
from busbw.model.scaling import ScalingReport
from busbw.show import words
from busbw.show.figures.axes import style_sheet
from busbw.show.figures.comparison import OUTCOME_SIGNS, versus_figures
from busbw.show.figures.drawing import Panel, figures_svg
from busbw.show.figures.imports import MOST_CURVES, ImportCurve, import_curves, place_words, table_words
from busbw.show.figures.rank_placement import rank_placement_figure
from busbw.show.figures.scaling import scaling_figures
from busbw.show.figures.series import BASIS_WORDS, Figure
from busbw.show.figures.spread import rank_numbers
from busbw.show.lines import AFTER_A_COMMAND, arguments_of, command_spans, is_long
from busbw.show.page.fabric import FabricSection, fabric_section_of, worst_of
from busbw.show.page.isolation import isolation_section_of
from busbw.show.page.overview import overview_of, overview_sentence
from busbw.show.page.pictures import ImportSubject, ReportSubject, svg_address
from busbw.show.page.section import RunSection, explained_findings, section_of
from busbw.show.page.summary import Curve, still_of, summary_of
from busbw.show.rank_placement import placement_columns, placement_rows, rank_placement_words, with_placements
from busbw.show.recommended import layer_rows, layer_words
from busbw.show.scaling_words import verdict_parts
from busbw.show.text.comparison import ANSWERS, asked_words, estimate_words
from busbw.show.text.imported import Digest, table_cells
from busbw.show.weighing import by_weight
from busbw.show.words import us

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
    summary = summary_of(f"{prefix}summary-busbw", _distinct(curves), findings, steps=explained.next_steps)
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


def _distinct(curves: Sequence[ImportCurve]) -> list[Curve]:
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


SCRIPT = "report.js"
# All that could end a script element, or that is not plain ASCII (U+2028 and U+2029 among it).
_UNSAFE = re.compile(r"[<>&\x7f-\U0010ffff]")


def embedded(json: bytes) -> Markup:
    """Return JSON that means the same and can stand in a script element: ASCII without `<`, `>` and `&`."""
    return Markup(_UNSAFE.sub(_escape, json.decode()))  # noqa: S704  nothing that is left can be markup


def inlined(name: str) -> Markup:
    """Return a style sheet or script of this package, as it is."""
    return Markup(_text("busbw.show.page", f"templates/{name}"))  # noqa: S704  shipped with busbw


def packed(content: bytes) -> Markup:
    """Return anything, compressed, as letters that are safe anywhere; the same for the same content."""
    return Markup(b64encode(gzip.compress(content, 9, mtime=0)).decode())  # noqa: S704  base64 has no markup


@cache
def plotly() -> Markup:
    """Return Plotly's JavaScript, which the plotly package brings along, packed."""
    return packed(_plotly().encode())


@cache
def script_policy() -> str:
    """Return what a page may run, as its security policy says it: busbw's script and Plotly by their digests."""
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in (inlined(SCRIPT), _plotly()))
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _plotly() -> str:
    return _text("plotly", "package_data/plotly.min.js")


def environment() -> Environment:
    """Return Jinja's environment: everything printed is escaped, and control characters are shown."""
    return Environment(
        autoescape=True,
        finalize=_printable,
        loader=FunctionLoader(lambda name: _text("busbw.show.page", f"templates/{name}")),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )


def _printable(value: object) -> object:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _text(package: str, path: str) -> str:
    raw = pkgutil.get_data(package, path)
    if raw is None:
        raise FileNotFoundError(f"{package} comes without {path}")
    return raw.decode()


_BISECTION_SIGNS = {"found": ("✓", "ok"), "none": ("~", "cannot_tell"), "cannot_tell": ("?", "cannot_tell")}
# A ticket system takes attachments of this size. Raw data that would go beyond stay in the folders of the runs.
_LARGEST_BYTES = 6_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """The JSON of one run or import; None where it is left out."""

    place: int
    name: str
    size_bytes: int
    json: Markup | None


def report_html(
    subjects: Sequence[ReportSubject],
    comparison: Comparison | None = None,
    scaling: ScalingReport | None = None,
    imports: Sequence[ImportSubject] = (),
    bisection: Bisection | None = None,
    fabrics: Sequence[FabricReport] = (),
    isolations: Sequence[Isolation] = (),
) -> str:
    """Return the report of runs, a comparison, scaling, imports, a bisection, fabrics, searches, or of all.

    With a bisection the comparison is that of its ends.
    """
    environment = _environment()
    values: dict[str, Any] = {
        "section": None,
        "overview": None,
        "imports": (),
        "comparison": comparison,
        "bisection": bisection,
        "versus": versus_figures(comparison) if comparison is not None else (),
        "outcome_signs": OUTCOME_SIGNS,
        "scaling": scaling_figures(scaling.views) if scaling is not None else (),
        "scaling_verdict": verdict_parts(scaling.verdict) if scaling is not None else None,
        "scaling_findings": scaling.findings if scaling is not None else (),
    }
    figures = {each.key: each.figure for each in values["versus"]}
    placed = rank_placement_figure(comparison) if comparison is not None else None
    values["rank_placements"] = with_placements(comparison) if comparison is not None else ()
    figures |= {"rank-placement": placed} if placed is not None else {}
    for view in values["scaling"]:
        figures[f"{view.key}-reached"] = view.reached
        figures |= {f"{view.key}-share": view.share} if view.share is not None else {}
    is_alone = bisection is None and _is_one_import(subjects, comparison, scaling, imports)
    read, of_imports = _imports(environment, imports, is_alone=is_alone)
    figures |= of_imports
    values |= {"imports": read}
    is_one = len(fabrics) + len(isolations) == 1 and not subjects
    of_nodes, drawn = _of_nodes(environment, fabrics, isolations, is_alone=is_one)
    values |= {"of_nodes": of_nodes}
    figures |= drawn
    if len(subjects) == 1:
        section = section_of(subjects[0], prefix="", level=2)
        values |= {
            "section": section.values,
            "body": Markup(environment.get_template("run.html.j2").render(section.values)),  # noqa: S704  by Jinja
        }
        payloads = [_payload("payload", figures | section.figures, section.ranks)]
    elif subjects:
        overview = overview_of(subjects)
        values |= {"overview": overview}
        for joint in overview.joints:
            figures |= {f"{joint.key}-time": joint.time, f"{joint.key}-busbw": joint.busbw}
        payloads = [_payload("payload", figures, []), *_each_run(environment, subjects)]
    else:
        payloads = [_payload("payload", figures, [])]
    title, heading = _titles(subjects, comparison, scaling, imports, bisection)
    if (fabrics or isolations) and not subjects:
        title, heading = _titles_of_nodes(fabrics, isolations)
    return _page(environment, subjects, imports, values | {"payloads": payloads, "title": title, "heading": heading})


def _titles_of_nodes(fabrics: Sequence[FabricReport], isolations: Sequence[Isolation]) -> tuple[str, str]:
    """Return the title and the heading of a page of sweeps and searches alone."""
    heading = "busbw fabric" if fabrics else "busbw isolate"
    return f"{words.OUTCOMES[worst_of((*fabrics, *isolations)).outcome].word}: {heading}", heading


def _is_one_import(
    subjects: Sequence[ReportSubject],
    comparison: Comparison | None,
    scaling: ScalingReport | None,
    imports: Sequence[ImportSubject],
) -> bool:
    return len(imports) == 1 and not subjects and comparison is None and scaling is None


def _imports(
    environment: Environment, imports: Sequence[ImportSubject], *, is_alone: bool
) -> tuple[tuple[tuple[str, str, Markup], ...], dict[str, Figure]]:
    """Return the id, name and part of the page of each import, and the figures of all. One alone has no heading."""
    read: list[tuple[str, str, Markup]] = []
    figures: dict[str, Figure] = {}
    for place, subject in enumerate(imports, start=1):
        section = import_section_of(subject, prefix=f"import-{place}-", level=2 if is_alone else 3)
        html = Markup(environment.get_template("import.html.j2").render(section.values))  # noqa: S704  by Jinja
        read.append((f"import-{place}", "" if is_alone else f"Import {subject.label}", html))
        figures |= section.figures
    return tuple(read), figures


def _of_nodes(
    environment: Environment, fabrics: Sequence[FabricReport], isolations: Sequence[Isolation], *, is_alone: bool
) -> tuple[tuple[tuple[str, str, Markup], ...], dict[str, Figure]]:
    """Return the id, name and part of the page of each fabric and search, and all figures. One alone has no heading."""
    level = 2 if is_alone else 3
    made: list[tuple[str, str, str, FabricSection]] = []
    for place, report in enumerate(fabrics, start=1):
        section = fabric_section_of(report, prefix="" if is_alone else f"fabric-{place}-", level=level)
        made.append((f"fabric-{place}", f"Fabric: {report.title}", "fabric.html.j2", section))
    for place, found in enumerate(isolations, start=1):
        section = isolation_section_of(found, prefix="" if is_alone else f"isolation-{place}-", level=level)
        name = f"Search over groups: {found.plan.isolation_id}"
        made.append((f"isolation-{place}", name, "isolation.html.j2", section))
    read = tuple(
        (key, "" if is_alone else name, Markup(environment.get_template(template).render(section.values)))  # noqa: S704
        for key, name, template, section in made
    )
    return read, {key: figure for each in made for key, figure in each[3].figures.items()}


def _titles(
    subjects: Sequence[ReportSubject],
    comparison: Comparison | None,
    scaling: ScalingReport | None,
    imports: Sequence[ImportSubject],
    bisection: Bisection | None,
) -> tuple[str, str]:
    """Return the title of the window, and the heading of a page that has no run."""
    if bisection is not None and not subjects:
        return f"{bisection.outcome.replace('_', ' ')}: busbw bisect", "busbw bisect"
    heading = _heading(comparison, scaling, imports) if not subjects else ""
    return _title(subjects, comparison, scaling, imports), heading


def _title(
    subjects: Sequence[ReportSubject],
    comparison: Comparison | None,
    scaling: ScalingReport | None,
    imports: Sequence[ImportSubject],
) -> str:
    if len(subjects) == 1:
        run = subjects[0].run
        return f"{words.OUTCOMES[run.verdict.outcome].word}: busbw {run.plan.run_id} on {run.plan.host.name}"
    if subjects:
        return f"busbw: {overview_sentence(subjects)}"
    if comparison is not None:
        return f"{comparison.verdict.outcome.replace('_', ' ')}: busbw compare"
    if scaling is not None and not imports:
        parts = verdict_parts(scaling.verdict)
        return f"{parts.word}: busbw scaling" if parts is not None else "busbw scaling"
    if scaling is None and len(imports) == 1:
        return f"{words.OUTCOMES[imports[0].explained.verdict.outcome].word}: busbw on {imports[0].label}"
    return _heading(comparison, scaling, imports)


def _heading(comparison: Comparison | None, scaling: ScalingReport | None, imports: Sequence[ImportSubject]) -> str:
    """Return what stands above a page that has no run."""
    if comparison is not None:
        return "busbw compare"
    if scaling is not None:
        return "busbw scaling"
    return f"busbw on {imports[0].label}" if len(imports) == 1 else f"busbw: {len(imports)} imports"


def _each_run(environment: Environment, subjects: Sequence[ReportSubject]) -> Iterator[tuple[str, Markup]]:
    """Yield what the page says of each run, as a payload that it unpacks when the run is opened."""
    for place, subject in enumerate(subjects, start=1):
        section = section_of(subject, prefix=f"run-{place}-", level=3)
        html = environment.get_template("run.html.j2").render(section.values)
        yield _payload(f"run-{place}-payload", section.figures, section.ranks, html)


def _payload(
    name: str, figures: dict[str, Figure], ranks: list[dict[str, Any]], html: str | None = None
) -> tuple[str, Markup]:
    return name, packed(msgspec.json.encode({"figures": figures, "ranks": ranks, "html": html}))


def _page(
    environment: Environment,
    subjects: Sequence[ReportSubject],
    imports: Sequence[ImportSubject],
    values: dict[str, Any],
) -> str:
    """Return the page with as much raw data as fits beside everything else."""
    values |= {
        "version": __version__,
        "plotly": plotly(),
        "style": Markup(style_sheet()) + inlined("report.css"),  # noqa: S704  no more than colours
        "script": inlined(SCRIPT),
        "script_policy": script_policy(),
    }
    template = environment.get_template("report.html.j2")
    room_bytes = _LARGEST_BYTES - len(template.render(values | {"raws": ()}).encode())
    return template.render(values | {"raws": _raws(subjects, imports, room_bytes)})


def _raws(subjects: Sequence[ReportSubject], imports: Sequence[ImportSubject], room_bytes: int) -> tuple[Raw, ...]:
    raws: list[Raw] = []
    named = [(each.run.plan.run_id, codec.encode(each.run)) for each in subjects]
    named += [(each.imported.import_id, _whole(each)) for each in imports]
    for place, (name, content) in enumerate(named, start=1):
        json = embedded(content)
        fits = len(json) <= room_bytes
        room_bytes -= len(json) if fits else 0
        raws.append(Raw(place=place, name=name, size_bytes=len(json), json=json if fits else None))
    return tuple(raws)


def _whole(subject: ImportSubject) -> bytes:
    """Return an import with its rows, as far as the page has them, as JSON."""
    return msgspec.json.encode({"import": subject.imported, "readings": subject.readings, "left_out": subject.left_out})


def action_html(text: str) -> Markup:
    """Return what to do with each command as code: a long one has a line of its own and is selected by one click."""
    parts: list[Markup] = []
    at = 0
    for start, end in command_spans(text):
        command = text[start:end]
        parts.append(escape(printable(text[at:start].removesuffix("`"))))
        at = end + (text[end : end + 1] == "`")
        if is_long(command):
            words = Markup(" ").join(
                Markup("<span>{}</span>").format(printable(each)) for each in arguments_of(command)
            )
            parts.append(Markup('<code class="command">{}</code>').format(words))
            at = len(text) - len(text[at:].lstrip(AFTER_A_COMMAND))
        else:
            parts.append(Markup("<code>{}</code>").format(printable(command)))
    return Markup().join([*parts, escape(printable(text[at:]))])


def _environment() -> Environment:
    made = environment()
    made.filters |= {
        "size": format_size,
        "duration": format_time,
        "rate": format_rate,
        "us": us,
        "numbers": words.numbers_words,
        "shell": shlex.join,
        "quoted": shlex.quote,
        "point": words.point_name,
        "tail": words.tail_words,
        "rest": words.verdict_rest,
        "estimate": estimate_words,
        "items_asked": asked_words,
        "action": action_html,
        "layer_words": layer_words,
        "layer_rows": layer_rows,
        "rank_placement_words": rank_placement_words,
        "placement_columns": placement_columns,
        "placement_rows": placement_rows,
    }
    made.globals |= {
        "ended_words": words.ENDED_WORDS,
        "basis_words": BASIS_WORDS,
        "rank_numbers": rank_numbers,
        "outcome_table": words.OUTCOMES,
        "answers": ANSWERS,
        "bisection_signs": _BISECTION_SIGNS,
    }
    return made
