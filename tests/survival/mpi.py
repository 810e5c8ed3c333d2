"""The MPIs that failures are injected under, each with its own mpirun and over the hosts' own sshd."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from tests.e2e.runner import environment_of
from tests.lab.open_mpi_4 import OpenMpi4

NAMES = ("Open MPI 5", "Open MPI 4", "MPICH")
# Every failure under every MPI takes a quarter of an hour; each MPI has those that differ most from the others'.
EVERY = os.environ.get("BUSBW_EVERY_MPI") == "1"


@dataclass(frozen=True, kw_only=True)
class Mpi:
    """One MPI, and where the `busbw` lies that finds it."""

    busbw: Path
    mpirun: Path
    library: Path
    # What its daemons and ranks need on other hosts, where nothing of a login says where it is.
    there: Mapping[str, str] = field(default_factory=dict)


def mpi_of(name: str, request: pytest.FixtureRequest) -> Mpi:
    """Return an MPI by its name; the test is skipped where it cannot be had."""
    if name == "Open MPI 4":
        four: OpenMpi4 = request.getfixturevalue("open_mpi_4")
        return Mpi(busbw=environment_of("Open MPI"), mpirun=four.mpirun, library=four.library, there=four.env)
    prefix = environment_of("MPICH" if name == "MPICH" else "Open MPI")
    library = prefix / "lib" / ("libmpi.so.12" if name == "MPICH" else "libmpi.so.40")
    return Mpi(busbw=prefix, mpirun=prefix / "bin" / "mpirun", library=library)


def unless_every(*values: object) -> ParameterSet:
    """Return parameters of a test that runs only where BUSBW_EVERY_MPI=1 asks for it."""
    return pytest.param(
        *values, marks=pytest.mark.skipif(not EVERY, reason="set BUSBW_EVERY_MPI=1: a quarter of an hour")
    )


def under(which: str = "Open MPI 5") -> pytest.MarkDecorator:
    """Run a test under one MPI; under the others too where every MPI is asked for."""
    params = [name if name == which else unless_every(name) for name in NAMES]
    return pytest.mark.parametrize("several", params, indirect=True)
