"""Ways through a node: NCCL's own tables, each type, and what holds for any node."""

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from busbw.model.topology import Gpu, Net, NvLink, Topology
from busbw.topo.paths.graph import NVSWITCHES, graph_of
from busbw.topo.paths.paths import RANK, bottleneck, direct_paths, nccl_paths, nearest_cpu

from .nodes import (
    GEN4,
    GEN5,
    four_gh200,
    four_h200,
    make_device,
    make_numa,
    shared_switches,
    two_sockets,
)

LOG = Path(__file__).parents[2].parent / "shared" / "facts" / "samples" / "allreduce_default_info.log"
ENTRY = re.compile(r"([A-Z]+/\S+) \((\d+)/([\d.]+)/([A-Z0-9]+)\)")


def nccl_name(name: str) -> str:
    """Return what NCCL 2.28's log calls a device of four_h200."""
    kind, _, rest = name.partition("/")
    if kind == "GPU":
        return f"GPU/0-{rest[8:10].lstrip('0')}0"
    return {"CPU": "CPU/0-ffffffffffffff", "NET": "NET/0-0", "NVS": "NVS/0-0"}[kind]


def test_the_ways_of_a_real_machine_are_those_in_nccls_log():
    if not LOG.exists():
        pytest.skip(f"no log of a real machine at {LOG}")
    lines = [line for line in LOG.read_text().splitlines() if re.search(r"NCCL INFO (GPU|NET)/\S+ :", line)]
    printed = {
        (re.search(r"INFO (\S+) :", line)[1], target): (int(hops), float(rate), kind)
        for line in lines
        for target, hops, rate, kind in ENTRY.findall(line.partition(":GPU")[2] and line.split(" :", 1)[1])
    }
    assert len(printed) == 34

    paths = nccl_paths(four_h200(), (2, 28, 9))
    ours = {
        (nccl_name(source), nccl_name(target)): (len(path.hops), round(path.bandwidth_Bps / 1e9 - 1e-9, 1), path.type)
        for source, ways in paths.items()
        for target, path in ways.items()
        if source.startswith(("GPU", "NET")) and (source, target[:3]) != ("NET/eth0", "NVS")
    }

    assert {key: ours[key] for key in printed} == printed


def test_a_gpu_and_the_nic_below_the_same_switch_are_pix():
    paths = direct_paths(two_sockets())
    path = paths["GPU/0001:00:00.0"]["NET/mlx5_0"]
    assert (path.type, path.bandwidth_Bps) == ("PIX", 48e9)
    assert [hop.target for hop in path.hops] == ["PCI/ffff:ff:01.0", "NIC/0101:00:00.0", "NET/mlx5_0"]


def test_a_nic_below_another_switch_is_phb_and_one_at_the_other_socket_is_sys():
    paths = direct_paths(two_sockets())["GPU/0001:00:00.0"]
    assert paths["NET/mlx5_1"].type == "PHB"
    assert (paths["NET/mlx5_4"].type, paths["NET/mlx5_4"].bandwidth_Bps) == ("SYS", 22e9)


def test_several_switches_on_the_way_are_pxb():
    paths = direct_paths(shared_switches())["GPU/0000:10:00.0"]
    assert paths["GPU/0000:11:00.0"].type == "PIX"
    assert paths["NET/mlx5_0"].type == "PXB"


def test_the_two_levels_of_a_broadcom_switch_are_one():
    plain = shared_switches()
    ids = {"vendor": "0x1000", "device": "0xc010", "subsystem_vendor": "0x1000"}
    marked = msgspec.structs.replace(
        plain,
        devices=tuple(
            msgspec.structs.replace(device, **ids, subsystem_device="0xa064") if device.kind == "switch" else device
            for device in plain.devices
        ),
    )
    paths = direct_paths(marked)
    assert "PCI/0000:02:00.0" not in paths
    assert paths["GPU/0000:10:00.0"]["NET/mlx5_0"].type == "PIX"
    assert len(paths["GPU/0000:10:00.0"]["NET/mlx5_0"].hops) == 3


def test_ports_of_one_card_share_its_link():
    graph = graph_of(shared_switches())
    assert "NIC/0000:20:00.1" not in graph.links
    assert [hop.target for hop in graph.links["NIC/0000:20:00.0"]] == [
        "NET/mlx5_0",
        "NET/mlx5_1",
        "PCI/0000:01:00.0",
    ]


