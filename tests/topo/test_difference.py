"""Two topologies are compared by what NCCL would see of them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import structs

from busbw.facts.platforms import find_platform
from busbw.model.topology import Gpu, Net, NumaNode, NvLink, PciDevice, Topology
from busbw.topo.buses import real_family
from busbw.topo.comparison import compare, differences
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text, portable
from busbw.topo.origins.from_document import topologies_of
from busbw.topo.origins.from_platform import topology_of_platform

from .strategies import topologies

VENDOR_FILES = Path(__file__).parents[2] / ".." / "shared" / "facts" / "topo"


def source() -> Topology:
    """What a vendor's file says: two NUMA nodes, on each a switch with two GPUs and a NIC."""
    numa, devices = [], []
    for node in (0, 1):
        cpus = tuple(range(24 * node, 24 * node + 24))
        numa.append(NumaNode(id=node, cpus=cpus, architecture="x86_64", vendor="AuthenticAMD", family=23, model=49))
        switch = f"ffff:ff:0{node + 1}.0"
        devices.append(device(switch, None, node, "switch", "0x060400"))
        devices += [device(f"000{2 * node + place}:00:00.0", switch, node, "gpu", "0x030200") for place in (1, 2)]
        devices.append(device(f"010{node + 1}:00:00.0", switch, node, "nic", "0x020700"))
    gpus = tuple(Gpu(bus_id=each.bus_id) for each in devices if each.kind == "gpu")
    return Topology(numa=tuple(numa), devices=tuple(devices), gpus=gpus)


def device(bus_id: str, parent: str | None, numa: int, kind: str, device_class: str) -> PciDevice:
    return PciDevice(
        bus_id=bus_id,
        parent=parent,
        numa=numa,
        kind=kind,
        device_class=device_class,
        link_speed="16 GT/s",
        link_width=16,
    )


def dump() -> Topology:
    """What NCCL writes on a node where `source` is in use: turned round, with everything it found out."""
    topology = source()
    switches = [each for each in topology.devices if each.kind == "switch"]
    others = [
        structs.replace(each, vendor="0x15b3", device="0x1021", link_speed="16.0 GT/s PCIe", link_width=0)
        for each in topology.devices[::-1]
        if each.kind != "switch"
    ]
    gpus = [each for each in others if each.kind == "gpu"]
    return structs.replace(
        topology,
        name="node001",
        host_hash="0x1234",
        numa=tuple(structs.replace(node, family=143) for node in topology.numa[::-1]),
        devices=(*switches, *others),
        gpus=tuple(
            Gpu(bus_id=each.bus_id, dev=place, rank=place + 8, sm=80, gdr=True) for place, each in enumerate(gpus[::-1])
        ),
        nvlinks=tuple(
            NvLink(gpu=each.bus_id, target="fffffff:ffff:ff", count=12, target_class="0x068000") for each in gpus
        ),
        nets=tuple(
            Net(
                name=f"mlx5_{each.numa}",
                bus_id=each.bus_id,
                numa=each.numa,
                dev=each.numa,
                speed_Mbps=200_000,
                guid="0x1",
            )
            for each in others
            if each.kind == "nic"
        ),
    )


def changed(topology: Topology, bus_id: str, **values) -> Topology:
    return structs.replace(
        topology,
        devices=tuple(structs.replace(each, **values) if each.bus_id == bus_id else each for each in topology.devices),
    )


def without(topology: Topology, bus_id: str) -> Topology:
    return structs.replace(
        topology,
        devices=tuple(each for each in topology.devices if each.bus_id != bus_id),
        gpus=tuple(gpu for gpu in topology.gpus if gpu.bus_id != bus_id),
    )


def exchanged_masks(topology: Topology) -> Topology:
    one, other = topology.numa
    nodes = structs.replace(one, cpus=other.cpus), structs.replace(other, cpus=one.cpus)
    return structs.replace(topology, numa=nodes)


def exchanged_nodes(topology: Topology) -> Topology:
    devices = tuple(structs.replace(each, numa=1 - each.numa) for each in topology.devices)
    return structs.replace(topology, devices=devices)


