"""Runs a plan's job to its end, whatever that is, and says what happened."""

import contextlib
import time
from pathlib import Path
from typing import BinaryIO

from busbw.base import layout
from busbw.measure.execute import launch, visiting, watch
from busbw.measure.execute.attendance import Attendance
from busbw.measure.execute.interrupts import Interrupts, counted
from busbw.measure.execute.launch import Execution, Listener
from busbw.model.plan import Plan
from busbw.model.visit import Answer


class Aftermath:
    """The visits of one start of a run; none where it came to its end."""

    def __init__(self, plan: Plan, directory: Path, attempt: int, interrupts: Interrupts, listener: Listener) -> None:
        self._plan = plan
        self._directory = directory
        self._attempt = attempt
        self._interrupts = interrupts
        self._listener = listener

    def look(self, attendance: Attendance) -> None:
        """Ask every host what it sees of the run before anything is ended; who stops a run does not wait for that."""
        is_explained = attendance.is_stopping or attendance.is_refused or attendance.is_ended_by_batch
        if is_explained or not self._is_worth_a_look(attendance):
            return
        from busbw.judge.autopsy import autopsy  # noqa: PLC0415 - needed where a run failed

        number = len(self._plan.placement.hosts)
        self._listener.remark(f"the run failed; looking at {f'{number} hosts' if number > 1 else 'its ranks'}")
        heard = visiting.keep_words(self._directory, self._attempt, attendance.words)
        answers = self._look()
        found = autopsy(self._plan, (heard, *answers))
        if found is not None and found.compared:
            # Hosts answer one after the other: what a rank did meanwhile must not be held against it.
            found = autopsy(self._plan, (heard, *answers, *self._look()))
        if found is not None:
            attendance.learn(found)

    def _look(self) -> tuple[Answer, ...]:
        return visiting.visit(self._plan, self._directory, self._attempt, "look", lambda: self._interrupts.count > 0)

    def end(self, attendance: Attendance) -> None:
        """End what is left on every host, and say where that cannot be done."""
        if not self._is_wanted(attendance):
            return
        asked = self._interrupts.count
        answers = visiting.visit(
            self._plan, self._directory, self._attempt, "end", lambda: self._interrupts.count > max(asked, 1)
        )
        for words in visiting.left_words(answers):
            attendance.add(words)

    def _is_worth_a_look(self, attendance: Attendance) -> bool:
        """Whether a visit can tell more: on this host alone it can of ranks that are still there, and do not move."""
        if self._plan.placement.is_spread:
            return self._is_wanted(attendance)
        return attendance.has_failed and attendance.is_alive and visiting.has_visits(self._plan)

    def _is_wanted(self, attendance: Attendance) -> bool:
        several = self._plan.placement.is_spread
        return several and attendance.has_failed and visiting.has_visits(self._plan)


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
    watch.clear(raw, plan.placement.ranks)
    return files
