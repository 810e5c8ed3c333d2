"""A run as a summary in GitHub's Markdown: the verdict first, then points and findings."""

import re
from collections.abc import Sequence

from busbw.base.moment import day_and_time
from busbw.base.text import one_line
from busbw.base.units import format_in, format_rate, format_time
from busbw.model.gates import PointRow, point_name
from busbw.model.history import Trend, TrendSeries
from busbw.show.exports.rows import Export, PointOutcome, point_outcomes

# What begins or ends markup: emphasis, links, images, code, tables, HTML, headings, mentions, references, emoji,
# addresses.
_MARKUP = re.compile(r"[\\`*{}\[\]()#!|<>&~$@]|:(?=\S)|(?<=www)\.|(?<![^\W_])_|_(?![^\W_])", re.IGNORECASE)


def escaped(text: str) -> str:
    """Return `text` on one line, every character that could be markup written as a character reference.

    Backslashes are not enough: mentions, references to issues and bare addresses are found after them.
    """
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", one_line(text.replace("\n", " ")))


def table(headings: tuple[str, ...], lines: list[tuple[str, ...]], *, right: frozenset[int] = frozenset()) -> str:
    """Return a table; `right` are the columns of numbers. Cells are Markdown already."""
    rule = ["---:" if column in right else "---" for column in range(len(headings))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (headings, tuple(rule), *lines))


_MARKS = {"ok": "✅", "slow": "❌", "wrong": "❌", "failed": "❌", "cannot_tell": "❔"}
# A summary of GitHub may have 1 MiB, and nobody reads more lines than this.
_MOST_POINTS = 100
_MOST_FINDINGS = 30


def markdown_text(export: Export) -> str:
    """Return the summary. What comes from outside cannot be markup."""
    judged = list(zip(export.rows, point_outcomes(export), strict=True))
    # What is not right stands first when not all of it is shown.
    ordered = judged if len(judged) <= _MOST_POINTS else sorted(judged, key=lambda each: each[1].outcome == "ok")
    shown_points = ordered[:_MOST_POINTS]
    more = len(judged) - len(shown_points)
    parts = [
        f"### busbw: {escaped(', '.join(dict.fromkeys(row.collective for row in export.rows)) or export.run_id)}\n",
        _verdict(export),
        table(
            ("", "collective", "point", "time", _rate_heading(export.rows), ""),
            [_line(row, each) for row, each in shown_points],
            right=frozenset({3, 4}),
        )
        if judged
        else "",
        f"{more} more points are left out here.\n" if more else "",
        _findings(export),
        _about(export),
    ]
    return "\n".join(part for part in parts if part)


def _verdict(export: Export) -> str:
    if export.verdict is None:
        return "❔ an import: busbw does not judge it\n"
    return f"{_MARKS.get(export.verdict, '❔')} {escaped(export.sentence or export.verdict)}\n"


def _rate_heading(rows: Sequence[PointRow]) -> str:
    """Return what the rates are: what an imported tool calls bandwidth is bandwidth between two, without a factor."""
    names = ("bandwidth",) if any(row.bandwidth_Bps is not None for row in rows) else ()
    if not names or any(row.busbw_Bps is not None for row in rows):
        names = ("busbw", *names)
    return " or ".join(names)


def _line(row: PointRow, judged: PointOutcome) -> tuple[str, ...]:
    rate_Bps = row.busbw_Bps if row.busbw_Bps is not None else row.bandwidth_Bps
    return (
        _MARKS[judged.outcome],
        escaped(row.collective),
        escaped(point_name(row)),
        format_time(row.time_s) if row.time_s is not None else "",
        format_rate(rate_Bps) if rate_Bps is not None else "",
        # Why a point cannot be told is mostly the same for many, and stands above the table or below it.
        escaped(judged.reason) if judged.outcome != "cannot_tell" else "",
    )


def _findings(export: Export) -> str:
    lines = []
    for finding in [each for each in export.findings if each.is_serious][:_MOST_FINDINGS]:
        fix = f"; {escaped(finding.fix)}" if finding.fix is not None else ""
        lines.append(f"- **{escaped(finding.code)}** {escaped(finding.title)}: {escaped(finding.evidence)}{fix}\n")
    return "".join(lines)


def _about(export: Export) -> str:
    first = export.rows[0] if export.rows else None
    parts = [export.run_id, *((first.hosts, first.backend, first.libraries) if first is not None else ())]
    tag = [f"tag {export.tag}"] if export.tag else []
    return (
        f"<sub>{escaped(' · '.join(part for part in [*parts, *tag, f'busbw {export.busbw_version}'] if part))}</sub>\n"
    )


_TREND_MARKS = {"worse": "❌", "better": "✅", "steady": "✅", "cannot_tell": "❔"}
_ORDER = ("worse", "better", "cannot_tell", "steady")
_MOST_LINES = 100


def trend_markdown(trend: Trend) -> str:
    """Return the answer and a table with a line for each series; what changed first."""
    ordered = sorted(trend.series, key=lambda each: _ORDER.index(each.outcome))
    lines = [_trend_line(each, trend) for each in ordered[:_MOST_LINES]]
    more = len(ordered) - _MOST_LINES
    parts = [
        f"### busbw trend: {escaped(trend.metric.name)} by {trend.by}\n",
        f"{_TREND_MARKS[trend.outcome]} {escaped(trend.sentence)}\n",
        table((trend.by, "series", "runs", "now", "change", "since"), lines, right=frozenset({2, 3, 4}))
        if lines
        else "",
        f"{more} more series are left out here.\n" if more > 0 else "",
    ]
    return "\n".join(part for part in parts if part)


def _trend_line(series: TrendSeries, trend: Trend) -> tuple[str, ...]:
    change = series.changes[-1] if series.changes else None
    return (
        escaped(series.group),
        escaped(series.title),
        str(len(series.observations)),
        format_in(series.levels[-1].median, trend.metric.unit),
        f"{_TREND_MARKS[series.outcome]} {change.share * 100:+.1f} %"
        if change is not None
        else _TREND_MARKS[series.outcome],
        f"{day_and_time(change.created_unix_s)}" if change is not None else "",
    )
