"""The door to Slurm's queue: submits a job, follows it with what it prints, cancels it."""

import re
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from busbw.base.errors import RunError
from busbw.machine.read import batch_systems
from busbw.measure.execute.launch import Interrupts, counted_interrupts
from busbw.model.launch import BatchJob
from busbw.model.plan import Job

_ASK_TIMEOUT_S = 60.0
_LOOK_S = 1.0
# Slurm's controller may be away for a while, and the job goes on meanwhile.
_PATIENCE_S = 600.0
# From the word to cancel to the end: Slurm's KillWait is 30 s, then the nodes clean up.
_CANCEL_S = 120.0
_CHUNK_BYTES = 2**16
_JOB_ID = re.compile(r"(\d{1,18})(?:;[A-Za-z0-9_.-]+)?")


def submit(job: Job) -> str:
    """Submit a job whose files are there, and return its number. Raises RunError with Slurm's own words."""
    done = _ask(job.argv, job.timeout_s)
    match = _JOB_ID.fullmatch(done.stdout.strip())
    if done.returncode != 0 or match is None:
        raise RunError(
            f"sbatch refused the job: {_said(done)}",
            where=job.argv[-1],
            hint="say what this cluster wants with --batch-option, such as --batch-option=--partition=gpu",
        )
    return match[1]


def follow(
    job_id: str, outputs: Callable[[], Sequence[Path]], say: Callable[[str], None]
) -> tuple[tuple[BatchJob, ...], bool]:
    """Stay with a job until it is over; `say` hears of its states and of the lines in the files that `outputs` names.

    The first Ctrl-C cancels the job. Returns its tasks as last seen, and whether it was cancelled here.
    Raises RunError when Slurm does not answer for ten minutes.
    """
    latest: dict[str, BatchJob] = {}
    read: dict[Path, int] = {}
    cancelled_s: float | None = None
    answered_s = time.monotonic()
    with counted_interrupts() as interrupts:
        while True:
            found = seen(job_id)
            now_s = time.monotonic()
            answered_s = now_s if found is not None else answered_s
            for task in found or ():
                if _differs(latest.get(task.job_id), task):
                    say(_words(task))
            if found:
                # Tasks of an array stand in one line, as 17_0-5, until they start.
                latest = {task.job_id: task for task in found}
            for path in outputs():
                read[path] = _say_new(path, read.get(path, 0), say)
            tasks = tuple(latest.values())
            # One that Slurm has forgotten is over too.
            if (tasks and all(task.is_over for task in tasks)) or (found == () and tasks):
                return tasks, cancelled_s is not None
            if interrupts.count and cancelled_s is None:
                cancelled_s = now_s
                say(f"cancelling job {job_id}; Ctrl-C again leaves it to Slurm")
                _ask(("scancel", job_id), _ASK_TIMEOUT_S)
            if interrupts.count > 1 or (cancelled_s is not None and now_s - cancelled_s > _CANCEL_S):
                return tasks, True
            if now_s - answered_s > _PATIENCE_S:
                raise RunError(
                    f"Slurm does not tell about job {job_id} for {_PATIENCE_S / 60:.0f} minutes",
                    hint=f"look yourself: squeue --jobs {job_id}",
                )
            _wait(interrupts)


def seen(job_id: str) -> tuple[BatchJob, ...] | None:
    """Return the tasks of a job; () when Slurm knows none of this number any more, None when it does not answer."""
    done = _ask(("scontrol", "--oneliner", "show", "job", job_id), _ASK_TIMEOUT_S)
    if done.returncode == 0:
        return batch_systems.jobs(done.stdout)
    return () if "Invalid job id" in done.stderr else None


def _wait(interrupts: Interrupts) -> None:
    """Wait for the next look, or for a word of the user."""
    count, ends_s = interrupts.count, time.monotonic() + _LOOK_S
    while interrupts.count == count and time.monotonic() < ends_s:
        time.sleep(0.05)


def _ask(argv: Sequence[str], timeout_s: float) -> "subprocess.CompletedProcess[str]":
    try:
        # In a session of its own: Ctrl-C in a terminal is for busbw to act on.
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 1, "", f"{argv[0]} gave no answer in {timeout_s:.0f} s")
    except OSError as error:
        raise RunError(
            f"cannot start {argv[0]}: {error.strerror or error}",
            hint="submit on a machine with Slurm's commands, or take another --launcher",
        ) from error


def _said(done: "subprocess.CompletedProcess[str]") -> str:
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return "; ".join(lines)[:600] or f"exit code {done.returncode}"


def _say_new(path: Path, offset: int, say: Callable[[str], None]) -> int:
    """Say the whole lines of a file behind `offset`, and return how far they go."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            content = file.read(_CHUNK_BYTES)
    except OSError:
        return offset
    whole = content.rfind(b"\n") + 1
    if whole == 0 and len(content) == _CHUNK_BYTES:
        whole = len(content)
    for line in content[:whole].decode("utf-8", errors="replace").splitlines():
        say(line)
    return offset + whole


def _why(task: BatchJob) -> str | None:
    if task.is_over and task.exit_code:
        return f"with exit code {task.exit_code}"
    return f"({task.reason})" if task.reason is not None else None


def _differs(before: BatchJob | None, now: BatchJob) -> bool:
    return before is None or (before.state, before.hosts, before.restarts) != (now.state, now.hosts, now.restarts)


def _words(task: BatchJob) -> str:
    details = [
        f"on {task.hosts}" if task.hosts else None,
        _why(task),
        f"start {task.restarts + 1}" if task.restarts else None,
    ]
    return " ".join(["job", task.job_id, task.state.lower(), *(each for each in details if each is not None)])
