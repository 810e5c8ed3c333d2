"""A topology made from a host is what NCCL finds there itself."""

from pathlib import Path

import pytest
from tests.probe.hosts import snapshot_of
from tests.probe.machines import MACHINES

from busbw.machine.read.hardware import hardware_of
from busbw.model.host import Hardware, HostGpu, HostNuma, HostNvLink, HostPort, MatrixCell, PciFunction
from busbw.model.topology import NvLink, Topology
from busbw.topo.comparison import differences
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_document import topologies_of
from busbw.topo.origins.from_hardware import topology_of_hardware

NCCL_DUMP = Path(__file__).parents[2] / ".." / "shared" / "facts" / "samples" / "topo.xml"
GEN5 = "32.0 GT/s PCIe"
GEN4 = "16.0 GT/s PCIe"


def function(
    bus_id: str,
    parent: str | None = None,
    device_class: str = "0x060400",
    *,
    vendor: str = "0x1000",
    numa: int = 0,
    speed: str | None = GEN5,
    width: int | None = 16,
) -> PciFunction:
    return PciFunction(
        bus_id=bus_id,
        parent=parent,
        device_class=device_class,
        vendor=vendor,
        device="0x0001",
        numa=numa,
        max_link_speed=speed,
        max_link_width=width,
    )


def gpu_function(bus_id: str, parent: str | None = None, **more: object) -> PciFunction:
    return function(bus_id, parent, "0x030200", vendor="0x10de", **more)  # type: ignore[arg-type]


def nic_function(bus_id: str, parent: str | None = None, **more: object) -> PciFunction:
    return function(bus_id, parent, "0x020700", vendor="0x15b3", **more)  # type: ignore[arg-type]


def links(count: int, target: str | None = None) -> tuple[HostNvLink, ...]:
    return tuple(HostNvLink(link=number, target=target) for number in range(count))


def matrix(rows: list[str]) -> tuple[MatrixCell, ...]:
    """Cells from lines such as `X NV18`, a row a GPU."""
    return tuple(
        MatrixCell(row=f"GPU{row}", column=f"GPU{column}", path=path)
        for row, line in enumerate(rows)
        for column, path in enumerate(line.split())
    )


def four_h200_of_a_flat_machine() -> Hardware:
    """Four H200 in a virtual machine without switches or NUMA; synthetic, after NCCL's dump and log of such a one."""
    buses = [f"0000:00:{slot:02x}.0" for slot in range(6, 10)]
    ids = {"subsystem_vendor": "0x10de", "subsystem_device": "0x18bf", "max_link_speed": GEN5, "max_link_width": 16}
    return Hardware(
        hostname="vm",
        architecture="x86_64",
        cpu_vendor="GenuineIntel",
        cpu_family=6,
        cpu_model_number=207,
        cpus=tuple(range(64)),
        numa=(HostNuma(id=0, cpus=tuple(range(64))),),
        pci=(
            PciFunction(
                bus_id="0000:00:03.0", parent=None, device_class="0x020000", vendor="0x1af4", device="0x1041", numa=-1
            ),
            *(
                PciFunction(
                    bus_id=bus, parent=None, device_class="0x030200", vendor="0x10de", device="0x2335", numa=-1, **ids
                )
                for bus in buses
            ),
        ),
        gpus=tuple(
            HostGpu(index=index, bus_id=bus, name="NVIDIA H200", sm=90, nvlinks=links(18))
            for index, bus in enumerate(buses)
        ),
        ports=(HostPort(name="eth0", port=0, bus_id="0000:00:03.0", kind="Ethernet", rate_bps=1e10, up=True),),
        matrix=matrix(["X NV18 NV18 NV18", "NV18 X NV18 NV18", "NV18 NV18 X NV18", "NV18 NV18 NV18 X"]),
    )


def nccl_dump() -> Topology:
    if not NCCL_DUMP.exists():
        pytest.skip(f"{NCCL_DUMP} is not here: NCCL's own dump of that machine is needed to compare with")
    (dump,) = topologies_of(read_document(NCCL_DUMP.read_bytes(), str(NCCL_DUMP)))
    return dump


@pytest.mark.parametrize(
    "hardware",
    [four_h200_of_a_flat_machine(), hardware_of(snapshot_of(MACHINES["h200-vm"]))],
    ids=["by hand", "read from a synthetic snapshot"],
)
def test_a_flat_virtual_machine_comes_out_as_nccl_dumped_it(hardware: Hardware) -> None:
    made, dump = topology_of_hardware(hardware), nccl_dump()
    assert differences(made, dump) == ()
    assert [(node.id, node.cpus, node.family, node.model) for node in made.numa] == [(-1, None, 6, 207)]
    assert [(each.bus_id, each.numa, each.parent) for each in made.devices] == [
        (each.bus_id, each.numa, each.parent) for each in dump.devices
    ]
    assert made.nvlinks == dump.nvlinks
    assert [(net.name, net.bus_id, net.numa) for net in made.nets] == [
        (net.name, net.bus_id, net.numa) for net in dump.nets
    ]


