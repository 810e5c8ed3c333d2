"""What NCCL plans, held against what NCCL's own graph code printed for 220 made-up nodes and the platforms with a map.

`nccl_plans.json` holds the nodes in short, and per release what was printed: channels, GB/s of one and the worst type
of path of ring, tree and NVLS; and the paths, a row for each GPU (to all GPUs, then to all ports) and for each port.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from busbw.api.machine import limit_of_host, limit_of_platform
from busbw.machine.named import named_topology, node_view
from busbw.model.limit import ChannelPlan
from busbw.model.topology import ChipLink, Gpu, Net, NumaNode, NvLink, PciDevice, Topology
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_document import topologies_of
from busbw.topo.paths.ceilings import ring_ceilings
from busbw.topo.paths.graph import graph_of
from busbw.topo.paths.paths import nccl_paths
from busbw.topo.search import channels
from busbw.topo.search.channels import planned

from .nodes import HIDDEN_SWITCH, four_gh200, four_h200, shared_switches
from .strategies import topologies

_PRINTED = json.loads((Path(__file__).parent / "nccl_plans.json").read_text())
# Parts of the nodes that are looked at together.
_PARTS = 12
_RELEASES = 3
_CPUS = {
    "bdw": ("x86_64", "GenuineIntel", 6, 79),
    "skx": ("x86_64", "GenuineIntel", 6, 85),
    "spr": ("x86_64", "GenuineIntel", 6, 143),
    "emr": ("x86_64", "GenuineIntel", 6, 207),
    "zen3": ("x86_64", "AuthenticAMD", 175, 1),
    "zen4": ("x86_64", "AuthenticAMD", 175, 17),
    "zen5": ("x86_64", "AuthenticAMD", 26, 2),
    "arm": ("arm64", None, None, None),
    "ppc": ("ppc64", None, None, None),
    "unknown": ("x86_64", "Other", 6, 1),
}
_SPEEDS = {3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}
_CLASSES = {"gpu": "0x030200", "nic": "0x020700", "switch": "0x060400"}


def node_of(short: dict[str, Any]) -> Topology:
    """Return the topology of a node in short: devices are [NUMA node, switch or -1, generation, lanes, ...]."""
    switches = [f"0000:{0x80 + place:02x}:00.0" for place in range(len(short["switches"]))]
    gpus = [f"0000:{0x10 + place:02x}:00.0" for place in range(len(short["gpus"]))]
    nics = [f"0000:{0x40 + place:02x}:00.0" for place in range(len(short["nics"]))]

    def device(bus_id: str, kind: Any, place: list[int]) -> PciDevice:
        numa, switch, generation, lanes = place[:4]
        return PciDevice(
            bus_id=bus_id,
            kind=kind,
            parent=switches[switch] if switch >= 0 else None,
            numa=numa,
            device_class=_CLASSES[kind],
            link_speed=_SPEEDS[generation],
            link_width=lanes,
        )

    numa = []
    for number, name in enumerate(short["numa"]):
        architecture, vendor, family, model = _CPUS[name]
        numa.append(NumaNode(id=number, architecture=architecture, vendor=vendor, family=family, model=model))
    return Topology(
        numa=tuple(numa),
        devices=(
            *(device(bus_id, "switch", place) for bus_id, place in zip(switches, short["switches"], strict=True)),
            *(device(bus_id, "gpu", place) for bus_id, place in zip(gpus, short["gpus"], strict=True)),
            *(device(bus_id, "nic", place) for bus_id, place in zip(nics, short["nics"], strict=True)),
        ),
        gpus=tuple(
            Gpu(bus_id=bus_id, dev=number, rank=number, sm=short["sm"], gdr=short.get("no_gdr") != number)
            for number, bus_id in enumerate(gpus)
        ),
        nvlinks=tuple(_links(short["links"], gpus)),
        chip_links=tuple(
            ChipLink(gpu=bus_id, count=short["c2c"][0], link_MBps=short["c2c"][1])
            for bus_id in (gpus if "c2c" in short else ())
        ),
        nets=tuple(
            Net(name=f"mlx5_{number}", bus_id=bus_id, numa=place[0], dev=number, speed_Mbps=place[4], port=1, gdr=True)
            for number, (bus_id, place) in enumerate(zip(nics, short["nics"], strict=True))
        ),
    )


def _links(links: list[Any], gpus: list[str]) -> Iterator[NvLink]:
    if links and links[0] == "switched":
        yield from (
            NvLink(gpu=bus_id, target=HIDDEN_SWITCH, count=links[1], target_class="0x068000") for bus_id in gpus
        )
        return
    for one, other, count in links:
        yield NvLink(gpu=gpus[one], target=gpus[other], count=count, target_class="0x030200")


def release_of(text: str) -> tuple[int, int, int]:
    major, minor, patch = text.split(".")
    return int(major), int(minor), int(patch)


def in_short(plans: tuple[ChannelPlan, ...]) -> dict[str, list[Any]]:
    return {each.algorithm: [each.channels, each.channel_Bps / 1e9, each.type] for each in plans}


def cases(part: int) -> Iterator[tuple[int, Topology, str, dict[str, Any]]]:
    """Yield nodes with what a release printed: all releases where they differ, in turns where they agree."""
    for number, known in enumerate(_PRINTED["nodes"]):
        if number % _PARTS != part:
            continue
        for group in known["nccl"]:
            agree = len(group["releases"]) == _RELEASES
            for release in [group["releases"][number % _RELEASES]] if agree else group["releases"]:
                if "fails" not in group["printed"] and len(known["node"]["gpus"]) > 1:
                    yield number, as_read(node_of(known["node"])), release, group["printed"]


def as_read(node: Topology) -> Topology:
    """Return what the file of a node says: NCCL read that one, and its order decides among equals."""
    return topologies_of(read_document(file_text(node).encode(), "node"))[0]


@pytest.mark.parametrize("part", range(_PARTS))
def test_every_plan_is_what_nccl_printed(part: int) -> None:
    for number, node, release, printed in cases(part):
        plans = planned(node, release_of(release)).plans
        assert in_short(plans) == {name: printed[name] for name in printed if name != "paths"}, (number, release)


@pytest.mark.parametrize("part", range(_PARTS))
def test_no_bound_from_the_links_is_below_what_nccl_plans(part: int) -> None:
    for number, node, release, printed in cases(part):
        count = len(node.gpus)
        factors = {"ring": 1.0, "tree": (count - 1) / count}
        for ceiling in ring_ceilings(node, release_of(release)):
            channels, speed, _type = printed[ceiling.algorithm]
            busbw = channels * speed * factors[ceiling.algorithm]
            # Where NCCL finds no channel it lays one of 0.1 GB/s without asking what links carry.
            assert ceiling.busbw_Bps / 1e9 >= busbw * 0.9999, (number, release, ceiling)


def test_what_nccl_takes_for_a_rate_is_its_channels_and_of_a_tree_less_the_own_part() -> None:
    ring, tree, nvls = planned(four_h200()).plans
    assert (ring.channels, ring.channel_Bps, ring.type, ring.alike) == (12, 30e9, "NVL", True)
    assert ring.busbw_Bps == 360e9
    assert tree.busbw_Bps == 270e9
    assert (nvls.channels, nvls.channel_Bps, nvls.busbw_Bps) == (4, 60e9, None)


@pytest.mark.parametrize("part", range(_PARTS))
def test_types_and_rates_of_all_paths_are_what_nccl_printed(part: int) -> None:
    for number, node, release, printed in cases(part):
        found = nccl_paths(node, release_of(release))
        gpus = [f"GPU/{gpu.bus_id}" for gpu in node.gpus]
        ports = [f"NET/mlx5_{port}" for port in range(len(node.nets))]
        kinds = printed["paths"]["kinds"]
        starts = [(gpu, [*gpus, *ports]) for gpu in gpus] + [(port, gpus) for port in ports]
        for (start, ends), row in zip(starts, printed["paths"]["rows"], strict=True):
            for end, letter in zip(ends, row, strict=True):
                if letter == ".":
                    continue
                type_, rate = kinds[letter].split()
                path = found[start][end]
                assert (path.type, path.bandwidth_Bps / 1e9) == (type_, pytest.approx(float(rate), abs=0.051)), (
                    number,
                    release,
                    start,
                    end,
                )


@pytest.mark.parametrize("name", sorted(_PRINTED["platforms"]))
def test_a_platforms_plan_is_what_nccl_printed_for_its_map(name: str) -> None:
    found = planned(named_topology(name).topology)
    assert in_short(found.plans) == _PRINTED["platforms"][name]


def test_limit_and_show_say_the_same_plan_of_a_platform_and_of_a_host() -> None:
    limit = limit_of_platform("azure-nc-a100-v4", collective="all_reduce")
    view = node_view("azure-nc-a100-v4")
    assert (limit.plans, limit.planned_by) == (view.plans, view.release)
    # Across AMD's CPUs NCCL lays channels of one order alone: all go from NUMA node 1 to 2, over 16 GB/s.
    assert [plan.busbw_Bps for plan in limit.plans] == [16e9, 12e9]
    host = Path(__file__).parents[1] / "hosts" / "vm-h100-x4" / "host.tar.gz"
    assert limit_of_host(host).plans == node_view(str(host)).plans != ()


def test_some_of_the_gpus_and_several_nodes_have_no_plan() -> None:
    assert limit_of_platform("azure-nd-h100-v5", gpus=4).plans == ()
    several = limit_of_platform("azure-nd-h100-v5", nodes=2)
    assert (several.plans, several.planned_by) == ((), None)


def test_a_size_with_fewer_gpus_has_not_the_plan_of_the_whole() -> None:
    assert limit_of_platform("Standard_NC48ads_A100_v4").plans == ()


def test_a_search_that_would_take_too_long_is_given_up_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    hard, easy = (node_of(_PRINTED["nodes"][number]["node"]) for number in (127, 4))
    assert planned(hard).plans
    monkeypatch.setattr(channels, "MOST_STEPS", 10_000)
    found = planned(hard)
    assert found.plans == ()
    assert found.gap == "the search for it takes longer than it may here"
    assert planned(easy).plans


def test_gpus_of_no_known_kind_have_no_plan() -> None:
    node = four_gh200()
    unknown = msgspec.structs.replace(node, gpus=tuple(msgspec.structs.replace(gpu, sm=None) for gpu in node.gpus))
    assert "compute capability" in (planned(unknown).gap or "")
    assert planned(node).gap is None


def test_releases_before_the_first_that_is_known_have_no_plan() -> None:
    assert planned(four_h200(), (2, 24, 3)).gap == "the search of releases before 2.25.1 is not known"
    assert planned(four_h200(), (2, 25, 1)).plans


def test_amds_gpus_and_shared_gpus_have_no_plan() -> None:
    node = shared_switches()
    amds = tuple(msgspec.structs.replace(gpu, gcn="gfx942") for gpu in node.gpus)
    assert planned(msgspec.structs.replace(node, gpus=amds)).gap == "RCCL has a search of its own"
    h200 = four_h200()
    parts = msgspec.structs.replace(h200, gpus=(*h200.gpus, h200.gpus[0]))
    assert "share a GPU" in (planned(parts).gap or "")


def test_under_two_gpus_there_is_nothing_to_plan() -> None:
    node = four_h200()
    one = msgspec.structs.replace(node, gpus=node.gpus[:1], devices=node.devices[:1], nvlinks=node.nvlinks[:1])
    assert planned(one) == planned(Topology())
    assert (planned(one).plans, planned(one).gap) == ((), None)


def test_the_order_of_gpus_is_that_of_the_file_and_not_of_their_numbers() -> None:
    node = node_of(_PRINTED["nodes"][0]["node"])
    turned = msgspec.structs.replace(node, gpus=node.gpus[::-1])
    assert planned(turned) == planned(node)


@given(topologies())
@settings(max_examples=80, deadline=None)
def test_every_topology_has_a_plan_within_its_links_or_a_reason(node: Topology) -> None:
    found = planned(node)
    assert (found.plans == ()) is (found.gap is not None or len(graph_of(node).gpus) < 2)
    ceilings = {ceiling.algorithm: ceiling.busbw_Bps for ceiling in ring_ceilings(node)}
    for each in found.plans:
        # The one channel that NCCL lays where there is none for real asks no link.
        if each.algorithm != "nvls" and each.channel_Bps > 100e6:
            assert (each.busbw_Bps or 0) <= ceilings[each.algorithm] * 1.0001
