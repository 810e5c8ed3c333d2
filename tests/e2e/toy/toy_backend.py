"""A backend that a site might bring: a program of its own that prints times over sizes."""

import dataclasses
import re
from collections.abc import Sequence

from busbw.base.errors import InputError
from busbw.formats.form import Taken, TextLine, Unreadable
from busbw.formats.lines.stream import Formats
from busbw.measure.backends.backend import (
    Capabilities,
    Carrier,
    Door,
    Found,
    ProgramStart,
    Settled,
    Surroundings,
    Usage,
)
from busbw.measure.backends.foreign import Failure, ForeignSample, Rows, in_turn, points_in
from busbw.measure.launchers import registry
from busbw.measure.launchers.launcher import Joining
from busbw.model.imported import Reading, Table
from busbw.model.plan import ForeignProgram, MemoryNeed, Plan, Program, Step, Sweep
from busbw.model.request import Mode, Request

name = "toy"
over: Carrier = "mpi"
is_ours = False
takes = frozenset({"programs"})
modes: tuple[Mode, ...] = ("stream",)
joining: tuple[Joining, ...] = ("mpi", "one process")
usual_launcher = "direct"
usual_suite = "six"


def capabilities(_surroundings: Surroundings | None) -> Capabilities:
    return Capabilities(
        interface="toy",
        collectives=("all_reduce", "broadcast"),
        in_place=(),
        dtypes=("float32",),
        operations=("sum",),
        most_elements=None,
        largest_bytes=1024,
        suite_largest_bytes=1024,
    )


def look(request: Request, surroundings: Surroundings, door: Door, names: tuple[str, ...]) -> Surroundings:
    launcher = registry.known(request.launcher)
    with_mpi = launcher is None or launcher.joining == "mpi"
    found = {}
    for collective in names:
        program = ForeignProgram(
            collective=collective,
            path=door.programs().find((f"toy_{collective}",), request.programs),
            tool="toy",
            version="1.0",
            with_mpi=with_mpi,
            options=(),
        )
        found[collective] = Found(program, Usage({}, ""))
    return dataclasses.replace(surroundings, found=found, mpi=door.mpi(request.mpirun) if with_mpi else None)


def usual_ranks(_request: Request, _surroundings: Surroundings, _names: tuple[str, ...]) -> int:
    return 2


def check_ranks(
    _request: Request, _surroundings: Surroundings, _names: tuple[str, ...], counts: tuple[int, ...]
) -> None:
    if sum(counts) > 4:
        raise InputError("toys are few", where=f"--ranks {sum(counts)}", hint="--ranks 4")


def moved(sweep: Sweep, _surroundings: Surroundings) -> Sweep:
    return sweep


def memory(
    _request: Request, _surroundings: Surroundings, _settled: Settled, _counts: tuple[int, ...]
) -> tuple[MemoryNeed, str | None]:
    return MemoryNeed(buffers_bytes=0, overhead_bytes=0, scratch_bytes=0), None


def starts(request: Request, surroundings: Surroundings, settled: Settled) -> tuple[ProgramStart, ...]:
    def one(number: int, sweep: Sweep) -> ProgramStart:
        sizes = (str(size_bytes) for size_bytes in sweep.sizes_bytes)
        return ProgramStart(
            program=Program(argv=(surroundings.found[sweep.collective].program.path, *sizes), env=()),
            points=points_in(settled.sweeps, [number]),
            samples=1,
        )

    made = [one(number, sweep) for number, sweep in enumerate(settled.sweeps)]
    return in_turn([lambda _number, start=start: start for start in made], request)  # type: ignore[misc]


def notes(_request: Request, _surroundings: Surroundings, _starts: tuple[ProgramStart, ...]) -> tuple[str, ...]:
    return ("a sample is one row of a toy",)


class _ToyTable:
    def __init__(self, line: TextLine, number: int, source: int) -> None:
        self._line, self._number, self._source = line, number, source
        self._words = line.text.split()

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if line.number == self._line.number:
            return "known"
        match = re.fullmatch(r"(\d+) (\d+\.\d+)", line.text.strip())
        if match is None:
            return "foreign"
        size_bytes, time_s = int(match[1]), float(match[2]) * 1e-6
        return (
            Reading(table=self._number, line=line.number, what=self._words[2], size_bytes=size_bytes, time_s=time_s),
        )

    def finish(self, last_line: int) -> Table:
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._line.number,
            last_line=last_line,
            tool="toy",
            statistic="mean",
            parameters=(("launcher", self._words[-1]),),
            complete=True,
        )


class _Toy:
    tool = "toy"
    passes_by = False
    starts = re.compile(r"^# toy ")

    def begin(self, line: TextLine, *, number: int, source: int) -> _ToyTable:
        return _ToyTable(line, number, source)


formats = Formats(text=(_Toy(),), documents=())
report_formats = Formats(text=(), documents=())


def place_of(_plan: Plan, _step: Step, reading: Reading) -> tuple[int, bool] | None:
    return None if reading.size_bytes is None else (reading.size_bytes, False)


def sample_of(_plan: Plan, _step: Step, reading: Reading) -> ForeignSample | None:
    if reading.size_bytes is None or reading.time_s is None:
        return None
    return ForeignSample(time_s=reading.time_s, wrong=None, size_bytes=reading.size_bytes)


def complaint(_plan: Plan, _step: Step, _reading: Reading) -> str | None:
    return None


def is_finished(_plan: Plan, step: Step, rows: Rows) -> bool:
    return all(point in rows.samples for point in step.points)


def is_failure(line: str) -> bool:
    return line.startswith("toy broke")


def failure_of(lines: Sequence[str], _exit_code: int, _tables: Sequence[Table]) -> Failure | None:
    return Failure(cause=lines[0]) if lines else None
