"""Hosts to start ranks on."""

from tests.lab.fixtures import cluster_of_session, hosts_of_session, lab, open_mpi_4, slurm_cluster

__all__ = ["cluster_of_session", "hosts_of_session", "lab", "open_mpi_4", "slurm_cluster"]
