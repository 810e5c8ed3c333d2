"""Which of Slurm's ways to introduce ranks to each other an MPI understands."""

import re
from collections.abc import Collection, Sequence

from busbw.base.errors import InputError
from busbw.model.launch import Slurm
from busbw.model.machine import MpiLibrary

_PMIX = re.compile(r"pmix(?:_v(\d+))?")
_NONE = "none"
_SHASTA = "cray_shasta"
_PMI2 = "pmi2"
# Without it Intel MPI does not ask Slurm at all.
_INTEL_VARIABLE = "I_MPI_PMI_LIBRARY"
_ALONE = "ranks that find no PMI start as so many runs of one rank each, which look fine and measure nothing"


def mpi_type(mpi: MpiLibrary | None, slurm: Slurm, options: Sequence[str], settings: Collection[str]) -> str:
    """Return the word for `srun --mpi=`, where it gets `options` and each rank has the variables named `settings`.

    Raises InputError where Slurm has none that this MPI understands.
    """
    if mpi is None:
        return _NONE
    for each in options:
        if each.startswith("--mpi="):
            return each.removeprefix("--mpi=")
    if mpi.family == "Intel MPI" and _INTEL_VARIABLE not in settings:
        raise InputError(
            f"Intel MPI asks Slurm only where {_INTEL_VARIABLE} names Slurm's library: {_ALONE}",
            hint=f"export {_INTEL_VARIABLE}=PATH/libpmi2.so",
        )
    wanted = _understood(mpi, slurm.mpi_types)
    found = next((each for each in wanted if each in slurm.mpi_types), None)
    if found is None:
        raise InputError(
            f"this Slurm has no PMI that {mpi.family} understands: {_ALONE}",
            where=f"{slurm.srun} --mpi=list: {', '.join(slurm.mpi_types) or 'nothing'}; "
            f"{mpi.library} needs {' or '.join(wanted) or 'PMIx'}",
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
