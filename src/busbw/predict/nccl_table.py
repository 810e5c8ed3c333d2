"""NCCL's table of costs: latency and bandwidth of each collective, algorithm and protocol, as its release counts them.

As ncclTopoTuneModel has it. Constants are data of each release (facts.nccl_model); they serve for choosing and are no
times that anybody measured.
"""

import math
from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.facts.nccl_model import ByAlgorithm, ByGeneration, NcclConstants
from busbw.model.predict.nccl_choice import (
    MODELLED,
    NCCL_ALGORITHMS,
    PROTOCOLS,
    CostCell,
    NcclAlgorithm,
    NcclGraphs,
    NcclJob,
    Protocol,
    SearchedGraph,
)

GATHERS = ("all_gather", "reduce_scatter")
HOPPER, BLACKWELL = 90, 100
_ROOTED = ("broadcast", "reduce")
# What LL did otherwise within a node up to 2.20.
_REDUCING_ALL = ("all_reduce", "reduce")
_LL, _LL128, _SIMPLE = range(3)


@dataclass(frozen=True, kw_only=True, slots=True)
class HopLatency:
    """The time of a call of a few bytes within one node: a part of its own, and hops over NVLink."""

    algorithm: NcclAlgorithm
    base_us: float
    hops: int
    hop_us: float

    @property
    def time_us(self) -> float:
        """Return both parts together."""
        return self.base_us + self.hops * self.hop_us


def empty_call(constants: NcclConstants, collective: str, ranks: int) -> HopLatency | None:
    """Return the cheapest way of a few bytes within one node over NVLink with LL; None: NCCL has no model of it."""
    if collective not in MODELLED:
        return None
    ring = _within(constants, "ring", 1 if collective in _ROOTED else _ring_steps(collective, ranks))
    if collective != "all_reduce":
        return ring
    tree = _within(constants, "tree", 2 * (ranks - 1))
    return tree if tree.time_us < ring.time_us else ring


def _within(constants: NcclConstants, algorithm: NcclAlgorithm, hops: int) -> HopLatency:
    return HopLatency(
        algorithm=algorithm,
        base_us=_of(constants.base, algorithm)[_LL],
        hops=hops,
        hop_us=_of(constants.nvlink, algorithm)[_LL],
    )


def cost_table(job: NcclJob, graphs: NcclGraphs, constants: NcclConstants) -> tuple[CostCell, ...]:
    """Return every cell of the table that NCCL prints, in its order. Raises InputError for a job that cannot be."""
    _check(job)
    return tuple(
        _cell(job, graphs, constants, collective, algorithm, protocol)
        for collective in MODELLED
        for algorithm in NCCL_ALGORITHMS
        if algorithm != "pat" or constants.pat_factor
        for protocol in PROTOCOLS
    )


def _check(job: NcclJob) -> None:
    if not 1 <= job.nodes <= job.ranks or job.ranks % job.nodes:
        raise InputError(f"{job.ranks} ranks on {job.nodes} nodes", hint="as many ranks on each node")
    if job.ranks < 2:
        raise InputError("one rank alone sends nothing, and NCCL has no table for it")


def _of(latencies: ByAlgorithm, algorithm: NcclAlgorithm) -> tuple[float, float, float]:
    found: tuple[float, float, float] = getattr(latencies, algorithm)
    return found


def _generation(sm: int) -> str:
    return "blackwell" if sm >= BLACKWELL else "hopper" if sm >= HOPPER else "ampere" if sm >= 80 else "volta"


def _row(table: ByGeneration, generation: str, nodes: int) -> float:
    row: tuple[float, float, float] = getattr(table, generation)
    return row[min(nodes, 3) - 1]


def _graph(graphs: NcclGraphs, algorithm: NcclAlgorithm) -> SearchedGraph:
    if algorithm in ("tree", "pat"):
        return graphs.tree
    if algorithm == "ring":
        return graphs.ring
    if algorithm == "collnetdirect":
        return graphs.collnet_direct
    return graphs.collnet_chain if algorithm == "collnetchain" else graphs.nvls


