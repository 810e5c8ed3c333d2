"""An mpirun that starts ranks of another MPI starts runs of one rank each, on several hosts: they are refused."""

import dataclasses
from pathlib import Path

import pytest
from tests.e2e.runner import program

from .mpi import Mpi, mpi_of, unless_every
from .several import HOSTS, SIZES, Several

# The MPI whose mpirun starts the ranks, and the one whose library they load.
STRANGERS = [("MPICH", "Open MPI 5"), unless_every("MPICH", "Open MPI 4")]


def mixed_up(folder: Path, own: Mpi, other: Mpi) -> Mpi:
    """Return an MPI with the mpirun of one and the library of another, under the name that the first looks for."""
    (folder / "lib").mkdir(parents=True)
    for path in other.library.parent.iterdir():
        if not path.name.startswith("python"):
            (folder / "lib" / path.name).symlink_to(path)
    library = folder / "lib" / own.library.name
    library.unlink(missing_ok=True)
    library.symlink_to(other.library)
    there = "".join(f"export {name}={value}\n" for name, value in other.there.items())
    mpirun = program(folder / "bin" / "mpirun", f'#!/bin/sh\n{there}exec {own.mpirun} "$@"\n')
    return dataclasses.replace(own, mpirun=mpirun, library=library)


@pytest.mark.parametrize(("several", "library"), STRANGERS, indirect=["several"])
def test_runs_of_one_rank_each_are_refused_with_both_mpis(
    several: Several, library: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    several.mpi = mixed_up(tmp_path / "site", several.mpi, mpi_of(library, request))

    several.start("run", "all_reduce", *SIZES, *several.way)

    assert several.finish() == 3, several.said
    run = several.run()
    assert run.measurements == ()
    assert "3 planned" in run.verdict.sentence, several.said
    assert library.rstrip(" 45") in run.verdict.sentence, several.said
    for host in HOSTS:
        # Open MPI 5 itself leaves the memory of a rank that is alone (5.0.11), also at its regular end.
        several.clear(host)
    several.check_nothing_left()
