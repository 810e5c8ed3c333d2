"""Runs the steps of a foreign plan one after the other; their rows are the only sign of life they give."""

import contextlib
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from busbw.base import layout
from busbw.judge.autopsy import hosts_of_ranks
from busbw.measure.backends.foreign import Failure, ForeignBackend, Rows
from busbw.measure.execute import launch, processes, visiting
from busbw.measure.execute.blame import Blame
from busbw.measure.execute.launch import Execution, Interrupts, JobStreams, Listener, counted_interrupts
from busbw.measure.launchers.notices import Notice, first_death
from busbw.model.plan import Plan, Step
from busbw.model.record import Measuring, PointEnded, Preparing
from busbw.model.visit import Culprit
from busbw.stats.distributions import median


def blame_program(plan: Plan, step: Step, text: str, failure: Failure | None, exit_code: int, where: str) -> Blame:
    """Return why a step ended. `text`: the end of what was printed; `where`: how far the program had come."""
    short = step.program.rsplit("/", 1)[-1]
    notice = first_death(text)
    culprit = _culprit(plan, failure, notice, where)
    if failure is not None:
        at = "" if culprit is not None or failure.host is None else f" ({_place(failure)})"
        return Blame(f"{short}: {failure.cause}{at}", culprit)
    if exit_code < 0:
        return Blame(f"{_started_by(plan, short)} was {processes.describe_status(exit_code)}, {where}", culprit)
    if culprit is not None:
        return Blame(f"rank {culprit.rank} of {short} {culprit.what}, {where}", culprit)
    if exit_code == 0 and ("USAGE:" in text or "Usage:" in text):
        return Blame(f"{short} printed its usage and measured nothing: it does not take one of its options", None)
    if exit_code == 0:
        return Blame(f"{short} ended without a row of results", None)
    said = next((line.strip() for line in text.splitlines() if _says_something(line)), None)
    words = f", {where}" + (f"; it says: {said[:200]}" if said is not None else "")
    return Blame(f"{_started_by(plan, short)} {processes.describe_status(exit_code)}{words}", None)


def _culprit(plan: Plan, failure: Failure | None, notice: Notice | None, where: str) -> Culprit | None:
    """Return the rank that failure or launcher names; None when neither tells which."""
    named_rank = failure.rank if failure is not None and failure.rank is not None else None
    rank = named_rank if named_rank is not None else notice.rank if notice is not None else None
    if rank is None:
        return None
    process_id = failure.process_id if named_rank is not None and failure is not None else None
    if process_id is None and notice is not None:
        process_id = notice.process_id
    return Culprit(
        rank=rank,
        host=(failure.host if failure is not None else None) or _host_of(plan, rank),
        process_id=process_id or 0,
        what=f"gave up: {failure.cause}" if failure is not None else notice.what if notice is not None else "",
        step=where,
    )


def _host_of(plan: Plan, rank: int) -> str:
    hosts = hosts_of_ranks(plan)
    return hosts[rank] if rank < len(hosts) else plan.host.name


def _place(failure: Failure) -> str:
    return f"host {failure.host}" + (f", process {failure.process_id}" if failure.process_id is not None else "")


def _started_by(plan: Plan, short: str) -> str:
    return f"mpirun of {short}" if plan.mpi is not None else short


def _says_something(line: str) -> bool:
    """Whether a line is neither empty, nor a divider, nor part of a table."""
    words = line.strip()
    return bool(words.strip("-=#* ")) and not words.startswith("#") and not words[0].isdigit()


_TICK_S = 0.1
_MOST_FAILURE_LINES = 50
Ended = Literal["complete", "time", "stopped", "failed"]


@dataclass(slots=True)
class _Progress:
    """What all steps of a run have in common: the time measured so far, and the samples of each point."""

    plan: Plan
    listener: Listener
    # How many rows of each point there will be.
    rows: Mapping[int, int]
    measured_s: float = 0.0
    times_s: dict[int, list[float]] = field(default_factory=dict)

    def has_time(self, more_s: float = 0.0) -> bool:
        """Whether the time limit is not reached; it counts from the first row of each step."""
        return self.measured_s + more_s < self.plan.sampling.time_limit_s

    def tell(self, point: int, time_s: float, more_s: float) -> None:
        """Tell the listener of a sample."""
        times_s = self.times_s.setdefault(point, [])
        times_s.append(time_s)
        centre = median(sorted(times_s))
        remaining_s = max(0.0, self.plan.sampling.time_limit_s - self.measured_s - more_s)
        self.listener.event(
            Measuring(
                point=point,
                phase="sampling",
                samples=len(times_s),
                median_s=centre,
                half_width=None,
                remaining_s=remaining_s,
            )
        )
        if len(times_s) == self.rows[point]:
            self.listener.event(PointEnded(point=point, samples=len(times_s), median_s=centre, ended="samples"))