def test_a_nic_without_a_port_stands_for_its_own():
    node = msgspec.structs.replace(two_sockets(), nets=())
    assert direct_paths(node)["GPU/0001:00:00.0"]["NIC/0101:00:00.0"].type == "PIX"


def test_every_switch_of_nvlink_is_one_device():
    node = two_sockets()
    links = tuple(
        NvLink(gpu=gpu.bus_id, target=f"0000:c{place}:00.0", count=3, target_class="0x068000")
        for gpu in node.gpus
        for place in range(6)
    )
    paths = direct_paths(msgspec.structs.replace(node, nvlinks=links))
    path = paths["GPU/0001:00:00.0"]["GPU/0002:00:00.0"]
    assert (path.type, len(path.hops), path.bandwidth_Bps) == ("NVL", 2, pytest.approx(370.8e9))
    assert NVSWITCHES in paths["GPU/0001:00:00.0"]


def chain_of_gpus(count: int) -> Topology:
    """Return GPUs at one CPU, each with an NVLink to the next only."""
    gpus = tuple(Gpu(bus_id=f"0000:0{place}:00.0", dev=place, sm=70) for place in range(count))
    pairs = [(gpus[place], gpus[place + 1]) for place in range(count - 1)]
    return Topology(
        numa=(make_numa(0),),
        devices=tuple(make_device(gpu.bus_id, "gpu", link_speed=GEN4) for gpu in gpus),
        gpus=gpus,
        nvlinks=tuple(
            NvLink(gpu=one.bus_id, target=other.bus_id, count=2, target_class="0x030200")
            for pair in pairs
            for one, other in (pair, pair[::-1])
        ),
    )


def test_two_nvlinks_past_another_gpu_are_nvb_and_three_are_none():
    paths = direct_paths(chain_of_gpus(4))["GPU/0000:00:00.0"]
    assert [paths[f"GPU/0000:0{place}:00.0"].type for place in range(4)] == ["LOC", "NVL", "NVB", "PHB"]
    assert paths["GPU/0000:02:00.0"].bandwidth_Bps == 40e9


def test_an_nvlink_that_only_one_side_lists_is_no_way():
    node = chain_of_gpus(2)
    one_sided = msgspec.structs.replace(node, nvlinks=node.nvlinks[:1])
    assert direct_paths(one_sided)["GPU/0000:00:00.0"]["GPU/0000:01:00.0"].type == "PHB"


def test_an_nvlink_to_an_absent_gpu_and_to_itself_is_left_out():
    node = chain_of_gpus(2)
    links = tuple(
        NvLink(gpu="0000:00:00.0", target=target, count=4, target_class="0x030200")
        for target in ("0000:99:00.0", "0000:00:00.0")
    )
    assert graph_of(msgspec.structs.replace(node, nvlinks=links)).links["GPU/0000:00:00.0"][0].kind == "PCI"


def test_a_module_reaches_its_cpu_over_c2c_and_its_nic_by_p2c():
    paths = direct_paths(four_gh200())
    assert paths["GPU/0009:01:00.0"]["CPU/0"].type == "C2C"
    assert paths["GPU/0009:01:00.0"]["CPU/0"].bandwidth_Bps == 450e9
    assert paths["GPU/0009:01:00.0"]["NET/cxi0"].type == "P2C"
    assert paths["GPU/0009:01:00.0"]["NET/cxi1"].type == "SYS"
    assert paths["GPU/0009:01:00.0"]["GPU/0019:01:00.0"].bandwidth_Bps == pytest.approx(123.6e9)


@pytest.mark.parametrize(("nccl", "kind"), [((2, 25, 1), "PHB"), ((2, 26, 5), "PHB"), ((2, 28, 9), "P2C")])
def test_older_releases_have_no_name_for_the_way_over_c2c_to_a_nic(nccl: tuple[int, int, int], kind: str) -> None:
    assert direct_paths(four_gh200(), nccl)["GPU/0009:01:00.0"]["NET/cxi0"].type == kind


def test_a_farther_nic_is_reached_past_its_own_gpu():
    paths = nccl_paths(two_sockets())
    path = paths["GPU/0001:00:00.0"]["NET/mlx5_4"]
    assert (path.type, path.bandwidth_Bps) == ("PXN", 48e9)
    assert [hop.target for hop in path.hops[:2]] == [NVSWITCHES, "GPU/0005:00:00.0"]
    # Receiving stays direct.
    assert paths["NET/mlx5_4"]["GPU/0001:00:00.0"].type == "SYS"


