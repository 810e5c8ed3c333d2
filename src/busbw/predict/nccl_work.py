"""The work that NCCL makes of a call: channels, and threads of each, by the rules of its release.

As src/graph/connect.cc and topoGetAlgoInfo have it.
"""

from busbw.facts.nccl_model import NcclConstants
from busbw.model.predict.nccl_choice import CostCell, NcclAlgorithm, NcclGraphs, NcclJob, Protocol
from busbw.predict.nccl_table import BLACKWELL, HOPPER

_WARP = 32
_MOST_THREADS = 640
# A ring this slow gets half of the threads.
_SLOW_RING_GBps = 12.0
# From this speed of a channel on Hopper doubles its channels once more, where they are few.
_DOUBLED_GBps = 45.0


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
