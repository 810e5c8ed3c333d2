"""The work that NCCL makes of a call: channels, threads of each, and chunks, by the rules of its release.

As src/graph/connect.cc, topoGetAlgoInfo, computeBuffSizes and calcCollChunking have it.
"""

from collections.abc import Iterable

from busbw.facts.nccl_model import NcclConstants
from busbw.model.predict.nccl_choice import CostCell, NcclAlgorithm, NcclGraphs, NcclJob, Protocol
from busbw.predict.nccl_table import BLACKWELL, HOPPER

_WARP = 32
_MOST_THREADS = 640
# A ring this slow gets half of the threads.
_SLOW_RING_GBps = 12.0
# From this speed of a channel on Hopper doubles its channels once more, where they are few.
_DOUBLED_GBps = 45.0
_KIB = 1024
# What one of the eight slots of a connection holds.
_SLOT_BYTES = {"LL": 64 * _KIB, "LL128": 614_400, "Simple": 512 * _KIB}
# A ring's chunk with Simple takes so many slots, where all ranks have a part of the data.
_RING_SLOTS = 4
_GRAIN_BYTES = {"LL": 16, "LL128": 1920, "Simple": 512}
_NVLS_CHUNK_BYTES = 128 * _KIB
_SLOW_NVLS_CHUNK_BYTES = 32 * _KIB
_CHAIN_CHUNK_BYTES = 256 * _KIB


