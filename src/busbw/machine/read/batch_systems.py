"""Slurm: the hosts of a job from its variables, and what `srun` says it can do."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from busbw.base.errors import InputError
from busbw.base.hostlist import MOST_HOSTS, expand
from busbw.machine.read.allocation_seen import Seen
from busbw.machine.read.commands import Command
from busbw.model.launch import Allocation, HostSlots, Slurm
from busbw.model.snapshot import Answer

# `4` or `2(x3)`: tasks of a host, and of how many hosts in a row.
_TASKS = re.compile(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?")
_TIME = re.compile(r"[0-9]{1,12}")
_JOB_ID = re.compile(r"[0-9]{1,12}")
# Slurm's numbers for steps that are no srun of the user's (slurm/slurm.h).
_OWN_STEPS = {"4294967290": "the interactive step", "4294967291": "the batch step", "4294967292": "the extern step"}
# One of them is set where tasks were asked for. Else SLURM_TASKS_PER_NODE counts the CPUs (seen with 22.05).
_ASKED = ("SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_NTASKS_PER_GPU", "SLURM_CPUS_PER_TASK")
_SHOWN = 60

COMMANDS = (
    Command(name="srun-version", programs=("srun",), arguments=("--version",)),
    Command(name="srun-mpi", programs=("srun",), arguments=("--mpi=list",)),
    Command(name="srun-help", programs=("srun",), arguments=("--help",)),
)
_VERSION = re.compile(r"slurm\S*\s+([0-9]+(?:\.[0-9A-Za-z]+)*)")
_TYPES_BEGIN = re.compile(r"MPI (?:plugin )?types are\.\.\.")
_TYPE = re.compile(r"[a-z][a-z0-9_]{0,40}")
_PMIX_VERSIONS = re.compile(r"specific pmix plugin versions available: ([a-z0-9_, ]+)")


class _Tasks(NamedTuple):
    # Of each host; None: not known.
    counts: tuple[int, ...] | None
    # Why they are not, or not of tasks.
    remark: str | None
    # Whether they are CPUs.
    are_cpus: bool = False


def allocation(seen: Seen) -> Allocation:
    """Return the hosts of the job. Raises InputError for variables that are not as Slurm writes them."""
    environment = seen.environment
    variable = "SLURM_JOB_NODELIST" if environment.get("SLURM_JOB_NODELIST") else "SLURM_NODELIST"
    listed = environment[variable]
    names = expand(listed, where=variable)
    if len(set(names)) != len(names):
        raise InputError("a host is named twice", where=f"{variable}={_short(listed)}")
    _check_count(environment, len(names), variable)
    tasks = _tasks(environment, names)
    job_id = environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID")
    if job_id is not None and _JOB_ID.fullmatch(job_id) is None:
        raise InputError(f"{_short(job_id)!r} is no number of a job", where="SLURM_JOB_ID")
    counts: Sequence[int | None] = tasks.counts or [None] * len(names)
    return Allocation(
        kind="slurm",
        hosts=tuple(
            HostSlots(name=name, cpus=count) if tasks.are_cpus else HostSlots(name=name, slots=count)
            for name, count in zip(names, counts, strict=True)
        ),
        job_id=job_id,
        ends_unix_s=_ends(environment),
        how=f"{variable}={_short(listed)}{f' of job {job_id}' if job_id else ''}{_step(environment)}",
        passed_over=tuple(remark for remark in (tasks.remark, _components(environment)) if remark is not None),
    )


def repeats(text: str, where: str) -> tuple[int, ...]:
    """Return the numbers that `2(x3),1` stands for: 2, 2, 2, 1. Raises InputError."""
    counts: list[int] = []
    for part in text.split(","):
        match = _TASKS.fullmatch(part)
        if match is None:
            raise InputError(f"{_short(part)!r} is no number of tasks", where=where)
        times = int(match[2] or 1)
        if len(counts) + times > MOST_HOSTS:
            raise InputError(f"more than {MOST_HOSTS} hosts", where=where)
        counts.extend([int(match[1])] * times)
    return tuple(counts)


def slurm(answers: Sequence[Answer]) -> Slurm | None:
    """Return the Slurm that answered COMMANDS; None where there is no srun."""
    by_name = {answer.name: answer for answer in answers}
    version = by_name["srun-version"]
    if version.ended == "absent" or not version.argv[0].startswith("/"):
        return None
    listed, helped = by_name["srun-mpi"], by_name["srun-help"]
    found = _VERSION.search(version.output)
    return Slurm(
        srun=version.argv[0],
        version=found[1] if found is not None else None,
        # Up to 20.11 the list is a complaint: on standard error, each line behind `srun: `.
        mpi_types=mpi_types(f"{listed.error}\n{listed.output}"),
        has_pyxis="--container-image" in helped.output,
    )


def mpi_types(text: str) -> tuple[str, ...]:
    """Return the names that `srun --mpi=list` prints, in order; () where it prints none."""
    names: dict[str, None] = {}
    listing = False
    for raw in text.split("\n"):
        line = raw.strip().removeprefix("srun: ").strip()
        versions = _PMIX_VERSIONS.fullmatch(line)
        if _TYPES_BEGIN.fullmatch(line):
            listing = True
        elif listing and versions is not None:
            names.update((name, None) for part in versions[1].split(",") if _TYPE.fullmatch(name := part.strip()))
        elif listing and _TYPE.fullmatch(line):
            names[line] = None
    return tuple(names)


def _check_count(environment: Mapping[str, str], found: int, variable: str) -> None:
    told = environment.get("SLURM_JOB_NUM_NODES", "")
    if told.isdecimal() and len(told) <= len(str(MOST_HOSTS)) and int(told) != found:
        raise InputError(
            f"{variable} lists {found} hosts, and SLURM_JOB_NUM_NODES is {int(told)}",
            where=variable,
            hint="name the hosts: --hosts n[0-3]",
        )


def _tasks(environment: Mapping[str, str], names: Sequence[str]) -> _Tasks:
    told = environment.get("SLURM_TASKS_PER_NODE")
    if not told:
        return _Tasks(None, None)
    counts = repeats(told, "SLURM_TASKS_PER_NODE")
    if len(counts) != len(names):
        # Inside a step the variable is about the step.
        remark = f"SLURM_TASKS_PER_NODE={_short(told)}: it is of {len(counts)} hosts, and the job has {len(names)}"
        return _Tasks(None, remark)
    if 0 in counts:
        return _Tasks(None, f"SLURM_TASKS_PER_NODE={_short(told)}: a host without tasks")
    if not any(environment.get(name) for name in _ASKED):
        remark = f"SLURM_TASKS_PER_NODE={_short(told)}: the job did not ask for tasks, these are CPUs"
        return _Tasks(counts, remark, are_cpus=True)
    return _Tasks(counts, None)


def _ends(environment: Mapping[str, str]) -> float | None:
    told = environment.get("SLURM_JOB_END_TIME", "")
    return float(told) if _TIME.fullmatch(told) else None


def _step(environment: Mapping[str, str]) -> str:
    step = environment.get("SLURM_STEP_ID")
    if step is None:
        return ""
    return f", inside {_OWN_STEPS.get(step, f'step {_short(step)}')}"


def _components(environment: Mapping[str, str]) -> str | None:
    """Return that a heterogeneous job has further components, whose hosts the usual variables do not name."""
    size = environment.get("SLURM_HET_SIZE", "")
    if not size.isdecimal() or size in ("0", "1"):
        return None
    return f"SLURM_HET_SIZE={_short(size)}: the hosts of the job's other components are not used"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
