"""A script around mpirun of Open MPI, which passes to other nodes only what it is told to."""

from busbw.env.export.launch_script import apart, script
from busbw.env.export.page import Page, Written, cannot_unset
from busbw.env.export.shell import quoted

_USE = (
    "For mpirun of Open MPI and HPC-X; MPICH, Intel MPI and MVAPICH take --format mpiexec",
    "Use: bash THIS_FILE [OPTIONS OF MPIRUN] PROGRAM [ARGUMENTS]",
)
# Read by mpirun itself too, so they are its options and not only variables of the ranks.
_OPTIONS = {"OMPI_MCA_": "--mca", "PRTE_MCA_": "--prtemca", "PMIX_MCA_": "--pmixmca"}
_OF_OTHERS = ("I_MPI_", "MPIR_CVAR_", "MPICH_", "MV2_", "MVP_", "HYDRA_")
_WHY = "mpirun cannot do that: it is unset here, and on other nodes stays what their logins set"


def write(page: Page) -> Written:
    """Return a script that passes `-x NAME=value` and `--mca NAME value` to one mpirun."""
    mine, left_out = apart(page, _OF_OTHERS)
    unset = [entry.name for entry in mine.entries if entry.value is None]
    return Written(text=script(mine, _USE, _option, "mpirun"), notes=(_USE[0], *cannot_unset(unset, _WHY), *left_out))


def _option(name: str, value: str) -> str:
    for prefix, option in _OPTIONS.items():
        if name.startswith(prefix) and name != prefix:
            return f"{option} {name.removeprefix(prefix)} {quoted(value)}"
    return f"-x {name}={quoted(value)}"
