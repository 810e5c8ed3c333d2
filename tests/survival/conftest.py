"""The hosts, and the command on them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.fixtures import cluster_of_session, hosts_of_session, lab, slurm_cluster
from tests.lab.lab import Lab

pytest.register_assert_rewrite("tests.survival.several")

from .several import Several  # noqa: E402

__all__ = ["cluster_of_session", "hosts_of_session", "lab", "several", "slurm_cluster"]


@pytest.fixture
def several(lab: Lab, tmp_path: Path) -> Iterator[Several]:
    """Return busbw on hosts n0 to n2; afterwards check that nothing of a run is left on a host that can be reached."""
    made = Several(lab, tmp_path)
    yield made
    made.close()
