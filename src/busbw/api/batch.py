"""A run as a job of Slurm: written down, submitted, followed to its end; its result is where the job left it."""

import datetime as dt
import glob
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.measure.backends import registry
from busbw.measure.execute import batch
from busbw.measure.launchers import sbatch
from busbw.measure.plan.hosts import check_started_once
from busbw.measure.plan.request import run_words
from busbw.measure.plan.sweeps import names_of, sweeps_of
from busbw.model.launch import Batch, BatchJob, Start
from busbw.model.plan import Job, Placement, Program
from busbw.model.request import Request
from busbw.store import files
from busbw.store.files import is_file, named

__all__ = ["BatchRun", "follow", "names_asked", "new_place", "planned", "results", "submit"]

# Beside the measuring: start-up on every node, and what comes of a failure there.
_GRACE_S = 300
# How long before its end a job is told to stop.
_WARNING_S = 60
_NAME = "busbw"


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchRun:
    """A job ready to be submitted."""

    job: Job
    # Where its script and its output are.
    folder: Path
    # Where its results will be: one, or one for each collective.
    runs: tuple[Path, ...]


def planned(
    request: Request, words: Sequence[str], where: Path, *, python: str, options: tuple[str, ...], split: bool
) -> BatchRun:
    """Return the job that runs `busbw run` with `words` inside an allocation, its result in `where`.

    `options`: further directives; `split`: one task of an array for each collective.
    Raises InputError for what could not be measured, or not be submitted, and where a launcher started busbw several
    times: each copy would submit a job.
    """
    check_started_once()
    if not registry.find(request.backend).is_ours:
        raise InputError(
            f"{request.backend} is started on this host alone", where="--launcher sbatch", hint="--backend native-mpi"
        )
    nodes = _nodes(request)
    names = _names(request, nodes)
    if split and len(names) < 2:
        raise InputError("there is one collective, and nothing to split", where="--split")
    folder = where.with_name(f"{where.name}{layout.JOB_SUFFIX}")
    command = (
        *(python, "-P", "-m", "busbw", "run", f"--nodes={nodes}", "--continue", f"--out={where}"),
        *(("--split-part=slurm",) if split else ()),
        *words,
    )
    start = Start(
        program=Program(argv=command, env=()),
        placement=Placement(ranks=1, hosts=("localhost",), binding="none", oversubscribed=False),
        directory=str(folder),
        batch=Batch(
            name=_NAME,
            nodes=nodes,
            tasks_per_node=_tasks(request, nodes),
            time_s=int(request.time_limit_s) + _GRACE_S,
            exclusive=_tasks(request, nodes) is None,
            requeue=True,
            warning_s=_WARNING_S,
            # One after the other: together they would measure each other.
            array=f"0-{len(names) - 1}%1" if split else None,
            options=options,
        ),
        measuring_s=request.time_limit_s,
        stall_s=request.stall_s,
    )
    return BatchRun(
        job=sbatch.job(start), folder=folder, runs=tuple(where / name for name in names) if split else (where,)
    )


def submit(run: BatchRun) -> str:
    """Write the job's files and submit it. Returns its number. Raises InputError and RunError."""
    files.write(run.job.files, run.folder)
    return batch.submit(run.job)


def follow(run: BatchRun, job_id: str, say: Callable[[str], None]) -> tuple[tuple[BatchJob, ...], bool]:
    """Stay with a submitted job until it is over, as `execute.batch.follow` does."""
    return batch.follow(job_id, lambda: named(run.folder, f"slurm-{glob.escape(job_id)}*.err"), say)


def new_place(request: Request, base: Path) -> Path:
    """Return a folder for the result of a job, under `base`; it must be one that the nodes see too."""
    created = dt.datetime.now(dt.UTC)
    return base / f"{created:%Y%m%dT%H%M%S}-{run_words(request)}-slurm-{secrets.token_hex(2)}"


def results(run: Path) -> tuple[Path, ...]:
    """Return the run directories that a job has left for one of its runs: more where it went on with other hosts."""
    again = named(run.parent, f"{glob.escape(run.name)}.again-*")
    return tuple(place for place in (run, *again) if is_file(place / layout.PLAN_FILE))


def _nodes(request: Request) -> int:
    if request.hosts is not None:
        raise InputError(
            "sbatch chooses the hosts",
            where=f"--hosts {request.hosts[:60]}",
            hint="--nodes N, and --batch-option=--nodelist=... where it must be these",
        )
    if request.nodes is None or request.nodes < 1:
        raise InputError("sbatch has to know how many nodes", hint="--nodes 2")
    return request.nodes


def _tasks(request: Request, nodes: int) -> int | None:
    """Return the tasks of each node that Slurm makes room for; None: all of the node."""
    if request.ranks_per_node is not None:
        return request.ranks_per_node
    if request.ranks is None:
        return 1 if request.suite == "p2p" else None
    if request.ranks % nodes:
        raise InputError(f"{request.ranks} ranks are not alike on {nodes} nodes", hint="--ranks-per-node N")
    return request.ranks // nodes


def _names(request: Request, nodes: int) -> tuple[str, ...]:
    """Return the collectives. Over MPI what is wrong with the sizes is said now, not when the job has waited."""
    backend = registry.find(request.backend)
    if backend.over == "mpi":
        tasks = _tasks(request, nodes)
        sweeps_of(request, nodes * (tasks if tasks is not None else 2), backend.capabilities(None))
    return names_asked(request)


def names_asked(request: Request) -> tuple[str, ...]:
    """Return the collectives of a request. Raises InputError for an unknown one."""
    # Which types its NCCL has shows on the node.
    return names_of(request, registry.find(request.backend).capabilities(None))
