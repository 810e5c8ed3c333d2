"""The lab and the Slurm cluster as fixtures: made when the first test asks for them, put in order after each test.

A folder of tests that wants them imports these names into its conftest.py; it then has a lab of its own.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from .lab import Lab
from .open_mpi_4 import OpenMpi4
from .open_mpi_4 import open_mpi_4 as unpacked
from .slurm import Cluster

# Program: the Debian package that has it.
_HOST_PROGRAMS = {"ip": "iproute2", "unshare": "util-linux", "ssh": "openssh-client", "sshd": "openssh-server"}
_SLURM_PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "srun": "slurm-client", "munged": "munge"}


def need(programs: dict[str, str]) -> None:
    """Skip the test without root, namespaces or one of `programs`; fail it in CI."""
    missing = sorted({package for program, package in programs.items() if shutil.which(program) is None})
    reason = None
    if os.geteuid() != 0:
        reason = "only root makes hosts in namespaces"
    elif missing:
        reason = f"missing packages: apt-get install {' '.join(missing)}"
    elif subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], check=False).returncode != 0:
        reason = "namespaces cannot be made here"
    if reason is not None and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def hosts_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Keep one lab for all tests: tests take `lab`."""
    need(_HOST_PROGRAMS)
    tmp_path_factory.getbasetemp()  # hosts share the folders in /tmp that are there before them
    with Lab() as made:
        yield made


@pytest.fixture
def lab(hosts_of_session: Lab) -> Iterator[Lab]:
    """Return hosts n0 to n3; afterwards check that nothing that the test started still runs there."""
    yield hosts_of_session
    assert hosts_of_session.heal() == (), "processes are left on the hosts"


@pytest.fixture(scope="session")
def cluster_of_session(hosts_of_session: Lab) -> Cluster:
    """Keep one Slurm for all tests: tests take `slurm_cluster`."""
    need(_SLURM_PROGRAMS)
    return Cluster(hosts_of_session)


@pytest.fixture
def slurm_cluster(cluster_of_session: Cluster, lab: Lab) -> Iterator[Cluster]:
    """Return the Slurm of the hosts of `lab`; afterwards check that no job is left."""
    yield cluster_of_session
    lab.undo()
    assert cluster_of_session.heal() == {}, "jobs are left"


@pytest.fixture(scope="session")
def open_mpi_4() -> OpenMpi4:
    """Return an Open MPI 4, which is not installed into the system."""
    need({"apt-get": "apt", "dpkg": "dpkg"})
    return unpacked()
