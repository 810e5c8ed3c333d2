"""What a report begins with: one figure of everything that was reached, and the findings that matter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from busbw.base.text import listed
from busbw.base.units import format_rate, format_size, format_time
from busbw.model.finding import Finding
from busbw.model.run import Run
from busbw.model.verdict import SizeExplanation
from busbw.show import words
from busbw.show.figures.axes import STYLES, size_axis, value_axis, zero_axis
from busbw.show.figures.drawing import Panel, figures_svg
from busbw.show.figures.series import Explanations, Figure, base_layout, line_trace, marker, plain
from busbw.show.page.pictures import svg_address
from busbw.show.weighing import Conditions

_MOST_FINDINGS = 3
_MOST_NOTES = 2
_MOST_STEPS = 2
# Where what is possible is further above all that was reached than this, an even axis would press the curves flat.
_MOST_TIMES = 4.0
# Rates that differ by less are one line.
_ALIKE = 1e-3
# Of an axis of logarithms: what lies further below the highest value is too little to see anything in.
_MOST_RANGE = 1000.0
_HEIGHT = 390
_LEGEND_LINE_PX = 19
_NAMES_OF_A_LINE = 6
_MOST_NAMED = 2
# The colour of what several curves share.
_SHARED = "--fig-7"
# Plotly's own rank is 1000.
_LAST_IN_LEGEND = 1001


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """One size of a curve; rates in bytes a second. None: nothing is expected, or no bound is known."""

    size_bytes: int
    time_s: float | None
    busbw_Bps: float
    # From here on a result is not slow, and what is expected.
    least_Bps: float | None = None
    expected_Bps: float | None = None
    possible_Bps: float | None = None
    outcome: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """The bus bandwidth of one sweep over its sizes."""

    label: str
    points: tuple[Reached, ...]
    in_place: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PageSummary:
    """The beginning of a page."""

    key: str
    figure: Figure | None
    # What the figure shows, in words.
    shows: str
    has_expected: bool
    has_possible: bool
    findings: tuple[Finding, ...]
    more: int
    conditions: Conditions | None
    steps: tuple[str, ...]


def summary_of(
    key: str,
    curves: Sequence[Curve],
    findings: Sequence[Finding],
    conditions: Conditions | None = None,
    steps: Sequence[str] = (),
) -> PageSummary:
    """Return what a page begins with. `findings`: by weight; `steps`: what to do next, beside their fixes."""
    first = {one.code: one for one in reversed(findings)}
    distinct = [one for one in findings if first[one.code] is one]
    matter = [one for one in distinct if one.is_serious][:_MOST_FINDINGS] or distinct[:_MOST_NOTES]
    figure = summary_figure(curves) if curves else None
    points = [point for curve in curves for point in curve.points]
    return PageSummary(
        key=key,
        figure=figure,
        shows="; ".join(_best_words(curve) for curve in curves),
        has_expected=any(point.expected_Bps for point in points),
        has_possible=any(point.possible_Bps for point in points),
        findings=tuple(matter),
        more=len(findings) - len(matter),
        conditions=conditions,
        steps=tuple(step for step in steps if step not in {one.fix for one in matter})[:_MOST_STEPS],
    )


def still_of(summary: PageSummary) -> str | None:
    """Return the figure as the address of a drawing, for readers without JavaScript; None: there is none."""
    if summary.figure is None:
        return None
    return svg_address(figures_svg("bus bandwidth", "", [Panel(title="", figure=summary.figure)], "light"))


def curves_of_run(run: Run, explained: Explanations) -> tuple[Curve, ...]:
    """Return a curve for each sweep of a run. A ceiling that the run itself measured goes before any other."""
    measured = {ceiling.point: ceiling.busbw_Bps for ceiling in run.ceilings}
    dtypes = {item.dtype for item in run.measurements}
    groups: dict[tuple[str, bool, object], list[Reached]] = {}
    for item in run.measurements:
        if item.busbw_Bps <= 0 or item.median_s <= 0 or item.wrong is not None:
            continue
        parts = [f"{item.collective}{words.pair_words(item)}", "in place" if item.in_place else ""]
        parts += [f"groups of {item.group}" if item.group is not None else "", item.dtype if len(dtypes) > 1 else ""]
        key = ", ".join(part for part in parts if part), item.in_place, (item.op, item.root)
        groups.setdefault(key, []).append(
            reached_of(
                item.size_bytes, item.median_s, item.busbw_Bps, explained.get(item.point), measured.get(item.point)
            )
        )
    return tuple(curve_of(label, points, in_place=in_place) for (label, in_place, _), points in groups.items())


def curve_of(label: str, points: Sequence[Reached], *, in_place: bool) -> Curve:
    """Return a curve with its points in the order of their sizes."""
    return Curve(label=label, points=tuple(sorted(points, key=lambda point: point.size_bytes)), in_place=in_place)


def reached_of(
    size_bytes: int,
    time_s: float | None,
    busbw_Bps: float,
    explained: SizeExplanation | None,
    measured_Bps: float | None = None,
) -> Reached:
    """Return one size with what is expected of it and possible there, as far as an explanation or a ceiling says."""
    expected_Bps = explained.band_high_Bps if explained is not None else None
    if explained is not None and expected_Bps is None and explained.band_time_s:
        # Of small messages a time is expected; at the same size bus bandwidth is its inverse.
        expected_Bps = explained.busbw_Bps * explained.time_s / explained.band_time_s
    return Reached(
        size_bytes=size_bytes,
        time_s=time_s,
        busbw_Bps=busbw_Bps,
        least_Bps=explained.band_low_Bps if explained is not None else None,
        expected_Bps=expected_Bps,
        possible_Bps=measured_Bps or (explained.ceiling_Bps if explained is not None else None),
        outcome=explained.verdict.outcome if explained is not None else None,
    )


def summary_figure(curves: Sequence[Curve]) -> Figure:
    """Return bus bandwidth over size of every curve, in GB/s: reached, expected (shaded) and possible (dashed)."""
    distinct, others = _distinct(curves)
    styled = [(curve, colour, symbol) for curve, (colour, _, symbol) in zip(distinct, STYLES, strict=False)]
    traces = [_quiet(others)] if others else []
    coloured = [(curve, colour) for curve, colour, _ in styled]
    traces += [*_expected(coloured), *_possible(coloured)]
    traces += [_line(curve, colour, symbol) for curve, colour, symbol in styled]
    points = [point for curve in curves for point in curve.points]
    reached = [value / 1e9 for point in points for value in (point.busbw_Bps, point.expected_Bps) if value]
    possible = [point.possible_Bps / 1e9 for point in points if point.possible_Bps]
    layout = base_layout(size_axis([point.size_bytes for point in points]), _rate_axis(reached, possible))
    names = sum(trace.get("showlegend", True) for trace in traces)
    layout["height"] = _HEIGHT + _LEGEND_LINE_PX * ((names - 1) // _NAMES_OF_A_LINE)
    return {"data": traces, "layout": layout}


def _distinct(curves: Sequence[Curve]) -> tuple[Sequence[Curve], Sequence[Curve]]:
    """Return the curves that have a colour of their own, and the others: those in place beside some out of place."""
    first = [curve for curve in curves if not curve.in_place] or list(curves)
    distinct = first[: len(STYLES)]
    return distinct, [curve for curve in curves if curve not in distinct]


def _rate_axis(reached: Sequence[float], possible: Sequence[float]) -> dict[str, Any]:
    """Return an even axis from 0, or one of logarithms where what is possible is far above what was reached."""
    values, title = [*reached, *possible], "busbw (GB/s)"
    if not possible or max(possible) <= _MOST_TIMES * max(reached):
        return zero_axis(title, values)
    return value_axis(title, [value for value in values if value * _MOST_RANGE >= max(values)])


def _line(curve: Curve, colour: str, symbol: str) -> Figure:
    points = curve.points
    trace = line_trace(
        plain(curve.label),
        [point.size_bytes for point in points],
        [_text(curve, point) for point in points],
        [point.busbw_Bps / 1e9 for point in points],
    )
    # A dash means what is possible, so markers tell the curves apart besides their colour.
    style = {"line": {"color": colour, "width": 2}, "marker": marker(symbol, colour)}
    return trace | style | {"legendgroup": plain(curve.label)}


Styled = Sequence[tuple[Curve, str]]


def _expected(styled: Styled) -> list[Figure]:
    """Return areas from what is not slow to what is expected, one for all curves that it is the same for."""
    return [_area(of, line) for of, line in _grouped(styled, lambda point: (point.least_Bps, point.expected_Bps))]


def _possible(styled: Styled) -> list[Figure]:
    """Return what is possible as dashed lines, one for all curves that it is the same for."""
    lines = _grouped(styled, lambda point: (point.possible_Bps,))
    return [_ceiling(of, line, is_only=len(lines) == 1) for of, line in lines]


def _grouped(
    styled: Styled, rates: Callable[[Reached], tuple[float | None, ...]]
) -> list[tuple[Styled, dict[int, tuple[float, ...]]]]:
    """Return curves whose rates are the same at every size they share, with these rates in GB/s by size."""
    groups: list[tuple[list[tuple[Curve, str]], dict[int, tuple[float, ...]]]] = []
    for curve, colour in styled:
        line = {
            point.size_bytes: tuple(_GBps(rate) for rate in rates(point) if rate)
            for point in curve.points
            if all(rates(point))
        }
        same = next((group for group in groups if _is_alike(group[1], line)), None)
        if same is not None:
            same[0].append((curve, colour))
            same[1].update(line)
        elif line:
            groups.append(([(curve, colour)], line))
    return [(of, dict(sorted(line.items()))) for of, line in groups]


def _is_alike(first: Mapping[int, tuple[float, ...]], other: Mapping[int, tuple[float, ...]]) -> bool:
    shared = [
        (one, two) for size in first.keys() & other.keys() for one, two in zip(first[size], other[size], strict=True)
    ]
    return bool(shared) and all(abs(one - two) <= _ALIKE * one for one, two in shared)


def _area(of: Styled, line: Mapping[int, tuple[float, ...]]) -> Figure:
    sizes_bytes, (low, high) = _wide(line)
    curve, colour = of[0]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"expected{_whose(of)}",
        "showlegend": False,
        "x": [*sizes_bytes, *reversed(sizes_bytes)],
        "y": [*high, *reversed(low)],
        "fill": "toself",
        "fillcolor": f"{colour if len(of) == 1 else _SHARED}-band",
        "line": {"width": 0, "color": colour if len(of) == 1 else _SHARED},
        "hoverinfo": "skip",
    } | ({"legendgroup": plain(curve.label)} if len(of) == 1 else {})


def _ceiling(of: Styled, line: Mapping[int, tuple[float, ...]], *, is_only: bool) -> Figure:
    """Return one dashed line; what is possible for one curve alone has its colour, and goes with it."""
    sizes_bytes, (values,) = _wide(line)
    curve, colour = of[0]
    own = {"legendgroup": plain(curve.label), "showlegend": False} if len(of) == 1 and not is_only else {}
    name = f"possible{'' if is_only else _whose(of)}"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendrank": _LAST_IN_LEGEND,
        "x": sizes_bytes,
        "y": values,
        "hovertemplate": f"{name}: %{{y}} GB/s<extra></extra>",
        "line": {"color": colour if own else _SHARED, "width": 1.5, "dash": "dash"},
    } | own


def _wide(line: Mapping[int, tuple[float, ...]]) -> tuple[list[float], tuple[list[float], ...]]:
    """Return the sizes of a line and its values; one size alone becomes a short piece."""
    sizes_bytes: list[float] = [*line]
    columns = tuple([*values] for values in zip(*line.values(), strict=True))
    if len(sizes_bytes) > 1:
        return sizes_bytes, columns
    return [sizes_bytes[0] * 0.9, sizes_bytes[0] * 1.1], tuple(column * 2 for column in columns)


def _whose(of: Styled) -> str:
    return f" of {listed((plain(curve.label) for curve, _ in of), _MOST_NAMED)}"


def _quiet(curves: Sequence[Curve]) -> dict[str, Any]:
    """Return one trace of many curves, with a gap after each."""
    rows = [
        row
        for curve in curves
        for row in (*((p.size_bytes, _GBps(p.busbw_Bps), _text(curve, p)) for p in curve.points), (None, None, ""))
    ]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{len(curves)} other sweep{'s' if len(curves) != 1 else ''}",
        "legendrank": _LAST_IN_LEGEND,
        "x": [row[0] for row in rows],
        "y": [row[1] for row in rows],
        "text": [row[2] for row in rows],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": "--fig-others", "width": 1},
        "connectgaps": False,
    }


def _text(curve: Curve, point: Reached) -> str:
    expected, possible = point.expected_Bps, point.possible_Bps
    outcome = words.OUTCOMES[point.outcome].word if point.outcome is not None else ""
    lines = [
        f"<b>{plain(curve.label)} {format_size(point.size_bytes)}</b>{f': {outcome}' if outcome else ''}",
        f"{format_rate(point.busbw_Bps)} busbw",
        f"time {format_time(point.time_s)}" if point.time_s else "",
        f"{100 * point.busbw_Bps / expected:.0f} % of the {format_rate(expected)} expected" if expected else "",
        f"{100 * point.busbw_Bps / possible:.0f} % of the {format_rate(possible)} possible" if possible else "",
    ]
    return "<br>".join(line for line in lines if line)


def _best_words(curve: Curve) -> str:
    best = max(curve.points, key=lambda point: point.busbw_Bps)
    expected = f" of {format_rate(best.expected_Bps)} expected" if best.expected_Bps else ""
    return f"{curve.label} {format_rate(best.busbw_Bps)}{expected} at {format_size(best.size_bytes)}"


def _GBps(rate_Bps: float) -> float:
    return float(f"{rate_Bps / 1e9:.6g}")
