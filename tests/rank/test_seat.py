"""What a rank says of where it sits, as the kernel's files have it."""

from pathlib import Path

import pytest

from busbw.rank.journal import numa_nodes_of
from busbw.rank.nccl.buffers import numa_of_device


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Return the folder of NUMA nodes of a server with two sockets."""
    for number, cpus in ((0, "0-47,96-143"), (1, "48-95,144-191")):
        (tmp_path / f"node{number}").mkdir()
        (tmp_path / f"node{number}" / "cpulist").write_text(f"{cpus}\n", encoding="utf-8")
    (tmp_path / "online").write_text("0-1\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("cpus", "found"), [((0, 1, 143), (0,)), ((50,), (1,)), ((47, 48), (0, 1)), ((500,), None), ((), None)]
)
def test_the_nodes_of_cpus_are_those_that_list_them(nodes: Path, cpus, found):
    assert numa_nodes_of(cpus, nodes) == found


def test_a_kernel_without_nodes_tells_nothing(tmp_path: Path):
    assert numa_nodes_of((0,), tmp_path / "absent") is None


@pytest.mark.parametrize("bus_id", ["0000:1B:00.0", "00000000:1b:00.0"])
def test_the_node_of_a_gpu_is_found_however_cuda_writes_its_address(tmp_path: Path, bus_id: str):
    (tmp_path / "0000:1b:00.0").mkdir()
    (tmp_path / "0000:1b:00.0" / "numa_node").write_text("1\n", encoding="utf-8")

    assert numa_of_device(bus_id, tmp_path) == 1


@pytest.mark.parametrize("text", ["-1\n", ""])
def test_a_gpu_whose_node_the_kernel_does_not_know_has_none(tmp_path: Path, text: str):
    (tmp_path / "0000:1b:00.0").mkdir()
    (tmp_path / "0000:1b:00.0" / "numa_node").write_text(text, encoding="utf-8")

    assert numa_of_device("0000:1b:00.0", tmp_path) is None
    assert numa_of_device("0000:99:00.0", tmp_path) is None
