"""Where GPUs and ports sit, which are near each other, and the words of nvidia-smi for the ways between them."""

import msgspec
import pytest

from busbw.base.errors import InputError
from busbw.model.topology import Gpu, Net, Topology
from busbw.topo.paths.graph import MOST_DEVICES
from busbw.topo.paths.matrix import path_matrix
from busbw.topo.paths.paths import direct_paths, nearest_ports, port_gpus, port_spots, sending_ports
from busbw.topo.paths.view import view_of

from .nodes import four_gh200, four_h200, make_device, make_numa, shared_switches, two_sockets


def test_each_gpu_sits_on_its_numa_node_beside_its_nic():
    spots = view_of(two_sockets()).gpus
    assert [spot.numa for spot in spots] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [spot.ports for spot in spots] == [(f"mlx5_{place}",) for place in range(8)]
    assert {spot.path for spot in spots} == {"PIX"}
    assert spots[4].cpus == tuple(range(48, 96))


def test_each_port_sits_on_its_numa_node():
    spots = port_spots(two_sockets())
    assert [(spot.name, spot.numa, spot.rate_Bps) for spot in spots][:2] == [("mlx5_0", 0, 50e9), ("mlx5_1", 0, 50e9)]
    assert spots[7].cpus == tuple(range(48, 96))


def test_gpus_that_share_their_ports_say_so():
    spots = view_of(shared_switches()).gpus
    assert [spot.ports for spot in spots] == [("mlx5_0", "mlx5_1")] * 2 + [("mlx5_2", "mlx5_3")] * 2
    assert [spot.sharers for spot in spots] == [2, 2, 2, 2]
    assert {spot.path for spot in spots} == {"PXB"}


def test_a_faster_port_farther_away_is_not_the_nearest():
    node = two_sockets(nvlinks=False, gpus_each=1, port_Mbps=100_000)
    slow = msgspec.structs.replace(node.nets[0], speed_Mbps=10_000)
    mixed = msgspec.structs.replace(node, nets=(slow, node.nets[1]))
    paths = direct_paths(mixed)
    assert nearest_ports(paths, "GPU/0001:00:00.0") == ("NET/mlx5_0",)
    # NCCL takes width before nearness.
    assert sending_ports(paths, mixed)["GPU/0001:00:00.0"] == ("NET/mlx5_1",)


@pytest.mark.parametrize(("port_Mbps", "words"), [(100_000, "port"), (400_000, "GPU's PCIe link")])
def test_the_narrowest_link_on_the_way_is_named(port_Mbps: int, words: str) -> None:
    assert view_of(two_sockets(port_Mbps=port_Mbps)).gpus[0].bottleneck == words


def test_a_narrow_uplink_of_a_switch_and_the_link_between_sockets_are_named():
    node = shared_switches()
    slow = [
        msgspec.structs.replace(device, link_width=1) if device.bus_id.endswith(":02:00.0") else device
        for device in node.devices
    ]
    narrow = msgspec.structs.replace(node, devices=tuple(slow))
    assert view_of(narrow).gpus[0].bottleneck == "switch 0000:02:00.0"
    far = msgspec.structs.replace(two_sockets(nvlinks=False), nets=two_sockets().nets[4:])
    bare = msgspec.structs.replace(far, devices=tuple(d for d in far.devices if d.kind != "nic" or d.numa == 1))
    assert view_of(bare).gpus[0].bottleneck == "NUMA 0 to 1"


def test_a_gpu_without_any_port_has_no_nearest():
    node = msgspec.structs.replace(four_h200(), nets=())
    assert view_of(node).gpus[0].ports == ()
    assert view_of(node).gpus[0].path is None


def test_gpus_are_numbered_by_dev_only_where_all_have_one():
    node = two_sockets()
    turned = tuple(msgspec.structs.replace(gpu, dev=7 - place) for place, gpu in enumerate(node.gpus))
    assert [spot.number for spot in view_of(msgspec.structs.replace(node, gpus=turned)).gpus] == [
        7,
        6,
        5,
        4,
        3,
        2,
        1,
        0,
    ]
    partly = (msgspec.structs.replace(node.gpus[0], dev=None), *node.gpus[1:])
    assert [spot.number for spot in view_of(msgspec.structs.replace(node, gpus=partly)).gpus] == list(range(8))


def test_two_gpus_of_a_switch_take_its_two_ports_in_turns():
    node = shared_switches()
    sending = sending_ports(direct_paths(node), node)
    assert sending["GPU/0000:10:00.0"] == ("NET/mlx5_0",)
    assert sending["GPU/0000:11:00.0"] == ("NET/mlx5_1",)


