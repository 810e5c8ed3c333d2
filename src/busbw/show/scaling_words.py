"""What terminal and page say alike of a scaling figure: its verdict, differences, intervals, and what was left out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from busbw.base.text import counted, listed
from busbw.base.units import percent_range, signed_percent
from busbw.model.finding import Outcome
from busbw.model.predict.prediction import Kinship
from busbw.model.scaling import (
    AXIS_WORDS,
    Axis,
    LineDifference,
    LinePrediction,
    PredictedPoint,
    Scaling,
    ScalingEstimate,
    ScalingOutcome,
    ScalingSeries,
    ScalingVerdict,
)

# Of each outcome a sign, the outcome of a run whose colours it has, and its word.
_OUTCOMES: dict[ScalingOutcome, tuple[str, Outcome, str]] = {
    "level": ("✓", "ok", "level"),
    "small_fall": ("i", "ok", "small fall"),
    "slower": ("▼", "slow", "slower"),
    "above_limit": ("?", "cannot_tell", "above the limit"),
    "measured": ("i", "ok", "measured"),
    "cannot_tell": ("?", "cannot_tell", "cannot tell"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictParts:
    """A verdict as a page shows it: a sign, the outcome of a run whose colours it has, a word, the sentence, codes."""

    sign: str
    tone: Outcome
    word: str
    sentence: str
    because: tuple[str, ...]


_BASES = {
    "launches": "how far several results lie apart",
    "samples": "the interval of the median within one launch",
    "digits": "the rounding of the printed figures",
}
_KINSHIP: dict[Kinship, str] = {
    "in family": "by such GPUs over such a network",
    "across": "by other GPUs or another network",
    "calibrated": "through cells of the machine itself",
}
# The most points whose differences are listed in a line.
_MOST_POINTS = 12


def verdict_parts(verdict: ScalingVerdict | None) -> VerdictParts | None:
    """Return how a verdict is shown; None for none."""
    if verdict is None:
        return None
    sign, tone, word = _OUTCOMES[verdict.outcome]
    return VerdictParts(sign=sign, tone=tone, word=word, sentence=verdict.sentence, because=verdict.because)


def answer_words(series: ScalingSeries) -> list[str]:
    """Return what can be told of a line as a whole, and what not."""
    bends = series.bend is not None and series.bend.answer == "bends"
    # What holds for a line as a whole says nothing where it has a drop.
    answers = (series.bend, None if bends else series.trend, series.serial)
    return list(dict.fromkeys(each.words for each in answers if each is not None))


def difference_notes(difference: LineDifference, axis: Axis) -> list[str]:
    """Return the points of a difference, and those without a partner."""
    noun = AXIS_WORDS[axis][1]
    notes = []
    if difference.change is not None:
        changes = (f"{point.at}: {signed_percent(point.change.value)}" for point in difference.points)
        notes.append(f"by {noun}: {listed(changes, _MOST_POINTS)}")
    return [*notes, *unmatched_notes(difference, axis)]


def unmatched_notes(difference: LineDifference, axis: Axis) -> list[str]:
    """Return the points of a difference that have no partner, each reason once."""
    reasons: dict[str, list[str]] = {}
    for at, why in difference.unmatched:
        reasons.setdefault(why, []).append(str(at))
    noun = AXIS_WORDS[axis][1]
    return [f"without a partner: {', '.join(places)} {noun}: {why}" for why, places in reasons.items()]


def interval_cell(estimate: ScalingEstimate | None) -> str:
    """Return an interval in percent, its ends rounded away from each other; "" where there is none."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return percent_range(estimate.low, estimate.high)


def half_interval(estimate: ScalingEstimate | None) -> str:
    """Return the wider half of an interval in percent of the value; "" where there is none."""
    if estimate is None or estimate.low is None or estimate.high is None or estimate.value <= 0:
        return ""
    half = max(estimate.high - estimate.value, estimate.value - estimate.low) / estimate.value
    return f"{100 * half:.1f} %" if half >= 0.001 else "<0.1 %"


def meaning_words(view: Scaling) -> list[str]:
    """Return what the intervals of the differences mean and what they do not hold, each once."""
    return list(dict.fromkeys(each.meaning for each in view.differences))


