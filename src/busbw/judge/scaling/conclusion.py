"""The verdict on scaling figures: one sentence that says what a reader came for, and what it rests on."""

from collections.abc import Sequence

from busbw.base.units import percent_range
from busbw.judge.phrases import counted
from busbw.judge.scaling.application import MOST_EFFICIENCY
from busbw.judge.scaling.places import workers
from busbw.model.finding import Finding
from busbw.model.scaling import Estimate, Scaling, ScalingOutcome, ScalingSeries, ScalingVerdict

# What leads, the gravest first.
_WARNINGS: tuple[tuple[tuple[str, ...], ScalingOutcome], ...] = (
    (("SCAL003",), "above_limit"),
    (("SCAL001", "SCAL002"), "slower"),
)
_SMALL = "SCAL004"
# So many sentences make a verdict; the others stand below the figures.
_MOST_SENTENCES = 2


def verdict_of(views: Sequence[Scaling], findings: Sequence[Finding]) -> ScalingVerdict:
    """Return the verdict on all figures together: what warns first, then differences of lines, then each line."""
    for codes, outcome in _WARNINGS:
        if warned := [each for each in findings if each.code in codes]:
            return _of_findings(outcome, warned)
    lines = [(view, series) for view in views for series in view.series]
    differences = [each.words for view in views for each in view.differences if each.answer != "cannot_tell"]
    falls = [f"{_name(*each)}: {each[1].bend.words}" for each in lines if each[1].bend and _bends(each[1])]
    level = [words for view, series in lines if (words := _level(view, series)) is not None]
    if differences:
        return _several("measured", differences)
    if falls:
        return _several("small_fall", falls, because=tuple(each.code for each in findings if each.code == _SMALL))
    if level:
        untold = len(lines) - len(level)
        return _several("level", level, f"; cannot tell of {counted(untold, 'other line')}" if untold else "")
    return _measured_or_untold(views, lines)


def _measured_or_untold(views: Sequence[Scaling], lines: Sequence[tuple[Scaling, ScalingSeries]]) -> ScalingVerdict:
    """Return what was reached on the largest machine; where no trend follows, that it cannot be told."""
    reached = [words for view, series in lines if (words := _measured(view, series)) is not None]
    if reached and any(_is_told(series) for _, series in lines):
        return _several("measured", reached)
    untold = [each.words for view in views for each in view.differences]
    untold += [
        answer.words
        for _, series in lines
        for answer in (series.bend, series.trend, series.serial)
        if answer is not None and len(series.left_out) < len(series.points)
    ]
    answers = [*reached, *dict.fromkeys(each.removeprefix("cannot tell ") for each in untold)]
    return _several("cannot_tell", answers or ["no trend from single points"])


def _of_findings(outcome: ScalingOutcome, findings: Sequence[Finding]) -> ScalingVerdict:
    first, *others = findings
    words = f"{first.title}: {first.evidence.split('; ')[0]}"
    return _several(outcome, [words, *(each.title for each in others)], because=tuple(each.code for each in findings))


def _several(
    outcome: ScalingOutcome, words: Sequence[str], rest: str = "", *, because: tuple[str, ...] = ()
) -> ScalingVerdict:
    left = len(words) - _MOST_SENTENCES
    more = f"; {counted(left, 'more answer')} below" if left > 0 else ""
    sentence = ". ".join(words[:_MOST_SENTENCES])
    return ScalingVerdict(outcome=outcome, sentence=sentence + more + rest, because=tuple(dict.fromkeys(because)))


def _bends(series: ScalingSeries) -> bool:
    return series.bend is not None and series.bend.answer == "bends"


def _is_told(series: ScalingSeries) -> bool:
    answers = (series.trend, series.bend, series.serial)
    return any(answer is not None and answer.answer != "cannot_tell" for answer in answers)


def _level(view: Scaling, series: ScalingSeries) -> str | None:
    """Return that the bus bandwidth of a line does not fall; None where it does, and where it cannot be told."""
    if view.kind != "collective" or series.judged_by != "busbw":
        return None
    bend, trend = series.bend, series.trend
    if bend is not None and bend.answer == "straight" and (trend is None or trend.answer != "falls"):
        return f"{_name(view, series)}: {bend.words}"
    if trend is not None and trend.answer in ("level", "rises"):
        return f"{_name(view, series)}: {trend.words}"
    return None


def _measured(view: Scaling, series: ScalingSeries) -> str | None:
    """Return what was reached on the largest machine; None where nothing follows from it."""
    if view.kind == "collective":
        return f"{_name(view, series)}: {series.trend.words}" if series.trend and _is_told(series) else None
    left_out = dict(series.left_out)
    kept = [point for point in series.points if point.at not in left_out and point.efficiency is not None]
    if not kept or kept[-1].efficiency is None or series.base in (None, kept[-1].at):
        return None
    share = kept[-1].efficiency
    if share.value > MOST_EFFICIENCY and view.kind == "weak":
        return None
    return (
        f"{_name(view, series)}: {100 * share.value:.1f} % efficiency on {workers(kept[-1].at, view.axis)} against "
        f"{workers(series.base or 0, view.axis)} ({_interval(share)}{counted(len(kept), 'point')})"
    )


def _interval(share: Estimate) -> str:
    if share.low is None or share.high is None:
        return ""
    basis = {"digits": "by rounding", "launches": "by the launches", "samples": "by the samples", None: ""}[share.basis]
    return f"{percent_range(share.low, share.high)} {basis}, "


def _name(view: Scaling, series: ScalingSeries) -> str:
    return f"{view.title} ({series.label})" if series.label and len(view.series) > 1 else view.title
