"""Runs a plan's job to its end, whatever that is: its streams, its ranks, the reasons to end it, and what happened."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import BinaryIO, Literal

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.measure.execute import launch, processes, visiting, watch
from busbw.measure.execute.blame import Distant, blame
from busbw.measure.execute.launch import Execution, Interrupts, JobStreams, Listener, counted_interrupts
from busbw.measure.execute.watch import LOOK_S, Watch
from busbw.measure.launchers.notices import batch_end
from busbw.model import codec
from busbw.model.plan import Plan
from busbw.model.record import EVENT_PREFIX, Ending, Refused, Unanswered
from busbw.model.visit import Answer, Autopsy, Culprit

# A rank that ended too early drags the others along by itself; this is for launchers that do not notice.
_DEATH_GRACE_S = 3.0


class Attendance:
    """One job under way: its streams, its ranks, and the reasons to end it."""

    def __init__(
        self,
        plan: Plan,
        raw: Path,
        files: tuple[BinaryIO, BinaryIO],
        process: subprocess.Popen[bytes],
        interrupts: Interrupts,
        listener: Listener,
    ) -> None:
        self._plan = plan
        self._raw = raw
        self._process = process
        self._interrupts = interrupts
        self._listener = listener
        self._watch: Watch | Distant = Distant(plan) if plan.placement.is_spread else Watch(plan, raw)
        self._reason: Literal["complete", "time", "stopped"] | None = None
        self._cause: str | None = None
        # The ranks themselves say why they do not begin: there is nothing to look for.
        self.is_refused = False
        self._culprit: Culprit | None = None
        self._stop_asked_s: float | None = None
        self._exit_code: int | None = None
        self._batch: str | None = None
        self._streams = JobStreams(process, files, self._hear, lambda _line: None)
        if isinstance(self._watch, Watch):
            self._streams.wake_by(self._watch)
        # It may outlive its streams by a moment, which nobody has to wait for.
        self._end = processes.end_descriptor(process.pid)
        if self._end is not None:
            self._streams.wake_by(self._end, once=True)

    def stay(self) -> None:
        """Follow the job until it has ended or must be ended."""
        ends_s = time.monotonic() + self._plan.job.timeout_s
        while self._cause is None:
            # The end of a rank, or of the launcher, ends the wait at once.
            self._note(heard=self._streams.wait(LOOK_S))
            if self._process.poll() is not None:
                for heard in self._streams.drain(LOOK_S):
                    self._note(heard=heard)
                self._watch.look()
                break
            self._consider(ends_s)
        self._exit_code = self._process.poll()
        # Only what is said before busbw ends anything: a step that busbw ends is called cancelled as well.
        self._batch = batch_end(self.words) if self._exit_code is not None else None

    def fail(self, cause: str, culprit: Culprit | None = None) -> None:
        """Note why the job must end now; the first reason counts."""
        if self._cause is None:
            self._cause, self._culprit = cause, culprit

    def close(self) -> None:
        """Give every descriptor back, and what ended ranks left behind."""
        self._watch.close()
        if self._end is not None:
            os.close(self._end)
        processes.remove(self._watch.shared_memory)
        self._streams.close()

    @property
    def words(self) -> str:
        """The end of what the launcher has printed on both streams, without the ranks' events."""
        return "\n".join(line for line in self._streams.text.splitlines() if EVENT_PREFIX not in line)

    @property
    def has_failed(self) -> bool:
        """Whether the job must end, or has ended without coming to its end."""
        return self._cause is not None or self._exit_code != 0 or self._reason is None

    @property
    def is_alive(self) -> bool:
        """Whether the launcher has not ended by itself."""
        return self._exit_code is None

    @property
    def is_stopping(self) -> bool:
        """Whether somebody has asked for the end."""
        return self._stop_asked_s is not None

    @property
    def is_ended_by_batch(self) -> bool:
        """Whether the batch system says that it has ended the job: there is nothing to look for."""
        return self._batch is not None

    def learn(self, found: Autopsy) -> None:
        """Take what the hosts say as the reason why the job ended; what was seen from here of a rank is surer."""
        if self._culprit is not None and isinstance(self._watch, Watch):
            return
        if self._cause is None:
            own = blame(self.words, self._exit_code, self._watch).cause
            self._cause = found.because if found.culprit is not None else f"{own}: {found.because}"
        else:
            self._cause = f"{self._cause}: {found.because}"
        if self._culprit is None:
            self._culprit = found.culprit

    def add(self, remark: str) -> None:
        """Say one more thing about the end."""
        self._cause = remark if self._cause is None else f"{self._cause}; {remark}"

    def result(self, wall_s: float) -> Execution:
        """Return how it ended."""
        if self._cause is None and self._exit_code not in (0, None):
            self._blame_the_dead()
        cause = self._cause
        if cause is None and self._reason is None:
            cause = "the ranks ended without a result"
        ended: Literal["complete", "time", "stopped", "failed"] = "stopped" if self.is_stopping else "failed"
        if self._reason is not None and self._cause is None and self._exit_code == 0:
            ended = self._reason
        culprit = self._culprit
        if self._batch is not None and self._reason not in ("complete", "time"):
            # Whatever the ranks said on their way out, this is why they went.
            ended, culprit, cause = "stopped", None, f"Slurm ended the job: {self._batch}"
        return Execution(ended=ended, cause=cause, culprit=culprit, exit_code=self._exit_code, wall_s=wall_s)

    def _note(self, *, heard: bool) -> None:
        if heard:
            self._watch.touch()
        self._watch.glance()

    def _hear(self, line: bytes) -> None:
        text = line.decode("utf-8", errors="replace")
        _before, prefix, document = text.partition(EVENT_PREFIX)
        if not prefix:
            return
        try:
            event = codec.decode_event(document.encode())
        except InputError:
            return
        if isinstance(event, Refused):
            self.is_refused = True
            self.fail(event.why)
            return
        if isinstance(event, Ending):
            self._reason = event.reason
        if isinstance(event, Unanswered):
            self._reason = event.reason
            self.fail(_unanswered(event))
        if isinstance(self._watch, Distant):
            self._watch.hear(event)
        self._listener.event(event)

    def _consider(self, ends_s: float) -> None:
        """Look for a reason to end the job."""
        now_s = time.monotonic()
        self._obey(now_s)
        if self._watch.early_deaths and self._watch.still_s > _DEATH_GRACE_S and self._reason is None:
            self._blame_the_dead()
        elif (stopped := self._watch.stopped()) is not None:
            self.fail(f"rank {stopped.rank} stands still: {stopped.what}", stopped)
        elif self._watch.still_s > self._plan.job.stall_s:
            self._stalled()
        elif now_s > ends_s:
            absent = self._watch.absent()
            self.fail(f"not finished after {self._plan.job.timeout_s:.0f} s", absent)

    def _stalled(self) -> None:
        """Say that nothing moves, and which rank is missing where that is known; a visit may tell more."""
        absent = self._watch.absent()
        cause = f"no rank made progress for {self._plan.job.stall_s:.0f} s"
        if absent is not None:
            cause += f": rank {absent.rank} {absent.what}"
        else:
            cause += f" (last seen: {self._watch.step})"
        self.fail(cause, absent)

    def _obey(self, now_s: float) -> None:
        """Act on Ctrl-C or SIGTERM: the first asks the ranks to stop, the second ends them."""
        if self._interrupts.count == 0:
            return
        if self._stop_asked_s is None:
            self._stop_asked_s = now_s
            self._listener.remark("stopping after the samples in hand; Ctrl-C again ends the ranks at once")
            if isinstance(self._watch, Distant) and not self._ask_launcher():
                self.fail("ended by the user before the ranks had begun")
        if isinstance(self._watch, Watch):
            watch.ask_to_stop(self._raw)
        grace_s = self._plan.job.stop_grace_s
        if self._interrupts.count > 1:
            self.fail("ended by the user")
        elif now_s - self._stop_asked_s > grace_s:
            self.fail(f"ended by the user; the ranks did not stop within {grace_s:.0f} s")

    def _ask_launcher(self) -> bool:
        """Have the launcher tell the ranks of all hosts to stop. Returns False when they would not understand yet."""
        assert isinstance(self._watch, Distant)
        if not self._watch.has_begun:
            return False
        # mpirun of Open MPI 4 and 5, Hydra and srun hand this one on to every rank.
        with contextlib.suppress(ProcessLookupError):
            os.kill(processes.behind_shells(self._process.pid), signal.SIGUSR1)
        return True

    def _blame_the_dead(self) -> None:
        """Name the rank that ended first, if it can be told, and say why the job ended."""
        found = blame(self.words, self._exit_code, self._watch)
        self.fail(found.cause, found.culprit)


def _unanswered(event: Unanswered) -> str:
    if not event.ranks:
        return "pairs of hosts did not come to an end within their time limit, and every rank is there"
    ranks = ", ".join(f"{rank} on {host}" for rank, host in zip(event.ranks, event.hosts, strict=False))
    return f"{'ranks' if len(event.ranks) > 1 else 'rank'} {ranks} did not answer within the time limit of a pair"


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
        interrupts = held.enter_context(counted_interrupts())
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
