"""What the page about one run is made of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from busbw.base.units import format_rate, format_size, format_time
from busbw.facts.rules import rules
from busbw.model.finding import Finding
from busbw.model.run import Measurement, Run
from busbw.model.settings import Setting, Settings
from busbw.show import words
from busbw.show.figures.drawing import Panel, figures_svg
from busbw.show.figures.series import BASIS_WORDS, Explanations, Figure, busbw_figure, time_figure
from busbw.show.figures.spread import rank_layout, rank_numbers, rank_views, spread_figure
from busbw.show.page.pictures import ReportSubject, pictures_of, svg_address
from busbw.show.page.step import step_section_of
from busbw.show.page.summary import curves_of_run, still_of, summary_of
from busbw.show.reproduce import command_of, with_settings
from busbw.show.text.autopsy import autopsy_lines
from busbw.show.weighing import conditions_of, weighed
from busbw.show.words import (
    Column,
    cells_of,
    columns_of,
    found_lines,
    gpu_words,
    node_lines,
    placement_words,
    platform_words,
    skew_words,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """A finding, why its rule matters (None: a rule this busbw does not know), and the measurement it is about."""

    finding: Finding
    why: str | None
    about: str | None
    # Whether it is the first of its code: where links to the code lead.
    first: bool


def explained_findings(findings: Sequence[Finding], points: Mapping[int, str]) -> tuple[Explained, ...]:
    """Return the findings in their order, each with why its rule matters and what it is about.

    `points`: what each measurement is called.
    """
    known = rules()
    return tuple(
        Explained(
            finding=finding,
            why=known[finding.code].why if finding.code in known else None,
            about=points.get(finding.point) if finding.point is not None else None,
            first=finding.code not in {earlier.code for earlier in findings[:number]},
        )
        for number, finding in enumerate(findings)
    )


LAYER_WORDS = {
    "default": "the library's default",
    "platform": "the platform",
    "topology": "the topology",
    "site": "the site",
    "recommended": "busbw run, as recommended",
    "etc_conf": "/etc/nccl.conf",
    "conf": "the user's NCCL settings file",
    "tuned": "a tuned set",
    "shell": "the environment of whoever started it",
    "command_line": "busbw run",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingRow:
    """One variable: its value in force, quoted, who set it, and every choice that lost."""

    name: str
    value: str
    who: str
    source: str
    replaced: str


def setting_rows(settings: Settings | None) -> tuple[SettingRow, ...]:
    """Return a row for each variable that is set or kept unset, by name."""
    if settings is None:
        return ()
    names = sorted(choice.name for choice in settings.in_force())
    return tuple(_row(settings.explain(name)) for name in names)


def _row(choices: tuple[Setting, ...]) -> SettingRow:
    first, *lost = choices
    return SettingRow(
        name=first.name,
        value=_quoted(first.value),
        who=LAYER_WORDS[first.layer],
        source=first.source,
        replaced="; ".join(f"{_quoted(each.value)} of {LAYER_WORDS[each.layer]} ({each.source})" for each in lost),
    )


def _quoted(value: str | None) -> str:
    return "unset" if value is None else f'"{value}"'


@dataclass(frozen=True, kw_only=True, slots=True)
class SeriesRows:
    """One sweep: its names in the page, and its rows."""

    key: str
    name: str
    note: str
    summary: str
    # Which rank is slowest; "" where that is not told.
    skew: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    measurements: tuple[Measurement, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSection:
    """One run: what its template reads, and what its figures are drawn from."""

    values: dict[str, Any]
    # By the id of the element they are drawn into.
    figures: dict[str, Figure]
    ranks: list[dict[str, Any]]


def section_of(subject: ReportSubject, *, prefix: str, level: int) -> RunSection:
    """Return one run's part of a page. `prefix` stands before every id, `level` is that of its headings."""
    run = subject.run
    command = command_of(run.plan)
    series = series_of(run, prefix)
    views = rank_views(run.measurements)
    explained = explanations_of(subject)
    findings, conditions = weighed(run), conditions_of(run)
    steps = subject.explained.next_steps if subject.explained is not None else ()
    step = step_section_of(run, explained, prefix=prefix)
    # Of a step each collective has one size, which makes no curve.
    curves = curves_of_run(run, explained) if step is None else ()
    summary = summary_of(f"{prefix}summary-busbw", curves, findings, conditions, steps)
    values = {
        "p": prefix,
        "h": level,
        "run": run,
        "plan": run.plan,
        "ranks_words": placement_words(run.plan.placement),
        "outcome_words": words.OUTCOMES[run.verdict.outcome],
        "series": series,
        "summary": summary,
        "step": step.values if step is not None else None,
        "findings": explained_findings(
            (*findings, *(conditions.findings if conditions is not None else ())),
            {item.point: words.point_name(item) for item in run.measurements},
        ),
        "finding_codes": frozenset(finding.code for finding in run.findings),
        "all_columns": tuple(dict.fromkeys(column for each in series for column in each.columns)),
        "ceiling_words": _ceiling_words(run),
        "views": views,
        "command": with_settings(command, subject.settings) if command is not None else None,
        "libraries": _distinct(hello.mpi_library for hello in run.ranks),
        "interposed": _distinct(name for hello in run.ranks for name in hello.interposed),
        "platform": platform_words(run.plan),
        "gpu_lines": gpu_words(run.plan),
        "node_lines": (*found_lines(run), *node_lines(run.nodes)),
        "autopsy": autopsy_lines(run.autopsy)[1:] if run.autopsy is not None else (),
        "thread_levels": _distinct(hello.thread_level for hello in run.ranks),
        "settings": setting_rows(subject.settings),
        "unseen": subject.unseen,
        "pictures": pictures_of(subject),
        "explained": subject.explained,
    }
    figures = dict(_figures(run, series, explained)) if step is None else dict(step.figures)
    figures |= {summary.key: summary.figure} if summary.figure is not None else {}
    # What is unpacked by the page itself has no reader without JavaScript.
    values["stills"] = {} if prefix or step is not None else {each.key: _still(each, figures) for each in series}
    values["summary_still"] = None if prefix else still_of(summary)
    if views is not None:
        figures[f"{prefix}ranks-figure"] = {"data": [], "layout": rank_layout()}
    return RunSection(
        values=values, figures=figures, ranks=[rank_numbers(item) for item in views.shown] if views is not None else []
    )