def under_one_switch(topology: Topology) -> Topology:
    """The same devices, but GPU 0002 below a switch of its own below the other."""
    inner = device("ffff:ff:03.0", "ffff:ff:01.0", 0, "switch", "0x060400")
    first = changed(topology, "0002:00:00.0", parent=inner.bus_id)
    return structs.replace(first, devices=(first.devices[0], inner, *first.devices[1:]))


def test_a_dump_and_a_source_file_of_the_same_node_are_equal() -> None:
    comparison = compare(source(), dump(), ("source", "dump"))
    assert comparison.differences == ()
    left = {(each.group, each.what) for each in comparison.detected}
    assert {("GPUs", "number"), ("GPUs", "compute capability"), ("NVLinks", "to"), ("ports", "at")} <= left


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (exchanged_masks, {("CPU masks", "NUMA node 0", "24-47"), ("CPU masks", "NUMA node 1", "0-23")}),
        (exchanged_nodes, {("GPUs", "GPU 0001:00:00.0", "1"), ("NICs", "NIC 0102:00:00.0", "0")}),
        (lambda topology: without(topology, "0001:00:00.0"), {("GPUs", "GPU 0001:00:00.0", None)}),
        (lambda topology: without(topology, "0101:00:00.0"), {("NICs", "NIC 0101:00:00.0", None)}),
        (lambda topology: changed(topology, "0101:00:00.0", link_speed="8 GT/s"), {
            ("PCIe links", "NIC 0101:00:00.0", "8 GT/s (12.0 GB/s at x16)")}),
        (lambda topology: changed(topology, "0101:00:00.0", link_speed="16.0 GT/s"), {
            ("PCIe links", "NIC 0101:00:00.0", "16.0 GT/s (12.0 GB/s at x16)")}),
        (lambda topology: changed(topology, "0001:00:00.0", link_width=8), {("PCIe links", "GPU 0001:00:00.0", "8")}),
        (lambda topology: changed(topology, "ffff:ff:01.0", link_width=8), {
            ("PCIe links", "switch ffff:ff:01.0", "8")}),
        (lambda topology: changed(topology, "0101:00:00.0", parent=None), {
            ("ways", "GPU 0001:00:00.0 to NIC 0101:00:00.0", "PHB 24.0 GB/s")}),
        (under_one_switch, {("ways", "GPU 0001:00:00.0 to GPU 0002:00:00.0", "PXB 24.0 GB/s")}),
        (lambda topology: structs.replace(topology, numa=tuple(
            structs.replace(node, architecture="arm64", vendor=None) for node in topology.numa)), {
            ("processors", "NUMA node 0", "arm64")}),
        (lambda topology: structs.replace(topology, nvlinks=tuple(
            structs.replace(link, count=11) for link in topology.nvlinks)), {
            ("NVLinks", "GPU 0001:00:00.0", "switches x11")}),
        (lambda topology: structs.replace(topology, nvlinks=tuple(
            structs.replace(link, target=link.gpu, target_class="0x030200") for link in topology.nvlinks)), {
            ("NVLinks", "GPU 0001:00:00.0", "GPU 0001:00:00.0 x12")}),
        (lambda topology: structs.replace(topology, nets=tuple(
            structs.replace(net, speed_Mbps=-1) for net in topology.nets)), {("ports", "port mlx5_0", "10 Gb/s")}),
        (lambda topology: structs.replace(topology, gpus=tuple(
            structs.replace(gpu, sm=90) for gpu in topology.gpus)), {("GPUs", "GPU 0001:00:00.0", "9.0")}),
    ],
)  # fmt: skip
def test_what_nccl_would_see_differently_is_found(
    change: Callable[[Topology], Topology], found: set[tuple[str, str, str | None]]
) -> None:
    there = {(each.group, each.subject, each.second) for each in differences(dump(), change(dump()))}
    back = {(each.group, each.subject, each.first) for each in differences(change(dump()), dump())}
    assert found <= there
    assert found <= back