@pytest.mark.parametrize("name", MACHINES)
def test_what_a_host_shows_can_be_written_for_nccl_and_read_back(name: str) -> None:
    made = topology_of_hardware(hardware_of(snapshot_of(MACHINES[name])))
    (back,) = topologies_of(read_document(file_text(made).encode(), name))
    assert differences(made, back) == ()


def behind_switches() -> Hardware:
    """A GPU and a card with two ports below one switch on node 1, a GPU right below a root port on node 0."""
    return Hardware(
        hostname="node",
        architecture="x86_64",
        numa=(HostNuma(id=0, cpus=(0, 1)), HostNuma(id=1, cpus=(2, 3)), HostNuma(id=2, cpus=())),
        pci=(
            function("0000:00:01.0"),
            gpu_function("0000:01:00.0", "0000:00:01.0", speed=GEN5, width=8),
            function("0000:80:01.0", numa=1),
            function("0000:81:00.0", "0000:80:01.0", numa=1),
            function("0000:82:00.0", "0000:81:00.0", numa=1, speed=GEN4),
            function("0000:82:01.0", "0000:81:00.0", numa=1),
            gpu_function("0000:83:00.0", "0000:82:00.0", numa=1),
            nic_function("0000:84:00.0", "0000:82:01.0", numa=1),
            nic_function("0000:84:00.1", "0000:82:01.0", numa=1),
        ),
        gpus=(HostGpu(index=0, bus_id="0000:01:00.0"), HostGpu(index=1, bus_id="0000:83:00.0")),
        ports=(
            HostPort(
                name="mlx5_0",
                port=1,
                bus_id="0000:84:00.0",
                kind="RoCE",
                rate_bps=2e11,
                up=True,
                guid="0x946dae030050709a",
            ),
            HostPort(name="mlx5_1", port=1, bus_id="0000:84:00.1", kind="RoCE", rate_bps=2e11, up=True),
            HostPort(name="eth0", port=1, bus_id=None, kind="Ethernet", up=True),
        ),
    )


def test_ports_are_left_out_of_the_tree_and_a_switch_is_its_upper_side() -> None:
    made = topology_of_hardware(behind_switches())
    assert [(each.bus_id, each.parent, each.numa, each.kind) for each in made.devices] == [
        ("0000:01:00.0", None, 0, "gpu"),
        ("0000:81:00.0", None, 1, "switch"),
        ("0000:83:00.0", "0000:81:00.0", 1, "gpu"),
        ("0000:84:00.0", "0000:81:00.0", 1, "nic"),
    ]


def test_a_link_is_as_fast_as_its_slower_end() -> None:
    devices = {each.bus_id: each for each in topology_of_hardware(behind_switches()).devices}
    assert (devices["0000:83:00.0"].link_speed, devices["0000:83:00.0"].link_width) == (GEN4, 16)
    assert (devices["0000:01:00.0"].link_speed, devices["0000:01:00.0"].link_width) == (GEN5, 8)


def test_nodes_with_cpus_stand_there_and_memory_of_a_gpu_does_not() -> None:
    assert [(node.id, node.cpus) for node in topology_of_hardware(behind_switches()).numa] == [(0, (0, 1)), (1, (2, 3))]


def test_two_ports_of_a_card_are_one_device_with_ports_that_count_on() -> None:
    nets = topology_of_hardware(behind_switches()).nets
    # NCCL prints a GUID in the byte order of the machine.
    assert [(net.name, net.bus_id, net.numa, net.port, net.guid) for net in nets] == [
        ("mlx5_0", "0000:84:00.0", 1, 1, "0x9a70500003ae6d94"),
        ("mlx5_1", "0000:84:00.0", 1, 2, "0x9a70500003ae6d94"),
    ]


def test_interfaces_count_only_where_there_is_no_rdma_and_ports_that_are_down_never_do() -> None:
    down = HostPort(name="mlx5_0", port=1, bus_id=None, kind="InfiniBand", up=False)
    eth = HostPort(name="eth0", port=1, bus_id=None, kind="Ethernet", up=True)
    made = topology_of_hardware(Hardware(hostname="node", ports=(down, eth)))
    assert [net.name for net in made.nets] == ["eth0"]
    # A guess at the rate would hide that nobody knows it.
    assert made.nets[0].speed_Mbps is None