def _planned_rows(plan: Plan) -> Counter[int]:
    """Return how many rows of each point will come: one of each start that writes its samples into a report."""
    planned: Counter[int] = Counter()
    for step in plan.steps:
        for number in step.points:
            planned[number] += 1 if step.report is not None else step.samples
    return planned


def execute(
    plan: Plan, directory: Path, attempt: int, done: frozenset[int], listener: Listener, backend: ForeignBackend
) -> Execution:
    """Start the steps that are not `done`, each when the one before has ended, and stay with them.

    No process is left when this returns. Raises RunError when one cannot be started, or its output not be stored.
    """
    started_s = time.monotonic()
    progress = _Progress(plan, listener, _planned_rows(plan))
    ended: Ended = "complete"
    attendance = None
    with counted_interrupts() as interrupts:
        for number in range(len(plan.steps)):
            if number in done:
                continue
            if not progress.has_time():
                ended = "time"
                break
            listener.event(Preparing(what=f"starting {_short(plan.steps[number].program)}"))
            attendance = _run_step(plan, directory, attempt, number, progress, interrupts, backend)
            ended = attendance.ended or "failed"
            if ended != "complete":
                break
    return Execution(
        ended=ended,
        cause=attendance.cause if attendance is not None else None,
        culprit=attendance.culprit if attendance is not None else None,
        exit_code=attendance.exit_code if attendance is not None else None,
        wall_s=time.monotonic() - started_s,
    )


def _run_step(
    plan: Plan,
    directory: Path,
    attempt: int,
    number: int,
    progress: _Progress,
    interrupts: Interrupts,
    backend: ForeignBackend,
) -> "_Attendance":
    tag = f"{plan.run_id}.{attempt}"
    with contextlib.ExitStack() as held:
        files = launch.open_outputs(directory / layout.RAW_DIRECTORY, _output_names(attempt, number), held)
        job = plan.steps[number].job
        process = launch.start(job.argv, job, tag)
        attendance = _Attendance(plan, number, files, process, progress, interrupts, backend)
        try:
            attendance.stay()
        except OSError as error:
            attendance.end("failed", f"cannot store what the program prints: {error.strerror or error}")
        finally:
            with contextlib.ExitStack() as ending:
                ending.callback(attendance.close)
                # Also where processes of this host do not end, those of the others must.
                ending.callback(_end_elsewhere, plan, directory, attempt, attendance, interrupts)
                ending.callback(launch.end, process, tag)
    return attendance


def _end_elsewhere(
    plan: Plan, directory: Path, attempt: int, attendance: "_Attendance", interrupts: Interrupts
) -> None:
    """End what a step that did not come to its end left on other hosts, and say where that cannot be done."""
    if attendance.ended == "complete" or not plan.placement.is_spread or not visiting.has_visits(plan):
        return
    asked = interrupts.count
    answers = visiting.visit(plan, directory, attempt, "end", lambda: interrupts.count > max(asked, 1))
    attendance.add(visiting.left_words(answers))


def _output_names(attempt: int, number: int) -> tuple[str, str]:
    return layout.step_output_name("stdout", attempt, number), layout.step_output_name("stderr", attempt, number)


