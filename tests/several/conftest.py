"""Hosts of the lab, its Slurm, and `busbw` started on them as a user would."""

from pathlib import Path

import pytest
from tests.lab.fixtures import cluster_of_session, hosts_of_session, lab, slurm_cluster
from tests.lab.slurm import Cluster

from .jobs import Jobs

__all__ = ["cluster_of_session", "hosts_of_session", "lab", "slurm_cluster"]


@pytest.fixture
def jobs(slurm_cluster: Cluster, tmp_path: Path) -> Jobs:
    """Return busbw on the cluster, its runs in a folder that every host sees."""
    return Jobs(slurm_cluster, tmp_path)
