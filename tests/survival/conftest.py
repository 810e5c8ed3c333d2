"""The hosts, and the command on them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.fixtures import cluster_of_session, hosts_of_session, lab, open_mpi_4, slurm_cluster
from tests.lab.lab import Lab

pytest.register_assert_rewrite("tests.survival.several")

from .mpi import mpi_of  # noqa: E402
from .several import Several  # noqa: E402

__all__ = ["cluster_of_session", "hosts_of_session", "lab", "open_mpi_4", "several", "slurm_cluster"]


@pytest.fixture
def several(request: pytest.FixtureRequest, lab: Lab, tmp_path: Path) -> Iterator[Several]:
    """Return busbw on hosts n0 to n2 with the MPI of the parameter, else Open MPI 5; `lab` checks what it leaves."""
    made = Several(lab, tmp_path, mpi_of(getattr(request, "param", "Open MPI 5"), request))
    yield made
    made.close()
    # What a test that failed has left in memory shall not fail the next one.
    lab.undo()
    for host in lab.hosts:
        made.clear(host)
