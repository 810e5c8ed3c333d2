"""How the time of a call rises with its size, before and after the pipeline is full.

T = a + w / e + F, w = f S/B. a is hops, e the part of the bytes that is data: 4 of 8 in LL, 120 of 128 in LL128; of
NCCL's protocols the one that takes least counts. Hops inside a node take what NCCL's cost model counts for them; one
over the network takes that and what the network adds (fitted, and nothing for InfiniBand, for which NCCL's numbers were
made). Within a node NCCL takes a protocol by its own count, be it the fastest or not: of two Hopper GPUs Simple from 2
MiB on, where LL would take less. Along a chain the least counts, as NCCL counts one hop there with Simple, which waits
on each. F is what fills. Rings over nodes fill in their steps. A tree fills as F = d h: d is the time of a byte through
all stages, up and down (log2 N between nodes, each at the rate of the whole; and within a node a chain of its GPUs, or
its switch), and h the bytes on their way, 1/h = 1/(c R) + 1/S, with R a chunk of each channel and c fitted, near 1.
Within a node 1/F = 1/K + 1/(s w): a pipeline takes K until it is full, whatever the size, and of a call that is less
than it holds no stage overlaps another, so it takes s times its bytes. NVLS has one protocol; its a, K and s are of
sweeps. Of a ring only Simple fills, which waits for whole parts where LL and LL128 go on with what has arrived: s is 1,
the part that is being written where the next rank cannot have it, and K is of sweeps.
"""

import math
from dataclasses import dataclass
from functools import cache

from busbw.facts.nccl_model import nccl_constants, newest_release
from busbw.model.predict.nccl_choice import MODELLED, NcclGraphs, NcclJob, SearchedGraph
from busbw.model.predict.prediction import NetworkHop, PredictorConstants, RiseCurve
from busbw.predict.machines import RDMA, CannotTellError, MachineClass, groups_of
from busbw.predict.nccl_table import cost_table

