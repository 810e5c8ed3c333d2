"""What foreign programs print, read as they print it, and put together when they are done."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from busbw.base.collectives import COLLECTIVES, counted_size
from busbw.base.units import format_size
from busbw.formats.lines.driver import Reader
from busbw.formats.lines.ledger import Event
from busbw.formats.lines.stream import Formats
from busbw.measure.backends.foreign_measurement import Sample, measurement_of
from busbw.measure.backends.native import Parsed
from busbw.model.imported import Reading, Table
from busbw.model.plan import Plan, Step
from busbw.model.run import Rates
from busbw.model.sweep import points_of


class ForeignBackend(Protocol):
    """What a module offers that runs somebody else's programs."""

    name: str
    # Of what a program prints, and of the report it may write.
    formats: Formats
    report_formats: Formats

    def place_of(self, plan: Plan, step: Step, reading: Reading) -> tuple[int, bool] | None:
        """Return the size as busbw counts it, and whether a row is in place; None for rows nobody asked for."""

    def sample_of(self, plan: Plan, step: Step, reading: Reading) -> Sample | None:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Printed:
    """What one start of one step left in raw/: standard output, and its report where it wrote one."""

    attempt: int
    step: int
    name: str
    text: bytes
    report_name: str | None = None
    report: bytes | None = None


@dataclass(slots=True)
class Rows:
    """The rows of one start of a step, while they come. Give it blocks of output of any size, then call `finish`."""

    backend: ForeignBackend
    plan: Plan
    step: Step
    # By number of the point, in the order they came.
    samples: dict[int, list[Sample]] = field(default_factory=dict)
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
        single: dict[int, list[Sample]] = {}
        for event in [*reader.feed(report), *reader.finish()]:
            if isinstance(event, Reading) and event.samples_s:
                single.setdefault(self._point_of(event), []).extend(
                    Sample(time_s=time_s, wrong=event.wrong, size_bytes=event.size_bytes, dtype=event.dtype, calls=1)
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


def read_all(backend: ForeignBackend, plan: Plan, printed: Sequence[Printed]) -> Iterator[tuple[Printed, Rows]]:
    """Yield what each start of each step left, with its rows."""
    for one in printed:
        if one.step < len(plan.steps):
            rows = Rows(backend, plan, plan.steps[one.step])
            rows.feed(one.text)
            rows.finish()
            if one.report is not None and rows.complaint is None:
                rows.use_report(one.report)
            yield one, rows


def parse(backend: ForeignBackend, plan: Plan, printed: Sequence[Printed]) -> Parsed:
    """Return the measurements of a run of foreign programs.

    Of several starts of one step the last that has rows of a point counts for it; the samples of the steps that
    measured the same point are put together.
    """
    # Of each point, by step.
    latest: dict[int, dict[int, tuple[Printed, Rows]]] = {}
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


def finished(backend: ForeignBackend, plan: Plan, printed: Sequence[Printed]) -> frozenset[int]:
    """Return the numbers of the steps that came to their end in any start of the run."""
    return frozenset(
        one.step
        for one, rows in read_all(backend, plan, printed)
        if rows.complaint is None and backend.is_finished(plan, plan.steps[one.step], rows)
    )


def _parameters(found: Sequence[tuple[Printed, Rows]]) -> Mapping[str, str]:
    return dict(next((table.parameters for _, rows in found for table in rows.tables), ()))
