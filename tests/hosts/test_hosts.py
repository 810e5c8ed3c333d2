"""Captured hosts read as they did when a person looked at the reading.

Each folder here is one host: `host.tar.gz`, made there by scripts/capture_host.sh, and `expected.json`, its reading.
After a deliberate change of the reading: `python tests/hosts/test_hosts.py`, look at the difference, commit.
"""

from pathlib import Path

import pytest

from busbw import codec
from busbw.probe.read.host import host_of
from busbw.store.snapshots import read_snapshot

HOSTS = sorted(path.parent for path in Path(__file__).parent.glob("*/host.tar.gz"))
MOST_BYTES = 512 * 2**10


def reading(host: Path) -> bytes:
    return codec.encode_pretty(host_of(read_snapshot(host / "host.tar.gz")))


def test_there_are_captured_hosts() -> None:
    assert HOSTS


@pytest.mark.parametrize("host", HOSTS, ids=lambda path: path.name)
def test_a_captured_host_reads_as_expected(host: Path) -> None:
    assert reading(host).decode() == (host / "expected.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("host", HOSTS, ids=lambda path: path.name)
def test_a_captured_host_is_anonymous_and_small(host: Path) -> None:
    snapshot = read_snapshot(host / "host.tar.gz")
    assert snapshot.anonymous
    assert snapshot.hostname == "host1"
    assert (host / "host.tar.gz").stat().st_size < MOST_BYTES


if __name__ == "__main__":
    for each in HOSTS:
        (each / "expected.json").write_bytes(reading(each))
