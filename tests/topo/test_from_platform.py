"""A platform with a PCI map becomes a topology; one without says so."""

import pytest

from busbw.base.errors import InputError
from busbw.facts.platforms import find_platform
from busbw.model.platform import (
    Cpu,
    FabricKind,
    GpuKind,
    GpuPlace,
    Match,
    NicKind,
    NicPlace,
    NumaPlace,
    NvLinkKind,
    PcieKind,
    Platform,
    SwitchPlace,
)
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_document import topologies_of
from busbw.topo.origins.from_platform import topology_of_platform


def platform(**changes) -> Platform:
    """A node with two sockets, a switch on each, a GPU and a NIC below each switch."""
    fields = {
        "id": "two",
        "names": ("Two",),
        "provider": "test",
        "kind": "gpu",
        "match": Match(architecture="x86_64", gpu_devices=("10de:2330",)),
        "cpu": Cpu(vendor="AuthenticAMD", family=25, model_number=1),
        "gpu": GpuKind(count=2, sm=90),
        "nvlink": NvLinkKind(links_per_gpu=18, switched=True),
        "pcie": PcieKind(generation=5, width=16),
        "fabric": FabricKind(kind="InfiniBand"),
        "nic": NicKind(port_bps=400e9),
        "numa": (NumaPlace(id=0, cpus="0-47"), NumaPlace(id=1, cpus="48-95")),
        "switches": (SwitchPlace(bus_id="ffff:ff:01.0", numa=0), SwitchPlace(bus_id="FFFF:FF:02.0", numa=1)),
        "gpus": (
            GpuPlace(gpu=0, bus_id="0001:00:00.0", numa=0, parent="ffff:ff:01.0"),
            GpuPlace(gpu=1, bus_id="000A:00:00.0", numa=1, parent="ffff:ff:02.0"),
        ),
        "nics": (
            NicPlace(name="mlx5_ib0", bus_id="0101:00:00.0", numa=0, parent="ffff:ff:01.0"),
            NicPlace(name="mlx5_ib1", bus_id="0102:00:00.0", numa=1, parent="ffff:ff:02.0", rate_bps=200e9),
        ),
    }
    return Platform(**{**fields, **changes})


def test_devices_hang_below_their_switches_in_the_order_of_a_file() -> None:
    topology = topology_of_platform(platform())
    assert [(device.bus_id, device.parent, device.kind) for device in topology.devices] == [
        ("ffff:ff:01.0", None, "switch"),
        ("0001:00:00.0", "ffff:ff:01.0", "gpu"),
        ("0101:00:00.0", "ffff:ff:01.0", "nic"),
        ("ffff:ff:02.0", None, "switch"),
        ("000a:00:00.0", "ffff:ff:02.0", "gpu"),
        ("0102:00:00.0", "ffff:ff:02.0", "nic"),
    ]
    assert [(net.name, net.speed_Mbps) for net in topology.nets] == [("mlx5_ib0", 400_000), ("mlx5_ib1", 200_000)]
    assert {device.link_speed for device in topology.devices} == {"32.0 GT/s PCIe"}
    assert topology.devices[1].vendor == "0x10de"
    assert topology.devices[2].device_class == "0x020700"
    assert (topology.numa[1].cpus, topology.numa[1].family) == (tuple(range(48, 96)), 25)


def test_the_topology_of_a_platform_can_be_written_and_read() -> None:
    topology = topology_of_platform(platform())
    text = file_text(topology)
    assert topologies_of(read_document(text.encode(), "two.xml")) == (topology,)


def test_links_to_switches_nobody_published_lead_to_a_hidden_one() -> None:
    links = topology_of_platform(platform()).nvlinks
    assert [(link.target, link.count) for link in links] == [("fffffff:ffff:ff", 18)] * 2


def test_links_between_pairs_lead_to_each_other_gpu() -> None:
    links = topology_of_platform(platform(nvlink=NvLinkKind(links_per_gpu=6, links_per_pair=6, switched=False))).nvlinks
    assert [(link.gpu, link.target, link.count) for link in links] == [
        ("0001:00:00.0", "000a:00:00.0", 6),
        ("000a:00:00.0", "0001:00:00.0", 6),
    ]


def test_an_arm_cpu_has_nccls_name_and_no_vendor() -> None:
    topology = topology_of_platform(platform(match=Match(architecture="aarch64")))
    assert {(node.architecture, node.vendor, node.family) for node in topology.numa} == {("arm64", None, None)}


def test_a_link_of_its_own_goes_before_the_generation_and_what_a_vendor_wrote_comes_last() -> None:
    switches = (SwitchPlace(bus_id="ffff:ff:01.0", numa=0, link_GTps=5.0), platform().switches[1])
    topology = topology_of_platform(
        platform(pcie=PcieKind(generation=3, width=16, written_GTps=16.0), switches=switches)
    )
    assert topology.devices[0].link_speed == "5.0 GT/s PCIe"
    assert {device.link_speed for device in topology.devices[1:]} == {"8.0 GT/s PCIe"}
    written = topology_of_platform(platform(pcie=PcieKind(width=16, written_GTps=16.0)))
    assert {device.link_speed for device in written.devices} == {"16.0 GT/s PCIe"}


def test_a_port_without_a_name_is_known_and_not_written() -> None:
    topology = topology_of_platform(platform(nics=(NicPlace(bus_id="0101:00:00.0", numa=0),)))
    assert [(net.name, net.speed_Mbps) for net in topology.nets] == [("", 400_000)]
    assert "<net" not in file_text(topology)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"gpus": (), "nics": ()}, "no PCI map"),
        ({"gpus": (GpuPlace(gpu=0, numa=0),)}, "no PCI map"),
        ({"gpus": (GpuPlace(gpu=0, bus_id="0001:00:00.0", numa=0),)}, "1 of 2 GPUs"),
        ({"gpus": (GpuPlace(gpu=0, bus_id="0001:00:00.0"),), "gpu": GpuKind(count=1)}, "NUMA node of 0001:00:00.0"),
        ({"switches": ()}, "which is not described"),
    ],
)
def test_a_gap_in_the_map_is_an_error(changes: dict, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        topology_of_platform(platform(**changes))


def test_a_map_without_the_switches_that_gpus_share_with_their_nics_makes_no_file() -> None:
    with pytest.raises(InputError, match="which switches the GPUs of aws-p5 share with their NICs"):
        topology_of_platform(find_platform("aws-p5").platform)