def test_without_nvlink_nothing_goes_past_another_gpu():
    assert nccl_paths(two_sockets(nvlinks=False))["GPU/0001:00:00.0"]["NET/mlx5_4"].type == "SYS"


def test_a_nic_that_cannot_reach_gpu_memory_is_behind_the_cpu():
    node = two_sockets(nvlinks=False)
    blind = msgspec.structs.replace(node, nets=tuple(msgspec.structs.replace(net, gdr=False) for net in node.nets))
    path = nccl_paths(blind)["GPU/0001:00:00.0"]["NET/mlx5_0"]
    assert (path.type, len(path.hops)) == ("PHB", 5)
    assert direct_paths(blind)["GPU/0001:00:00.0"]["NET/mlx5_0"].type == "PIX"


@pytest.mark.parametrize(("nccl", "kind"), [((2, 28, 9), "PIX"), ((2, 30, 4), "PIX"), ((2, 30, 7), "NVB")])
def test_the_wider_way_wins_until_the_better_type_does(nccl: tuple[int, int, int], kind: str) -> None:
    node = chain_of_gpus(3)
    switch = make_device("0000:ff:00.0", "switch", link_speed=GEN4)
    below = tuple(msgspec.structs.replace(device, parent=switch.bus_id) for device in node.devices)
    single = tuple(msgspec.structs.replace(link, count=1) for link in node.nvlinks)
    switched = msgspec.structs.replace(node, devices=(switch, *below), nvlinks=single)
    assert direct_paths(switched, nccl)["GPU/0000:00:00.0"]["GPU/0000:02:00.0"].type == kind


def narrow_gpu_between() -> Topology:
    """Return a GPU with a narrow link to its CPU, an NVLink to a wide one there and one to a GPU at another CPU."""
    node = chain_of_gpus(3)
    widths, numas = (16, 4, 1), (0, 0, 1)
    devices = tuple(
        msgspec.structs.replace(device, link_width=width, numa=numa)
        for device, width, numa in zip(node.devices, widths, numas, strict=True)
    )
    return msgspec.structs.replace(node, devices=devices, numa=(make_numa(0), make_numa(1)))


def test_a_gpu_that_takes_a_wider_way_past_another_passes_nothing_on() -> None:
    older, newest = (direct_paths(narrow_gpu_between(), nccl) for nccl in ((2, 28, 9), (2, 30, 7)))

    between, far = "GPU/0000:01:00.0", "GPU/0000:02:00.0"
    assert [hop.target for hop in older[between]["CPU/0"].hops] == ["CPU/0"]
    assert [hop.target for hop in newest[between]["CPU/0"].hops] == ["GPU/0000:00:00.0", "CPU/0"]
    assert [hop.target for hop in older[far]["CPU/0"].hops] == [between, "CPU/0"]
    assert [hop.target for hop in newest[far]["CPU/0"].hops] == ["CPU/1", "CPU/0"]
    assert (older[far]["CPU/0"].type, newest[far]["CPU/0"].type) == ("PHB", "SYS")


def test_the_bottleneck_is_the_narrowest_link():
    path = direct_paths(two_sockets())["GPU/0001:00:00.0"]["NET/mlx5_4"]
    hop = bottleneck(path)
    assert hop is not None
    assert (hop.kind, hop.source, hop.target) == ("SYS", "CPU/0", "CPU/1")


def test_the_nearest_cpu_is_the_gpus_own():
    paths = direct_paths(four_gh200())
    assert [nearest_cpu(paths, f"GPU/00{place}9:01:00.0") for place in range(4)] == [f"CPU/{n}" for n in range(4)]


def test_a_port_without_a_speed_counts_as_ten_gigabit():
    node = Topology(numa=(make_numa(0),), nets=(Net(name="a", bus_id=None, numa=0, speed_Mbps=-1),))
    assert direct_paths(node)["NET/a"]["CPU/0"].bandwidth_Bps == 1.25e9


def test_ports_of_the_same_name_are_told_apart():
    nets = tuple(Net(name="mlx5_0", bus_id=None, numa=0) for _ in range(2))
    assert graph_of(Topology(numa=(make_numa(0),), nets=nets)).ports == ("NET/mlx5_0", "NET/mlx5_0#2")


