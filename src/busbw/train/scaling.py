"""How training jobs scale: printed steps and throughputs made into observations of `judge.scaling`, checked on the way.

A step printed as 17.9 s is anything from 17.85 to 17.95. Where a throughput beside it follows from it to its last
digit, it was computed from the printed step and tells no more, but for one thing: 381,300 tokens a second beside a
step of "22" is the throughput of 22.0, so a zero was dropped, and the step has as many digits as the others of its
table. Where it does not follow, it was measured by itself, and the narrower of both intervals counts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from busbw.base.errors import InputError
from busbw.base.text import counted
from busbw.base.units import precise_time
from busbw.formats.arithmetic import printed
from busbw.judge.scaling.application import MOST_EFFICIENCY, application_view
from busbw.judge.scaling.conclusion import findings_of, verdict_of
from busbw.judge.scaling.lines import groups_of, setting, telling_of_work
from busbw.judge.scaling.places import axis_of, workers
from busbw.model.scaling import (
    Axis,
    Observation,
    Scaling,
    ScalingEstimate,
    ScalingLoss,
    ScalingReport,
    ScalingSeries,
    ScalingVerdict,
    StepCheck,
)
from busbw.train.scaling_losses import CostOfJob, scaling_losses

_SEQUENCES = ("seqlen", "seq", "seq_len", "sequence", "sequence_length", "seq_length")
_BATCHES = ("gbs", "batch", "global_batch", "global_batch_size")
TOKENS_PER_S = "tokens/s"
_MOST_TOKENS = 10**15
# Digits of a table are known from its column where it has at least so many rows.
_LEAST_ROWS = 3
_MOST_NOTED = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class StepResult:
    """One job on one size of the machine. Settings as for `Observation`, with sequence and batch among them."""

    source: str
    gpus: int | None
    nodes: int | None
    settings: tuple[tuple[str, str], ...]
    step_s: ScalingEstimate | None
    tokens_per_s: ScalingEstimate | None
    # Of a step, the share of communication that nothing hides; None: not told.
    exposed: ScalingEstimate | None = None
    # Of it, what each collective exposes, by name; (): not told.
    exposed_by: tuple[tuple[str, float], ...] = ()
    # What must be known of this job to read the figure, a sentence each.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaleQuestion:
    """How results are to be held against each other; None and () leave it to them."""

    kind: Literal["strong", "weak"] | None = None
    axis: Axis | None = None
    base: int | None = None
    against: str | None = None
    ignored: tuple[str, ...] = ()
    sequence_length: int | None = None
    global_batch: int | None = None
    # Published differences without times: ("EOS", "-2.3"), in percent.
    differences: tuple[tuple[str, str], ...] = ()


def of_table(steps: Sequence[Observation], rates: Sequence[Observation]) -> tuple[StepResult, ...]:
    """Return the rows of a table with steps, throughputs, or both; an empty sequence where it has no such column."""
    rows = steps or rates
    return tuple(
        StepResult(
            source=row.source,
            gpus=row.gpus,
            nodes=row.nodes,
            settings=row.settings,
            step_s=steps[number].time_s if steps else None,
            tokens_per_s=rates[number].rate if rates else None,
        )
        for number, row in enumerate(rows)
    )


def train_scaling(results: Sequence[StepResult], asked: ScaleQuestion) -> ScalingReport:
    """Return the figure of some jobs: efficiency, differences, and what their throughputs are worth.

    Raises InputError for results that cannot stand in one figure.
    """
    if not results:
        raise InputError("no job to draw", hint="busbw train scale LOG..., or a table: gpus, step_s")
    tokens = [_tokens(each, asked) for each in results]
    digits = _digits([each.step_s for each in results])
    found: list[Observation] = []
    checked: list[tuple[Observation, StepCheck]] = []
    for each, amount in zip(results, tokens, strict=True):
        step_s, check = _step(each, amount, digits)
        found.append(_observation(each, step_s, amount if all(tokens) else None))
        if check is not None:
            checked.append((found[-1], check))
    axis = axis_of(found, asked.axis)
    kind = asked.kind or _kind(found, tokens, axis)
    ignored = (*asked.ignored, *_BATCHES)
    base = asked.base if asked.base is not None else _base(found, axis, ignored)
    view = application_view(found, axis=axis, kind=kind, base=base, ignored=ignored, against=asked.against)
    names = _line_names(found, axis, ignored)
    checks = [replace(check, at=getattr(each, axis), line=names[each.source]) for each, check in checked]
    losses = _losses(results, found, tokens, view, names)
    view = replace(
        view,
        losses=losses,
        notes=(
            *(each.words for each in losses),
            *dict.fromkeys(note for each in results for note in each.notes),
            *view.notes,
            *_notes(view, checks, asked, has_tokens=all(tokens), told=asked.kind is not None),
        ),
        checks=tuple(checks),
    )
    findings = findings_of(view)
    return ScalingReport(verdict=_verdict(view, verdict_of((view,), findings)), views=(view,), findings=findings)


def _losses(
    results: Sequence[StepResult],
    found: Sequence[Observation],
    tokens: Sequence[int | None],
    view: Scaling,
    names: Mapping[str, str],
) -> tuple[ScalingLoss, ...]:
    """Return what losses are made of, of jobs that say their exposed communication."""
    jobs = [
        CostOfJob(
            line=names[each.source], at=at, gpus=each.gpus, tokens=amount, step_s=result.step_s.value,
            exposed=result.exposed, parts=result.exposed_by,
        )
        for result, each, amount in zip(results, found, tokens, strict=True)
        if result.exposed is not None and result.step_s is not None and amount and each.gpus
        if (at := getattr(each, view.axis)) is not None
    ]  # fmt: skip
    return scaling_losses(jobs, {each.label: each.base for each in view.series if each.base is not None}, view.axis)


def _tokens(result: StepResult, asked: ScaleQuestion) -> int | None:
    """Return the tokens of a step: sequence length x global batch; None where one is not known."""
    settings = {name.lower(): text for name, text in result.settings}
    sequence = asked.sequence_length or _whole(settings, _SEQUENCES)
    batch = asked.global_batch or _whole(settings, _BATCHES)
    if sequence is None or batch is None or not 0 < sequence * batch < _MOST_TOKENS:
        return None
    return sequence * batch


def _whole(settings: Mapping[str, str], names: Sequence[str]) -> int | None:
    text = next((settings[name] for name in names if name in settings), "").replace(",", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 and int(text) > 0 else None


def _digits(steps: Sequence[ScalingEstimate | None]) -> int | None:
    """Return how many digits the steps of a table have: the most of any; None where nothing tells."""
    known = [_significant(step) for step in steps if step is not None and step.basis == "digits"]
    return max(known) if len(known) >= _LEAST_ROWS else None


def _significant(step: ScalingEstimate) -> int:
    """Return how many digits a printed number has, from the value and what its digits leave open."""
    half = (step.high or step.value) - step.value
    found = 1
    while found < 17 and half > 0 and 10**found * half < step.value * 0.5 * (1 - 1e-9):
        found += 1
    return found


def _step(
    result: StepResult, tokens: int | None, digits: int | None
) -> tuple[ScalingEstimate | None, StepCheck | None]:
    """Return the time of a step with the interval that is narrower, and what its throughput is worth beside it."""
    step_s, rate = result.step_s, result.tokens_per_s
    if step_s is None and rate is not None and tokens is not None:
        return _implied(rate, tokens), None
    if step_s is None or rate is None or tokens is None or step_s.low is None or step_s.high is None:
        return step_s, None
    computed = tokens / step_s.value
    implied = _implied(rate, tokens)
    low, high = rate.low or rate.value, rate.high or rate.value
    taken, words = step_s, ""
    answer: Literal["follows", "within_digits", "apart"]
    # Both are printed by rounding; a throughput may have been cut off instead.
    if low - 1e-9 * rate.value <= computed < high + (high - low) / 2 + 1e-9 * rate.value:
        answer, taken = "follows", _with_digits(step_s, digits)
        words = f"{rate.value:,.0f} tokens/s is {tokens:,} over the printed step of {step_s.value:g} s"
        if taken != step_s:
            words += f", which has {digits} digits as the others: anything from {taken.low:g} to {taken.high:g} s"
    elif (
        implied.low is not None
        and implied.high is not None
        and implied.low <= step_s.high
        and step_s.low <= implied.high
    ):
        answer = "within_digits"
        taken = min((step_s, implied), key=lambda each: (each.high or 0) - (each.low or 0))
        words = f"{rate.value:,.0f} tokens/s is a step of {precise_time(implied.value)}: more exact than as printed"
    else:
        answer = "apart"
        words = (
            f"{rate.value:,.0f} tokens/s is a step of {precise_time(implied.value)}, and {step_s.value:g} s is "
            "printed: sequence, batch or one of the two is not what it is taken for"
        )
    check = StepCheck(
        line="",
        at=result.gpus or 0,
        tokens=tokens,
        computed_per_s=computed,
        printed_per_s=rate.value,
        answer=answer,
        step_s=taken,
        words=words,
    )
    return taken, check


def _implied(rate: ScalingEstimate, tokens: int) -> ScalingEstimate:
    return ScalingEstimate(
        value=tokens / rate.value,
        low=tokens / rate.high if rate.high else None,
        high=tokens / rate.low if rate.low else None,
        basis=rate.basis,
    )


def _with_digits(step_s: ScalingEstimate, digits: int | None) -> ScalingEstimate:
    """Return a step with the digits of its table, where it was printed with fewer: zeros at its end were dropped."""
    own = _significant(step_s)
    if digits is None or own >= digits or step_s.basis != "digits":
        return step_s
    again = printed(f"{step_s.value:.{digits - 1}e}")
    if again is None or abs(again.value - step_s.value) > 1e-9 * step_s.value:
        return step_s
    return ScalingEstimate(value=again.value, low=again.low, high=again.high, basis="digits")


def _observation(result: StepResult, step_s: ScalingEstimate | None, tokens: int | None) -> Observation:
    """Return a result by tokens a second, where all know their tokens; else by the time of a step."""
    if step_s is None and result.tokens_per_s is None:
        raise InputError("neither the time of a step nor a throughput", where=result.source)
    rate = result.tokens_per_s if step_s is None else None
    if step_s is not None and tokens is not None:
        value = result.tokens_per_s.value if result.tokens_per_s is not None else tokens / step_s.value
        rate = ScalingEstimate(
            value=tokens / step_s.value if result.tokens_per_s is None else value,
            low=tokens / step_s.high if step_s.high else None,
            high=tokens / step_s.low if step_s.low else None,
            basis=step_s.basis,
        )
        if rate.low is not None and rate.high is not None:
            rate = replace(rate, low=min(rate.low, value), high=max(rate.high, value))
    return Observation(
        source=result.source,
        settings=result.settings,
        gpus=result.gpus,
        nodes=result.nodes,
        ranks=result.gpus,
        time_s=None if rate is not None else step_s,
        rate=rate,
        rate_unit=TOKENS_PER_S if rate is not None else None,
    )


def _kind(found: Sequence[Observation], tokens: Sequence[int | None], axis: Axis) -> Literal["strong", "weak"]:
    """Return strong where the tokens of a step stay the same, weak where they grow or are not told."""
    by_place = {getattr(each, axis): amount for each, amount in zip(found, tokens, strict=True)}
    known = {amount for amount in by_place.values() if amount is not None}
    return "strong" if len(known) == 1 and len(by_place) > 1 and all(tokens) else "weak"


def _base(found: Sequence[Observation], axis: Axis, ignored: Sequence[str]) -> int | None:
    """Return the smallest place of the work that most places share, of several the largest; None: any will do."""
    names = dict.fromkeys(name for each in found for name, _ in each.settings)
    telling = {*telling_of_work(found, axis, ignored), "series", "table", *ignored}
    work = [name for name in names if name not in telling]
    places: dict[tuple[str | None, ...], set[int]] = {}
    for each in found:
        places.setdefault(tuple(setting(each, name) for name in work), set()).add(getattr(each, axis))
    if len(places) < 2:
        return None
    most = max(places.values(), key=lambda here: (len(here), max(here)))
    of_each_line = Counter(getattr(each, axis) for each in found)
    lines = max(of_each_line.values())
    shared = [at for at in sorted(most) if of_each_line[at] == lines]
    return (shared or sorted(most))[0]


def _line_names(found: Sequence[Observation], axis: Axis, ignored: Sequence[str]) -> dict[str, str]:
    """Return the name of the line that each source stands on."""
    groups = groups_of(found, axis, telling_of_work(found, axis, ignored))
    return {each.source: group.label for group in groups for each in group.observations}


def efficiency_words(view: Scaling, series: ScalingSeries) -> str | None:
    """Return the efficiency of the largest machine against the base, with two decimals; None where there is none."""
    left_out = dict(series.left_out)
    kept = [point for point in series.points if point.at not in left_out and point.efficiency is not None]
    if len(kept) < 2 or kept[-1].efficiency is None or kept[-1].at == series.base:
        return None
    share = kept[-1].efficiency
    if any((point.efficiency.low or 0) > MOST_EFFICIENCY for point in kept if point.efficiency is not None):
        # Not the same work at all points: no efficiency is one.
        return None
    by = {"digits": "by rounding", "samples": "by the steps of each job", "launches": "by the jobs", None: ""}
    interval = ""
    if share.low is not None and share.high is not None:
        interval = f" ({100 * share.low:.2f} to {100 * share.high:.2f} % {by[share.basis]})"
    name = f"{series.label}: " if series.label else ""
    there = workers(kept[-1].at, view.axis)
    return f"{name}{100 * share.value:.2f} % efficiency on {there} against {series.base}{interval}"


def _verdict(view: Scaling, usual: ScalingVerdict) -> ScalingVerdict:
    """Return the efficiency of each line as the answer, with what lines differ by behind it."""
    if usual.because:
        return usual
    words = [each for series in view.series if (each := efficiency_words(view, series)) is not None]
    words += [each.words for each in view.differences if each.answer != "cannot_tell"]
    if not words:
        return usual
    return ScalingVerdict(outcome="measured", sentence="; ".join(words[:4]))


def _notes(
    view: Scaling, checks: Sequence[StepCheck], asked: ScaleQuestion, *, has_tokens: bool, told: bool
) -> Sequence[str]:
    notes = []
    if not told:
        how = {
            "weak": "tokens of a step grow with the machine, or are not told",
            "strong": "tokens of a step stay the same",
        }
        notes.append(f"{view.kind} scaling: {how[view.kind]}; --weak or --strong says otherwise")
    if not has_tokens:
        notes.append(
            "throughput cannot be told, step times can: give --sequence and --batch, or columns seqlen and gbs"
        )
    answers = Counter(check.answer for check in checks)
    if answers["follows"]:
        notes.append(
            f"{answers['follows']} of {counted(len(checks), 'throughput')} follow to the unit from the printed steps: "
            "they were computed from rounded steps, and their interval is that of the steps"
        )
        zeros = [check for check in checks if ", which has" in check.words]
        notes += [f"{_where(view, check)}: {check.words}" for check in zeros[:_MOST_NOTED]]
    for check in checks:
        if check.answer != "follows":
            notes.append(f"{_where(view, check)}: {check.words}")
    notes += [_difference(name, text) for name, text in asked.differences]
    return notes


def _where(view: Scaling, check: StepCheck) -> str:
    return f"{check.line + ', ' if check.line else ''}{workers(check.at, view.axis)}"


def _difference(name: str, text: str) -> str:
    """Return what a published difference says by its digits. Raises InputError for one that is no number."""
    number = printed(text.removeprefix("-"))
    if number is None or number.value >= 100:
        raise InputError(f"{text!r} is not a difference in percent", hint="--difference 'EOS=-2.3'")
    side = "below" if text.startswith("-") else "above"
    return (
        f"published: {number.value:g} % {side} {name}, {number.low:g} to {number.high:g} % by its digits; only the "
        "difference is published, so nothing can be held against it"
    )