def _is_counted(
    job: NcclJob,
    graph: SearchedGraph,
    constants: NcclConstants,
    collective: str,
    algorithm: NcclAlgorithm,
    protocol: int,
) -> bool:
    """Return whether NCCL counts anything at all for this cell."""
    if collective in _ROOTED:
        return algorithm == "ring"
    if collective in GATHERS:
        none = {"nvls": constants.nvls_gather, "collnetdirect": constants.collnet_gather}
        if algorithm not in ("pat", "ring", *none) or none.get(algorithm) == "none":
            return False
    if algorithm == "pat":
        return collective in GATHERS and protocol == _SIMPLE and job.nodes == job.ranks and job.sm >= 60
    if algorithm not in ("nvls", "nvlstree"):
        return True
    return protocol == _SIMPLE and (constants.nvls_form != "pipelined" or graph.channels >= 2)


def _cell(
    job: NcclJob,
    graphs: NcclGraphs,
    constants: NcclConstants,
    collective: str,
    algorithm: NcclAlgorithm,
    protocol: Protocol,
) -> CostCell:
    graph, number = _graph(graphs, algorithm), PROTOCOLS.index(protocol)
    latency_us = bandwidth_GBps = 0.0
    if _is_counted(job, graph, constants, collective, algorithm, number):
        latency_us = _latency_us(job, graph, constants, collective, algorithm, number)
        if _is_enabled(job, graph, constants, algorithm, number):
            bandwidth_GBps = _bandwidth_GBps(job, graphs, graph, constants, collective, algorithm, number)
    return CostCell(
        collective=collective,
        algorithm=algorithm,
        protocol=protocol,
        latency_us=latency_us,
        bandwidth_GBps=bandwidth_GBps,
    )


def _is_enabled(
    job: NcclJob, graph: SearchedGraph, constants: NcclConstants, algorithm: NcclAlgorithm, protocol: int
) -> bool:
    """Return whether NCCL uses the algorithm and the protocol unless told otherwise."""
    if algorithm == "nvlstree" and job.nodes == 1:
        return False
    if not job.collnet and (algorithm in ("collnetdirect", "collnetchain") or (algorithm == "nvls" and job.nodes > 1)):
        return False
    if algorithm == "collnetdirect" and not job.switched:
        return False
    return protocol != _LL128 or _has_ll128(job, graph, constants)


def _has_ll128(job: NcclJob, graph: SearchedGraph, constants: NcclConstants) -> bool:
    newest = job.newest_sm or job.sm
    same = newest == job.sm or (constants.ll128_mixed and job.sm >= HOPPER)
    known = job.sm in constants.ll128_only_sm if constants.ll128_only_sm else job.sm >= 70
    worst = constants.ll128_inter_hopper if job.sm >= HOPPER else constants.ll128_inter
    order = constants.path_order
    return (
        same
        and known
        and order.index(_type(graph.inter_type, order)) <= order.index(worst)
        and order.index(_type(graph.intra_type, order)) <= order.index(constants.ll128_intra)
    )


def _type(name: str, order: tuple[str, ...]) -> str:
    if name not in order:
        raise InputError(f"{name[:20]!r} is not a type of path of this release", hint=f"one of {', '.join(order)}")
    return name


def _bandwidth_GBps(
    job: NcclJob,
    graphs: NcclGraphs,
    graph: SearchedGraph,
    constants: NcclConstants,
    collective: str,
    algorithm: NcclAlgorithm,
    protocol: int,
) -> float:
    """Return the algorithm bandwidth of a cell."""
    is_collnet = algorithm in ("collnetdirect", "collnetchain")
    if is_collnet and protocol != _SIMPLE:
        return 0.0
    gated = ("nvls", "collnetdirect") if constants.nvls_gather == "part" else ("collnetdirect",)
    if collective in GATHERS and job.nodes > 1 and algorithm in gated and not job.collnet_gathers:
        return 0.0
    if algorithm in ("nvls", "nvlstree"):
        bus_GBps = graph.channels * _nvls_channel(job, graph, constants, collective, algorithm)
    else:
        bus_GBps = graph.channels * (graph.intra_GBps if job.nodes <= 2 or is_collnet else graph.inter_GBps)
    if algorithm == "ring":
        bus_GBps = _ring_bus(job, graph, constants, bus_GBps, collective, protocol)
    elif algorithm == "tree":
        bus_GBps = _tree_bus(job, graph, constants, bus_GBps, protocol) * (
            constants.plain_tree if graphs.plain_tree else 1.0
        )
    elif algorithm == "pat":
        bus_GBps *= constants.pat_factor
    elif algorithm == "collnetdirect":
        bus_GBps = _direct_bus(job, graph, constants, bus_GBps, collective)
    return bus_GBps * _algorithm_share(job, constants, collective, algorithm)


