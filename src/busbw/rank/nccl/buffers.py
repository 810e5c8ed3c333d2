"""Send, receive and scratch memory of this process's GPUs, large enough for every point, and how calls move through."""

from collections.abc import Sequence

from busbw import _core
from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, matrix_counts, part_count
from busbw.model.gpu import GpuSetup
from busbw.model.sweep import Sweep
from busbw.rank.nccl.equipment import Libraries

# Slots begin at multiples of this, as memory from an allocator does; windows need it.
_ALIGNMENT_BYTES = 4096
# Cold calls move through this many times the L2 cache before they come back to a place.
_TIMES_L2 = 4
_MOST_SLOTS = 1024


def shape_of(sweep: Sweep, size_bytes: int, ranks: int) -> _core.NcclShape:
    """Return the exchange of one point for the core."""
    varies = sweep.collective == "alltoallv"
    count = 0 if varies else part_count(COLLECTIVES[sweep.collective], size_bytes, ranks, sweep.dtype)
    kind = "sendrecv_pair" if sweep.pair is not None else sweep.collective
    return _core.nccl_shape(
        kind=kind,
        dtype=sweep.dtype,
        op=sweep.op,
        ranks=ranks,
        root=sweep.root,
        count=count,
        in_place=sweep.in_place,
        pair=sweep.pair or (0, 0),
        group=sweep.group or 1,
        matrix=list(matrix_counts(sweep.matrix, _scale_bytes(sweep, size_bytes), sweep.dtype)) if varies else [],
    )


def _scale_bytes(sweep: Sweep, size_bytes: int) -> int:
    return sweep.scales_bytes[sweep.sizes_bytes.index(size_bytes)]


class NcclBuffers:
    """Three buffers on each GPU of this process; every rank of the run has equal ones."""

    def __init__(
        self,
        libraries: Libraries,
        gpus: Sequence[_core.Gpu],
        setup: GpuSetup,
        sweeps: Sequence[Sweep],
        ranks: int,
    ) -> None:
        self._cold_bytes = _TIMES_L2 * max(gpu.facts.l2_bytes for gpu in gpus) if setup.cache == "cold" else 0
        sizes = [0, 0, 0]
        for sweep in sweeps:
            for size_bytes in sweep.sizes_bytes:
                rotation = self.rotation(sweep, size_bytes, ranks)
                for which, (stride, slots) in enumerate(rotation):
                    sizes[which] = max(sizes[which], stride * slots)
        nccl = libraries.nccl if setup.nccl_memory else None
        self.send, self.receive, self.scratch = (
            [_core.GpuMemory(gpu, size + _ALIGNMENT_BYTES, nccl) for gpu in gpus] for size in sizes
        )

    def rotation(self, sweep: Sweep, size_bytes: int, ranks: int) -> tuple[tuple[int, int], ...]:
        """Return (stride, slots) of the send, receive and scratch buffers, the same on every rank."""
        shape = shape_of(sweep, size_bytes, ranks)
        element_bytes = DTYPE_BYTES[sweep.dtype]
        needs = [0, 0, 0]
        for rank in range(ranks):
            for which, count in enumerate(_core.nccl_footprint(shape, rank=rank)):
                needs[which] = max(needs[which], count * element_bytes)
        # One element of room to try what is not aligned, and the guard behind every output.
        strides = [_aligned(need + element_bytes + _core.GUARD_BYTES) for need in needs]
        touched = sum(stride for stride, need in zip(strides, needs, strict=True) if need)
        slots = min(max(-(-self._cold_bytes // max(touched, 1)), 1), _MOST_SLOTS)
        return tuple((stride, slots) for stride in strides)


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
