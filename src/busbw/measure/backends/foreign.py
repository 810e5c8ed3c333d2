"""What foreign programs print, read as they print it, and put together when they are done."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, busbw_Bps, counted_size, part_count
from busbw.base.errors import InputError
from busbw.base.units import format_size
from busbw.formats.lines.driver import Reader
from busbw.formats.lines.ledger import Event
from busbw.formats.lines.stream import Formats
from busbw.measure.backends.backend import Backend, Parsed, PrintedStart, Programs, ProgramStart, Usage
from busbw.model.imported import Reading, Table
from busbw.model.plan import Plan, Step, Sweep, points_of
from busbw.model.record import Mismatch
from busbw.model.request import Request
from busbw.model.run import Measurement, Rates, WrongResult
from busbw.stats.distributions import median, median_interval, percentiles
from busbw.stats.tail import autocorrelation, drift, slow_samples


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignSample:
    """One time of one point as the program counts it, and what it says of the data."""

    time_s: float
    # Elements, or 1 where the program only says that it failed; None: not checked.
    wrong: int | None
    # As busbw counts it: a version of the program may align parts in its own way.
    size_bytes: int
    dtype: str | None = None
    # Calls that it is the mean of; None: the program's parameters say, or nothing does.
    calls: int | None = None


def measurement_of(
    plan: Plan,
    number: int,
    samples: Sequence[ForeignSample],
    *,
    parameters: Mapping[str, str],
    planned: int,
    source: str,
) -> Measurement:
    """Return the measurement of point `number`. `parameters`: what the program printed of itself.

    `planned`: how many samples would be complete. A wrong result has no time: nothing of it may look like a fast one.
    """
    sweep, ranks = plan.sweeps[points_of(plan.sweeps)[number].sweep], plan.placement.ranks
    collective = COLLECTIVES[sweep.collective]
    wrong = max((sample.wrong or 0 for sample in samples), default=0)
    times_s = [sample.time_s for sample in samples] if wrong == 0 else []
    ordered = sorted(times_s) or [0.0]
    centre, low_s, high_s = _centre_of(ordered, plan.sampling.confidence)
    slow = slow_samples([value * collective.messages_per_call for value in times_s]) if times_s else ()
    size_bytes = samples[0].size_bytes
    dtype = samples[0].dtype if samples[0].dtype in DTYPE_BYTES else sweep.dtype
    return Measurement(
        point=number,
        collective=sweep.collective,
        size_bytes=size_bytes,
        count=part_count(collective, size_bytes, ranks, dtype),
        dtype=dtype,
        op=sweep.op,
        root=sweep.root,
        in_place=sweep.in_place,
        ranks=ranks,
        mode=plan.sampling.mode,
        samples=len(times_s),
        missed=0,
        calls_per_sample=_calls(samples[0], parameters),
        median_s=centre,
        low_s=low_s,
        high_s=high_s,
        confidence=plan.sampling.confidence,
        min_s=ordered[0],
        max_s=ordered[-1],
        mean_s=sum(ordered) / len(ordered),
        percentiles=percentiles(ordered),
        busbw_Bps=busbw_Bps(collective, size_bytes, ranks, centre) if centre > 0 else 0.0,
        algbw_Bps=collective.algbw_factor(ranks) * size_bytes / centre if centre > 0 else 0.0,
        clock_error_s=None,
        warmup_calls=_number(parameters.get("warmup iters")) or plan.sampling.warmup_calls or 0,
        warmup_stable=True,
        autocorrelation=autocorrelation(times_s) if times_s else None,
        drift=drift(times_s) if times_s else None,
        slow_samples=len(slow),
        slow_excess_s=median(sorted(times_s[index] for index in slow)) - centre if slow else None,
        wrong=_wrong_result(wrong),
        verified=all(sample.wrong is not None for sample in samples),
        ended="wrong" if wrong else "samples" if len(samples) >= planned else "stopped",
        tcp_share=(),
        per_rank=(),
        attribution=(),
        source=source,
    )


def _centre_of(ordered: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """Return the median of ascending values and its interval; all of them where they are too few for one."""
    return median(ordered), *(median_interval(ordered, confidence) or (ordered[0], ordered[-1]))


def _wrong_result(elements: int) -> WrongResult | None:
    """Return how many elements a program called wrong, without their places, which it does not print."""
    if not elements:
        return None
    return WrongResult(rank=None, host="", mismatch=Mismatch(wrong=elements, index=-1, got="", expected=""))


def _calls(sample: ForeignSample, parameters: Mapping[str, str]) -> int:
    """Return the calls that one sample is the mean of; 0 when the program does not say."""
    if sample.calls is not None:
        return sample.calls
    factors = [_number(parameters.get(name)) for name in ("iters", "agg iters", "graph")]
    if factors[0] is None:
        return 0
    return factors[0] * max(factors[1] or 1, 1) * max(factors[2] or 1, 1)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None


class ForeignBackend(Backend, Protocol):
    """A backend whose processes are programs of the user, which print rows."""

    # Of what a program prints, and of the report it may write.
    formats: Formats
    report_formats: Formats

    def place_of(self, plan: Plan, step: Step, reading: Reading) -> tuple[int, bool] | None:
        """Return the size as busbw counts it, and whether a row is in place; None for rows nobody asked for."""

    def sample_of(self, plan: Plan, step: Step, reading: Reading) -> ForeignSample | None:
        """Return the time of one exchange that a row tells; None when it has none."""

    def complaint(self, plan: Plan, step: Step, reading: Reading) -> str | None:
        """Return why a row is none of the run that was asked for, such as too few ranks."""

    def is_finished(self, plan: Plan, step: Step, rows: "Rows") -> bool:
        """Whether a step came to its end, as far as its output tells."""

    def is_failure(self, line: str) -> bool:
        """Whether a line of output says that something went wrong."""

    def failure_of(self, lines: Sequence[str], exit_code: int, tables: Sequence[Table]) -> "Failure | None":
        """Return what went wrong by the program's own words and exit code; None when neither says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why a program gave up, in its own words, and the process it names."""

    cause: str
    rank: int | None = None
    host: str | None = None
    process_id: int | None = None