def test_every_port_has_the_gpu_that_uses_it_first():
    node = two_sockets()
    local = port_gpus(direct_paths(node), node)
    assert local["NET/mlx5_4"] == "GPU/0005:00:00.0"
    assert len(local) == 8


def test_a_node_that_is_larger_than_any_is_refused():
    gpus = tuple(Gpu(bus_id=f"{place:04x}:00:00.0") for place in range(MOST_DEVICES + 1))
    node = Topology(numa=(make_numa(0),), devices=tuple(make_device(gpu.bus_id, "gpu") for gpu in gpus), gpus=gpus)
    with pytest.raises(InputError, match="more than one node can have"):
        view_of(node)


def cells(node: Topology) -> dict[str, tuple[str, ...]]:
    return {row.name: row.cells for row in path_matrix(node).rows}


def test_the_matrix_counts_nvlinks_through_switches_and_between_gpus():
    assert cells(two_sockets())["GPU0"][:3] == ("X", "NV18", "NV18")
    assert cells(four_gh200())["GPU0"][:4] == ("X", "NV6", "NV6", "NV6")


def test_the_matrix_tells_switches_host_bridges_and_sockets_apart():
    flat = msgspec.structs.replace(four_h200(), nvlinks=())
    assert cells(flat)["GPU0"] == ("X", "PHB", "PHB", "PHB")
    assert cells(two_sockets(nvlinks=False))["GPU0"] == (
        *("X", "NODE", "NODE", "NODE", "SYS", "SYS", "SYS", "SYS"),
        *("PIX", "NODE", "NODE", "NODE", "SYS", "SYS", "SYS", "SYS"),
    )
    assert cells(shared_switches())["GPU0"] == ("X", "PIX", "SYS", "SYS", "PXB", "PXB", "SYS", "SYS")


def test_ports_of_one_card_are_pix():
    assert cells(shared_switches())["NIC0"][4:6] == ("X", "PIX")


def test_the_matrix_holds_nccls_words_beside():
    row = path_matrix(two_sockets()).rows[0]
    assert row.nccl[8:10] == ("PIX", "PXN")
    assert row.cells[8:10] == ("PIX", "NODE")


def test_the_matrix_says_whose_memory_and_cpus_are_near():
    rows = path_matrix(two_sockets()).rows
    assert (rows[0].numa, rows[0].cpus) == (0, tuple(range(48)))
    assert (rows[8].numa, rows[8].cpus) == (None, None)
    assert path_matrix(four_h200()).rows[0].numa is None


def test_the_legend_names_the_ports():
    assert path_matrix(two_sockets()).legend[0] == ("NIC0", "mlx5_0")
    bare = msgspec.structs.replace(two_sockets(), nets=())
    assert path_matrix(bare).legend[0] == ("NIC0", "0101:00:00.0")
    assert path_matrix(bare).rows[8].nccl[0] == "PIX"


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (two_sockets(nvlinks=False), "no NVLinks are listed"),
        (msgspec.structs.replace(two_sockets(), nets=()), "on the NICs that are"),
        (
            msgspec.structs.replace(
                two_sockets(), gpus=tuple(msgspec.structs.replace(gpu, sm=None) for gpu in two_sockets().gpus)
            ),
            "compute capability",
        ),
        (Topology(devices=(make_device("0000:00:16.0", "other"),)), "without a class"),
        (
            msgspec.structs.replace(
                two_sockets(), nets=tuple(msgspec.structs.replace(net, speed_Mbps=None) for net in two_sockets().nets)
            ),
            "no speed is given of mlx5_0",
        ),
    ],
)
def test_what_a_topology_leaves_open_is_said(node: Topology, words: str) -> None:
    assert any(words in note for note in view_of(node).notes)


def test_a_complete_topology_has_no_notes_but_its_readers():
    assert view_of(two_sockets(), ("first of two hosts",)).notes == ("first of two hosts",)


def test_ports_without_a_name_are_called_as_their_card():
    nets = tuple(Net(name="", bus_id="0101:00:00.0", numa=0) for _ in range(2))
    node = msgspec.structs.replace(two_sockets(gpus_each=1), nets=nets)
    assert [spot.name for spot in port_spots(node)] == ["0101:00:00.0", "0101:00:00.0#2", "0102:00:00.0"]
    assert view_of(node).gpus[0].ports == ("0101:00:00.0", "0101:00:00.0#2")


def test_a_port_without_a_pci_device_has_no_row_in_the_matrix():
    # As in nvidia-smi's: a host may have a hundred such interfaces.
    assert [row.name for row in path_matrix(four_h200()).rows] == ["GPU0", "GPU1", "GPU2", "GPU3"]