def test_devices_below_a_nic_are_not_in_the_graph():
    devices = (make_device("0000:01:00.0", "nic"), make_device("0000:02:00.0", "gpu", parent="0000:01:00.0"))
    node = Topology(numa=(make_numa(0),), devices=devices, gpus=(Gpu(bus_id="0000:02:00.0"),))
    assert graph_of(node).gpus == ()


@st.composite
def nodes(draw: st.DrawFn) -> Topology:
    """Any node: up to three CPUs, trees of switches, GPUs and NICs below them, NVLinks between any."""
    # One kind of GPU: NCCL counts a link that is wider one way than the other at the rate of the wrong way.
    cpus, sm = draw(st.integers(1, 3)), draw(st.sampled_from([70, 80, 90]))
    devices, gpus, nets = [], [], []
    for place in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["gpu", "nic", "switch"]))
        switches = [device for device in devices if device.kind == "switch"]
        above = draw(st.sampled_from([None, *switches]))
        numa = above.numa if above is not None else draw(st.integers(0, cpus - 1))
        speed, width = draw(st.sampled_from([GEN4, GEN5])), draw(st.sampled_from([0, 1, 4, 16]))
        parent = above.bus_id if above is not None else None
        device = make_device(
            f"0000:{place:02x}:00.0", kind, numa=numa, parent=parent, link_speed=speed, link_width=width
        )
        devices.append(device)
        if kind == "gpu":
            gpus.append(Gpu(bus_id=device.bus_id, sm=sm))
        if kind == "nic" and draw(st.booleans()):
            nets.append(
                Net(name=f"n{place}", bus_id=device.bus_id, numa=numa, speed_Mbps=draw(st.integers(1, 800_000)))
            )
    links = []
    for one in gpus:
        for other in gpus:
            if one.bus_id < other.bus_id and draw(st.integers(0, 3)) == 0:
                ends = ((one, other), (other, one))
                links += [NvLink(gpu=a.bus_id, target=b.bus_id, count=2, target_class="0x030200") for a, b in ends]
    return Topology(
        numa=tuple(make_numa(number) for number in range(cpus)),
        devices=tuple(devices),
        gpus=tuple(gpus),
        nets=tuple(nets),
        nvlinks=tuple(links),
    )


VERSIONS = st.sampled_from([(2, 18, 6), (2, 28, 9), (2, 30, 7)])


@settings(max_examples=150, deadline=None)
@given(node=nodes(), nccl=VERSIONS)
def test_a_way_is_a_chain_of_links_no_narrower_than_it(node: Topology, nccl: tuple[int, int, int]) -> None:
    for paths in (direct_paths(node, nccl), nccl_paths(node, nccl)):
        for source, ways in paths.items():
            for target, path in ways.items():
                stations = [source, *(hop.target for hop in path.hops)]
                assert stations[-1] == target
                assert [hop.source for hop in path.hops] == stations[:-1]
                assert all(hop.bandwidth_Bps >= path.bandwidth_Bps for hop in path.hops)
                assert (path.type == "LOC") == (not path.hops) or source.startswith(("NET", "NIC"))


@settings(max_examples=150, deadline=None)
@given(node=nodes(), nccl=VERSIONS)
def test_every_device_reaches_every_gpu_and_itself_at_once(node: Topology, nccl: tuple[int, int, int]) -> None:
    paths = direct_paths(node, nccl)
    for gpu in (f"GPU/{gpu.bus_id}" for gpu in node.gpus):
        assert paths[gpu][gpu].type == "LOC"
        assert not paths[gpu][gpu].hops
        assert all(gpu in ways for ways in paths.values())


@settings(max_examples=150, deadline=None)
@given(node=nodes())
def test_the_way_back_between_gpus_is_of_the_same_type(node: Topology) -> None:
    paths = direct_paths(node, (2, 30, 7))
    for one in node.gpus:
        for other in node.gpus:
            there = paths[f"GPU/{one.bus_id}"][f"GPU/{other.bus_id}"]
            back = paths[f"GPU/{other.bus_id}"][f"GPU/{one.bus_id}"]
            assert there.type == back.type


@settings(max_examples=100, deadline=None)
@given(node=nodes())
@example(node=narrow_gpu_between())
def test_a_better_type_is_lost_only_past_a_gpu_that_no_longer_passes_it_on(node: Topology) -> None:
    newest, older = direct_paths(node, (2, 30, 7)), direct_paths(node, (2, 28, 9))
    for source, ways in newest.items():
        for target, path in ways.items():
            before = older[source][target]
            if RANK[path.type] > RANK[before.type]:
                # A GPU passes on only what it reaches over one link, and it now prefers a wider way of the same type.
                between, last = before.hops
                assert (between.kind, between.target[:4], last.target) == ("NVL", "GPU/", target)
                assert len(newest[between.target][target].hops) > 1