def _algorithm_share(job: NcclJob, constants: NcclConstants, collective: str, algorithm: NcclAlgorithm) -> float:
    """Return what makes algorithm bandwidth of bus bandwidth."""
    is_nvls = algorithm in ("nvls", "nvlstree")
    if algorithm == "ring":
        return job.ranks / _ring_steps(collective, job.ranks)
    if collective in GATHERS and not (is_nvls and constants.nvls_gather_ratio):
        return 1.0
    if algorithm == "nvlstree" and constants.nvlstree_ratio:
        return constants.nvlstree_ratio * job.nodes / (2 * (job.nodes - 1))
    if is_nvls and constants.nvls_ratio == 0:
        return job.ranks / _ring_steps(collective, job.ranks)
    return constants.nvls_ratio if is_nvls else 0.5


def _nvls_channel(
    job: NcclJob, graph: SearchedGraph, constants: NcclConstants, collective: str, algorithm: NcclAlgorithm
) -> float:
    per_node = job.ranks / job.nodes
    if constants.nvls_form == "plain":
        return graph.intra_GBps if job.nodes <= 2 else graph.inter_GBps
    if constants.nvls_form == "least":
        if algorithm == "nvlstree":
            return min(graph.intra_GBps, graph.inter_GBps / (1 if job.nodes <= 2 else 2))
        if collective == "all_reduce" or constants.nvls_gather == "whole":
            return min(graph.intra_GBps, graph.inter_GBps)
        return min(graph.intra_GBps * (per_node - 1) / per_node, graph.inter_GBps * 0.9)
    generation = _generation(job.sm)
    efficiency: float = getattr(constants.nvls_efficiency, generation)
    within = graph.intra_GBps * efficiency * (graph.channels - 1) / graph.channels
    within *= 2.0 if collective == "all_reduce" else (per_node - 1) / per_node
    between = graph.inter_GBps * (2 if job.nodes <= 2 and algorithm == "nvlstree" else 1)
    cap = _row(constants.nvlstree, generation, job.nodes) if algorithm == "nvlstree" else math.inf
    return min(within, between, cap)


def _ll_cap(job: NcclJob, constants: NcclConstants) -> float:
    if job.nodes == 1:
        return _row(constants.ll_cap, _generation(job.sm), 1)
    # Up to 2.23 CPUs of two makers count as none of AMD's; a job with them is rare enough.
    return _row(constants.ll_cap, "ampere" if job.cpu in ("amd", "mixed") else "volta", job.nodes)


def _ring_bus(
    job: NcclJob, graph: SearchedGraph, constants: NcclConstants, bus_GBps: float, collective: str, protocol: int
) -> float:
    if protocol == _LL:
        slower, other = constants.ring_ll_share
        share = slower if job.nodes > 1 or collective in _REDUCING_ALL else other
        return min(_ll_cap(job, constants), bus_GBps * share)
    if protocol == _LL128:
        share = constants.ring_ll128_lone if job.ranks < 2 * job.nodes else 0.92
        return min(bus_GBps * share, graph.channels * _row(constants.ring_ll128, _generation(job.sm), job.nodes))
    return bus_GBps


def _tree_bus(job: NcclJob, graph: SearchedGraph, constants: NcclConstants, bus_GBps: float, protocol: int) -> float:
    generation = _generation(job.sm)
    bus_GBps = min(bus_GBps * 0.92, graph.channels * _row(constants.tree, generation, job.nodes))
    if protocol == _LL:
        return min(bus_GBps / 3.8, _ll_cap(job, constants))
    if protocol == _LL128:
        share = 7 / 9 if job.nodes == 1 else 120 / 128
        return min(bus_GBps * share, graph.channels * _row(constants.tree_ll128, generation, job.nodes))
    return bus_GBps


