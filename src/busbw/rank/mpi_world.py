"""MPI as this rank sees it: who it is, whom it can talk to, and the handles the core needs."""

import array
import itertools
from typing import TYPE_CHECKING

import mpi4py
import msgspec

# THREAD_MULTIPLE, mpi4py's default, costs about 100 ns a message in Open MPI.
mpi4py.rc.thread_level = "single"

from mpi4py import MPI  # noqa: E402

from busbw import _core  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

    from busbw.model.plan import Groups

THREAD_LEVELS = {
    MPI.THREAD_SINGLE: "single",
    MPI.THREAD_FUNNELED: "funneled",
    MPI.THREAD_SERIALIZED: "serialized",
    MPI.THREAD_MULTIPLE: "multiple",
}
_DATATYPES = {
    "int8": MPI.INT8_T,
    "uint8": MPI.UINT8_T,
    "int16": MPI.INT16_T,
    "uint16": MPI.UINT16_T,
    "int32": MPI.INT32_T,
    "uint32": MPI.UINT32_T,
    "int64": MPI.INT64_T,
    "uint64": MPI.UINT64_T,
    "float32": MPI.FLOAT,
    "float64": MPI.DOUBLE,
}
_OPERATIONS = {"sum": MPI.SUM, "prod": MPI.PROD, "min": MPI.MIN, "max": MPI.MAX}
# 1.0 in each 16-bit format, to try whether MPI can add it.
_ONE = {"float16": 0x3C00, "bfloat16": 0x3F80}
_TWO = {"float16": 0x4000, "bfloat16": 0x4000}


def _own_datatype(dtype: str) -> MPI.Datatype | None:
    """Return MPI's own 16-bit float if it has one that it can also add."""
    datatype: MPI.Datatype = {"float16": MPI.FLOAT16_T, "bfloat16": MPI.BFLOAT16_T}[dtype]
    if datatype == MPI.DATATYPE_NULL:
        return None
    left, right = array.array("H", [_ONE[dtype]]), array.array("H", [_ONE[dtype]])
    try:
        MPI.SUM.Reduce_local([left, 1, datatype], [right, 1, datatype])
    except MPI.Exception:
        return None
    return datatype if right[0] == _TWO[dtype] else None


class Reducer(msgspec.Struct, frozen=True):
    """How elements of one type are given to MPI: a data type and, for reductions, an operation. Handles as integers."""

    datatype: int
    operation: int
    by: str


