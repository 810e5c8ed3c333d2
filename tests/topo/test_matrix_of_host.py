"""The matrix of a captured host is what nvidia-smi topo -m says on it, down to the host bridges that no file names."""

from tests.probe.hosts import GEN4, Function, Gpu, Machine, Nic, Numa, snapshot_of

from busbw.machine.read.hardware import hardware_of
from busbw.topo.origins.from_hardware import topology_of_hardware
from busbw.topo.paths.matrix import path_matrix


def port(bus_id: str, *above: str, numa: int = 0) -> Function:
    return Function(bus_id=bus_id, above=above, numa=numa)


def gpu(bus_id: str, *above: str, numa: int = 0) -> Gpu:
    return Gpu(bus_id=bus_id, above=above, numa=numa, targets=(), speed=GEN4, width=16)


def nic(name: str, bus_id: str, *above: str, numa: int = 0) -> Nic:
    return Nic(bus_id=bus_id, above=above, numa=numa, name=name, rate_gigabits=200, speed=GEN4, width=16)


def cells(*functions: Function) -> dict[str, tuple[str, ...]]:
    machine = Machine(name="host", numa=(Numa(id=0, cpus="0-15"), Numa(id=1, cpus="16-31")), functions=functions)
    return {row.name: row.cells for row in path_matrix(topology_of_hardware(hardware_of(snapshot_of(machine)))).rows}


def test_gpus_in_slots_of_one_host_bridge_are_phb_and_of_two_node() -> None:
    # A workstation: each slot has a root port and so a bus of its own.
    read = cells(
        port("0000:00:01.1"),
        port("0000:00:03.1"),
        port("0000:20:03.1"),
        gpu("0000:01:00.0", "0000:00:01.1"),
        gpu("0000:02:00.0", "0000:00:03.1"),
        gpu("0000:21:00.0", "0000:20:03.1"),
    )
    assert read["GPU0"] == ("X", "PHB", "NODE")
    assert read["GPU2"] == ("NODE", "NODE", "X")


def test_a_nic_beside_the_switch_of_a_gpu_is_phb_below_its_host_bridge() -> None:
    above = ("0000:00:01.1", "0000:01:00.0", "0000:02:00.0")
    read = cells(
        port("0000:00:01.1"),
        port("0000:01:00.0", *above[:1]),
        port("0000:02:00.0", *above[:2]),
        port("0000:02:01.0", *above[:2]),
        port("0000:00:03.1"),
        port("0000:80:01.1", numa=1),
        gpu("0000:03:00.0", *above),
        nic("mlx5_0", "0000:04:00.0", *above[:2], "0000:02:01.0"),
        nic("mlx5_1", "0000:05:00.0", "0000:00:03.1"),
        nic("mlx5_2", "0000:81:00.0", "0000:80:01.1", numa=1),
    )
    assert read["GPU0"] == ("X", "PIX", "PHB", "SYS")
