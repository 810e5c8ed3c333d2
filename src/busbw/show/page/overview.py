"""Several runs on one page: a row for each, and their curves together."""

from collections.abc import Sequence
from dataclasses import dataclass

from busbw.base.text import listed
from busbw.base.units import format_size
from busbw.model.run import Measurement
from busbw.show import words
from busbw.show.figures.series import MOST_DISTINCT, Figure, SweepLine, joint_busbw_figure, joint_time_figure
from busbw.show.page.pictures import ReportSubject
from busbw.show.page.section import series_of
from busbw.show.words import OutcomeWords, us

_MOST_NAMED = 4
_UNSET = "not set"


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingDifference:
    """One variable, and each of its values, quoted, with the runs that had it."""

    name: str
    values: tuple[tuple[str, str], ...]


def setting_differences(subjects: Sequence[ReportSubject]) -> tuple[SettingDifference, ...]:
    """Return the variables whose value in force differs, by name; runs that stored no settings are left out."""
    known = [(each.label, each.settings.env()) for each in subjects if each.settings is not None]
    names = sorted({name for _, values in known for name in values})
    found: list[SettingDifference] = []
    for name in names:
        runs: dict[str, list[str]] = {}
        for label, values in known:
            runs.setdefault(f'"{values[name]}"' if name in values else _UNSET, []).append(label)
        if len(runs) > 1:
            found.append(
                SettingDifference(
                    name=name, values=tuple((value, listed(labels, _MOST_NAMED)) for value, labels in runs.items())
                )
            )
    return tuple(found)


# Worst first: these are told apart when there are more runs than lines can be.
_GRAVITY = ("wrong", "failed", "slow", "cannot_tell", "ok")
_MOST_HOSTS = 3
_MOST_COLUMNS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class OverviewRow:
    """One run in the table. `best` has a cell for each collective of the page: `11.1 at 4 MiB`."""

    place: int
    label: str
    outcome: OutcomeWords
    sentence: str
    created: str
    hosts: str
    ranks: int
    measured_with: str
    best: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Joint:
    """The curves of one collective, of all runs that measured it; the table holds those told apart."""

    key: str
    name: str
    note: str
    summary: str
    labels: tuple[str, ...]
    # A size in words, then time (us) and bus bandwidth (GB/s) of each label; "" where it was not measured.
    rows: tuple[tuple[str, ...], ...]
    # Runs that are drawn in one quiet colour and are not in the table.
    others: int
    time: Figure
    busbw: Figure


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """What stands before the runs."""

    sentence: str
    rows: tuple[OverviewRow, ...]
    # The row with the gravest verdict; None: all are ok.
    gravest: OverviewRow | None
    differences: tuple[SettingDifference, ...]
    collectives: tuple[str, ...]
    joints: tuple[Joint, ...]


def overview_of(subjects: Sequence[ReportSubject]) -> Overview:
    """Return the table of all runs, in the order given, and their curves by collective."""
    collectives = tuple(dict.fromkeys(item.collective for each in subjects for item in each.run.measurements))
    shown = collectives[:_MOST_COLUMNS]
    rows = tuple(_row(place, each, shown) for place, each in enumerate(subjects, start=1))
    gravest = min(rows, key=lambda row: _GRAVITY.index(row.outcome.outcome))
    return Overview(
        sentence=overview_sentence(subjects),
        rows=rows,
        gravest=gravest if gravest.outcome.outcome != "ok" else None,
        differences=setting_differences(subjects),
        collectives=shown,
        joints=joints_of(subjects),
    )


def overview_sentence(subjects: Sequence[ReportSubject]) -> str:
    """Return how many runs came to which verdict, the gravest first."""
    outcomes = [each.run.verdict.outcome for each in subjects]
    parts = [f"{outcomes.count(each)} {words.OUTCOMES[each].word}" for each in _GRAVITY if each in outcomes]
    return f"{len(subjects)} runs: {', '.join(parts)}."


def _row(place: int, subject: ReportSubject, collectives: tuple[str, ...]) -> OverviewRow:
    run, plan = subject.run, subject.run.plan
    library = f"NCCL {plan.gpus.nccl.version}" if plan.gpus is not None else None
    if library is None and plan.mpi is not None:
        library = f"{plan.mpi.family} {plan.mpi.version or ''}".strip()
    return OverviewRow(
        place=place,
        label=subject.label,
        outcome=words.OUTCOMES[run.verdict.outcome],
        sentence=words.verdict_rest(run.verdict),
        created=plan.created,
        hosts=listed(plan.placement.hosts, _MOST_HOSTS),
        ranks=plan.placement.ranks,
        measured_with=", ".join(part for part in (plan.backend, library, plan.sampling.mode) if part),
        best=tuple(_best([item for item in run.measurements if item.collective == name]) for name in collectives),
    )


def _best(items: Sequence[Measurement]) -> str:
    best = max((item for item in items if item.busbw_Bps > 0), key=lambda item: item.busbw_Bps, default=None)
    return f"{best.busbw_Bps / 1e9:.2f} at {format_size(best.size_bytes)}" if best is not None else ""


def joints_of(subjects: Sequence[ReportSubject]) -> tuple[Joint, ...]:
    """Return the curves of each collective together; of many runs the gravest are told apart."""
    graver = sorted(range(len(subjects)), key=lambda place: _GRAVITY.index(subjects[place].run.verdict.outcome))
    distinct = {place: style for style, place in enumerate(sorted(graver[:MOST_DISTINCT]))}
    groups: dict[tuple[str, str], list[SweepLine]] = {}
    for place, subject in enumerate(subjects):
        for series in series_of(subject.run):
            key = series.name, series.measurements[0].dtype
            line = SweepLine(label=subject.label, style=distinct.get(place), measurements=series.measurements)
            groups.setdefault(key, []).append(line)
    return tuple(
        _joint(f"joint-{number}", name, dtype, lines)
        for number, ((name, dtype), lines) in enumerate(groups.items(), start=1)
    )


def _joint(key: str, name: str, dtype: str, every: Sequence[SweepLine]) -> Joint:
    lines = [line for line in every if line.style is not None]
    others = [line for line in every if line.style is None]
    ranks = sorted({item.ranks for line in every for item in line.measurements})
    counted = f"{ranks[0]} ranks" if len(ranks) == 1 else f"{ranks[0]} to {ranks[-1]} ranks"
    return Joint(
        key=key,
        name=name,
        note=f"{dtype}, {counted}",
        summary=f"{len(every)} runs",
        labels=tuple(line.label for line in lines),
        rows=_table(lines),
        others=len(others),
        time=joint_time_figure(lines, others),
        busbw=joint_busbw_figure(lines, others),
    )


def _table(lines: Sequence[SweepLine]) -> tuple[tuple[str, ...], ...]:
    measured = [{item.size_bytes: item for item in line.measurements} for line in lines]
    sizes = sorted({size_bytes for each in measured for size_bytes in each})
    return tuple((format_size(size), *(cell for each in measured for cell in _cells(each.get(size)))) for size in sizes)


def _cells(item: Measurement | None) -> tuple[str, str]:
    if item is None or item.median_s <= 0:
        return "", ""
    return us(item.median_s), f"{item.busbw_Bps / 1e9:.2f}"
