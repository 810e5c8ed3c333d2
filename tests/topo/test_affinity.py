"""Cores told by their numbers, even shares, and what NCCL makes of a process's CPUs."""

import pytest

from busbw.base.cpus import format_cpu_list, parse_cpu_list
from busbw.base.errors import InputError
from busbw.model.topology import Gpu, NumaNode, Topology
from busbw.topo.ranks.readings import Cores, bound_rank, cores_of, rank_places

from .nodes import make_device


def topology_of(lists: list[str], gpu_nodes: list[int], ids: list[int] | None = None) -> Topology:
    numa = tuple(
        NumaNode(id=id_, cpus=parse_cpu_list(text)) for id_, text in zip(ids or range(len(lists)), lists, strict=True)
    )
    gpus = tuple(Gpu(bus_id=f"0000:{place:02x}:00.0", dev=place) for place in range(len(gpu_nodes)))
    devices = tuple(make_device(gpu.bus_id, "gpu", numa=id_) for gpu, id_ in zip(gpus, gpu_nodes, strict=True))
    return Topology(numa=numa, gpus=gpus, devices=devices)


def known_cores(topology: Topology, sockets: int | None = None) -> Cores:
    cores = cores_of(topology, sockets)
    assert cores is not None
    return cores


@pytest.mark.parametrize(
    ("lists", "step"),
    [
        (["0-55,112-167", "56-111,168-223"], 112),
        (["8-15,72-79", "24-31,88-95"], 64),
        (["0-15,64-79"], 64),
        (["0-47", "48-95"], None),
        (["0-95"], None),
        (["0,2,4,6", "1,3,5,7"], None),
        (["0-3,8-11", "4-7,16-19"], None),
        (["0-2", "3-4"], None),
    ],
)
def test_hyperthreads_are_told_by_blocks_of_numbers(lists: list[str], step: int | None) -> None:
    assert known_cores(topology_of(lists, [])).sibling_step == step


def test_cores_of_numa_nodes_that_are_not_given_are_counted() -> None:
    cores = known_cores(topology_of(["8-15,72-79", "24-31,88-95"], [], ids=[1, 3]))
    assert cores.numa == (tuple(range(8, 16)), tuple(range(24, 32)))
    assert format_cpu_list(cores.elsewhere) == "0-7,16-23,32-63"
    assert cores.numbered


def test_numbers_in_turns_with_gaps_make_no_logical_numbers() -> None:
    assert not known_cores(topology_of(["0,2,4,6"], [])).numbered


def test_numa_nodes_without_cpus_are_left_out() -> None:
    cores = known_cores(topology_of(["0-71", "72-143", "", ""], [], ids=[0, 1, 4, 12]))
    assert cores.numa_ids == (0, 1)


def test_ranks_that_share_a_numa_node_get_whole_cores_and_all_of_them() -> None:
    topology = topology_of(["0-6,16-22", "7-15,23-31"], [0, 0, 0, 1])
    places = rank_places(topology, known_cores(topology))
    assert [format_cpu_list(place.share or ()) for place in places] == [
        "0-2,16-18",
        "3-4,19-20",
        "5-6,21-22",
        "7-15,23-31",
    ]
    assert places[3].share == places[3].cpus


def test_fewer_ranks_than_gpus_take_the_first_and_share_among_themselves() -> None:
    topology = topology_of(["0-7", "8-15"], [0, 0, 1, 1])
    places = rank_places(topology, known_cores(topology), 1)
    assert [place.share for place in places] == [tuple(range(8))]


def test_more_ranks_than_gpus_are_refused() -> None:
    topology = topology_of(["0-7"], [0])
    with pytest.raises(InputError, match="2 ranks for 1 GPUs"):
        rank_places(topology, known_cores(topology), 2)


@pytest.mark.parametrize(("ranks", "nodes"), [(None, [0, 1, 2, 3]), (2, [0, 2]), (8, [0, 0, 1, 1, 2, 2, 3, 3])])
def test_without_gpus_ranks_fill_numa_nodes_in_order(ranks: int | None, nodes: list[int]) -> None:
    topology = topology_of(["0-23", "24-47", "48-71", "72-95"], [])
    assert [place.numa for place in rank_places(topology, known_cores(topology), ranks)] == nodes


@pytest.mark.parametrize("ranks", [0, -1, 5000])
def test_a_number_of_ranks_that_no_node_has_is_refused(ranks: int) -> None:
    topology = topology_of(["0-7"], [])
    with pytest.raises(InputError, match="ranks of one node"):
        rank_places(topology, known_cores(topology), ranks)


@pytest.mark.parametrize(
    ("cpus", "ignores", "fit", "threads", "applies"),
    [
        ("0-3", False, "right", "0-3", True),
        ("4-11", False, "partly", "4-7", True),
        ("8-11", False, "wrong", "8-11", False),
        ("8-11", True, "wrong", "0-7", True),
        ("4-11", True, "partly", "0-7", True),
    ],
)
def test_nccl_keeps_to_what_both_masks_share_or_changes_nothing(
    cpus: str, ignores: bool, fit: str, threads: str, applies: bool
) -> None:
    topology = topology_of(["0-7", "8-15"], [0])
    place = rank_places(topology, known_cores(topology))[0]
    found = bound_rank(place, parse_cpu_list(cpus), topology, ignores_affinity=ignores)
    assert (found.fit, found.nccl_applies) == (fit, applies)
    assert format_cpu_list(found.nccl_cpus or ()) == threads


def test_a_gpu_without_a_known_numa_node_tells_nothing() -> None:
    topology = topology_of(["0-7"], [5])
    place = rank_places(topology, known_cores(topology))[0]
    assert bound_rank(place, (0,), topology, ignores_affinity=False).fit == "unknown"
