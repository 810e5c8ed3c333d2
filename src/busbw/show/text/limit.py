"""The limits of a machine as text for a terminal: what its parts carry, and what follows for each collective."""

import textwrap

from rich.table import Table
from rich.text import Text

from busbw.base.units import format_rate
from busbw.model.limit import Attained, Bound, Limit, LimitLine, Part, PartName
from busbw.show.plain import printable
from busbw.show.text.terminal import console

_CANNOT_TELL = "cannot tell"
_MOST_SOURCES = 3


def limit_text(limit: Limit, *, detailed: bool) -> None:
    """Print the budget, then a table of ceilings, and, where `detailed`, the formulas of each."""
    out = console()

    def say(words: str, style: str = "") -> None:
        lines = _hanging(printable(words), out.width) if out.is_terminal else printable(words)
        out.print(Text(lines, style=style), soft_wrap=True)

    say(_heading(limit))
    for part in limit.parts:
        for line in _part_lines(part, detailed=detailed):
            say(line)
    out.print()
    titles = {part.name: part.title for part in limit.parts}
    out.print(_table(limit, titles))
    for bound in limit.bounds if detailed else ():
        out.print()
        for line in _bound_lines(bound, titles):
            say(line)
    out.print()
    for words in limit.assumptions:
        say(f"assumed: {words}")
    missing = dict.fromkeys([*limit.missing, *(words for bound in limit.bounds for words in bound.missing)])
    for words in missing:
        say(f"not known: {words}", "yellow")
    say("at most: arithmetic on line rates. as seen: the same with what somebody has measured of them")


def _hanging(line: str, width: int) -> str:
    """Return a line broken at `width`, what follows set under the last column of the first: two spaces part columns."""
    column = line.rstrip().rfind("  ") + 2
    indent = " " * (column if 1 < column < width // 2 else 4)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _sources(ids: tuple[str, ...]) -> str:
    """Return the first sources of a value; --json has all."""
    if not ids:
        return ""
    more = f" and {len(ids) - _MOST_SOURCES} more" if len(ids) > _MOST_SOURCES else ""
    return f" [{', '.join(ids[:_MOST_SOURCES])}{more}]"


def _heading(limit: Limit) -> str:
    nodes = f"{limit.nodes} node{'s' if limit.nodes > 1 else ''}"
    gpus = f" of {limit.gpus} GPU{'s' if limit.gpus > 1 else ''}" if limit.gpus else ""
    domains = f" in {limit.domains} NVLink domain{'s' if limit.domains > 1 else ''}" if limit.domains else ""
    return f"{limit.name or 'these nodes'}: {nodes}{gpus}{domains}, {limit.ranks} ranks"


def _part_lines(part: Part, *, detailed: bool) -> list[str]:
    rate = format_rate(part.rate_Bps) if part.rate_Bps is not None else "not known"
    figures = part.figures if part.rate_Bps is not None else part.missing
    lines = [f"  {part.title:<20}{rate:>11}  {figures}{_sources(part.source)}"]
    if not detailed or part.rate_Bps is None:
        return lines
    # One constant may hold for several algorithms.
    by_words: dict[str, list[Attained]] = {}
    for seen in part.attained:
        by_words.setdefault(seen.words, []).append(seen)
    for words, group in by_words.items():
        names = "".join(f"{seen.algorithm}, " for seen in group if seen.algorithm is not None)
        fitted = "fitted: " if group[0].fitted else ""
        attained = format_rate(part.rate_Bps * group[0].share)
        lines.append(f"  {'  as seen':<20}{attained:>11}  {names}{fitted}{words}{_sources(group[0].source)}")
    return lines


def _table(limit: Limit, titles: dict[PartName, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("collective")
    table.add_column("algorithm")
    table.add_column("busbw at most", justify="right")
    table.add_column("algbw", justify="right")
    table.add_column("as seen", justify="right")
    table.add_column("limited by")
    for bound in limit.bounds:
        table.add_row(
            bound.collective,
            bound.algorithm,
            _rate(bound.busbw_Bps),
            _rate(bound.algbw_Bps) if bound.busbw_Bps is not None else "",
            format_rate(bound.attained_Bps) if bound.attained_Bps is not None else "",
            titles[bound.limited_by] if bound.limited_by is not None else "",
        )
    return table


def _rate(rate_Bps: float | None) -> str:
    return format_rate(rate_Bps) if rate_Bps is not None else _CANNOT_TELL


def _bound_lines(bound: Bound, titles: dict[PartName, str]) -> list[str]:
    lines = [f"{bound.collective}, {bound.algorithm}: {_result(bound)}", f"  {bound.why}{_sources(bound.source)}"]
    lines += [f"  if: {condition}" for condition in bound.conditions]
    lines += [words for line in bound.lines for words in _line_lines(line, titles[line.part])]
    return lines


def _result(bound: Bound) -> str:
    if bound.busbw_Bps is None or bound.algbw_Bps is None:
        return f"{_CANNOT_TELL}: {'; '.join(bound.missing)}"
    return f"busbw at most {format_rate(bound.busbw_Bps)}, algbw {format_rate(bound.algbw_Bps)}"


def _line_lines(line: LimitLine, title: str) -> list[str]:
    mark = "->" if line.limits else "  "
    lines = [f"  {mark} {title:<20}  {line.formula}", f"     {'':<20}  {line.figures}"]
    if line.attained_Bps is not None:
        lines.append(f"     {'':<20}  as seen: {format_rate(line.attained_Bps)}, {line.attained_words}")
    return lines
