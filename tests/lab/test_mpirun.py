"""Ranks on several hosts through each mpirun, over the remote shell and over sshd as it is."""

import sys

import pytest
from tests.e2e.runner import environment_of
from tests.lab.host import ENVIRONMENT
from tests.lab.lab import Lab
from tests.lab.open_mpi_4 import OpenMpi4
from tests.lab.ranks import HOSTS, MPICH, OPEN_MPI, PROGRAM, check_one_on_each, ranks_of

pytestmark = pytest.mark.root


def open_mpi_5(*options: str) -> list[str]:
    """Return the command of the wheel's mpirun."""
    mpirun = str(environment_of("Open MPI") / "bin" / "mpirun")
    interface = ["--prtemca", "prte_if_include", "eth0"]
    return [mpirun, "--allow-run-as-root", *interface, *options, "--host", HOSTS, "-n", "4", sys.executable, PROGRAM]


def test_open_mpi_5_starts_ranks_over_plain_ssh(lab: Lab) -> None:
    done = lab.run("n0", open_mpi_5("-x", "LAB_VARIABLE"), env={**ENVIRONMENT, **OPEN_MPI, "LAB_VARIABLE": "a b"})

    ranks = ranks_of(done)
    check_one_on_each(ranks, "Open MPI v5")
    assert {rank["variable"] for rank in ranks} == {"a b"}


def test_open_mpi_5_starts_ranks_over_a_given_remote_shell(lab: Lab) -> None:
    before = len(lab.remote_shell_calls)

    agent = ["--prtemca", "plm_ssh_agent", str(lab.remote_shell)]
    check_one_on_each(ranks_of(lab.run("n0", open_mpi_5(*agent), env={**ENVIRONMENT, **OPEN_MPI})), "Open MPI v5")

    assert len(lab.remote_shell_calls) == before + 3


def test_open_mpi_4_starts_ranks_over_a_given_remote_shell(lab: Lab, open_mpi_4: OpenMpi4) -> None:
    before = len(lab.remote_shell_calls)
    options = ["--mca", "plm_rsh_agent", str(lab.remote_shell), "--mca", "oob_tcp_if_include", "eth0"]
    forward = ["-x", "MPI4PY_LIBMPI", *(word for name in OPEN_MPI for word in ("-x", name))]
    command = [str(open_mpi_4.mpirun), "--allow-run-as-root", *options, *forward, "--host", HOSTS, "-n", "4"]

    done = lab.run(
        "n0",
        [*command, sys.executable, PROGRAM],
        env={**ENVIRONMENT, **OPEN_MPI, "MPI4PY_LIBMPI": str(open_mpi_4.library)},
    )

    check_one_on_each(ranks_of(done), "Open MPI v4")
    assert len(lab.remote_shell_calls) == before + 3


def test_mpich_starts_ranks_over_a_given_remote_shell(lab: Lab) -> None:
    before = len(lab.remote_shell_calls)
    prefix = environment_of("MPICH")
    options = ["-launcher", "ssh", "-launcher-exec", str(lab.remote_shell), "-iface", "eth0", "-hosts", HOSTS]

    done = lab.run(
        "n0",
        [prefix / "bin" / "mpiexec", *options, "-n", "4", prefix / "bin" / "python", PROGRAM],
        env={**ENVIRONMENT, **MPICH},
    )

    check_one_on_each(ranks_of(done), "MPICH")
    assert len(lab.remote_shell_calls) > before