class MpiWorld:
    """All ranks of the run, met through MPI."""

    def __init__(self) -> None:
        self.communicator = MPI.COMM_WORLD
        self.rank = self.communicator.Get_rank()
        self.ranks = self.communicator.Get_size()
        self.handle_bytes = MPI._sizeof(MPI.Comm)
        self.core = _core.open_mpi(MPI.__file__, self.handle_bytes)
        self.byte = MPI._handleof(MPI.BYTE)
        self.in_place_mark = int(MPI.IN_PLACE) & (2**64 - 1)
        self.version = MPI.Get_library_version().rstrip("\0").strip().splitlines()[0].strip()
        self.thread_level = THREAD_LEVELS[MPI.Query_thread()]
        on_host = self.communicator.Split_type(MPI.COMM_TYPE_SHARED)
        self._small_float_reducers: dict[tuple[str, str], Reducer] = {}
        self._levels: dict[int, tuple[MPI.Comm, MPI.Comm]] = {}
        self._within: dict[Groups, MPI.Comm] = {}
        self.one_host = on_host.Get_size() == self.ranks
        self.local_rank = on_host.Get_rank()
        self.library = self.core.library
        self.interposed = tuple(self.core.interposed)

    def handle(self, communicator: MPI.Comm) -> int:
        """Return the handle of `communicator` as an integer."""
        return int(MPI._handleof(communicator))

    def reducer(self, dtype: str, op: str) -> Reducer:
        """Return what MPI is told about elements of `dtype` combined by `op`."""
        if dtype in _DATATYPES:
            return Reducer(MPI._handleof(_DATATYPES[dtype]), MPI._handleof(_OPERATIONS[op]), "mpi")
        return self._small_float_reducer(dtype, op)

    def _small_float_reducer(self, dtype: str, op: str) -> Reducer:
        if (dtype, op) not in self._small_float_reducers:
            own = _own_datatype(dtype)
            if own is not None:
                reducer = Reducer(MPI._handleof(own), MPI._handleof(_OPERATIONS[op]), "mpi")
            else:
                made = _core.make_operation(self.core, dtype=dtype, op=op)
                reducer = Reducer(MPI._handleof(MPI.UINT16_T), made, "busbw")
            self._small_float_reducers[dtype, op] = reducer
        return self._small_float_reducers[dtype, op]

    def from_first(self, numbers: "Sequence[int]") -> list[int]:
        """Return rank 0's `numbers` on every rank; all ranks give the same count."""
        buffer = array.array("q", numbers)
        self.communicator.Bcast([buffer, len(buffer), MPI.INT64_T], root=0)
        return list(buffer)

    def largest(self, numbers: "Sequence[int]", communicator: MPI.Comm | None = None) -> list[int]:
        """Return the element-wise maximum over all ranks, on every rank."""
        return self._combine(numbers, MPI.MAX, communicator)

    def total(self, numbers: "Sequence[int]", communicator: MPI.Comm | None = None) -> list[int]:
        """Return the element-wise sum over all ranks, on every rank."""
        return self._combine(numbers, MPI.SUM, communicator)

    def _combine(self, numbers: "Sequence[int]", op: MPI.Op, communicator: MPI.Comm | None) -> list[int]:
        mine = array.array("q", numbers)
        combined = array.array("q", bytes(8 * len(mine)))
        chosen = self.communicator if communicator is None else communicator
        chosen.Allreduce([mine, len(mine), MPI.INT64_T], [combined, len(mine), MPI.INT64_T], op=op)
        return list(combined)

    def from_each(self, number: int) -> list[int]:
        """Return one number of every rank, on every rank."""
        mine, everyone = array.array("q", [number]), array.array("q", bytes(8 * self.ranks))
        self.communicator.Allgather([mine, 1, MPI.INT64_T], [everyone, 1, MPI.INT64_T])
        return list(everyone)

    def half(self, group: int) -> MPI.Comm:
        """Return the communicator of the ranks that gave the same `group`. Every rank must call this."""
        return self.communicator.Split(group, self.rank)

    def levels(self, group: int) -> _core.Levels:
        """Return the communicators of groups of `group` neighbouring ranks, and of one place in every group.

        Every rank must call this. They are made once for each size of groups.
        """
        if group not in self._levels:
            number, place = divmod(self.rank, group)
            self._levels[group] = (self.communicator.Split(number, place), self.communicator.Split(place, number))
        intra, rail = self._levels[group]
        return _core.Levels(intra=self.handle(intra), rail=self.handle(rail), group=group)

    def within(self, groups: "Groups") -> MPI.Comm:
        """Return the communicator of this rank's group. Every rank must call this; it is made once for each form."""
        if groups not in self._within:
            first, place = groups.seat(self.rank)
            self._within[groups] = self.communicator.Split(first, place)
        return self._within[groups]

    def barrier(self) -> None:
        """Wait for every rank."""
        self.communicator.Barrier()

    def gate(self, _timeout_s: float) -> _core.Gate:
        """Return where the loops of the core meet. MPI waits without bound; the launching side ends a stalled run."""
        return _core.mpi_gate(self.core, communicator=self.handle(self.communicator), byte=self.byte, rank=self.rank)

    def bytes_from_first(self, content: bytes) -> bytes:
        """Return rank 0's `content` on every rank; all ranks give the same length."""
        buffer = bytearray(content)
        self.communicator.Bcast([buffer, len(buffer), MPI.BYTE], root=0)
        return bytes(buffer)

    def to_first(self, content: bytes) -> list[bytes]:
        """Return every rank's `content`, in their order, on rank 0; nothing elsewhere."""
        lengths = self.from_each(len(content))
        if self.rank != 0:
            self.communicator.Gatherv([content, len(content), MPI.BYTE], None, root=0)
            return []
        together = bytearray(sum(lengths))
        starts = [0, *itertools.accumulate(lengths)]
        self.communicator.Gatherv([content, len(content), MPI.BYTE], [together, lengths, starts[:-1], MPI.BYTE], root=0)
        return [bytes(together[start:end]) for start, end in itertools.pairwise(starts)]

    def leave(self) -> None:
        """Part from the others at the end of a run that came to its end. Every rank calls this."""
        MPI.Finalize()

    def abort(self, code: int) -> None:
        """End every rank of the run at once."""
        self.communicator.Abort(code)

    def clock_offset(self, rounds: int) -> _core.ClockOffset:
        """Measure this rank's clock against rank 0's."""
        return _core.clock_offset(
            self.core,
            communicator=self.handle(self.communicator),
            byte=self.byte,
            rank=self.rank,
            ranks=self.ranks,
            rounds=rounds,
        )
