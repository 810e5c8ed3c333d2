"""The run of foreign programs: executed step by step, loaded from what they printed."""

import shlex
from pathlib import Path

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.measure.backends import foreign, registry
from busbw.measure.backends.native import Parsed
from busbw.measure.execute import foreign as execution
from busbw.measure.execute.execution import Execution, Listener
from busbw.model.plan import Plan
from busbw.store import printed


def parse(plan: Plan, directory: Path) -> Parsed:
    """Return the measurements of a run directory."""
    return foreign.parse(registry.find_foreign(plan.backend), plan, printed.read_printed(directory))


def finished(plan: Plan, directory: Path) -> frozenset[int]:
    """Return the steps that need not be repeated. Raises InputError when that is all, or in another folder."""
    done = foreign.finished(registry.find_foreign(plan.backend), plan, printed.read_printed(directory))
    if len(done) == len(plan.steps):
        raise InputError("nothing is missing in this run", where=str(directory), hint=f"busbw show {directory.name}")
    for step in plan.steps:
        ending = f"/{layout.RAW_DIRECTORY}/{step.report}"
        for word in step.job.argv if step.report is not None else ():
            planned = Path(word.removesuffix(ending))
            if word.endswith(ending) and planned.resolve() != directory.resolve():
                raise InputError(
                    f"this run was planned for another folder, {planned}, and its commands are carried out word for "
                    "word",
                    where=str(directory),
                    hint=f"move it back: mv {shlex.quote(str(directory))} {shlex.quote(str(planned))}",
                )
    return done


def execute(plan: Plan, directory: Path, done: frozenset[int], listener: Listener) -> Execution:
    """Carry out the steps that are not done. Raises RunError when one cannot be started or stored."""
    backend = registry.find_foreign(plan.backend)
    try:
        return execution.execute(plan, directory, printed.attempts(directory), done, listener, backend)
    finally:
        printed.withhold(directory)
