"""NCCL's cost model: what it counts for each collective, algorithm and protocol, and which it takes.

time_us = latency_us x calls + bytes / (1000 bandwidth_GBps), as ncclTopoTuneModel, ncclTopoGetAlgoTime and
topoGetAlgoInfo have it. Constants are data of each release (facts.nccl_model); they serve for choosing and are no
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
    CallCost,
    CostCell,
    NcclAlgorithm,
    NcclGraphs,
    NcclJob,
    PredictedChoice,
    Protocol,
    SearchedGraph,
)

_GATHERS = ("all_gather", "reduce_scatter")
_ROOTED = ("broadcast", "reduce")
_LL, _LL128, _SIMPLE = range(3)
_HOPPER, _BLACKWELL = 90, 100
# CollNet reaches so many ranks of a node directly.
_MOST_DIRECT_RANKS = 8
# Work of so many merged calls is started together.
_BATCHED_CALLS = 1024 // 96
_MOST_CHANNELS = 64
_WARP = 32
_MOST_THREADS = 640
# A ring this slow gets half of the threads.
_SLOW_RING_GBps = 12.0
# From this speed of a channel on Hopper doubles fewer than 16 channels once more.
_DOUBLED_GBps = 45.0
_FEW_CHANNELS = 16
_NVLS_CHANNELS = 16
_NVLS_CHANNELS_BLACKWELL_NODE = 24


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
    return "blackwell" if sm >= _BLACKWELL else "hopper" if sm >= _HOPPER else "ampere" if sm >= 80 else "volta"


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


def _is_counted(job: NcclJob, collective: str, algorithm: NcclAlgorithm, protocol: int) -> bool:
    """Return whether NCCL counts anything at all for this cell."""
    if collective in _ROOTED:
        return algorithm == "ring"
    if collective in _GATHERS and algorithm not in ("pat", "ring", "nvls", "collnetdirect"):
        return False
    if algorithm == "pat":
        return collective in _GATHERS and protocol == _SIMPLE and job.nodes == job.ranks and job.sm >= 60
    return algorithm not in ("nvls", "nvlstree") or protocol == _SIMPLE


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
    counted = _is_counted(job, collective, algorithm, number)
    if algorithm in ("nvls", "nvlstree") and constants.nvls_form == "pipelined" and graph.channels < 2:
        counted = False
    if counted:
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
    same = newest == job.sm or (constants.ll128_mixed and job.sm >= _HOPPER)
    known = job.sm in constants.ll128_only_sm if constants.ll128_only_sm else job.sm >= 70
    worst = constants.ll128_inter_hopper if job.sm >= _HOPPER else constants.ll128_inter
    order = constants.path_order
    return (
        same
        and known
        and order.index(_type(graph.inter_type, order)) <= order.index(worst)
        and order.index(_type(graph.intra_type, order)) <= order.index("NVB")
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
    if collective in _GATHERS and job.nodes > 1 and algorithm in gated and not job.collnet_gathers:
        return 0.0
    if algorithm in ("nvls", "nvlstree"):
        bus_GBps = graph.channels * _nvls_channel(job, graph, constants, collective, algorithm)
    else:
        bus_GBps = graph.channels * (graph.intra_GBps if job.nodes <= 2 or is_collnet else graph.inter_GBps)
    if algorithm == "ring":
        bus_GBps = _ring_bus(job, graph, constants, bus_GBps, protocol)
    elif algorithm == "tree":
        bus_GBps = _tree_bus(job, graph, constants, bus_GBps, protocol) * (0.85 if graphs.plain_tree else 1.0)
    elif algorithm == "pat":
        bus_GBps *= constants.pat_factor
    elif algorithm == "collnetdirect":
        bus_GBps = _direct_bus(job, graph, constants, bus_GBps, collective)
    if algorithm != "ring" and collective in _GATHERS:
        return bus_GBps
    if algorithm == "ring" or (algorithm in ("nvls", "nvlstree") and constants.nvls_ratio == 0):
        return bus_GBps * job.ranks / _ring_steps(collective, job.ranks)
    return bus_GBps * (constants.nvls_ratio if algorithm in ("nvls", "nvlstree") else 0.5)


def _nvls_channel(
    job: NcclJob, graph: SearchedGraph, constants: NcclConstants, collective: str, algorithm: NcclAlgorithm
) -> float:
    per_node = job.ranks / job.nodes
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


def _ring_bus(job: NcclJob, graph: SearchedGraph, constants: NcclConstants, bus_GBps: float, protocol: int) -> float:
    if protocol == _LL:
        return min(_ll_cap(job, constants), bus_GBps * 0.5)
    if protocol == _LL128:
        return min(bus_GBps * 0.92, graph.channels * _row(constants.ring_ll128, _generation(job.sm), job.nodes))
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
    if collective in _GATHERS:
        if constants.collnet_gather == "least":
            return per_node * min(graph.intra_GBps, graph.inter_GBps * 0.9)
        share = (per_node - 1) / 7
        return per_node * graph.intra_GBps * (share * 0.85 + (1 - share) * 0.95)
    if not graph.channels:
        return 0.0
    factor = per_node / graph.channels
    return bus_GBps / (factor - (factor - 1) / 2) * (0.85 if job.sm >= _HOPPER else 1.0)


def _ring_steps(collective: str, ranks: int) -> int:
    if collective == "all_reduce":
        return 2 * (ranks - 1)
    return ranks - 1 if collective in _GATHERS else ranks


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
    intra_us = _of(inside, algorithm)[protocol]
    per_node = job.ranks // job.nodes
    net_us = _of(constants.net, "tree" if per_node == 1 else algorithm)[protocol]
    inter_us = net_us + graph.latency_us * (2 if protocol == _SIMPLE else 1)
    depth = job.nodes.bit_length() - 1
    if algorithm == "ring":
        return base_us + _ring_latency_us(job, graph, constants, collective, protocol, intra_us, inter_us)
    own_us = {
        "tree": 2 * ((per_node - 1) * intra_us + depth * inter_us),
        "collnetdirect": 2 * (min(1, per_node - 1) * intra_us + (per_node - 1) * 0.4) + inter_us,
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
    between = 0 if job.nodes == 1 else (2 if collective == "all_reduce" else 1) * (job.nodes - 1)
    return (steps - between) * max(intra_us, over) + between * inter_us


def channels_of(job: NcclJob, graphs: NcclGraphs) -> int:
    """Return how many channels a job has for rings and trees: those of a log, else twice what was found."""
    if job.channels is not None:
        return job.channels
    channels = min(_MOST_CHANNELS, 2 * graphs.ring.channels)
    if job.sm >= _HOPPER and job.nodes > 1 and graphs.ring.intra_GBps > _DOUBLED_GBps and channels < _FEW_CHANNELS:
        channels *= 2
    return channels


def _nvls_channels(job: NcclJob) -> int | None:
    """Return the channels of NVLS; None where the release decides by what is not asked for here."""
    if job.nvls_channels is not None:
        return job.nvls_channels
    if job.sm < _BLACKWELL:
        return _NVLS_CHANNELS
    return _NVLS_CHANNELS_BLACKWELL_NODE if job.nodes == 1 else None


def choice(
    job: NcclJob,
    graphs: NcclGraphs,
    constants: NcclConstants,
    *,
    release: str,
    collective: str,
    size_bytes: int,
    calls: int = 1,
    algorithm: NcclAlgorithm | None = None,
    protocol: Protocol | None = None,
) -> PredictedChoice:
    """Return what NCCL would take for a call, or for so many merged `calls`, of `size_bytes` in all.

    `algorithm` and `protocol`: as NCCL_ALGO and NCCL_PROTO fix them. Raises InputError for a collective without a
    model, and where nothing is left to take.
    """
    if collective not in MODELLED:
        raise InputError(
            f"NCCL has no cost model of {collective[:40]}: it is sent and received part by part",
            hint=f"one of {', '.join(MODELLED)}",
        )
    costs = [
        _cost(job, graphs, constants, cell, size_bytes, calls)
        for cell in cost_table(job, graphs, constants)
        if cell.collective == collective
        and algorithm in (None, cell.algorithm)
        and protocol in (None, cell.protocol)
        and cell.bandwidth_GBps > 0
        and _may_run(job, constants, collective, cell.algorithm)
    ]
    if not costs:
        what = " ".join(each for each in (algorithm, protocol) if each is not None)
        raise InputError(f"{what or 'nothing'} does not do {collective} on these nodes", hint="leave it to NCCL")
    # Sorting keeps the order of equal costs, and NCCL takes the first of them.
    costs.sort(key=lambda cost: cost.time_us)
    return PredictedChoice(
        collective=collective,
        size_bytes=size_bytes,
        release=release,
        chosen=costs[0],
        others=tuple(costs[1:]),
        origin=graphs.origin,
    )


def _may_run(job: NcclJob, constants: NcclConstants, collective: str, algorithm: NcclAlgorithm) -> bool:
    per_node = job.ranks // job.nodes
    if algorithm in ("collnetdirect", "collnetchain"):
        most = _MOST_DIRECT_RANKS if algorithm == "collnetdirect" else constants.collnet_chain_ranks
        return job.collnet and per_node <= (most or per_node)
    if algorithm in ("nvls", "nvlstree"):
        most = constants.nvls_gather_ranks or per_node
        if not job.nvls or (collective != "all_reduce" and per_node > most):
            return False
        if collective in _GATHERS and job.nodes > 1 and constants.nvls_gather == "whole":
            return False
        return algorithm == "nvlstree" or job.nodes == 1 or job.collnet
    return True


def _cost(
    job: NcclJob, graphs: NcclGraphs, constants: NcclConstants, cell: CostCell, size_bytes: int, calls: int
) -> CallCost:
    bandwidth_GBps = cell.bandwidth_GBps * _corrected(job, constants, cell, size_bytes)
    latency_us, channels = cell.latency_us, channels_of(job, graphs)
    plateau = cell.algorithm == "ring" and cell.protocol == "Simple" and cell.collective == "all_reduce"
    if plateau and job.nodes > 1 and size_bytes // (channels * job.ranks) >= 64:
        latency_us *= 1.9 if job.sm < 80 else 1.4
    counted = calls if cell.algorithm == "ring" else -(-calls // _BATCHED_CALLS)
    used, threads = _channels_and_threads(job, graphs, constants, cell, size_bytes, channels)
    return CallCost(
        algorithm=cell.algorithm,
        protocol=cell.protocol,
        time_us=latency_us * counted + size_bytes / (1000 * bandwidth_GBps),
        channels=used,
        threads=threads,
    )


def _corrected(job: NcclJob, constants: NcclConstants, cell: CostCell, size_bytes: int) -> float:
    if cell.collective != "all_reduce" or size_bytes < 64:
        return 1.0
    power = (size_bytes >> 6).bit_length() - 1
    factors: tuple[float, ...] = getattr(constants.correction, cell.protocol)
    if cell.algorithm == "tree" and power < 23:
        return factors[power]
    is_x86 = job.cpu in ("intel", "amd", "mixed", "other")
    if cell.algorithm == "nvlstree" and constants.corrects_nvlstree and job.sm >= _BLACKWELL and is_x86 and power < 24:
        return factors[power]
    return 1.0


def most_threads(graphs: NcclGraphs, algorithm: NcclAlgorithm, protocol: Protocol) -> int:
    """Return how many threads a channel has before small messages take some away; 0: the cell is not used."""
    if algorithm in ("tree", "ring"):
        if protocol == "LL":
            return 512
        if protocol == "LL128":
            return _MOST_THREADS
        is_slow = algorithm == "ring" and graphs.ring.intra_GBps * graphs.ring.channels <= _SLOW_RING_GBps
        return 256 if is_slow else 512
    return _MOST_THREADS if protocol == "Simple" and algorithm != "pat" else 0


def _channels_and_threads(
    job: NcclJob, graphs: NcclGraphs, constants: NcclConstants, cell: CostCell, size_bytes: int, channels: int
) -> tuple[int | None, int]:
    """Return the channels and threads of each that a call gets; the count of channels is a most."""
    threads = most_threads(graphs, cell.algorithm, cell.protocol)
    if cell.algorithm in ("nvls", "nvlstree"):
        nvls = _nvls_channels(job)
        if constants.nvls_within_channels and cell.algorithm == "nvls" and job.nodes > 1 and nvls is not None:
            nvls = min(nvls, channels)
        return nvls, threads
    threshold = {"LL": 8, "LL128": 8, "Simple": 64}[cell.protocol]
    if cell.algorithm == "ring" and cell.protocol == "LL":
        threshold *= job.ranks
    elif cell.algorithm in ("collnetdirect", "collnetchain"):
        threshold = 512
    if cell.algorithm == "collnetdirect":
        return _direct_channels(job, size_bytes, channels, threads, threshold), threads
    while size_bytes < channels * threads * threshold and channels >= 2:
        channels -= 1
    while size_bytes < channels * threads * threshold and threads and threads % 128 == 0:
        threads //= 2
    if cell.protocol == "Simple" and cell.algorithm == "ring":
        threads += _WARP
    threads = max(threads, 3 * _WARP)
    return channels, _MOST_THREADS if cell.algorithm in ("tree", "pat") else threads


def _direct_channels(job: NcclJob, size_bytes: int, channels: int, threads: int, threshold: int) -> int:
    heads, least, goes_on = job.ranks // job.nodes, 16, True
    while least >= 1 and goes_on:
        while (goes_on := size_bytes < channels * threads * heads * threshold) and channels > least:
            if channels == least + least // 2:
                threshold //= 2
            channels -= 1
        least //= 2
    return channels