class _Attendance:
    """One step under way: its streams, its rows, and the reasons to end it."""

    def __init__(
        self,
        plan: Plan,
        number: int,
        files: tuple[BinaryIO, BinaryIO],
        process: subprocess.Popen[bytes],
        progress: _Progress,
        interrupts: Interrupts,
        backend: ForeignBackend,
    ) -> None:
        self._plan = plan
        self._step = plan.steps[number]
        self._process = process
        self._progress = progress
        self._interrupts = interrupts
        self._backend = backend
        self._rows = Rows(backend, plan, self._step)
        self._failures: list[str] = []
        self._first_row_s: float | None = None
        self._heard_s = time.monotonic()
        self.ended: Ended | None = None
        self.cause: str | None = None
        self.culprit: Culprit | None = None
        self.exit_code: int | None = None
        self._streams = JobStreams(process, files, self._hear_row, self._hear)

    def stay(self) -> None:
        """Follow the program until it has ended or must be ended."""
        started_s = time.monotonic()
        while self.ended is None:
            if self._streams.wait(_TICK_S):
                self._heard_s = time.monotonic()
            if self._process.poll() is not None:
                for _heard in self._streams.drain(_TICK_S):
                    pass
                break
            self._consider(started_s)
        self.exit_code = self._process.poll()
        if self._first_row_s is not None:
            self._progress.measured_s += time.monotonic() - self._first_row_s
        if self.ended is None:
            self._conclude()

    def end(self, ended: Ended, cause: str | None = None) -> None:
        """Note how the step ends; the first reason counts."""
        if self.ended is None:
            self.ended, self.cause = ended, cause

    def add(self, more: tuple[str, ...]) -> None:
        """Add to the cause what came out afterwards."""
        if more:
            self.cause = "; ".join(([self.cause] if self.cause is not None else []) + list(more))

    def close(self) -> None:
        """Give every descriptor back."""
        self._streams.close()

    def _hear_row(self, line: bytes) -> None:
        self._hear(line)
        points = self._rows.feed(line + b"\n")
        measured_s = self._tell(points)
        # Looked at only when a row comes: a program that hangs has failed, and did not run out of time.
        if points and not self._progress.has_time(measured_s) and not self._has_all_rows():
            self.end("time")

    def _tell(self, points: Sequence[int]) -> float:
        """Tell of new samples; return the seconds since the first row."""
        now_s = time.monotonic()
        if points and self._first_row_s is None:
            self._first_row_s = now_s
        measured_s = now_s - self._first_row_s if self._first_row_s is not None else 0.0
        for point in points:
            self._progress.tell(point, self._rows.samples[point][-1].time_s, measured_s)
        return measured_s

    def _hear(self, line: bytes) -> None:
        text = line[:4096].decode("utf-8", errors="replace")
        if len(self._failures) < _MOST_FAILURE_LINES and self._backend.is_failure(text):
            self._failures.append(text[:300])

    def _has_all_rows(self) -> bool:
        wanted = 1 if self._step.report is not None else self._step.samples
        return all(len(self._rows.samples.get(point, ())) >= wanted for point in self._step.points)

    def _consider(self, started_s: float) -> None:
        """Look for a reason to end the program."""
        now_s = time.monotonic()
        job = self._step.job
        if self._interrupts.count > 0:
            self._progress.listener.remark("stopping; what was printed so far is kept")
            self.end("stopped")
        elif self._rows.complaint is not None:
            self.end("failed", self._rows.complaint)
        elif now_s - self._heard_s > job.stall_s:
            self.end(
                "failed",
                f"{_short(self._step.program)} printed nothing for {job.stall_s:.0f} s, {self._rows.last_words()}",
            )
        elif now_s - started_s > job.timeout_s:
            self.end(
                "failed",
                f"{_short(self._step.program)} did not end within {job.timeout_s:.0f} s, {self._rows.last_words()}",
            )

    def _conclude(self) -> None:
        """Say how a program that ended by itself came to its end."""
        self._tell(self._rows.finish())
        if self._rows.complaint is not None:
            self.end("failed", self._rows.complaint)
            return
        is_wrong = any(sample.wrong for samples in self._rows.samples.values() for sample in samples)
        if self._rows.samples and (self.exit_code == 0 or (is_wrong and self._has_all_rows())):
            # With wrong data the exit code only says so again.
            self.end("complete")
            return
        failure = self._backend.failure_of(self._failures, self.exit_code or 0, self._rows.tables)
        found = blame_program(
            self._plan, self._step, self._streams.text, failure, self.exit_code or 0, self._rows.last_words()
        )
        self.end("failed", found.cause)
        self.culprit = found.culprit


def _short(program: str) -> str:
    return program.rsplit("/", 1)[-1]