def series_of(run: Run, prefix: str = "") -> tuple[SeriesRows, ...]:
    """Return the sweeps of a run, in the order they were measured."""
    ceilings = {ceiling.point: ceiling for ceiling in run.ceilings}
    groups = groupby(run.measurements, key=_line)
    return tuple(
        SeriesRows(
            key=f"{prefix}series-{number}",
            name=words.series_name(items[0]),
            note=words.series_note(items[0]),
            summary=_summary(items),
            skew=skew_words(items),
            columns=columns_of(items[0]),
            rows=tuple(cells_of(item, ceilings.get(item.point)) for item in items),
            measurements=items,
        )
        for number, items in enumerate((tuple(group) for _, group in groups), start=1)
    )


def _line(item: Measurement) -> tuple[object, ...]:
    """Return what all points of one line in a figure share: everything but their size."""
    return item.collective, item.in_place, item.dtype, item.op, item.root, item.pair, item.group, item.within


def _summary(items: Sequence[Measurement]) -> str:
    """Return what a figure of these would show, in a sentence for who cannot see it."""
    first, last = items[0], items[-1]
    best = max(items, key=lambda item: item.busbw_Bps)
    return (
        f"from {format_time(first.median_s)} at {format_size(first.size_bytes)} "
        f"to {format_time(last.median_s)} at {format_size(last.size_bytes)}; "
        f"best bus bandwidth {format_rate(best.busbw_Bps)} at {format_size(best.size_bytes)}"
    )


def _still(series: SeriesRows, figures: dict[str, Figure]) -> str:
    """Return both curves of a sweep as the address of a drawing, for readers without JavaScript."""
    panels = [
        Panel(title=title, figure=figures[f"{series.key}-{kind}"])
        for kind, title in (("time", "time"), ("busbw", "bus bandwidth"))
    ]
    return svg_address(figures_svg(series.name, series.note, panels, "light"))


def explanations_of(subject: ReportSubject) -> Explanations:
    """Return the explanation of each size that has one, by its point."""
    series = subject.explained.series if subject.explained is not None else ()
    return {size.point: size for each in series for size in each.sizes if size.point is not None}


def _figures(run: Run, series: tuple[SeriesRows, ...], explained: Explanations) -> Iterator[tuple[str, Figure]]:
    """Yield every figure of a sweep with the id of its element."""
    ceilings = {ceiling.point: ceiling for ceiling in run.ceilings}
    for each in series:
        yield f"{each.key}-time", time_figure(each.measurements, ceilings, explained)
        yield f"{each.key}-busbw", busbw_figure(each.measurements, ceilings, explained)
        yield f"{each.key}-spread", spread_figure(each.measurements, ceilings)


def _ceiling_words(run: Run) -> tuple[tuple[str, str], ...]:
    """Return the formula of each collective's ceiling, and where its rate comes from, once for each."""
    named = {item.point: item for item in run.measurements}
    found: dict[tuple[str, str], str] = {}
    for ceiling in run.ceilings:
        if ceiling.point in named:
            found[named[ceiling.point].collective, ceiling.formula] = BASIS_WORDS[ceiling.basis]
    return tuple((collective, f"{formula}; {basis}") for (collective, formula), basis in found.items())


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
