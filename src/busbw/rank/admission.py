"""Whether this process may take part: the plan it carries out, how many processes there are, and saying no."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from busbw.base import layout
from busbw.model import codec
from busbw.model.plan import Plan
from busbw.model.record import EVENT_PREFIX, Refused
from busbw.rank.world import World


class _Launcher(NamedTuple):
    name: str
    # The variables with a process's number and with their count.
    rank: str
    ranks: str
    # What its processes speak, in words for a person.
    speaks: str


# The inner one first: mpirun may itself be started by srun.
_LAUNCHERS = (
    _Launcher("Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIx"),
    _Launcher("Hydra (MPICH, Intel MPI, MVAPICH)", "PMI_RANK", "PMI_SIZE", "PMI"),
    _Launcher("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "the PMI of its --mpi"),
    _Launcher("flux run", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "PMI"),
    _Launcher("jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "PMIx"),
    _Launcher("PBS or PALS", "PALS_RANKID", "PALS_SIZE", "PMI"),
)
_FAMILIES = (("Open MPI", "Open MPI"), ("Intel", "Intel MPI"), ("MVAPICH", "MVAPICH"), ("MPICH", "MPICH"))
_WITHOUT_PMIX = ("MPICH", "Intel MPI", "MVAPICH")
_LONGEST_NUMBER = 9


def family_of(version: str) -> str | None:
    """Return whose MPI says this of itself; None where it is none that is known."""
    return next((family for sign, family in _FAMILIES if sign in version), None)


def suspicion(family: str, library: str, environment: Mapping[str, str]) -> str | None:
    """Return why loading MPI may end this process without a word of ours; None where nothing speaks for it.

    MPICH and its kin give up in MPI_Init where they find PMIx, which Open MPI's mpirun and `srun --mpi=pmix` offer,
    unless they were built with it.
    """
    found = [launcher for launcher in _LAUNCHERS if _number(environment, launcher.ranks) is not None]
    is_pmix_alone = "PMIX_RANK" in environment and not any(name in environment for name in ("PMI_RANK", "PMI_FD"))
    # Every process says it: the first that gives up takes the others along.
    if not found or family not in _WITHOUT_PMIX or not is_pmix_alone:
        return None
    return (
        f"{found[0].name} started it with PMIx, which {family} ({library}) mostly does not understand; "
        f"{_fix(found[0], family, environment)}"
    )


def wrong_count(world: World, planned: int, environment: Mapping[str, str]) -> str | None:
    """Return why `planned` processes did not meet; None where another process of the same start says it."""
    found = [launcher for launcher in _LAUNCHERS if _number(environment, launcher.ranks) is not None]
    started = _number(environment, found[0].ranks) if found else None
    if world.rank != 0 or (found and _number(environment, found[0].rank) not in (0, None)):
        return None
    loaded = f"; loaded {world.version} from {world.library}" if world.library else ""
    if world.ranks != 1 or not found or started in (1, None):
        return f"{world.ranks} process{'es' if world.ranks > 1 else ''} started, {planned} planned{loaded}"
    family = family_of(world.version) or "this MPI"
    return (
        f"{started} processes started, {planned} planned, and each is alone: {_cause(found[0], family, environment)}"
        f"{loaded}; {_fix(found[0], family, environment)}"
    )


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= _LONGEST_NUMBER else None


def _cause(launcher: _Launcher, family: str, environment: Mapping[str, str]) -> str:
    if launcher.name == "srun":
        spoken = [name for name in ("PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI2_RANK") if name in environment]
        capabilities = f"it offers {', '.join(spoken)}" if spoken else "it offers no PMI (--mpi=none)"
        return f"srun started them, and {capabilities}, which {family} does not understand"
    return f"{launcher.name} started them, and {family} does not understand it (it speaks {launcher.speaks})"


def _fix(launcher: _Launcher, family: str, environment: Mapping[str, str]) -> str:
    if launcher.name == "srun":
        kind = "pmix" if family == "Open MPI" else "pmi2"
        # What srun was told last time stays in the environment of its tasks.
        given = environment.get("SLURM_MPI_TYPE")
        return f"start with srun --mpi={kind}, if `srun --mpi=list` has it{f' (now {given[:40]})' if given else ''}"
    return f"start with the mpirun of {family}, or load the MPI of this mpirun: busbw run --mpirun PATH"


def read_plan(directory: Path) -> Plan:
    """Return the plan in a run directory. Raises RuntimeError that names this host where there is none."""
    path = directory / layout.PLAN_FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RuntimeError(
            f"{os.uname().nodename} cannot read {path}: {os.strerror(error.errno or 0)}; every host must see the run "
            "directory at the same path"
        ) from error
    return codec.decode(content, Plan, where=str(path))


def refuse(why: str) -> None:
    """Say why these ranks do not measure together: an event for the launching side, a line for readers of its log."""
    sys.stdout.write(EVENT_PREFIX + codec.encode(Refused(why=why)).decode() + "\n")
    sys.stdout.flush()
    sys.stderr.write(f"busbw does not measure: {why}\n")
    sys.stderr.flush()
