"""Ranks of NCCL in one process, driven through the compiled core without a run around them."""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.standin.build import StandIn

from busbw import _core
from busbw.base import layout
from busbw.base.collectives import DTYPE_BYTES

_STEP_NS = 20_000_000_000
_ALIGNMENT = 4096


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What is exchanged; the core's own arguments."""

    kind: str
    ranks: int
    count: int
    dtype: str = "float32"
    op: str = "sum"
    root: int = 0
    in_place: bool = False
    pair: tuple[int, int] = (0, 0)
    group: int = 1
    matrix: tuple[int, ...] = ()

    @property
    def core(self) -> _core.NcclShape:
        """The same for the core."""
        return _core.nccl_shape(
            kind=self.kind, dtype=self.dtype, op=self.op, ranks=self.ranks, root=self.root, count=self.count,
            in_place=self.in_place, pair=self.pair, group=self.group, matrix=list(self.matrix),
        )  # fmt: skip


class Together:
    """One communicator over the first GPUs of the stand-in, all in this process."""

    def __init__(self, standin: StandIn, version: int, ranks: int, *, kernels: bool) -> None:
        self.ranks = ranks
        self._nccl = _core.Nccl(str(standin.nccl(version)))
        cuda = _core.Cuda(str(standin.cuda))
        code = _core.Nvrtc(str(standin.nvrtc)).compile_kernels(90) if kernels else b""
        self._gpus = [_core.Gpu(cuda, ordinal, code=code) for ordinal in range(ranks)]
        self._all = _core.Communicators(
            self._nccl, self._gpus, unique_id=self._nccl.unique_id(), ranks=ranks, first=0, config=[]
        )
        self._split: dict[int, tuple[_core.Communicators, _core.Communicators]] = {}
        self._beats = [mmap.mmap(-1, layout.HEARTBEAT_BYTES) for _gpu in self._gpus]
        self._gate = _core.no_gate()
        self.bench = _core.nccl_bench(self._gate, heartbeats=self._beats, step_ns=_STEP_NS)

    def exchange(self, shape: Shape, *, shift: int = 0, slots: int = 1) -> _core.NcclExchange:
        """Return the exchange, on buffers of exactly the size that its footprint asks for."""
        element = DTYPE_BYTES[shape.dtype]
        needs = [0, 0, 0]
        for rank in range(self.ranks):
            for which, count in enumerate(_core.nccl_footprint(shape.core, rank=rank)):
                needs[which] = max(needs[which], count)
        sizes = [(need + shift) * element for need in needs]
        sizes[1] += _core.GUARD_BYTES
        strides = [-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes]
        whole = [size + (slots - 1) * stride for size, stride in zip(sizes, strides, strict=True)]
        send, receive, scratch = ([_core.GpuMemory(gpu, max(size, 1), None) for gpu in self._gpus] for size in whole)
        intra, rail = self._groups(shape.group) if shape.kind == "alltoall_2dh" else (None, None)
        return _core.make_nccl_exchange(
            self._nccl,
            shape.core,
            _core.Equipment(gpus=self._gpus, send=send, receive=receive, scratch=scratch, first=0),
            self._all,
            intra=intra,
            rail=rail,
            rotation=_core.Rotation(
                slots=slots, send_stride=strides[0], receive_stride=strides[1], scratch_stride=strides[2]
            ),
            shift=shift,
        )

    def verified(self, shape: Shape, *, shift: int = 0, seed: int = 1) -> list[_core.Mismatch]:
        """Run the exchange once on random data and return what each rank found wrong."""
        pattern = _core.pattern(seed=seed, ranks=self.ranks, dtype=shape.dtype, op=shape.op)
        return _core.nccl_verify(self.exchange(shape, shift=shift), self.bench, pattern)

    def wrong(self, shape: Shape, *, shift: int = 0, seed: int = 1) -> list[str]:
        """Return what is wrong of an exchange in words, one for each rank; empty when all is right."""
        found = self.verified(shape, shift=shift, seed=seed)
        return [
            f"{shape} shift {shift}, rank {rank}: {one.wrong} wrong, first {one.index}: {one.got} for {one.expected}"
            for rank, one in enumerate(found)
            if one.wrong
        ]

    def _groups(self, group: int) -> tuple[_core.Communicators, _core.Communicators]:
        if group not in self._split:
            ranks = range(self.ranks)
            self._split[group] = (
                self._all.split(colors=[rank // group for rank in ranks], keys=[rank % group for rank in ranks]),
                self._all.split(colors=[rank % group for rank in ranks], keys=[rank // group for rank in ranks]),
            )
        return self._split[group]


def rows(matrix: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return a matrix row by row."""
    return tuple(cell for row in matrix for cell in row)


def cache_of(root: Path) -> dict[str, str]:
    """Return the variables under which this process is to meet the stand-ins: GPUs enough for every test."""
    return {
        "STANDIN_CACHE": str(root / "build" / "standin" / "cache"),
        "STANDIN_GPUS": "8",
        "STANDIN_PATIENCE_S": "15",
    }