# Bandwidths of very large messages are those of this size.
LARGEST_BYTES = 2**34
TREES = frozenset({"tree", "nvlstree"})
ROOTED = frozenset({"broadcast", "reduce"})
# What of the bytes is data: LL has a flag of four bytes behind four bytes of data, LL128 one of 8 in 128.
_DATA = (0.5, 0.9375, 1.0)
# Of a network that no document has, where cells of the machine itself are to tell it.
PRESUMED = "presumed"
_FLAGGED = frozenset({"LL", "LL128"})
_PROTOCOLS = ("LL", "LL128", "Simple")
# NCCL's cost model was made for this network.
_MODELLED = "InfiniBand"
_KIB = 2**10
# What a tree sends at once on a channel, with Simple (src/device.h: eight slots of 4 MiB; src/enqueue.cc).
_TREE_CHUNK_BYTES = 512 * _KIB
_NVLS_TREE_CHUNK_BYTES = (128 * _KIB, 64 * _KIB)
_FEW_NODES = 4
# Channels: two for each NIC of a node; of NVLS those of one Hopper node.
_CHANNELS = 2
_NVLS_CHANNELS = 16
# A ring within a node, as NCCL's search finds it on four H200: 12 channels that share what it counts for links, 20 of
# 25 GB/s on Ampere, 20.6 on Hopper, 40.1 of 50 on Blackwell (src/graph/topo.h).
_RING_CHANNELS = 12
_COUNTED_LINKS = 0.8
# A pipeline that is not full costs at most as much again as the bytes themselves.
_LEAST_LEFT = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class ProtocolTime:
    """One protocol: the time of its hops, and what of the bytes is data."""

    protocol: str
    latency_s: float
    data: float
    # What NCCL counts for it when it chooses: seconds, and seconds of each byte; None: its choice is not known.
    counted: tuple[float, float] | None = None

    def counted_s(self, size_bytes: float) -> float:
        """Return what NCCL counts for a call, 0 where that is not known."""
        latency_s, s_per_byte = self.counted or (0.0, 0.0)
        return latency_s + size_bytes * s_per_byte


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """The parts of one call's time; they sum to it."""

    latency_s: float
    wire_s: float
    flags_s: float
    filling_s: float

    @property
    def time_s(self) -> float:
        """Return the whole."""
        return self.latency_s + self.wire_s + self.flags_s + self.filling_s


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTime:
    """The parts of a call's time, its ends by what is not published of many messages, and what they rest on."""

    parts: Parts
    # The time of a rank's own part, which crosses no link.
    own_s: float
    # What of it is known less well than the rates of links, and is not what lies between the ends.
    loose_s: float
    # Seconds; the same where nothing is open.
    least_s: float
    most_s: float
    words: tuple[str, ...]
    documents: tuple[str, ...]

    @property
    def open_order(self) -> float:
        """Return half of how far the ends lie from each other, on the logarithm."""
        return math.log(self.most_s / self.least_s) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Stages:
    """The stages of a tree, up and down: how many are between nodes, and what a byte takes through those within one."""

    between: float
    within_s_per_byte: float
    # What each holds.
    held_bytes: float

    def filling_s(self, size_bytes: float, rate_Bps: float) -> float:
        """Return how long the pipeline fills, `rate_Bps` being how fast all nodes together get on."""
        return (self.between / rate_Bps + self.within_s_per_byte) / (1 / self.held_bytes + 1 / size_bytes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rise:
    """How a call rises: ways of which the fastest is taken, and what fills."""

    ways: tuple[ProtocolTime, ...]
    # Of sweeps within one node; 0: none.
    full_s: float = 0.0
    # How many times its bytes a call takes besides that is less than the pipeline holds.
    slope: float = 0.0
    # None: it is no tree.
    stages: "Stages | None" = None
    words: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()

    def parts(self, factor: float, size_bytes: float, whole_Bps: float) -> Parts:
        """Return what a call of a size takes, `whole_Bps` being the bus bandwidth of endless messages."""
        wire_s = factor * size_bytes / whole_Bps
        full_s = 1 / (1 / self.full_s + 1 / (self.slope * wire_s)) if self.full_s and self.slope else 0.0
        # With flags a rank goes on with what has arrived: only with Simple it waits for whole parts.
        fills = {way: 0.0 if way.protocol in _FLAGGED else full_s for way in self.ways}
        way = min(
            self.ways,
            # Where its count is known, NCCL takes a protocol by that, be it the fastest or not.
            key=lambda way: way.counted_s(size_bytes) or way.latency_s + wire_s / way.data + fills[way],
        )
        filling_s = fills[way]
        if self.stages is not None:
            filling_s += self.stages.filling_s(size_bytes, whole_Bps / factor)
        return Parts(latency_s=way.latency_s, wire_s=wire_s, flags_s=wire_s * (1 / way.data - 1), filling_s=filling_s)

    def endless_Bps(self, factor: float, large_Bps: float) -> float:
        """Return the bus bandwidth of endless messages with which 16 GiB reach `large_Bps`, at most twice that."""
        low_Bps, high_Bps = large_Bps, large_Bps / _LEAST_LEFT
        goal_s = factor * LARGEST_BYTES / large_Bps
        if self.parts(factor, LARGEST_BYTES, high_Bps).time_s > goal_s:
            return high_Bps
        for _ in range(40):
            middle_Bps = (low_Bps + high_Bps) / 2
            if self.parts(factor, LARGEST_BYTES, middle_Bps).time_s > goal_s:
                low_Bps = middle_Bps
            else:
                high_Bps = middle_Bps
        return high_Bps


def rise_of(machine: MachineClass, nodes: int, collective: str, algorithm: str, constants: PredictorConstants) -> Rise:
    """Return how a call rises, of the nearest class. Raises CannotTellError where no document is near."""
    if groups_of(machine, nodes) == 1:
        return _within(machine, nodes, collective, algorithm, constants)
    hop = hop_of(machine, constants)
    stages = None
    documents = hop.documents
    words = [hop_words(hop, machine)]
    if algorithm in TREES:
        if constants.chunk is None:
            raise CannotTellError("no sweep of a tree between nodes is published")
        stages = stages_of(machine, nodes, algorithm, constants.chunk.chunks)
        documents = (*documents, *constants.chunk.documents)
        words.append(
            f"each stage of the tree holds {stages.held_bytes / 2**20:.1f} MiB, {constants.chunk.chunks:.2f} "
            f"chunks of each channel, fitted ({', '.join(constants.chunk.documents)})"
        )
    elif collective in ROOTED and constants.chunk is not None:
        stages = chain_of(machine, nodes, constants.chunk.chunks)
        documents = (*documents, *constants.chunk.documents)
        words.append(
            f"each node of the chain holds {stages.held_bytes / 2**20:.1f} MiB, {constants.chunk.chunks:.2f} chunks "
            f"of each channel, as stages of a tree do, fitted ({', '.join(constants.chunk.documents)})"
        )
    return Rise(
        ways=ways_of(machine, nodes, collective, algorithm, hop.extra_s),
        stages=stages,
        words=tuple(words),
        documents=tuple(dict.fromkeys(documents)),
    )


def hop_of(machine: MachineClass, constants: PredictorConstants) -> NetworkHop:
    """Return what one hop over the network of a machine adds. Raises CannotTellError where no document is near."""
    ladder: list[tuple[str | None, str | None]] = [(machine.generation, machine.fabric), (None, machine.fabric)]
    for generation, fabric in ladder:
        for row in constants.hop:
            if fabric is not None and (row.generation, row.fabric) == (generation, fabric):
                return row
    if machine.fabric == _MODELLED:
        return NetworkHop(fabric=_MODELLED, extra_s=0.0, documents=())
    anywhere = None if machine.fabric in RDMA else PRESUMED
    other = next((row for row in constants.hop if row.fabric == anywhere), None)
    if other is None:
        raise CannotTellError(f"no sweep over {machine.fabric or 'a network of unknown kind'} is published")
    return other


def hop_words(hop: NetworkHop, machine: MachineClass) -> str:
    """Return what a hop over the network takes, in words."""
    if hop.fabric == PRESUMED:
        return "a hop over the network: no document tells it; as over InfiniBand until cells moved it"
    if not hop.documents:
        return f"a hop over {machine.fabric}: as NCCL's cost model counts it, not fitted"
    of = " ".join(each for each in (hop.generation, hop.fabric) if each is not None) or "any network"
    return f"a hop over the network: {hop.extra_s * 1e6:.0f} us more, fitted ({of}; {', '.join(hop.documents)})"


def stages_of(machine: MachineClass, nodes: int, algorithm: str, chunks: float) -> Stages:
    """Return through what a chunk goes, up and down, each stage holding so many of each channel."""
    # The chain of a node's GPUs, or its switch.
    within = 1 if algorithm == "nvlstree" else machine.rates.gpus - 1
    link = machine.rates.nvlink or machine.rates.slot
    return Stages(
        between=2 * math.log2(max(2, nodes)),
        within_s_per_byte=2 * within / link.rate_Bps if link is not None else 0.0,
        held_bytes=chunks * _round_bytes(machine, nodes, algorithm),
    )


def chain_of(machine: MachineClass, nodes: int, chunks: float) -> Stages:
    """Return through which nodes a chunk of a broadcast or reduce goes, each holding so many of each channel.

    Within a node the next GPU goes on with what has arrived (a broadcast of four H200 fills in 7 us).
    """
    return Stages(between=nodes - 1.0, within_s_per_byte=0.0, held_bytes=chunks * _round_bytes(machine, nodes, "chain"))


def _round_bytes(machine: MachineClass, nodes: int, algorithm: str) -> float:
    """Return what all channels of a tree or chain send at once: a chunk, of NVLSTree one for each GPU of a node."""
    gpus = machine.rates.gpus
    if algorithm == "nvlstree":
        chunk_bytes = _NVLS_TREE_CHUNK_BYTES[nodes >= _FEW_NODES]
        return _NVLS_CHANNELS * gpus * chunk_bytes
    return _CHANNELS * max(1, min(machine.rates.ports or 1, gpus)) * _TREE_CHUNK_BYTES


def network_hops(nodes: int, collective: str, algorithm: str) -> int:
    """Return how many hops over the network lie behind each other."""
    if algorithm in TREES:
        return 2 * (nodes.bit_length() - 1)
    if algorithm == "pat":
        return (nodes - 1).bit_length()
    return (2 if collective == "all_reduce" else 1) * (nodes - 1)


@cache
def ways_of(
    machine: MachineClass, nodes: int, collective: str, algorithm: str, extra_s: float
) -> tuple[ProtocolTime, ...]:
    """Return NCCL's protocols with the time of their hops, `extra_s` being what the network adds to each of its own."""
    constants = nccl_constants(newest_release())
    gpus = machine.rates.gpus
    hops = network_hops(groups_of(machine, nodes), collective, algorithm)
    as_tree = algorithm in TREES
    base = constants.base.tree if as_tree else constants.base.ring
    net = constants.net.tree if as_tree else constants.net.ring
    joined = machine.rates.nvlink is not None
    inside = constants.nvlink if joined else constants.pci
    hop = inside.tree if as_tree else inside.ring
    around = (2 if collective == "all_reduce" else 1) * (gpus * nodes - 1)
    # PAT is of one GPU a node.
    within = 2 * (gpus - 1) if as_tree else 0 if algorithm == "pat" else around - hops
    # Along a chain within a node NCCL counts one hop; with Simple each rank waits for what has arrived whole.
    counted = (1, 1, within) if collective in ROOTED and hops == 0 else (within,) * len(_PROTOCOLS)
    costs = _counted(machine, collective) if nodes == 1 and algorithm == "ring" and collective not in ROOTED else {}
    return tuple(
        ProtocolTime(
            protocol=name,
            latency_s=1e-6 * (base[place] + counted[place] * hop[place] + hops * net[place]) + hops * extra_s,
            data=_DATA[place],
            counted=costs.get(name),
        )
        for place, name in enumerate(_PROTOCOLS)
    )


def _counted(machine: MachineClass, collective: str) -> dict[str, tuple[float, float]]:
    """Return what NCCL counts for the protocols of a ring over a node's NVLinks; nothing where it is not known."""
    link = machine.rates.nvlink
    if link is None or machine.sm is None or collective not in MODELLED:
        return {}
    graph = SearchedGraph(
        channels=_RING_CHANNELS,
        intra_GBps=_COUNTED_LINKS * link.rate_Bps / 1e9 / _RING_CHANNELS,
        inter_GBps=0.0,
        intra_type="NVL",
        inter_type="PIX",
        same_channels=True,
    )
    job = NcclJob(nodes=1, ranks=machine.rates.gpus, sm=machine.sm)
    table = cost_table(job, NcclGraphs(ring=graph, tree=graph, origin=""), nccl_constants(newest_release()))
    return {
        cell.protocol: (cell.latency_us * 1e-6, 1e-9 / cell.bandwidth_GBps)
        for cell in table
        if (cell.collective, cell.algorithm) == (collective, "ring") and cell.bandwidth_GBps > 0
    }


def _within(machine: MachineClass, nodes: int, collective: str, algorithm: str, constants: PredictorConstants) -> Rise:
    curve = curve_of(machine, algorithm, constants)
    one = ProtocolTime(protocol="", latency_s=curve.latency_s, data=1.0)
    return Rise(
        ways=ways_of(machine, nodes, collective, algorithm, 0.0) if algorithm == "ring" else (one,),
        full_s=curve.full_s,
        slope=curve.slope,
        words=(_curve_words(curve),),
        documents=curve.documents,
    )


def curve_of(machine: MachineClass, algorithm: str, constants: PredictorConstants) -> RiseCurve:
    """Return the curve of the nearest class within one node. Raises CannotTellError where nothing is near."""
    own = machine.generations
    for wanted in (*((algorithm, each) for each in own), (algorithm, None)):
        for row in constants.curve:
            if (row.algorithm, row.generation) == wanted:
                return row
    raise CannotTellError(f"no sweep of {algorithm} within one node is published")


def _curve_words(curve: RiseCurve) -> str:
    of = " ".join(each for each in (curve.algorithm, curve.generation) if each is not None)
    hops = f"{curve.latency_s * 1e6:.0f} us" if curve.latency_s else "hops as NCCL's cost model counts them"
    return (
        f"rise with size: {hops}, {curve.full_s * 1e6:.0f} us until the pipeline is full, "
        f"{1 + curve.slope:.1f} times their bytes for small ones, fitted ({of}; {', '.join(curve.documents)})"
    )