def gh200_with_a_slow_port() -> Topology:
    """Return four Grace Hopper modules of which the first has a second, slower NIC at its CPU."""
    node = four_gh200()
    card = make_device("0002:01:00.0", "nic", numa=0, link_speed=GEN5)
    net = Net(name="slow0", bus_id=card.bus_id, numa=0, dev=4, speed_Mbps=100_000)
    return msgspec.structs.replace(node, devices=(*node.devices, card), nets=(*node.nets, net))


@pytest.mark.parametrize(("nccl", "kind"), [((2, 28, 9), "P2C"), ((2, 29, 2), "PHB"), ((2, 30, 7), "PHB")])
def test_since_2_29_2_only_the_widest_port_is_reached_by_p2c(nccl, kind):
    ways = direct_paths(gh200_with_a_slow_port(), nccl)["GPU/0009:01:00.0"]
    assert ways["NET/slow0"].type == kind
    assert ways["NET/cxi0"].type == "P2C"


@pytest.mark.parametrize(("nccl", "kind"), [((2, 29, 7), "PXN"), ((2, 30, 3), "SYS"), ((2, 30, 7), "SYS")])
def test_since_2_30_3_a_relay_needs_gpudirect(nccl, kind):
    node = two_sockets()
    blind = msgspec.structs.replace(node.gpus[7], gdr=False)
    node = msgspec.structs.replace(node, gpus=(*node.gpus[:7], blind))
    assert nccl_paths(node, nccl)["GPU/0001:00:00.0"]["NET/mlx5_7"].type == kind
    # Its neighbour can, and is one.
    assert nccl_paths(node, nccl)["GPU/0001:00:00.0"]["NET/mlx5_6"].type == "PXN"


@pytest.mark.parametrize(("nccl", "kind"), [((2, 30, 4), "PIX"), ((2, 30, 7), "PHB")])
def test_since_2_30_7_a_part_of_a_gpu_does_no_gpudirect(nccl, kind):
    node = two_sockets(nvlinks=False)
    part = msgspec.structs.replace(node.gpus[0], mlopart=0)
    whole = msgspec.structs.replace(node.gpus[1], mlopart=-1)
    paths = nccl_paths(msgspec.structs.replace(node, gpus=(part, whole, *node.gpus[2:])), nccl)
    assert paths["GPU/0001:00:00.0"]["NET/mlx5_0"].type == kind
    assert paths["GPU/0002:00:00.0"]["NET/mlx5_1"].type == "PIX"


@pytest.mark.parametrize("nccl", [(2, 28, 9), (2, 29, 7), (2, 30, 7)])
def test_where_a_gpu_cannot_relay_the_next_one_of_its_switch_does(nccl):
    # As NCCL's own graph code has it: once the way of the first is led through its CPU, it is no longer the NIC's own.
    node = two_sockets()
    left_out = {"ffff:ff:02.0", "0102:00:00.0"}
    devices = tuple(
        msgspec.structs.replace(device, parent="ffff:ff:01.0") if device.bus_id == "0002:00:00.0" else device
        for device in node.devices
        if device.bus_id not in left_out
    )
    blind = msgspec.structs.replace(node.gpus[0], gdr=False)
    nets = tuple(net for net in node.nets if net.bus_id not in left_out)
    node = msgspec.structs.replace(node, devices=devices, gpus=(blind, *node.gpus[1:]), nets=nets)
    paths = nccl_paths(node, nccl)
    path = paths["GPU/0005:00:00.0"]["NET/mlx5_0"]
    assert path.type == "PXN"
    assert "GPU/0002:00:00.0" in {hop.target for hop in path.hops}
    assert paths["GPU/0001:00:00.0"]["NET/mlx5_0"].type == "PHB"


@pytest.mark.parametrize(("nccl", "own"), [((2, 30, 4), "CPU/0"), ((2, 30, 7), "CPU/0")])
def test_a_gpu_of_a_switch_has_the_cpu_above_it(nccl, own):
    assert nearest_cpu(direct_paths(two_sockets(), nccl), "GPU/0001:00:00.0", nccl) == own