def channels_of(job: NcclJob, graphs: NcclGraphs, constants: NcclConstants) -> tuple[int, int]:
    """Return how many channels rings and trees have, and how many there are: of a log, else from what was found."""
    if job.channels is not None:
        return job.channels, job.channels
    channels = min(constants.most_channels, 2 * graphs.ring.channels)
    if job.collnet:
        asked = graphs.collnet_direct if constants.collnet_raises == "direct" else graphs.collnet_chain
        if asked.intra_GBps > asked.inter_GBps and job.ranks > job.nodes:
            channels = min(constants.most_channels, channels + channels // 2)
    is_hopper = job.sm == HOPPER or (constants.doubled_newer and job.sm > HOPPER)
    is_fast = is_hopper and job.nodes > 1 and graphs.ring.intra_GBps > _DOUBLED_GBps
    if is_fast and channels <= constants.doubled_most:
        channels *= 2
    there = channels
    if job.nvls and constants.nvls_raises != "none":
        there = max(channels, nvls_channels_of(job, constants) or 0)
    return there if constants.nvls_raises == "all" else channels, there


def nvls_channels_of(job: NcclJob, constants: NcclConstants) -> int | None:
    """Return the channels of NVLS; None where the release decides by what is not asked for here."""
    if job.nvls_channels is not None:
        return job.nvls_channels
    if job.sm < BLACKWELL:
        return constants.nvls_channels.before
    return (constants.nvls_channels.node if job.nodes == 1 else constants.nvls_channels.nodes) or None


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


def channels_and_threads(
    job: NcclJob, graphs: NcclGraphs, constants: NcclConstants, cell: CostCell, size_bytes: int, channels: int
) -> tuple[int | None, int]:
    """Return the channels and threads of each that a call gets; the count of channels is a most."""
    threads = most_threads(graphs, cell.algorithm, cell.protocol)
    if cell.algorithm in ("nvls", "nvlstree"):
        nvls = nvls_channels_of(job, constants)
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
    if cell.protocol == "Simple":
        threads += {"ring": _WARP, "tree": 4 * _WARP}.get(cell.algorithm, 0)
    whole = cell.algorithm == "pat" or (cell.algorithm == "tree" and constants.tree_threads_whole)
    return channels, _MOST_THREADS if whole else max(threads, 3 * _WARP)


def _direct_channels(job: NcclJob, size_bytes: int, channels: int, threads: int, threshold: int) -> int:
    heads, least, goes_on = job.ranks // job.nodes, 16, True
    while least >= 1 and goes_on:
        while (goes_on := size_bytes < channels * threads * heads * threshold) and channels > least:
            if channels == least + least // 2:
                threshold //= 2
            channels -= 1
        least //= 2
    return channels


def chunk_bytes_of(
    job: NcclJob,
    graphs: NcclGraphs,
    constants: NcclConstants,
    cell: CostCell,
    size_bytes: int,
    channels: int,
    nvls_GBps: float,
) -> int | None:
    """Return the data of a chunk of a call that so many channels share evenly; None: by what is not asked for.

    `nvls_GBps`: what the table has for all_reduce by NVLS.
    """
    if cell.algorithm == "nvlstree" and constants.nvlstree_chunk_by_nic and job.sm >= BLACKWELL and job.nodes > 1:
        return None
    slot_bytes = _SLOT_BYTES[cell.protocol]
    if job.cpu == "arm" and cell.protocol == "Simple":
        slot_bytes = constants.arm_slot_bytes
    is_long = cell.algorithm == "ring" and cell.protocol == "Simple" and cell.collective not in ("broadcast", "reduce")
    chunk = slot_bytes * (_RING_SLOTS if is_long else 1)
    if constants.chunk_shrinks == "data":
        chunk = _data_bytes(chunk, cell.protocol)
    if cell.algorithm in ("nvls", "nvlstree"):
        chunk = _nvls_chunk(job, graphs, constants, cell.algorithm, size_bytes, channels, chunk, nvls_GBps)
    else:
        chunk = _halved(job, constants, cell, size_bytes, channels, chunk)
    if constants.chunk_shrinks == "slot":
        chunk = _data_bytes(chunk, cell.protocol)
    return chunk // _GRAIN_BYTES[cell.protocol] * _GRAIN_BYTES[cell.protocol] if constants.chunk_grains else chunk


def _data_bytes(held_bytes: int, protocol: Protocol) -> int:
    """Return how much of what a slot holds is data: half with LL, 15 of 16 words with LL128."""
    return {"LL": held_bytes // 2, "LL128": held_bytes // 16 * 15, "Simple": held_bytes}[protocol]


def _nvls_chunk(
    job: NcclJob,
    graphs: NcclGraphs,
    constants: NcclConstants,
    algorithm: NcclAlgorithm,
    size_bytes: int,
    channels: int,
    chunk: int,
    nvls_GBps: float,
) -> int:
    at_once = channels * graphs.nvls.channels
    if algorithm == "nvls":
        is_slow = job.nodes > 1 and nvls_GBps < constants.slow_nvls_GBps
        chunk = min(chunk, _SLOW_NVLS_CHUNK_BYTES if is_slow else _NVLS_CHUNK_BYTES)
        steps: tuple[tuple[int, int], ...] = ((64, 64), (8, 32), (2, 16))
    else:
        most = constants.nvlstree_chunk_bytes if job.nodes < 4 else constants.nvlstree_chunk_bytes_four_nodes
        chunk = min(chunk, most)
        steps = ((32, 256), (16, 128), (4, 64), (1, 32))
    for times, kib in steps:
        if size_bytes < times * at_once * chunk:
            chunk = min(chunk, kib * _KIB)
    return chunk


def _halved(job: NcclJob, constants: NcclConstants, cell: CostCell, size_bytes: int, channels: int, chunk: int) -> int:
    """Return the chunk after it was halved while too few of them are in a channel's part, down to a floor."""
    per_node, depth = job.ranks // job.nodes, job.nodes.bit_length() - 1
    # A graph file may have rings without a channel.
    parts = max(1, channels)
    steps: tuple[tuple[float, int], ...] = ()
    if cell.algorithm == "collnetdirect":
        return direct_chunk_bytes(per_node, per_node, parts, size_bytes, chunk)
    if cell.algorithm == "collnetchain":
        return chain_chunk_bytes(per_node, parts, size_bytes, chunk)
    if cell.algorithm == "tree" and cell.protocol == "LL128":
        stages = 1 + depth + 0.1 * per_node
        steps = ((64 * stages / per_node, 128), (16 * stages / per_node, 32))
    elif cell.algorithm == "tree" and cell.protocol == "Simple" and constants.tree_chunk_shrinks:
        stages = per_node - 1 + depth
        steps = ((8 * stages, 128), (4 * stages, 64), (stages, 32))
    elif cell.algorithm == "pat":
        shares = 32 if cell.collective == "all_gather" else 16
        while chunk * channels * shares > size_bytes and chunk > 64 * _KIB:
            chunk //= 2
    return _while_few(chunk, size_bytes, parts, steps)


def direct_chunk_bytes(per_node: int, heads: int, channels: int, size_bytes: int, slot_bytes: int) -> int:
    """Return what CollNet direct sends at once to each of so many heads on a channel."""
    stages = 1 if per_node == 1 else 2
    steps = ((64 * stages, 128), (8 * stages, 64), (8 * stages, 32))
    return _while_few(slot_bytes, size_bytes, channels * heads, steps)


def chain_chunk_bytes(per_node: int, channels: int, size_bytes: int, slot_bytes: int) -> int:
    """Return what CollNet chain sends at once on a channel."""
    steps = ((64 * per_node, 128), (8 * per_node, 64), (per_node, 32))
    return _while_few(min(slot_bytes, _CHAIN_CHUNK_BYTES), size_bytes, channels, steps)


def _while_few(chunk: int, size_bytes: int, parts: int, steps: Iterable[tuple[float, int]]) -> int:
    """Return the chunk after it was halved while there are fewer of it than a bound, down to a floor in KiB each."""
    for least, kib in steps:
        while size_bytes // (parts * chunk) < least and chunk > kib * _KIB:
            chunk //= 2
    return chunk
