"""Eight hosts behind three leaves and a spine, all cables shaped alike, and `busbw fabric` on the first of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.fixtures import need
from tests.lab.lab import Lab

from .network import HOSTS, PER_LEAF, Fabric

_PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "ssh": "openssh-client",
             "sshd": "openssh-server"}  # fmt: skip


@pytest.fixture(scope="session")
def hosts_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Keep one lab for all tests: tests take `fabric`."""
    need(_PROGRAMS)
    tmp_path_factory.getbasetemp()  # hosts share the folders in /tmp that are there before them
    with Lab(HOSTS, per_leaf=PER_LEAF) as made:
        yield made


@pytest.fixture
def fabric(hosts_of_session: Lab, tmp_path: Path) -> Iterator[Fabric]:
    """Return the command on hosts whose cables are alike; afterwards check that nothing of it still runs there."""
    yield Fabric(hosts_of_session, tmp_path)
    assert hosts_of_session.heal() == (), "processes are left on the hosts"
