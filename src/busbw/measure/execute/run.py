"""Runs a plan's job to its end, whatever that is, and says what happened."""

import contextlib
import time
from pathlib import Path
from typing import BinaryIO

from busbw.base import layout
from busbw.measure.execute import heartbeats, launch
from busbw.measure.execute.aftermath import Aftermath
from busbw.measure.execute.attendance import Attendance
from busbw.measure.execute.execution import Execution, Listener
from busbw.measure.execute.interrupts import counted
from busbw.model.plan import Plan


def execute(plan: Plan, directory: Path, attempt: int, done: frozenset[int], listener: Listener) -> Execution:
    """Start the plan's job and stay with it. No process of it is left when this returns.

    Of other hosts that holds for those that answer; the result names the others.
    Raises RunError when it cannot be started, or when its output cannot be stored.
    """
    raw = directory / layout.RAW_DIRECTORY
    tag = f"{plan.run_id}.{attempt}"
    arguments = [*plan.job.argv, str(attempt), ",".join(str(number) for number in sorted(done))]
    started_s = time.monotonic()
    with contextlib.ExitStack() as held:
        files = _open_outputs(raw, attempt, plan, held)
        interrupts = held.enter_context(counted())
        process = launch.start(arguments, plan.job, tag)
        attendance = Attendance(plan, raw, files, process, interrupts, listener)
        aftermath = Aftermath(plan, directory, attempt, interrupts, listener)
        try:
            listener.started()
            attendance.stay()
        except OSError as error:
            attendance.fail(f"cannot store what the run prints: {error.strerror or error}")
        finally:
            with contextlib.ExitStack() as ending:
                ending.callback(attendance.close)
                # Also where processes of this host do not end, those of the others must.
                ending.callback(aftermath.end, attendance)
                ending.callback(launch.end, process, tag)
                aftermath.look(attendance)
    return attendance.result(time.monotonic() - started_s)


def _open_outputs(raw: Path, attempt: int, plan: Plan, held: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    names = (layout.launcher_name("stdout", attempt), layout.launcher_name("stderr", attempt))
    files = launch.open_outputs(raw, names, held)
    heartbeats.clear(raw, plan.placement.ranks)
    return files