@pytest.mark.parametrize(
    "change",
    [
        lambda topology: structs.replace(topology, devices=topology.devices[::1], nets=topology.nets[::-1]),
        lambda topology: changed(topology, "0101:00:00.0", link_width=0),
        lambda topology: changed(topology, "0101:00:00.0", vendor="0x0000"),
        lambda topology: changed(topology, "0001:00:00.0", device_class="0x030000"),
        lambda topology: structs.replace(
            topology, numa=tuple(structs.replace(node, family=23) for node in topology.numa)
        ),
        lambda topology: structs.replace(topology, numa=(*topology.numa, NumaNode(id=7, cpus=(1, 2)))),
        lambda topology: structs.replace(topology, nvlinks=()),
        lambda topology: structs.replace(topology, nets=topology.nets[:1]),
        lambda topology: structs.replace(
            topology, gpus=tuple(structs.replace(gpu, rank=None) for gpu in topology.gpus), host_hash="0x5", name="x"
        ),
    ],
)
def test_what_nccl_would_not_see_is_no_difference(change: Callable[[Topology], Topology]) -> None:
    assert differences(dump(), change(dump())) == ()
    assert differences(change(dump()), dump()) == ()


def test_devices_without_a_class_are_what_the_other_side_says() -> None:
    bare = structs.replace(
        source(),
        gpus=(),
        devices=tuple(
            structs.replace(each, kind="other" if each.kind != "switch" else "switch", device_class=None)
            for each in source().devices
        ),
    )
    assert differences(bare, dump()) == ()
    assert differences(dump(), exchanged_nodes(bare)) != ()


def test_amds_families_are_read_as_nccl_wrote_them() -> None:
    assert [real_family("AuthenticAMD", family) for family in (143, 175, 191, 23, 25, 26, None)] == [
        23, 25, 26, 23, 25, 26, None,
    ]  # fmt: skip
    assert real_family("GenuineIntel", 143) == 143


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(topologies())
def test_a_topology_equals_itself_and_its_portable_part(topology: Topology) -> None:
    assert differences(topology, topology) == ()
    assert differences(topology, portable(topology)) == ()
    assert differences(portable(topology), topology) == ()


@pytest.mark.parametrize(
    ("name", "platform"),
    [
        ("azure-ndv5-topo.xml", "azure-nd-h100-v5"),
        ("azure-ndv5-topo.xml", "azure-nd-h200-v5"),
        ("azure-ndv4-topo.xml", "azure-ndv4"),
        ("azure-ndv4-topo.xml", "azure-ndm-a100-v4"),
        ("oci-topo-flattened.xml", "oci-bm-gpu4-8"),
        ("aws-p4d-24xl-topo.xml", "aws-p4d"),
        ("aws-p4de-24xl-topo.xml", "aws-p4de"),
    ],
)
def test_the_file_made_of_a_platform_agrees_with_its_vendors(name: str, platform: str) -> None:
    path = VENDOR_FILES / name
    if not path.is_file():
        pytest.skip(f"the vendor's file is not there: {path}")
    vendors = topologies_of(read_document(path.read_bytes(), name))[0]
    made = file_text(portable(topology_of_platform(find_platform(platform).platform)))
    own = topologies_of(read_document(made.encode(), platform))[0]
    comparison = compare(vendors, own, (name, platform))
    assert comparison.differences == ()
    assert comparison.detected == ()
    assert len(own.gpus) == len(vendors.gpus) == 8


def test_the_file_of_ndv2_differs_where_it_is_wrong() -> None:
    path = VENDOR_FILES / "azure-ndv2-topo.xml"
    if not path.is_file():
        pytest.skip(f"the vendor's file is not there: {path}")
    vendors = topologies_of(read_document(path.read_bytes(), path.name))[0]
    own = topology_of_platform(find_platform("azure-ndv2").platform)
    # V100 and ConnectX-5 are Gen3 parts there.
    assert {(each.group, each.what, each.second) for each in differences(vendors, own)} == {
        ("PCIe links", "speed", "8.0 GT/s PCIe (12.0 GB/s at x16)")
    }


def test_the_h100_file_of_oci_differs_where_it_is_wrong() -> None:
    path = VENDOR_FILES / "oci-H100-topology.xml"
    if not path.is_file():
        pytest.skip(f"the vendor's file is not there: {path}")
    vendors = topologies_of(read_document(path.read_bytes(), path.name))[0]
    own = topology_of_platform(find_platform("oci-bm-gpu-h100-8").platform)
    assert {(each.group, each.what, each.first) for each in differences(vendors, own)} == {
        ("PCIe links", "speed", "5.0 GT/s PCIe (6.00 GB/s at x16)"),
        ("ports", "rate", "180 Gb/s"),
    }
