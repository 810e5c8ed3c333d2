"""Plans of foreign programs, and text as their steps print it."""

import msgspec

from busbw.measure.backends.backend import Parsed, PrintedStart
from busbw.measure.backends.foreign import ForeignBackend, finished, parse
from busbw.model.plan import ForeignProgram, Job, Plan, Step, Sweep, points_of

from .records import make_plan


def foreign_plan(
    backend: str, *sweeps: Sweep, ranks: int, steps: int = 1, samples: int = 1, with_mpi: bool = True
) -> Plan:
    """Return a plan of one program for the collective of its sweeps, started `steps` times."""
    path = f"/opt/{sweeps[0].collective}_perf"
    step = Step(
        job=Job(argv=(path,), env=(), timeout_s=60.0, stall_s=10.0),
        program=path,
        points=tuple(range(len(points_of(sweeps)))),
        samples=samples,
    )
    program = ForeignProgram(
        collective=sweeps[0].collective, path=path, tool=backend, version=None, with_mpi=with_mpi, options=()
    )
    plan = make_plan(*sweeps, ranks=ranks, mode="stream")
    return msgspec.structs.replace(plan, backend=backend, programs=(program,), steps=(step,) * steps)


def printed(*texts: str, attempt: int = 0) -> list[PrintedStart]:
    """Return what one start of each step left."""
    return [
        PrintedStart(attempt=attempt, step=step, name=f"raw/launcher.{attempt}.{step}.stdout", text=text.encode())
        for step, text in enumerate(texts)
    ]


def read(backend: ForeignBackend, plan: Plan, texts: list[PrintedStart]) -> tuple[Parsed, frozenset[int]]:
    """Return the measurements, and the steps that came to their end."""
    return parse(backend, plan, texts), finished(backend, plan, texts)
