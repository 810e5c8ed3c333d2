"""Captured hosts read as they did when a person looked at the reading.

Each folder here is one host: `host.tar.gz`, made there by scripts/capture_host.sh, and `expected.json`, its reading.
After a deliberate change of the reading: `python tests/hosts/test_hosts.py`, look at the difference, commit.
"""

import re
from pathlib import Path

import pytest

from busbw.base.cpus import format_cpu_list
from busbw.machine.named import host_of
from busbw.model import codec
from busbw.store.snapshots import read_snapshot
from busbw.topo.origins.from_hardware import topology_of_hardware
from busbw.topo.paths.matrix import path_matrix

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


def said_by_nvidia_smi(host: Path) -> list[list[str]]:
    """Return the rows of the matrix that the driver's own tool printed there: names, ways, CPUs, NUMA nodes."""
    answers = read_snapshot(host / "host.tar.gz").answers
    text = next(answer.output for answer in answers if answer.name == "nvidia-smi-topo")
    rows = [re.sub(r"\x1b\[\d*m", "", line).split("\t") for line in text.splitlines()]
    return [[cell.strip() for cell in row] for row in rows if re.fullmatch(r"(GPU|NIC)\d+", row[0].strip())]


@pytest.mark.parametrize("host", [host for host in HOSTS if "-h" in host.name], ids=lambda path: path.name)
def test_the_matrix_is_that_of_the_driver_s_own_tool(host: Path) -> None:
    rows = path_matrix(topology_of_hardware(host_of(read_snapshot(host / "host.tar.gz")).hardware)).rows

    ours = [[row.name, *row.cells, format_cpu_list(row.cpus or ()), str(row.numa)] for row in rows]

    theirs = said_by_nvidia_smi(host)
    assert theirs
    assert ours == [row[: len(rows) + 3] for row in theirs]


if __name__ == "__main__":
    for each in HOSTS:
        (each / "expected.json").write_bytes(reading(each))