@dataclass(slots=True)
class Rows:
    """The rows of one start of a step, while they come. Give it blocks of output of any size, then call `finish`."""

    backend: ForeignBackend
    plan: Plan
    step: Step
    # By number of the point, in the order they came.
    samples: dict[int, list[ForeignSample]] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    # Why these are not the rows that were asked for; they count for nothing then.
    complaint: str | None = None
    _last: int | None = None
    _places: dict[tuple[int, bool], int] = field(init=False)
    _reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        self._places = _places_of(self.plan, self.step)
        self._reader = Reader(self.backend.formats, source=0, first_table=0)

    def feed(self, block: bytes) -> list[int]:
        """Read a block; return the points that have a sample more."""
        return self._take(self._reader.feed(block))

    def finish(self) -> list[int]:
        """Read what is left."""
        return self._take(self._reader.finish())

    def use_report(self, report: bytes) -> None:
        """Put single samples in the place of means, where the report holds them."""
        reader = Reader(self.backend.report_formats, source=0, first_table=0)
        single: dict[int, list[ForeignSample]] = {}
        for event in [*reader.feed(report), *reader.finish()]:
            if isinstance(event, Reading) and event.samples_s:
                single.setdefault(self._point_of(event), []).extend(
                    ForeignSample(
                        time_s=time_s, wrong=event.wrong, size_bytes=event.size_bytes, dtype=event.dtype, calls=1
                    )
                    for time_s in event.samples_s
                    if time_s > 0 and event.size_bytes is not None
                )
        self.samples.update({point: found for point, found in single.items() if point in self.samples and found})

    def last_words(self) -> str:
        """Return which row came last: `after the row of all_reduce 4 MiB`."""
        if self._last is None:
            return "before its first row"
        sweep = self.plan.sweeps[points_of(self.plan.sweeps)[self._last].sweep]
        return f"after {sweep.collective} {format_size(points_of(self.plan.sweeps)[self._last].size_bytes)}"

    def _take(self, events: Sequence[Event]) -> list[int]:
        grown = []
        for event in events:
            if isinstance(event, Table):
                self.tables.append(event)
            elif isinstance(event, Reading) and self.complaint is None:
                self.complaint = self.backend.complaint(self.plan, self.step, event)
                point = self._point_of(event)
                sample = self.backend.sample_of(self.plan, self.step, event)
                if self.complaint is None and point >= 0 and sample is not None:
                    self.samples.setdefault(point, []).append(sample)
                    grown.append(point)
                    self._last = point
        if self.complaint is not None:
            self.samples.clear()
        return grown

    def _point_of(self, reading: Reading) -> int:
        """Return the point a row is about; -1 for none.

        Old versions of nccl-tests do not align parts to 16 bytes: aligned, their size is that of the point. An
        alltoallv rounds each cell of its matrix, and is known by its neighbourhood.
        """
        place = self.backend.place_of(self.plan, self.step, reading)
        if place is None or not self._places:
            return -1
        if place in self._places:
            return self._places[place]
        size_bytes, in_place = place
        # All points of a step are of one collective.
        sweep = self.plan.sweeps[points_of(self.plan.sweeps)[next(iter(self._places.values()))].sweep]
        if sweep.collective == "alltoallv":
            near = [
                number
                for (known_bytes, known_in_place), number in self._places.items()
                if known_in_place is in_place and 8 * abs(known_bytes - size_bytes) <= known_bytes
            ]
            return near[0] if len(near) == 1 else -1
        collective = COLLECTIVES[sweep.collective]
        aligned_bytes = counted_size(collective, size_bytes, self.plan.placement.ranks, sweep.dtype)
        return self._places.get((aligned_bytes, in_place), -1)


