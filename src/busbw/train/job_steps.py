"""The steps of one job out of the lines of a log: ranks told apart, restarts found, two jobs refused, times made."""

import math
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import lt, sub
from typing import TypeVar

from busbw.base.errors import InputError
from busbw.model.train.reading import RankSteps, Restart, StepWork, TimeBasis
from busbw.stats.distributions import median
from busbw.train.reading.rows import NO_RANK, StepRows

_V = TypeVar("_V")
# A line of another rank comes so many lines late at most.
_LATEST = 64
# Jumps to and fro that are no accident.
_LEAST_JUMPS = 3
# A number that goes back by no more than this many steps, and on again, is a rank that prints late.
_LATE_STEPS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSteps:
    """The steps of a job by order of the log: number, seconds and line of each. Those without a time are left out."""

    numbers: tuple[int, ...]
    times_s: tuple[float, ...]
    lines: tuple[int, ...]
    # Where each start of the job begins, as places of these.
    starts: tuple[int, ...]
    restarts: tuple[Restart, ...]
    ranks: tuple[RankSteps, ...]
    # Places whose time was zero or less, or no number.
    impossible: int
    first_impossible: int
    basis: TimeBasis
    words: str
    # Half of what the last printed digit leaves open.
    rounding_s: float
    stride: int
    planned: int | None
    # What rows say of batches, TFLOP/s and utilisation, by the places above; 0, NaN and (): nothing.
    batches: tuple[int, ...]
    flops: tuple[float, ...]
    mfu: tuple[float, ...]
    # Of each step's time, what was waited for collectives; NaN and (): not said.
    waited: tuple[float, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Stream:
    """Rows of one rank, by order, with repeats folded: places in the rows, and where starts begin."""

    places: tuple[int, ...]
    starts: tuple[int, ...]
    restarts: tuple[Restart, ...]
    repeats: int


def job_steps(rows: StepRows, work: StepWork, source: str) -> JobSteps:
    """Return the steps of the job. Raises InputError where there is none, and where lines of two jobs are mixed."""
    if not rows.numbers:
        raise InputError(
            "no step with a number and a time", where=source, hint="the file may be cut off, or of another job"
        )
    rows.complete()
    _one_job(rows, source)
    by_rank: dict[int, list[int]] = {}
    for place, rank in enumerate(rows.ranks):
        by_rank.setdefault(rank, []).append(place)
    batches = _batches(rows)
    streams = {rank: _stream(rows, places, source) for rank, places in sorted(by_rank.items())}
    main = max(streams, key=lambda rank: len(streams[rank].places))
    stream = streams[main]
    times, basis, words, notes = _times(rows, stream, work)
    kept, wrong = _possible(times)
    places = _at(stream.places, kept)
    starts = sorted({bisect_left(kept, start) for start in stream.starts})
    numbers = _at(rows.numbers, stream.places)
    steps = Counter(each for each in map(sub, numbers[1:], numbers) if each > 0)
    if stream.repeats:
        notes.append(f"{stream.repeats} lines say a step again, as several ranks do: of each step the slowest counts")
    return JobSteps(
        numbers=_at(rows.numbers, places),
        times_s=tuple(value for value in _at(times, kept) if value is not None),
        lines=_at(rows.lines, places),
        starts=tuple(start for start in starts if start < len(kept)) or (0,),
        restarts=stream.restarts,
        ranks=_ranks(rows, streams, work),
        impossible=len(wrong),
        first_impossible=rows.lines[stream.places[wrong[0]]] if wrong else 0,
        basis=basis,
        words=words,
        rounding_s=_rounding_s(rows, basis),
        stride=steps.most_common(1)[0][0] if steps else 1,
        planned=next((total for total in reversed(rows.totals) if total), None),
        batches=_at(batches, places),
        flops=tuple(1e12 * rows.tflops[place] for place in places) if _prints(rows.tflops) else (),
        mfu=tuple(rows.mfu[place] / 100 for place in places) if _prints(rows.mfu) else (),
        waited=tuple(rows.waited[place] / rows.values[place] for place in places) if _prints(rows.waited) else (),
        notes=tuple(notes),
    )


def _at(column: Sequence[_V], places: Sequence[int]) -> tuple[_V, ...]:
    """Return the values at some places, which ascend: of a long log mostly all of them."""
    return tuple(column) if len(places) == len(column) else tuple(column[place] for place in places)


def _prints(column: Sequence[float]) -> bool:
    """Whether anything stands in a column: a form that does not print it leaves NaN in every row."""
    return not all(map(math.isnan, column))


def _possible(times_s: Sequence[float | None]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the places with a time above zero, and those with one that cannot be; the rest has none."""
    known = [time_s for time_s in times_s if time_s is not None]
    if len(known) == len(times_s) and math.isfinite(sum(known)) and min(known) > 0:
        return range(len(times_s)), ()
    kept = [at for at, time_s in enumerate(times_s) if time_s is not None and 0 < time_s < math.inf]
    return kept, [at for at, time_s in enumerate(times_s) if time_s is not None and not 0 < time_s < math.inf]


def _one_job(rows: StepRows, source: str) -> None:
    """Raise InputError where lines of two jobs come by turns: their plans, or their batches, come and go."""
    for column, what in ((rows.totals, "planned steps"), (rows.batches, "global batch")):
        if len({*column} - {0}) < 2:
            continue
        seen: dict[tuple[int, int], int] = {}
        returns, before = 0, None
        for place, value in enumerate(column):
            if not value:
                continue
            key = (rows.ranks[place], value)
            if before is not None and key[1] != before[1] and key[0] == before[0]:
                returns += key in seen
                if returns >= _LEAST_JUMPS:
                    raise InputError(
                        f"two jobs are mixed: {what} {before[1]} and {value} by turns",
                        where=f"{source}:{rows.lines[seen[before]]} and {source}:{rows.lines[seen[key]]}",
                        hint="give the log of each job by itself",
                    )
            seen.setdefault(key, place)
            before = key


def _stream(rows: StepRows, places: Sequence[int], source: str) -> _Stream:
    """Return the lines of one rank with each step once. Raises InputError where numbers jump to and fro."""
    numbers = _at(rows.numbers, places)
    if all(map(lt, numbers, numbers[1:])):
        # One start, each step once: as most logs are.
        return _Stream(tuple(places), (0,), (), 0)
    kept: list[int] = []
    starts, restarts = [0], list[Restart]()
    at_of: dict[int, int] = {}
    recent: deque[int] = deque(maxlen=_LATEST)
    repeats, folded, jumps, jumped = 0, 0, 0, 0
    for order, place in enumerate(places):
        number = rows.numbers[place]
        last = rows.numbers[kept[-1]] if kept else -1
        if number > last:
            at_of[number] = len(kept)
            kept.append(place)
            recent.append(number)
            continue
        following = rows.numbers[places[order + 1]] if order + 1 < len(places) else None
        goes_on = following is not None and following >= last and number != last
        # Where several ranks print every step, one that goes back a step is a late rank; else only if all go on.
        may_be_late = last - number <= _LATE_STEPS and (goes_on or 2 * folded >= len(kept) - starts[-1])
        if number in recent and (number == last or may_be_late):
            folded += 1
            repeats += rows.values[place] != rows.values[kept[at_of[number]]]
            if rows.values[place] > rows.values[kept[at_of[number]]] and rows.form.unit in ("ms", "s"):
                kept[at_of[number]] = place
        elif goes_on:
            jumps, jumped = jumps + 1, jumped or place
            if jumps >= _LEAST_JUMPS:
                raise InputError(
                    f"two jobs are mixed: step {last}, then {number}, then {following}, and so on",
                    where=f"{source}:{rows.lines[jumped]}",
                    hint="give the log of each job by itself",
                )
        else:
            again = Restart(line=rows.lines[place], last_step=last, first_step=number, lost=last - number + 1)
            restarts.append(again)
            starts.append(len(kept))
            at_of = {number: len(kept)}
            kept.append(place)
            recent.clear()
            recent.append(number)
            folded = 0
    return _Stream(tuple(kept), tuple(starts), tuple(restarts), repeats)


def _times(rows: StepRows, stream: _Stream, work: StepWork) -> tuple[list[float | None], TimeBasis, str, list[str]]:
    """Return the seconds of each place of a stream (None: it has none), how they follow, and what to know of it."""
    form, values = rows.form, _at(rows.values, stream.places)
    if form.unit in ("ms", "s"):
        factor = 1e-3 if form.unit == "ms" else 1.0
        return [value * factor for value in values], "printed", form.words, []
    if form.unit == "clock":
        return list(values), "clock", form.words, ["a bar has whole seconds: steps are taken over stretches"]
    amount: float | None = work.global_batch if form.unit == "samples/s" else None
    if form.unit == "tokens/s/GPU" and work.tokens is not None and work.gpus:
        amount = work.tokens / work.gpus
    if amount is not None:
        return [amount / value if value > 0 else 0.0 for value in values], "rate", form.words, []
    stamps = [rows.stamps[place] for place in stream.places]
    notes = []
    if form.unit != "moment":
        needed = "the global batch" if form.unit == "samples/s" else "sequence length, global batch and GPUs"
        notes.append(
            f"{needed} would give the time of a step by its rate; without, moments of lines do, pauses and all"
        )
    return list(_by_stamps(rows, stream, stamps)), "stamps", "from the moment of a line to that of the next", notes


def _by_stamps(rows: StepRows, stream: _Stream, stamps: Sequence[float]) -> Iterator[float | None]:
    """Yield the time from line to line over the steps between; None for the first of each start."""
    firsts = set(stream.starts)
    for at, place in enumerate(stream.places):
        if at in firsts or math.isnan(stamps[at]) or math.isnan(stamps[at - 1]):
            yield None
        else:
            yield (stamps[at] - stamps[at - 1]) / (rows.numbers[place] - rows.numbers[stream.places[at - 1]])


def _rounding_s(rows: StepRows, basis: TimeBasis) -> float:
    if rows.rounding_s is not None:
        return rows.rounding_s
    if basis == "stamps":
        return 1e-3
    if basis == "printed" and rows.decimals < 99:
        return 0.5 * 10.0**-rows.decimals * (1e-3 if rows.form.unit == "ms" else 1.0)
    return 0.0


def _batches(rows: StepRows) -> Sequence[int]:
    """Return the sequences of each step: as printed, or what was consumed from a line to the next over its steps."""
    if any(rows.batches) or not any(rows.consumed):
        return rows.batches
    found = [0]
    for (consumed, number), (more, later) in pairwise(zip(rows.consumed, rows.numbers, strict=True)):
        whole = later > number and more > consumed > 0 and (more - consumed) % (later - number) == 0
        found.append((more - consumed) // (later - number) if whole else 0)
    return found


def _ranks(rows: StepRows, streams: dict[int, _Stream], work: StepWork) -> tuple[RankSteps, ...]:
    """Return the median step of each rank that a launcher named, where there are several."""
    named = {rank: stream for rank, stream in streams.items() if rank != NO_RANK}
    if len(named) < 2:
        return ()
    found = []
    for rank, stream in named.items():
        times = [time_s for time_s in _times(rows, stream, work)[0] if time_s is not None and time_s > 0]
        if times:
            found.append(RankSteps(rank=rank, steps=len(times), step_s=median(sorted(times))))
    return tuple(found)
