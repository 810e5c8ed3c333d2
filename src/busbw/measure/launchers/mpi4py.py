"""What makes mpi4py load the MPI whose mpirun starts the ranks, not the first one it finds."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from busbw.model.launch import Start
from busbw.model.machine import MpiLibrary

# Where a run directory keeps links to libraries.
_LINKS = "lib"


@dataclass(frozen=True, slots=True)
class LibraryVariables:
    """Variables, lists that begin with a folder, and links in the run directory."""

    env: tuple[tuple[str, str], ...] = ()
    prepend: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()


def library_variables(start: Start, mpi: MpiLibrary) -> LibraryVariables:
    """Return what ranks need that load MPI through mpi4py; nothing for programs that bring their own idea of it."""
    if not start.through_mpi4py:
        return LibraryVariables()
    env = (("MPI4PY_LIBMPI", mpi.library),)
    if PurePosixPath(mpi.library).name.startswith("libmpich."):
        # Debian's name for MPICH's library; mpi4py's extension asks the loader for the name of the MPICH ABI.
        folder = f"{start.directory}/{_LINKS}"
        return LibraryVariables(env, (("LD_LIBRARY_PATH", folder),), ((f"{_LINKS}/libmpi.so.12", mpi.library),))
    return LibraryVariables(env)
