"""Which of Slurm's ways to introduce ranks to each other an MPI understands."""

import re

from busbw.errors import InputError
from busbw.model.launch import Slurm, Start
from busbw.model.machine import MpiLibrary

_PMIX = re.compile(r"pmix(?:_v(\d+))?")
_NONE = "none"
_SHASTA = "cray_shasta"
_PMI2 = "pmi2"
# Without it Intel MPI does not ask Slurm at all.
_INTEL_VARIABLE = "I_MPI_PMI_LIBRARY"
_ALONE = "ranks that find no PMI start as so many runs of one rank each, which look fine and measure nothing"


def mpi_type(start: Start, slurm: Slurm) -> str:
    """Return the word for `srun --mpi=`. Raises InputError where Slurm has none that this MPI understands."""
    if start.mpi is None:
        return _NONE
    for each in start.options:
        if each.startswith("--mpi="):
            return each.removeprefix("--mpi=")
    _check_intel(start, start.mpi)
    wanted = _understood(start.mpi, slurm.mpi_types)
    found = next((each for each in wanted if each in slurm.mpi_types), None)
    if found is None:
        raise InputError(
            f"this Slurm has no PMI that {start.mpi.family} understands: {_ALONE}",
            where=f"{slurm.srun} --mpi=list: {', '.join(slurm.mpi_types) or 'nothing'}; "
            f"{start.mpi.library} needs {' or '.join(wanted) or 'PMIx'}",
            hint="take the mpirun of this MPI inside the allocation: --launcher mpirun",
        )
    return found


def _understood(mpi: MpiLibrary, types: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that would do, the best first."""
    if mpi.family == "Open MPI":
        versions = [each for each in types if _PMIX.fullmatch(each)]
        # Without a number it is the newest that this Slurm was built with.
        return tuple(sorted(versions, key=_newest_first)) or ("pmix",)
    if is_cray(mpi):
        return (_SHASTA, _PMI2)
    return (_PMI2,)


def _newest_first(kind: str) -> int:
    number = _PMIX.fullmatch(kind)
    return -int(number[1]) if number is not None and number[1] is not None else -1000


def is_cray(mpi: MpiLibrary) -> bool:
    """Whether this is the MPICH of a Cray, which has ways of its own."""
    return mpi.family == "MPICH" and "/cray/" in mpi.library


def _check_intel(start: Start, mpi: MpiLibrary) -> None:
    if mpi.family != "Intel MPI" or _INTEL_VARIABLE in start.forward:
        return
    if all(name != _INTEL_VARIABLE for name, _value in start.program.env):
        raise InputError(
            f"Intel MPI asks Slurm only where {_INTEL_VARIABLE} names Slurm's library: {_ALONE}",
            hint=f"export {_INTEL_VARIABLE}=PATH/libpmi2.so",
        )