def _places_of(plan: Plan, step: Step) -> dict[tuple[int, bool], int]:
    """Return the number of each point of a step by its size and whether it is in place."""
    points = points_of(plan.sweeps)
    return {
        (points[number].size_bytes, plan.sweeps[points[number].sweep].in_place): number
        for number in step.points
        if number < len(points)
    }


def planned_samples(plan: Plan) -> Counter[int]:
    """Return how many samples of each point all steps together print."""
    planned: Counter[int] = Counter()
    for step in plan.steps:
        for number in step.points:
            planned[number] += step.samples
    return planned


def read_all(
    backend: ForeignBackend, plan: Plan, printed: Sequence[PrintedStart]
) -> Iterator[tuple[PrintedStart, Rows]]:
    """Yield what each start of each step left, with its rows."""
    for one in printed:
        if one.step < len(plan.steps):
            rows = Rows(backend, plan, plan.steps[one.step])
            rows.feed(one.text)
            rows.finish()
            if one.report is not None and rows.complaint is None:
                rows.use_report(one.report)
            yield one, rows


def parse(backend: ForeignBackend, plan: Plan, printed: Sequence[PrintedStart]) -> Parsed:
    """Return the measurements of a run of foreign programs.

    Of several starts of one step the last that has rows of a point counts for it; the samples of the steps that
    measured the same point are put together.
    """
    # Of each point, by step.
    latest: dict[int, dict[int, tuple[PrintedStart, Rows]]] = {}
    for one, rows in read_all(backend, plan, printed):
        for point in rows.samples:
            latest.setdefault(point, {})[one.step] = (one, rows)
    planned = planned_samples(plan)
    measurements = []
    for number, by_step in sorted(latest.items()):
        found = [by_step[step] for step in sorted(by_step)]
        measurements.append(
            measurement_of(
                plan,
                number,
                [sample for _, rows in found for sample in rows.samples[number]],
                parameters=_parameters(found),
                planned=planned[number],
                source=found[0][0].report_name or found[0][0].name,
            )
        )
    return Parsed(ranks=(), rates=Rates(), measurements=tuple(measurements), failures=())


