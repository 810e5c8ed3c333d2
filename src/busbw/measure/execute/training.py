"""A training program of ours: its processes started on this host, or this process made one of them."""

import contextlib
import os
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from busbw.base.errors import BusbwError, InputError, RunError
from busbw.measure.execute import launch, processes
from busbw.measure.execute.launch import JobStreams, counted_interrupts
from busbw.model import codec
from busbw.model.plan import Job
from busbw.model.train.proxy import ProxyPlan

_PROGRAM = ("-P", "-m", "busbw.rank.training")
_LOOK_S = 0.2
_TAG = "train-proxy"
# Sets of variables that a launcher gives each process: rank and ranks. `srun` alone knows of steps.
_STARTED_BY = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def ranks_of_launcher(environment: Mapping[str, str] = os.environ) -> int | None:
    """Return how many processes the launcher started of which this is one; None: none did."""
    for rank, ranks in _STARTED_BY:
        if environment.get(rank, "").isdecimal() and environment.get(ranks, "").isdecimal():
            # A batch script runs inside a job of one task, and srun sets the same for a step of one.
            return int(environment[ranks])
    return None


def become_rank(plan: ProxyPlan) -> None:
    """Go on as one process of the program that a launcher started. Does not return."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *_PROGRAM, codec.encode(plan).decode()])  # noqa: S606


def train_here(plan: ProxyPlan, say: Callable[[str], None]) -> None:
    """Start every process on this host and wait for them; `say` is given the lines of rank 0 as they come.

    Raises what the processes say is wrong, RunError where they end otherwise or are stopped.
    """
    python = (sys.executable, "-P", "-m", "busbw.rank.start", str(plan.ranks))
    argv = (*python, sys.executable, *_PROGRAM, codec.encode(plan).decode())
    limit_s = 86_400.0
    job = Job(argv=argv, env=(("MASTER_PORT", str(_free_port())),), timeout_s=limit_s, stall_s=limit_s)
    tag = f"{_TAG}-{os.getpid()}"
    with contextlib.ExitStack() as held:
        interrupts = held.enter_context(counted_interrupts())
        nowhere = held.enter_context(Path(os.devnull).open("ab", buffering=0))
        process = launch.start(argv, job, tag)
        held.callback(launch.end, process, tag)
        streams = JobStreams(
            process, (nowhere, nowhere), lambda line: say(line.decode("utf-8", "replace")), lambda _line: None
        )
        held.callback(streams.close)
        while process.poll() is None and not interrupts.count:
            streams.wait(_LOOK_S)
        stopped = process.poll() is None
        for _heard in streams.drain(_LOOK_S):
            pass
        code = process.returncode
        text = streams.text
    if stopped:
        raise RunError("stopped", where=plan.directory)
    if code:
        raise _said(text) or RunError(
            f"the processes failed: {processes.describe_status(code)}", where=_last_line(text), hint="--device cpu"
        )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _said(text: str) -> BusbwError | None:
    """Return the error that a process printed as busbw prints errors, with a line each for cause, place and hint."""
    lines = text.splitlines()
    at = next((number for number, line in enumerate(lines) if line.startswith("error: ")), None)
    if at is None:
        return None
    rest = lines[at + 1 : at + 3]
    where = next((line.removeprefix("  --> ") for line in rest if line.startswith("  --> ")), None)
    hint = next((line.removeprefix("hint: ") for line in rest if line.startswith("hint: ")), None)
    kind = InputError if "exited with code 2" in text else RunError
    return kind(lines[at].removeprefix("error: "), where=where, hint=hint)


def _last_line(text: str) -> str | None:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else None
