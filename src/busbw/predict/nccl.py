"""Which algorithm and protocol NCCL takes for a call, and the channels and threads that it gets.

time_us = latency_us x calls + bytes / (1000 bandwidth_GBps), as ncclTopoGetAlgoTime and topoGetAlgoInfo have it, over
the cells of predict.nccl_table.
"""

from busbw.base.errors import InputError
from busbw.facts.nccl_model import NcclConstants
from busbw.model.predict.nccl_choice import (
    MODELLED,
    CallCost,
    CostCell,
    NcclAlgorithm,
    NcclGraphs,
    NcclJob,
    PredictedChoice,
    Protocol,
)
from busbw.predict.nccl_table import BLACKWELL, GATHERS, cost_table
from busbw.predict.nccl_work import channels_and_threads, channels_of, chunk_bytes_of

# The cell whose bandwidth decides on chunks of NVLS.
_NVLS = ("all_reduce", "nvls", "Simple")


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
    if calls > 1 and not constants.merged_calls:
        raise InputError(
            f"how NCCL {release} merges calls is not modelled: before 2.22 it has rules of its own",
            hint="one call, or a later release",
        )
    table = cost_table(job, graphs, constants)
    nvls_GBps = next(cell.bandwidth_GBps for cell in table if (cell.collective, cell.algorithm, cell.protocol) == _NVLS)
    costs = [
        _cost(job, graphs, constants, cell, size_bytes, calls, nvls_GBps)
        for cell in table
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
        most = constants.collnet_direct_ranks if algorithm == "collnetdirect" else constants.collnet_chain_ranks
        return job.collnet and per_node <= (most or per_node)
    if algorithm in ("nvls", "nvlstree"):
        most = constants.nvls_gather_ranks or per_node
        if not job.nvls or (collective != "all_reduce" and per_node > most):
            return False
        if collective in GATHERS and job.nodes > 1 and constants.nvls_gather == "whole":
            return False
        return algorithm == "nvlstree" or job.nodes == 1 or job.collnet
    return True


def _cost(
    job: NcclJob,
    graphs: NcclGraphs,
    constants: NcclConstants,
    cell: CostCell,
    size_bytes: int,
    calls: int,
    nvls_GBps: float,
) -> CallCost:
    bandwidth_GBps = cell.bandwidth_GBps * _corrected(job, constants, cell, size_bytes)
    latency_us, (channels, there) = cell.latency_us, channels_of(job, graphs, constants)
    plateau = cell.algorithm == "ring" and cell.protocol == "Simple" and cell.collective == "all_reduce"
    if plateau and job.nodes > 1 and size_bytes // (there * job.ranks) >= 64:
        latency_us *= 1.9 if job.sm < 80 else 1.4
    counted = calls if calls == 1 or cell.algorithm == "ring" else -(-calls // constants.merged_calls)
    used, threads = channels_and_threads(job, graphs, constants, cell, size_bytes, channels)
    chunk = None
    if used is not None:
        chunk = chunk_bytes_of(job, graphs, constants, cell, size_bytes, used, nvls_GBps)
    return CallCost(
        algorithm=cell.algorithm,
        protocol=cell.protocol,
        time_us=latency_us * counted + size_bytes / (1000 * bandwidth_GBps),
        channels=used,
        threads=threads,
        chunk_bytes=chunk,
    )


def _corrected(job: NcclJob, constants: NcclConstants, cell: CostCell, size_bytes: int) -> float:
    if cell.collective != "all_reduce" or (size_bytes < 64 and not constants.corrects_below_64):
        return 1.0
    power = max(0, (size_bytes >> 6).bit_length() - 1)
    factors: tuple[float, ...] = getattr(constants.correction, cell.protocol)
    if cell.algorithm == "tree" and power < 23:
        return factors[power]
    is_x86 = job.cpu in ("intel", "amd", "mixed", "other")
    if cell.algorithm == "nvlstree" and constants.corrects_nvlstree and job.sm >= BLACKWELL and is_x86 and power < 24:
        return factors[power]
    return 1.0