def _direct_bus(
    job: NcclJob, graph: SearchedGraph, constants: NcclConstants, bus_GBps: float, collective: str
) -> float:
    per_node = job.ranks / job.nodes
    if collective in GATHERS:
        if constants.collnet_gather == "least":
            return per_node * min(graph.intra_GBps, graph.inter_GBps * 0.9)
        share = (per_node - 1) / 7
        return per_node * graph.intra_GBps * (share * 0.85 + (1 - share) * 0.95)
    if not graph.channels:
        return 0.0
    factor = per_node / graph.channels
    return bus_GBps / (factor - (factor - 1) / 2) * (0.85 if job.sm >= HOPPER else 1.0)


def _ring_steps(collective: str, ranks: int) -> int:
    if collective == "all_reduce":
        return 2 * (ranks - 1)
    return ranks - 1 if collective in GATHERS else ranks


def _latency_us(
    job: NcclJob,
    graph: SearchedGraph,
    constants: NcclConstants,
    collective: str,
    algorithm: NcclAlgorithm,
    protocol: int,
) -> float:
    base_us = _of(constants.base, algorithm)[protocol]
    inside = constants.nvlink if graph.intra_type == "NVL" else constants.pci
    # NCCL counts a tree's hop with Simple as a ring's on Power, so that trees are taken there.
    is_even = job.cpu == "power" and inside is constants.pci and algorithm == "tree" and protocol == _SIMPLE
    intra_us = _of(inside, "ring" if is_even else algorithm)[protocol]
    per_node = job.ranks // job.nodes
    net_us = _of(constants.net, "tree" if per_node == 1 and constants.lone_net_as_tree else algorithm)[protocol]
    inter_us = net_us + graph.latency_us * (2 if protocol == _SIMPLE else 1)
    depth = job.nodes.bit_length() - 1
    if algorithm == "ring":
        return base_us + _ring_latency_us(job, graph, constants, collective, protocol, intra_us, inter_us)
    if constants.nvls_latency == "network" and algorithm in ("nvls", "nvlstree"):
        crossings = 2 * (job.nodes - 1) if algorithm == "nvlstree" else min(1, job.nodes - 1)
        return base_us + crossings * net_us
    own_us = {
        "tree": 2 * ((per_node - 1) * intra_us + depth * inter_us),
        "collnetdirect": 2 * (min(1, per_node - 1) * intra_us + (per_node - 1) * constants.collnet_rank_us) + inter_us,
        "collnetchain": 2 * (per_node - 1) * intra_us + inter_us,
        "nvls": intra_us + (inter_us if job.nodes > 1 else 0.0) - base_us,
        "nvlstree": intra_us + 2 * depth * inter_us,
        "pat": depth * inter_us / 3.5 + job.ranks * 2.8,
    }
    return base_us + own_us[algorithm]


def _ring_latency_us(
    job: NcclJob,
    graph: SearchedGraph,
    constants: NcclConstants,
    collective: str,
    protocol: int,
    intra_us: float,
    inter_us: float,
) -> float:
    steps = _ring_steps(collective, job.ranks)
    if collective in _ROOTED:
        inside = constants.nvlink if graph.intra_type == "NVL" else constants.pci
        passed = inside if job.nodes == 1 else constants.net
        if graph.same_channels:
            return passed.ring[protocol]
        return steps * (passed.tree if protocol == _SIMPLE else passed.ring)[protocol]
    over = 0.0
    if job.nodes > 1:
        over = (2.0 if job.cpu == "amd" else 1.0) * (3 if protocol == _SIMPLE else 1)
    between = job.nodes - 1
    if collective == "all_reduce" and job.nodes > 1:
        between = 2 * (job.nodes if constants.ring_crossings == "nodes" else job.nodes - 1)
    return (steps - between) * max(intra_us, over) + between * inter_us