def finished(backend: ForeignBackend, plan: Plan, printed: Sequence[PrintedStart]) -> frozenset[int]:
    """Return the numbers of the steps that came to their end in any start of the run."""
    return frozenset(
        one.step
        for one, rows in read_all(backend, plan, printed)
        if rows.complaint is None and backend.is_finished(plan, plan.steps[one.step], rows)
    )


def _parameters(found: Sequence[tuple[PrintedStart, Rows]]) -> Mapping[str, str]:
    return dict(next((table.parameters for _, rows in found for table in rows.tables), ()))


# "[-b,--minbytes <min size in bytes>]" of nccl-tests; "  -m, --message-size" and "  -m [MIN:]MAX" of OSU.
_OPTION = re.compile(
    r"^\s*\[?-(?P<letter>[A-Za-z])(?:,\s?--(?P<name>[\w-]{1,40}))?(?=[\s,\]])(?P<rest>.{0,200})",
    re.MULTILINE,
)
_USAGE = re.compile(r"\bUSAGE:|\bUsage:", re.ASCII)


def read_usage(text: str) -> Usage | None:
    """Return what a usage text says; None when it is none."""
    if _USAGE.search(text) is None:
        return None
    return Usage({match["letter"]: match["rest"].strip() for match in _OPTION.finditer(text)}, text)


def as_foreign(backend: Backend) -> ForeignBackend:
    """Return a backend as one of programs of the user. Raises InputError where its processes are ours."""
    if backend.is_ours:
        raise InputError(f"{backend.name} runs no programs of yours", hint="busbw run --backend nccl-tests, or osu")
    return cast("ForeignBackend", backend)


def check_one_file(request: Request, names: tuple[str, ...], programs: Programs) -> None:
    """Raise InputError where one program is named for several collectives."""
    if request.programs is not None and len(names) > 1 and programs.is_one_file(request.programs):
        raise InputError(
            f"one program measures one collective, and {len(names)} were asked for",
            where=f"--bin {request.programs}",
            hint=f"--bin FOLDER, or one of: {', '.join(names)}",
        )


# The fewest samples whose extremes enclose the median with 95 %, for programs that print one mean a start.
_USUAL_LAUNCHES = 6
_MOST_LAUNCHES = 1000


def in_turn(makes: Sequence[Callable[[int], ProgramStart]], request: Request) -> tuple[ProgramStart, ...]:
    """Return every start once, then all of them again: what changes meanwhile meets all collectives alike.

    `makes`: from the number of a start to the start. Raises InputError for a number of starts that cannot be.
    """
    if request.launches is not None and not 1 <= request.launches <= _MOST_LAUNCHES:
        raise InputError("a program is started once to a thousand times", where=f"--launches {request.launches}")
    first = [make(number) for number, make in enumerate(makes)]
    usual = 1 if all(start.samples > 1 for start in first) else min(request.min_samples, _USUAL_LAUNCHES)
    launches = request.launches if request.launches is not None else usual
    return tuple(
        makes[number % len(makes)](number) if number >= len(first) else first[number]
        for number in range(launches * len(makes))
    )


def points_in(
    sweeps: tuple[Sweep, ...], numbers: Sequence[int], sizes_bytes: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """Return the numbers of the points of some sweeps, and of these sizes; None: all."""
    return tuple(
        number
        for number, point in enumerate(points_of(sweeps))
        if point.sweep in numbers and (sizes_bytes is None or point.size_bytes in sizes_bytes)
    )