def joined(rows: list[str], count: int, name: str = "NVIDIA GH200 120GB") -> Topology:
    gpus = tuple(
        HostGpu(index=index, bus_id=f"000{index}:01:00.0", name=name, nvlinks=links(count))
        for index in range(len(rows))
    )
    return topology_of_hardware(Hardware(hostname="node", architecture="aarch64", gpus=gpus, matrix=matrix(rows)))


def test_gpus_that_are_linked_to_each_other_have_each_other_as_targets() -> None:
    made = joined(["X NV6 NV6 NV6", "NV6 X NV6 NV6", "NV6 NV6 X NV6", "NV6 NV6 NV6 X"], 18)
    assert made.nvlinks[:3] == tuple(
        NvLink(gpu="0000:01:00.0", target=f"000{peer}:01:00.0", count=6, target_class="0x030200") for peer in (1, 2, 3)
    )
    assert made.numa[0].architecture == "arm64"


@pytest.mark.parametrize(
    ("name", "target"), [("NVIDIA A100 80GB PCIe", "0001:01:00.0"), ("NVIDIA H200", "fffffff:ff:ff.0")]
)
def test_two_gpus_are_bridged_when_they_sit_in_slots(name: str, target: str) -> None:
    assert joined(["X NV12", "NV12 X"], 12, name).nvlinks[0].target == target


def test_targets_that_the_driver_names_are_counted_and_inactive_links_are_not() -> None:
    switch = function("0000:c4:00.0", device_class="0x068000", vendor="0x10de")
    seen = (*links(4, "0000:c4:00.0"), *links(2, "0000:c5:00.0"), HostNvLink(link=9, active=False))
    gpu = HostGpu(index=0, bus_id="0000:01:00.0", nvlinks=seen)
    made = topology_of_hardware(Hardware(hostname="node", gpus=(gpu,), pci=(switch,)))
    assert [(each.target, each.count, each.target_class) for each in made.nvlinks] == [
        ("0000:c4:00.0", 4, "0x068000"),
        ("0000:c5:00.0", 2, "0x068000"),
    ]


def test_links_to_the_own_cpu_are_counted_with_the_rate_of_one() -> None:
    chip = tuple(HostNvLink(link=number, rate_Bps=44.712e9) for number in range(10))
    gpu = HostGpu(index=0, bus_id="0009:01:00.0", chip_links=(*chip, HostNvLink(link=10, rate_Bps=1.0, active=False)))
    made = topology_of_hardware(Hardware(hostname="node", gpus=(gpu,)))
    assert [(each.gpu, each.count, each.link_MBps) for each in made.chip_links] == [("0009:01:00.0", 10, 44712)]


def test_gpus_without_a_driver_are_found_on_the_bus() -> None:
    screen = function("0000:02:00.0", device_class="0x030000", vendor="0x1a03")
    amd = function("0000:0c:00.0", device_class="0x120000", vendor="0x1002")
    made = topology_of_hardware(
        Hardware(hostname="node", pci=(screen, amd, gpu_function("0000:0b:00.0"), nic_function("0000:0d:00.0")))
    )
    assert [(each.dev, each.bus_id) for each in made.gpus] == [(0, "0000:0b:00.0"), (1, "0000:0c:00.0")]


def test_a_host_without_sysfs_still_has_the_gpus_of_its_driver() -> None:
    gpu = HostGpu(index=0, bus_id="0000:0b:00.0", max_link_generation=4, max_link_width=16, numa=1)
    made = topology_of_hardware(Hardware(hostname="node", gpus=(gpu,)))
    assert [(each.bus_id, each.numa, each.link_speed, each.link_width) for each in made.devices] == [
        ("0000:0b:00.0", 1, GEN4, 16)
    ]


def test_a_tree_that_turns_in_a_circle_comes_to_an_end() -> None:
    made = topology_of_hardware(
        Hardware(
            hostname="node",
            pci=(gpu_function("0000:01:00.0", "0000:02:00.0"), function("0000:02:00.0", "0000:01:00.0")),
            gpus=(HostGpu(index=0, bus_id="0000:01:00.0"),),
        )
    )
    assert [each.bus_id for each in made.devices] == ["0000:01:00.0"]


def test_an_empty_host_is_a_node_without_devices() -> None:
    made = topology_of_hardware(Hardware(hostname="node"))
    assert (len(made.numa), made.devices, made.gpus, made.nets) == (1, (), (), ())
