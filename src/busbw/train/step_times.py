"""What a job's steps come to: the steady window, throughput, utilisation, long steps, drift, and findings.

The steady window is the last level of the last start (`stats.change_points`, false alarms 1 %, changes of 1 % or more),
after slow steps at its very beginning, of which there are too few for a level: the warm-up is what lies before it, not
a number of steps. A last level of fewer than a tenth of the steps that is slower than the one before is a slow end: it
is told, and the window lies before it.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import stdev

from busbw.base.text import counted, listed, percent
from busbw.base.units import precise_time
from busbw.facts.rules import finding
from busbw.model.finding import FilePlace, Finding
from busbw.model.scaling import ScalingEstimate
from busbw.model.train.reading import (
    LongSteps,
    RankSteps,
    ReadOutcome,
    SteadyWindow,
    StepColumns,
    StepThroughput,
    StepWork,
    TrainingLog,
)
from busbw.stats.change_points import LEAST_OF_A_LEVEL, change_points
from busbw.stats.distributions import median, median_interval, student_quantile
from busbw.stats.tail import drift, slow_samples
from busbw.train.job_steps import JobSteps

FALSE_ALARMS = 0.01
LEAST_CHANGE = 0.01
# Below this a level cannot be told from its warm-up.
LEAST_STEPS = 2 * LEAST_OF_A_LEVEL
# A first step is slow beyond so many standard deviations, as the scatter of the middle tells them.
_DEVIATIONS = 5.0
_MAD_TO_DEVIATION = 1.4826
# Longer series are looked at in so many stretches: the median of each.
_MOST_VALUES = 4_000
# Of the time of the window that long steps may take, and what the second half may lie off the first, without a word.
_LEAST_LOST = 0.02
_LEAST_DRIFT = 0.03
# A rank is slow where its median lies so much above that of the others.
_LEAST_SLOWER = 0.02
_MOST_NUMBERS = 20
_LEAST_S = 1e-12
_LEAST_REGULAR = 3
# Of the steps of a start: fewer at its end, and slower ones, are its end and not its level.
_LEAST_OF_A_START = 0.1
_MFU = "FLOPs of a step / (seconds of a step x GPUs x peak FLOP/s of a GPU)"


def training_log(
    steps: JobSteps,
    work: StepWork,
    *,
    source: str,
    program: str,
    garbled: tuple[int, int] = (0, 0),
    notes: Sequence[str] = (),
) -> TrainingLog:
    """Return what is told of a log. `garbled`: lines that were no step, and the first of them."""
    window, slow, places, slow_end = _window(steps)
    batch = _batch_of(steps, places, work, source)
    throughput = _throughput(window, batch, steps, places)
    outcome, sentence = _sentence(window, throughput, steps)
    return TrainingLog(
        source=source,
        program=program,
        basis=steps.basis,
        basis_words=steps.words,
        averaged_over=steps.stride,
        planned_steps=steps.planned,
        columns=StepColumns(numbers=steps.numbers, times_s=steps.times_s, lines=steps.lines),
        work=batch,
        window=window,
        throughput=throughput,
        exposed=_exposed(steps, places),
        long_steps=slow,
        restarts=steps.restarts,
        ranks=steps.ranks,
        garbled=garbled[0],
        impossible=steps.impossible,
        outcome=outcome,
        sentence=sentence,
        findings=(*_findings(steps, window, slow, garbled, source), *_slow_end(steps, window, slow_end, source)),
        notes=(*steps.notes, *notes),
    )


def _window(steps: JobSteps) -> tuple[SteadyWindow | None, LongSteps | None, range, range]:
    """Return the steady window, its long steps, the places it takes, and those of a slow end; None without a step."""
    first, last = _last_start(steps)
    if first == last:
        return None, None, range(0), range(0)
    times = steps.times_s[first:last]
    on_level = _on_level(times)
    slow_end = range(first + on_level.stop, last)
    begin, last = first + on_level.start, first + on_level.stop
    places = range(begin, last)
    inside = steps.times_s[begin:last]
    ordered = sorted(inside)
    step = _of_a_clock(inside, steps) if steps.basis == "clock" else _of_times(ordered, steps.rounding_s)
    centre = step.value
    before = sorted(steps.times_s[first:begin])
    window = SteadyWindow(
        first_step=steps.numbers[begin],
        last_step=steps.numbers[last - 1],
        first_line=steps.lines[begin],
        last_line=steps.lines[last - 1],
        steps=len(inside),
        warmup_steps=begin - first,
        warmup_s=median(before) if before else None,
        step_s=step,
        mean_s=math.fsum(inside) / len(inside),
        spread=(ordered[(3 * len(ordered)) // 4] - ordered[len(ordered) // 4]) / 2 / centre,
        drift=drift(inside),
    )
    return window, _long_steps(steps, places, centre), places, slow_end


def _of_times(ordered: Sequence[float], rounding_s: float) -> ScalingEstimate:
    """Return the median, with an interval no narrower than the printed digits."""
    centre = median(ordered)
    low, high = median_interval(ordered) or (ordered[0], ordered[-1])
    low, high = max(min(low, centre - rounding_s), _LEAST_S), max(high, centre + rounding_s)
    return ScalingEstimate(value=centre, low=low, high=high, basis="samples")


def _of_a_clock(times_s: Sequence[float], steps: JobSteps) -> ScalingEstimate:
    """Return the mean over stretches that are not slow: whole seconds cancel in it, and do not in a median."""
    slow = set(slow_samples(times_s))
    kept = [time_s for at, time_s in enumerate(times_s) if at not in slow]
    centre = math.fsum(kept) / len(kept)
    half = steps.rounding_s
    if len(kept) > 2:
        half = student_quantile(0.975, len(kept) - 1) * stdev(kept) / math.sqrt(len(kept))
    half = max(half, steps.rounding_s / len(kept))
    return ScalingEstimate(value=centre, low=max(centre - half, _LEAST_S), high=centre + half, basis="samples")


def _last_start(steps: JobSteps) -> tuple[int, int]:
    """Return the places of the last start that is long enough to be looked at; of none, those of the longest."""
    ends = (*steps.starts[1:], len(steps.times_s))
    starts = list(zip(steps.starts, ends, strict=True))
    return next((each for each in reversed(starts) if each[1] - each[0] >= LEAST_STEPS), None) or max(
        reversed(starts), key=lambda each: each[1] - each[0]
    )


def _on_level(times_s: Sequence[float]) -> range:
    """Return the places of the last level that is no slow end, without the slow steps it begins with."""
    each = max(1, math.ceil(len(times_s) / _MOST_VALUES))
    values = (
        times_s
        if each == 1
        else [median(sorted(times_s[at : at + each])) for at in range(0, len(times_s) - each + 1, each)]
    )
    changes = change_points(values, false_alarms=FALSE_ALARMS, least_change=LEAST_CHANGE)
    ends = [*(each * change for change in changes), len(times_s)]
    levels = list(pairwise([0, *ends]))
    while len(levels) > 1 and _is_slow_end(times_s, *levels[-2:]):
        levels.pop()
    begin, end = levels[-1]
    rest = sorted(times_s[begin:end])
    centre = median(rest)
    deviation = _MAD_TO_DEVIATION * median(sorted([abs(each - centre) for each in rest]))
    most = centre + max(_DEVIATIONS * deviation, LEAST_CHANGE * centre)
    first = next((at for at in range(begin, end) if times_s[at] <= most), begin)
    # More of them than a level has would have been a level of their own.
    return range(first if first - begin < LEAST_OF_A_LEVEL else begin, end)


def _is_slow_end(times_s: Sequence[float], before: tuple[int, int], level: tuple[int, int]) -> bool:
    if level[1] - level[0] >= _LEAST_OF_A_START * len(times_s):
        return False
    return median(sorted(times_s[slice(*level)])) > median(sorted(times_s[slice(*before)]))


def _long_steps(steps: JobSteps, places: range, centre_s: float) -> LongSteps | None:
    inside = steps.times_s[places.start : places.stop]
    slow = slow_samples(inside)
    if not slow:
        return None
    numbers = [steps.numbers[places.start + at] for at in slow]
    apart = {later - before for before, later in pairwise(numbers)}
    return LongSteps(
        count=len(slow),
        numbers=tuple(numbers[:_MOST_NUMBERS]),
        period=apart.pop() if len(apart) == 1 and len(numbers) >= _LEAST_REGULAR else None,
        longest_s=max(inside[at] for at in slow),
        lost=math.fsum(inside[at] - centre_s for at in slow) / math.fsum(inside),
    )


def _batch_of(steps: JobSteps, places: range, work: StepWork, source: str) -> StepWork:
    """Return the work with the batch that the lines of the window say, where nobody else did."""
    if work.global_batch is not None or work.tokens_per_step is not None:
        return work
    batches = sorted(batch for batch in steps.batches[places.start : places.stop] if batch)
    if not batches:
        return work
    return StepWork(
        sequence_length=work.sequence_length,
        global_batch=batches[len(batches) // 2],
        gpus=work.gpus,
        flops_per_step=work.flops_per_step,
        peak_flops=work.peak_flops,
        sources=(*work.sources, ("global_batch", f"{source}:{steps.lines[places.start]}")),
    )


def over_time(amount: float, time_s: ScalingEstimate) -> ScalingEstimate:
    """Return an amount over a time, with the interval of the time."""
    return ScalingEstimate(
        value=amount / time_s.value,
        low=amount / time_s.high if time_s.high else None,
        high=amount / time_s.low if time_s.low else None,
        basis=time_s.basis,
    )


def _throughput(window: SteadyWindow | None, work: StepWork, steps: JobSteps, places: range) -> StepThroughput:
    printed_flops = _middle(steps.flops[places.start : places.stop])
    printed_mfu = _middle(steps.mfu[places.start : places.stop])
    missing = list(_missing(work, printed_flops))
    if window is None:
        return StepThroughput(missing=tuple(missing))
    tokens, gpus = work.tokens, work.gpus
    mfu, formula = None, None
    if work.peak_flops is not None and work.flops_per_step is not None and gpus:
        mfu, formula = over_time(work.flops_per_step / gpus / work.peak_flops, window.step_s), _MFU
    elif work.peak_flops is not None and printed_flops is not None:
        mfu = ScalingEstimate(value=printed_flops / work.peak_flops)
        formula = "TFLOP/s of a GPU, as the program printed them, / peak FLOP/s of a GPU"
    return StepThroughput(
        tokens_per_s=over_time(tokens, window.step_s) if tokens is not None else None,
        tokens_per_s_per_gpu=over_time(tokens / gpus, window.step_s) if tokens is not None and gpus else None,
        mfu=mfu,
        mfu_formula=formula,
        printed_flops_per_gpu=printed_flops,
        printed_mfu=printed_mfu,
        missing=tuple(missing),
    )


def _missing(work: StepWork, printed_flops: float | None) -> Sequence[str]:
    lacking = []
    if work.tokens is None:
        names = [
            name
            for name, value in (("--sequence", work.sequence_length), ("--batch", work.global_batch))
            if value is None
        ]
        lacking.append(f"throughput cannot be told, step times can: give {' and '.join(names)}")
    elif not work.gpus:
        lacking.append("tokens a second of one GPU cannot be told: give --gpus")
    needs = [
        name
        for name, value in (
            ("--flops-per-step", work.flops_per_step or printed_flops),
            ("--peak-tflops", work.peak_flops),
            ("--gpus", work.gpus or printed_flops),
        )
        if not value
    ]
    if needs:
        lacking.append(f"model FLOP/s utilisation cannot be told: give {listed(needs)}")
    return lacking


def _exposed(steps: JobSteps, places: range) -> ScalingEstimate | None:
    """Return the share of a step that was waited for collectives: the median over the window with its interval."""
    known = sorted(share for share in steps.waited[places.start : places.stop] if 0 <= share <= 1)
    if not known:
        return None
    low, high = median_interval(known) or (known[0], known[-1])
    return ScalingEstimate(value=median(known), low=low, high=high, basis="samples")


def _middle(values: Sequence[float]) -> float | None:
    known = sorted(value for value in values if math.isfinite(value) and value > 0)
    return median(known) if known else None


def _sentence(window: SteadyWindow | None, throughput: StepThroughput, steps: JobSteps) -> tuple[ReadOutcome, str]:
    if window is None:
        return "cannot_tell", "no step with a time"
    step = window.step_s
    parts = [f"{precise_time(step.value)} a step"]
    if step.low is not None and step.high is not None:
        parts[0] += f" ({precise_time(step.low)} to {precise_time(step.high)}, {counted(window.steps, 'step')})"
    if throughput.tokens_per_s is not None:
        parts.append(f"{throughput.tokens_per_s.value:,.0f} tokens/s")
    if throughput.tokens_per_s_per_gpu is not None:
        parts.append(f"{throughput.tokens_per_s_per_gpu.value:,.0f} a GPU")
    if throughput.mfu is not None:
        parts.append(f"{100 * throughput.mfu.value:.1f} % MFU")
    elif throughput.printed_mfu is not None:
        parts.append(f"{100 * throughput.printed_mfu:.1f} % MFU as printed")
    words = ", ".join(parts)
    if window.steps < LEAST_STEPS:
        return "cannot_tell", f"{words}; from fewer than {LEAST_STEPS} lines no warm-up can be told"
    if _drifts(window, steps):
        return "unsteady", f"{words}; steps drift by {100 * (window.drift or 0):+.1f} %"
    return "steady", words


def _drifts(window: SteadyWindow, steps: JobSteps) -> bool:
    """Whether the two halves of the window differ by more than 3 %, and than the digits of their steps."""
    least = max(_LEAST_DRIFT, 2 * steps.rounding_s / window.step_s.value)
    return window.drift is not None and abs(window.drift) > least


def _findings(
    steps: JobSteps, window: SteadyWindow | None, slow: LongSteps | None, garbled: tuple[int, int], source: str
) -> list[Finding]:
    found = []
    if steps.impossible:
        found.append(
            finding(
                "STEP001",
                count=counted(steps.impossible, "step"),
                evidence="they are left out; a clock that was set back, or a line that was torn, prints such times",
                fix="look at the lines around it",
                place=FilePlace(file=source, line=steps.first_impossible),
            )
        )
    if garbled[0]:
        found.append(
            finding(
                "STEP002",
                count=counted(garbled[0], "line"),
                evidence="they begin as a step does and go on as none: torn, cut off, or of several ranks at once",
                fix="let one rank write the log, or give each its own file: srun --output=log-%t",
                place=FilePlace(file=source, line=max(garbled[1], 1)),
            )
        )
    if steps.restarts:
        lost = sum(each.lost for each in steps.restarts)
        last = steps.restarts[-1]
        found.append(
            finding(
                "STEP003",
                times=counted(len(steps.restarts), "time"),
                evidence=f"{counted(lost, 'step')} done again; the last time step {last.last_step} was followed by "
                f"{last.first_step}",
                fix="busbw doctor on the log says what ended the job, where it was the network",
                place=FilePlace(file=source, line=last.line),
            )
        )
    if window is not None and slow is not None and slow.lost >= _LEAST_LOST:
        found.append(_long_finding(slow, window, source))
    if window is not None and window.drift is not None and window.drift > 0 and _drifts(window, steps):
        found.append(
            finding(
                "STEP005",
                change=f"{100 * window.drift:.1f} %",
                evidence=f"the median of the second half of steps {window.first_step} to {window.last_step} against "
                "that of the first",
                fix="look at clocks and temperature of the GPUs, and at memory and input of the job over that time",
                place=FilePlace(file=source, line=window.first_line),
            )
        )
    return [*found, *_slow_rank(steps.ranks)]


def _slow_end(steps: JobSteps, window: SteadyWindow | None, places: range, source: str) -> list[Finding]:
    """Return that the last steps are slower than the window, where they are."""
    if window is None or not places:
        return []
    end_s = median(sorted(steps.times_s[places.start : places.stop]))
    return [
        finding(
            "STEP005",
            change=percent(end_s / window.step_s.value - 1),
            evidence=f"the last {counted(len(places), 'line')}, from step {steps.numbers[places.start]} on, take "
            f"{precise_time(end_s)} instead of {precise_time(window.step_s.value)}; fewer than a tenth of all, they "
            "are left out of the window",
            fix="look at what changed there: clocks and temperature of the GPUs, a link, or the end of the input",
            place=FilePlace(file=source, line=steps.lines[places.start]),
        )
    ]


def _long_finding(slow: LongSteps, window: SteadyWindow, source: str) -> Finding:
    if slow.period is not None:
        when, why = f"every {slow.period} steps", "evaluation or a checkpoint comes at a fixed distance"
    elif slow.count < _LEAST_REGULAR:
        when, why = "so far", "too few to tell whether their distance is fixed, as that of checkpoints is"
    else:
        when, why = "at no regular distance", "input, storage, or a node that stalls comes and goes"
    return finding(
        "STEP004",
        share=percent(slow.lost),
        evidence=f"{counted(slow.count, 'long step')} {when}, up to {precise_time(slow.longest_s)} instead of "
        f"{precise_time(window.step_s.value)}: {why}; steps {listed([str(each) for each in slow.numbers], 8)}",
        fix="hold the numbers against the distance of checkpoints and evaluations; if neither, look for the node that "
        "stalls: busbw check on the nodes of the job",
        place=FilePlace(file=source, line=window.first_line),
    )


def _slow_rank(ranks: Sequence[RankSteps]) -> list[Finding]:
    """Return that one rank is slower than all others, where it is one."""
    if len(ranks) < 3:
        return []
    by_time = sorted(ranks, key=lambda each: each.step_s)
    others = [each.step_s for each in by_time[:-1]]
    excess = by_time[-1].step_s / median(others) - 1
    if excess < _LEAST_SLOWER or by_time[-1].step_s / others[-1] - 1 < _LEAST_SLOWER / 2:
        return []
    return [
        finding(
            "STEP006",
            rank=by_time[-1].rank,
            evidence=f"its median step is {percent(excess)} above that of the {len(others)} others",
            fix="where ranks wait for each other in every step, all print the same times: this one works at its own "
            "pace, or stamps its lines by another clock",
        )
    ]
