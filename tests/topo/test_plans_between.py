"""What NCCL finds for several nodes that are alike, held against what its own graph code printed.

`nccl_plans_between.json` holds made-up nodes in short and the platforms with a map, and per release what was printed
for ring, tree and NVLS. Every node of a job searches for itself, so the number of nodes plays no part.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from msgspec import structs

from busbw.machine.named import named_topology
from busbw.model.topology import Gpu, Net, NumaNode, PciDevice, Topology
from busbw.topo.paths.graph import graph_of
from busbw.topo.search import channels
from busbw.topo.search.channels import FoundChannels, searched_between
from busbw.topo.search.ports import fused

from .nodes import four_h200
from .strategies import topologies
from .test_plans import as_read, node_of, release_of

_PRINTED = json.loads((Path(__file__).parent / "nccl_plans_between.json").read_text())
_PARTS = 10


def _node_of(short: dict[str, Any]) -> Topology:
    node = node_of(short)
    nets: list[Net] = []
    for number, net in enumerate(node.nets):
        guid = f"0x{number // 2 + 1:x}" if short.get("guid") else None
        nets.append(
            structs.replace(
                net, guid=guid, latency_us=short.get("latency"), gdr=False if short.get("net_no_gdr") else net.gdr
            )
        )
    return structs.replace(node, nets=tuple(nets))


def _in_short(found: FoundChannels) -> list[Any]:
    chain = [1] if found.chain else []
    types = (found.within_type, found.between_type)
    return [found.channels, found.within_GBps, found.between_GBps, *types, int(found.alike), found.latency_us, *chain]


def _told(topology: Topology, release: str) -> dict[str, list[Any]]:
    searched = searched_between(topology, release_of(release))
    assert searched.gap is None
    found = {"ring": searched.ring, "tree": searched.tree, "nvls": searched.nvls}
    return {name: _in_short(each) for name, each in found.items() if each is not None}


def _cases(part: int) -> Iterator[tuple[int, Topology, str, dict[str, Any]]]:
    for number, known in enumerate(_PRINTED["nodes"]):
        if number % _PARTS == part:
            node = as_read(_node_of(known["node"]))
            for group in known["nccl"]:
                # Where releases agree they take turns.
                yield number, node, group["releases"][number % len(group["releases"])], group["printed"]


@pytest.mark.parametrize("part", range(_PARTS))
def test_ring_tree_and_nvls_of_several_nodes_are_what_nccl_printed(part: int) -> None:
    for number, node, release, printed in _cases(part):
        assert _told(node, release) == printed, (number, release)


@pytest.mark.parametrize("name", sorted(_PRINTED["platforms"]))
def test_a_platforms_channels_between_nodes_are_what_nccl_printed_for_its_map(name: str) -> None:
    turn = sorted(_PRINTED["platforms"]).index(name) % 2
    for group in _PRINTED["platforms"][name]:
        # Where several releases agree, every second one.
        for release in group["releases"][turn::2] or group["releases"]:
            assert _told(named_topology(name).topology, release) == group["printed"], release


def test_a_hundred_nodes_and_three_releases_are_held() -> None:
    assert len(_PRINTED["nodes"]) >= 100
    releases = {release for known in _PRINTED["nodes"] for group in known["nccl"] for release in group["releases"]}
    assert releases == {"2.26.5", "2.28.9", "2.30.7"}
    ports = {len(known["node"]["nics"]) for known in _PRINTED["nodes"]}
    assert {1, 2, 4, 8, 16} <= ports


def test_the_ports_of_one_card_are_one_port_of_their_speeds_together() -> None:
    node = named_topology("oci-bm-gpu-h100-8").topology
    assert [net.speed_Mbps for net in node.nets] == [200_000] * 16
    assert [net.speed_Mbps for net in fused(node).nets] == [400_000] * 8
    assert fused(fused(node)) == fused(node)


def test_without_ports_nothing_is_told_of_several_nodes() -> None:
    node = structs.replace(four_h200(), nets=())
    assert searched_between(node).gap == "no ports are listed"
    assert searched_between(node).ring is None


def test_more_gpus_than_a_node_has_are_not_searched() -> None:
    places = range(33)
    node = Topology(
        numa=(NumaNode(id=0),),
        devices=tuple(PciDevice(bus_id=f"0000:{place:02x}:00.0", kind="gpu", parent=None, numa=0) for place in places),
        gpus=tuple(Gpu(bus_id=f"0000:{place:02x}:00.0", sm=90) for place in places),
        nets=(Net(name="mlx5_0", bus_id=None, numa=0),),
    )
    assert searched_between(node).gap == "it is searched here for up to 32 GPUs and 64 ports"


def test_a_search_of_several_nodes_that_would_take_too_long_is_given_up_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = named_topology("azure-ndv4").topology
    assert searched_between(node).ring is not None
    monkeypatch.setattr(channels, "MOST_STEPS", 1_000)
    assert searched_between(node).gap == "the search for it takes longer than it may here"


@given(topologies())
@settings(max_examples=40, deadline=None)
def test_every_topology_has_channels_between_nodes_or_a_reason(node: Topology) -> None:
    found = searched_between(node)
    assert (found.ring is None) is (found.gap is not None)
    if found.ring is not None:
        assert found.tree is not None
        assert len(graph_of(node).gpus) >= 1
        assert found.ring.channels >= 1
