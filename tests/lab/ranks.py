"""A program of one rank, what an MPI needs to run it between the hosts of a lab, and what its ranks say."""

import json
import os
import subprocess
from pathlib import Path

from tests.sleeping import SLEEPING

PROGRAM = str(Path(__file__).parent / "programs" / "where_am_i.py")
HOSTS = "n0,n1,n2,n3"
# Between hosts TCP over eth0; ranks that wait leave the cores to others, for all hosts share them.
OPEN_MPI = {
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "eth0",
    **SLEEPING,
}
MPICH = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}
INTEL_MPI = {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0"}


def ranks_of(done: "subprocess.CompletedProcess[str]") -> list[dict[str, object]]:
    """Return what each rank said, in the order of the ranks."""
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return sorted(lines, key=lambda line: line["rank"])


def check_one_on_each(ranks: list[dict[str, object]], library: str) -> None:
    """Check that there are four ranks, one on each host, in one world."""
    assert [rank["host"] for rank in ranks] == HOSTS.split(",")
    assert {rank["ranks"] for rank in ranks} == {4}
    assert all(rank["hosts"] == HOSTS.split(",") for rank in ranks)
    assert all(str(rank["library"]).startswith(library) for rank in ranks)
    assert all(set(map(int, rank["cpus"])) <= os.sched_getaffinity(0) for rank in ranks)