def left_out_words(view: Scaling, names: Sequence[str]) -> list[str]:
    """Return why points are not part of what is told, each reason once. `names`: what each line is called there."""
    reasons: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for number, series in enumerate(view.series):
        places: dict[str, list[str]] = {}
        for at, why in series.left_out:
            places.setdefault(why, []).append(f"*{at}")
        for why, here in places.items():
            reasons.setdefault((tuple(here), why), []).append(names[number])
    found = []
    for (starred, why), lines in reasons.items():
        of_lines = f"{', '.join(lines)}: " if len(lines) < len(view.series) else ""
        found.append(f"{of_lines}{', '.join(starred)} {'is' if len(starred) == 1 else 'are'} left out: {why}")
    return found


def interval_notes(view: Scaling) -> list[str]:
    """Return what the intervals of a figure are made of."""
    estimates = [
        estimate
        for series in view.series
        for point in series.points
        for estimate in (point.busbw_Bps, point.time_s, point.rate)
        if estimate is not None
    ]
    found = dict.fromkeys(_BASES[estimate.basis] for estimate in estimates if estimate.basis is not None)
    single = _single(view.series)
    notes = [f"+- is {' or '.join(found)}"] if found else []
    return [*notes, *single]


def predicted_at(view: Scaling, series: ScalingSeries) -> dict[int, PredictedPoint]:
    """Return what is predicted at the points of a line, by their places; empty where it was not asked for."""
    line = next((each for each in view.predictions if each.line == series.label), None)
    known = {point.at for point in series.points}
    return {point.at: point for point in line.points if point.at in known} if line is not None else {}


def inside_word(point: PredictedPoint | None, measured: ScalingEstimate | None) -> str:
    """Return how a measured value lies to the predicted interval: inside, below, above; "" where nothing is told."""
    if point is None or point.call is None or measured is None:
        return ""
    if point.is_inside:
        return "inside"
    return "below" if measured.value < point.call.low_Bps else "above"


def prediction_words(view: Scaling) -> list[str]:
    """Return how many points of each line lie in what is predicted, what that rests on, and what cannot be told."""
    lines: dict[str, list[str]] = {}
    for line in view.predictions:
        for words in (*_inside_words(line), *_basis_words(line), *_untold_words(line)):
            lines.setdefault(words, []).append(line.line)
    every = len(view.predictions)
    return [words if len(names) == every else f"{', '.join(names)}: {words}" for words, names in lines.items()]


def _inside_words(line: LinePrediction) -> Iterator[str]:
    told = [point for point in line.points if point.call is not None]
    if not told:
        return
    inside = sum(point.is_inside is True for point in told)
    outside = [str(point.at) for point in told if point.is_inside is False]
    but = f", not at {listed(outside, _MOST_POINTS)}" if outside else ""
    yield (
        f"predicted for {line.platform}, not measured, and no verdict rests on it: {inside} of "
        f"{counted(len(told), 'measured point')} inside the 90 % interval{but}"
    )


def _basis_words(line: LinePrediction) -> Iterator[str]:
    calls = [point.call for point in line.points if point.call is not None]
    for kinship in dict.fromkeys(call.kinship for call in calls):
        same = [call for call in calls if call.kinship == kinship]
        ways = ", ".join(dict.fromkeys(call.algorithm for call in same))
        documents = ", ".join(dict.fromkeys(document for call in same for document in call.documents))
        untold = dict.fromkeys(call.unmeasured for call in same if call.unmeasured is not None)
        by = "; ".join(untold) if kinship == "across" and untold else _KINSHIP[kinship]
        yield f"predicted {kinship}: {ways}, {by}; constants are fitted to {documents}"
    for by in dict.fromkeys(point.chosen_by for point in line.points if point.chosen_by):
        yield f"predicted algorithm: {by}"


def _untold_words(line: LinePrediction) -> Iterator[str]:
    """Yield what is extrapolated and what cannot be told, with the places unless that holds for all."""
    places: dict[str, list[str]] = {}
    for point in line.points:
        for words in point.call.extrapolated if point.call is not None else ():
            places.setdefault(f"extrapolated: {words}", []).append(str(point.at))
        if point.cannot is not None:
            places.setdefault(f"cannot tell: {point.cannot}", []).append(str(point.at))
    for words, at in places.items():
        where = f" at {listed(at, _MOST_POINTS)}" if len(at) < len(line.points) else ""
        yield f"predicted{where}: {words}"


def _single(views: Sequence[ScalingSeries]) -> list[str]:
    """Return how many results everything rests on, where each point has one."""
    points = [point for series in views for point in series.points]
    if not points or any(point.observations > 1 for point in points):
        return []
    count = len(points)
    if count == 1:
        return ["one result at one point: how far a repeat would lie off is not known"]
    return [f"one result at each of {count} points: how far a repeat would lie off is not known"]
