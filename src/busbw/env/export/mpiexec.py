"""A script around mpiexec of the Hydra family: MPICH, Intel MPI, MVAPICH."""

from busbw.env.export.launch_script import apart, script
from busbw.env.export.page import Page, Written
from busbw.env.export.shell import quoted

_USE = (
    "For mpiexec of MPICH, Intel MPI and MVAPICH (Hydra); Open MPI and HPC-X take --format mpirun",
    "Use: bash THIS_FILE [OPTIONS OF MPIEXEC] PROGRAM [ARGUMENTS]",
)
_OF_OTHERS = ("OMPI_", "PRTE_", "PMIX_MCA_", "HCOLL_")


def write(page: Page) -> Written:
    """Return a script that passes `-genv NAME value` to one mpiexec, which hands on the rest of its environment."""
    mine, left_out = apart(page, _OF_OTHERS)
    return Written(text=script(mine, _USE, _option, "mpiexec"), notes=(_USE[0], *left_out))


def _option(name: str, value: str) -> str:
    return f"-genv {name} {quoted(value)}"
