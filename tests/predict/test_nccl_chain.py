"""From a node's map over NCCL's search to its table of costs and its choice, held against what NCCL's own code printed.

Of several nodes once from the graphs that NCCL itself found, and once from the map.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.topo.test_plans import node_of

from busbw.facts.nccl_model import nccl_constants
from busbw.machine.named import named_topology
from busbw.model.predict.nccl_choice import (
    MODELLED,
    NCCL_ALGORITHMS,
    NO_GRAPH,
    PROTOCOLS,
    NcclGraphs,
    NcclJob,
    SearchedGraph,
)
from busbw.model.topology import Topology
from busbw.predict.graphs import graphs_of_search
from busbw.predict.nccl import choice
from busbw.predict.nccl_table import cost_table
from busbw.topo.file.reader import read_document
from busbw.topo.origins.from_document import topologies_of
from busbw.topo.search.channels import searched_between, searched_within

_PRINTED = json.loads((Path(__file__).parent / "nccl_chain.json").read_text())
_NODES = json.loads((Path(__file__).parents[1] / "topo" / "nccl_plans.json").read_text())["nodes"]
_VENDOR_FILES = Path(__file__).parents[2].parent / "shared" / "facts" / "topo"
_PLAIN_TREE = 3


def _topology(name: str) -> Topology:
    if name[1:].isdigit():
        return node_of(_NODES[int(name[1:])]["node"])
    return named_topology(name).topology


def _cpu(topology: Topology) -> Literal["intel", "amd", "arm", "power", "other"]:
    first = topology.numa[0]
    if first.architecture == "x86_64":
        return "intel" if first.vendor == "GenuineIntel" else "amd" if first.vendor == "AuthenticAMD" else "other"
    return "arm" if first.architecture == "arm64" else "power"


def _assert_same(job: NcclJob, graphs: NcclGraphs, release: str, printed: dict[str, Any]) -> None:
    constants = nccl_constants(release)
    ours = {}
    for cell in cost_table(job, graphs, constants):
        if cell.bandwidth_GBps > 0:
            algorithm, protocol = NCCL_ALGORITHMS.index(cell.algorithm), PROTOCOLS.index(cell.protocol)
            ours[f"{MODELLED.index(cell.collective)}{algorithm}{protocol}"] = cell
    cells = [line.split() for line in printed["cells"].split("; ")]
    assert set(ours) == {cell for cell, _, _ in cells}
    for name_of_cell, latency_us, bandwidth_GBps in cells:
        assert ours[name_of_cell].latency_us == pytest.approx(float(latency_us), rel=1e-3)
        assert ours[name_of_cell].bandwidth_GBps == pytest.approx(float(bandwidth_GBps), rel=1e-3)
    for collective, of_sizes in zip(MODELLED, printed["choices"], strict=True):
        for size, told in zip(_PRINTED["sizes"], of_sizes.split("; "), strict=True):
            taken = choice(job, graphs, constants, release=release, collective=collective, size_bytes=size).chosen
            cell_of = f"{NCCL_ALGORITHMS.index(taken.algorithm)}{PROTOCOLS.index(taken.protocol)}"
            assert f"{cell_of} {taken.channels} {taken.threads}" == told, (release, collective, size)


def _assert_one_node(topology: Topology, printed: dict[str, Any]) -> None:
    for release in _PRINTED["releases"]:
        nccl = tuple(int(part) for part in release.split("."))
        searched = searched_within(topology, (nccl[0], nccl[1], nccl[2]))
        graphs = graphs_of_search(searched, topology.name or "a node")
        assert graphs is not None
        job = NcclJob(
            nodes=1,
            ranks=printed["ranks"],
            sm=printed["sm"],
            cpu=_cpu(topology),
            nvls=printed[release]["nvls"],
        )
        _assert_same(job, graphs, release, _PRINTED["tables"][printed[release]["printed"]])


@pytest.mark.parametrize("name", _PRINTED["maps"])
def test_table_and_choice_of_one_node_from_its_map_are_what_nccl_printed(name: str) -> None:
    _assert_one_node(_topology(name), _PRINTED["maps"][name])


@pytest.mark.parametrize("name", _PRINTED["files"])
def test_table_and_choice_of_one_node_from_a_vendors_file_are_what_nccl_printed(name: str) -> None:
    path = _VENDOR_FILES / name
    if not path.exists():
        pytest.skip(f"{path} is not here: vendors' files are kept outside of this repository")
    raw, printed = path.read_bytes(), _PRINTED["files"][name]
    assert hashlib.sha256(raw).hexdigest() == printed["sha256"]
    (topology,) = topologies_of(read_document(raw, name))
    _assert_one_node(topology, printed)


def test_twenty_maps_and_three_releases_are_held() -> None:
    assert len(_PRINTED["maps"]) >= 20
    assert len(_PRINTED["releases"]) == 3


@pytest.mark.parametrize(
    "case", _PRINTED["several"], ids=lambda case: f"{case['map']}-{case['nodes']}-{case['release']}"
)
def test_table_and_choice_of_several_nodes_from_nccls_graphs_are_what_nccl_printed(case: dict[str, Any]) -> None:
    of_map, order = _PRINTED["maps"][case["map"]], nccl_constants(case["release"]).path_order

    def graph(name: str) -> SearchedGraph:
        _, channels, intra_GBps, inter_GBps, intra, inter, same, _, latency_us = case["graphs"][name]
        return SearchedGraph(
            channels=channels,
            intra_GBps=intra_GBps,
            inter_GBps=inter_GBps,
            intra_type=order[intra],
            inter_type=order[inter],
            same_channels=bool(same),
            latency_us=latency_us,
        )

    graphs = NcclGraphs(
        ring=graph("ring"),
        tree=graph("tree"),
        nvls=graph("nvls") if case["nvls"] else NO_GRAPH,
        plain_tree=case["graphs"]["tree"][0] == _PLAIN_TREE,
        origin="NCCL's own search",
    )
    job = NcclJob(
        nodes=case["nodes"],
        ranks=of_map["ranks"] * case["nodes"],
        sm=of_map["sm"],
        cpu=_cpu(_topology(case["map"])),
        nvls=case["nvls"],
    )
    _assert_same(job, graphs, case["release"], _PRINTED["tables"][case["printed"]])


# NCCL read two maps otherwise than they are meant: ports of which only the NUMA node is known all came to the first
# one (Alps), and the two ports of a card were not made one (OCI), which only its plug-in for the network does.
_READ_OTHERWISE = ("alps-gh200", "oci-bm-gpu-h100-8")
_MEANT = [case for case in _PRINTED["several"] if case["map"] not in _READ_OTHERWISE]


@pytest.mark.parametrize("case", _MEANT, ids=lambda case: f"{case['map']}-{case['nodes']}-{case['release']}")
def test_table_and_choice_of_several_nodes_from_a_map_are_what_nccl_printed(case: dict[str, Any]) -> None:
    of_map = _PRINTED["maps"][case["map"]]
    major, minor, patch = (int(part) for part in case["release"].split("."))
    searched = searched_between(_topology(case["map"]), (major, minor, patch))
    graphs = graphs_of_search(searched, case["map"])
    assert graphs is not None
    job = NcclJob(
        nodes=case["nodes"],
        ranks=of_map["ranks"] * case["nodes"],
        sm=of_map["sm"],
        cpu=_cpu(_topology(case["map"])),
        nvls=case["nvls"],
    )
    _assert_same(job, graphs, case["release"], _PRINTED["tables"][case["printed"]])
