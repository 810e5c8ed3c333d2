"""Collectives of a training step over torch.distributed, each timed, and their gradients.

A collective is waited for: nothing computes beside it, and so its time is exposed. On GPUs two events in the stream
that computes stand around it, on CPUs a clock does.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from busbw.model.train.plan import GroupKind
from busbw.model.train.proxy import ProxyPlan

# Called so since PyTorch 2.13, which warns of the older names.
_REDUCE_SCATTER = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
_ALL_GATHER = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


@dataclass(frozen=True, slots=True)
class CallKind:
    """What a call is for, of which group, and which collective."""

    name: str
    group: GroupKind
    collective: str


@dataclass(slots=True)
class CallTally:
    """The calls of one kind in a step."""

    size_bytes: int = 0
    # One for each call, in their order.
    times_s: list[float] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """Return how many there were."""
        return len(self.times_s)

    @property
    def time_s(self) -> float:
        """Return what all took."""
        return sum(self.times_s)


# Of one rank and step: seconds of each call, by kind and in their order.
CallTimes = dict[CallKind, list[float]]


@dataclass(slots=True)
class Meter:
    """Times calls of one step after the other."""

    has_events: bool
    # Events are nodes of a graph, and hold the times of its last launch.
    in_graph: bool = False
    _open: list[tuple[CallKind, int, Any, Any]] = field(default_factory=list)

    def around(self, kind: CallKind, size_bytes: int, call: Callable[[], None]) -> None:
        """Make a call and take its time."""
        begin = self._moment()
        call()
        self._open.append((kind, size_bytes, begin, self._moment()))

    def _moment(self) -> Any:  # noqa: ANN401 - an event, or seconds
        if not self.has_events:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True, **({"external": True} if self.in_graph else {}))
        event.record()
        return event

    def taken(self) -> dict[CallKind, CallTally]:
        """Return the calls since the last time, or of the last launch of a graph.

        On GPUs everything must have been waited for.
        """
        found: dict[CallKind, CallTally] = {}
        for kind, size_bytes, begin, end in self._open:
            tally = found.setdefault(kind, CallTally())
            tally.size_bytes += size_bytes
            tally.times_s.append(begin.elapsed_time(end) * 1e-3 if self.has_events else end - begin)
        if not self.in_graph:
            self._open.clear()
        return found


class ProcessGroups:
    """The groups of this process, made by all processes in the same order."""

    def __init__(self, plan: ProxyPlan, rank: int, meter: Meter) -> None:
        self.meter = meter
        self.rank = rank
        self._groups: dict[GroupKind, dist.ProcessGroup] = {}
        self._ranks: dict[GroupKind, tuple[int, ...]] = {}
        for each in plan.groups:
            for ranks in each.ranks:
                # A group of one needs no communicator, and costs memory on a GPU.
                made = dist.new_group(list(ranks)) if len(ranks) > 1 else None
                if rank in ranks:
                    self._ranks[each.kind] = ranks
                    if made is not None:
                        self._groups[each.kind] = made

    def size(self, kind: GroupKind) -> int:
        """Return how many ranks this process's group has."""
        return len(self._ranks[kind])

    def members(self, kind: GroupKind) -> tuple[int, ...]:
        """Return the ranks of this process's group."""
        return self._ranks[kind]

    def place(self, kind: GroupKind) -> int:
        """Return which of them this process is."""
        return self._ranks[kind].index(self.rank)

    def all_reduce(self, name: str, kind: GroupKind, values: Tensor, *, largest: bool = False) -> Tensor:
        """Return the sums (or the largest) over a group, in place."""
        if self.size(kind) > 1:
            how = dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM
            self._call(
                CallKind(name, kind, "all_reduce"), values.nbytes,
                lambda: dist.all_reduce(values, op=how, group=self._groups[kind]),
            )  # fmt: skip
        return values

    def reduce_scatter(self, name: str, kind: GroupKind, values: Tensor) -> Tensor:
        """Return this process's part of the sums over a group."""
        if self.size(kind) == 1:
            return values
        part = values.new_empty(values.numel() // self.size(kind))
        self._call(
            CallKind(name, kind, "reduce_scatter"), values.nbytes,
            lambda: _REDUCE_SCATTER(part, values, group=self._groups[kind]),
        )  # fmt: skip
        return part

    def all_gather(self, name: str, kind: GroupKind, part: Tensor) -> Tensor:
        """Return the parts of a group, one behind the other."""
        if self.size(kind) == 1:
            return part
        whole = part.new_empty(part.numel() * self.size(kind))
        self._call(
            CallKind(name, kind, "all_gather"), whole.nbytes,
            lambda: _ALL_GATHER(whole, part, group=self._groups[kind]),
        )  # fmt: skip
        return whole

    def alltoall(self, name: str, kind: GroupKind, rows: Tensor, sent: Sequence[int], got: Sequence[int]) -> Tensor:
        """Return rows from each of a group, of which `sent` and `got` say how many go to and come from each."""
        if self.size(kind) == 1:
            return rows
        found = rows.new_empty((sum(got), *rows.shape[1:]))
        # A copy of them is no communication.
        whole = rows.contiguous()
        self._call(
            CallKind(name, kind, "alltoall"), rows.nbytes,
            lambda: dist.all_to_all_single(found, whole, list(got), list(sent), group=self._groups[kind]),
        )  # fmt: skip
        return found

    def _call(self, kind: CallKind, size_bytes: int, call: Callable[[], object]) -> None:
        self.meter.around(kind, size_bytes, lambda: (call(), None)[1])


_TP_SUMS = "sums of tensor parallelism"
_TO_EXPERTS = "tokens to experts and back"


class _IntoTensorParallel(torch.autograd.Function):
    """What all ranks of TP take in alike: its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, groups: ProcessGroups) -> Tensor:  # noqa: ANN401
        ctx.groups = groups
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        return ctx.groups.all_reduce(_TP_SUMS, "TP", gradient.contiguous().clone()), None


class _OutOfTensorParallel(torch.autograd.Function):
    """Parts that are summed over TP: each takes the gradient of the sum."""

    @staticmethod
    def forward(_ctx: Any, values: Tensor, groups: ProcessGroups) -> Tensor:  # noqa: ANN401
        return groups.all_reduce(_TP_SUMS, "TP", values.contiguous().clone())

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        return gradient, None


class _BetweenExperts(torch.autograd.Function):
    """Rows to other ranks of EP: their gradients go the way back."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, groups: ProcessGroups, sent: Sequence[int], got: Sequence[int]) -> Tensor:  # noqa: ANN401
        ctx.groups, ctx.sent, ctx.got = groups, sent, got
        return groups.alltoall(_TO_EXPERTS, "EP", rows, sent, got)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:  # noqa: ANN401
        back = ctx.groups.alltoall(_TO_EXPERTS, "EP", gradient.contiguous(), ctx.got, ctx.sent)
        return back, None, None, None


def into_tensor_parallel(values: Tensor, groups: ProcessGroups) -> Tensor:
    """Return what each rank of TP goes on with by itself."""
    return values if groups.size("TP") == 1 else _IntoTensorParallel.apply(values, groups)


def out_of_tensor_parallel(values: Tensor, groups: ProcessGroups) -> Tensor:
    """Return the sum of what ranks of TP have."""
    return values if groups.size("TP") == 1 else _OutOfTensorParallel.apply(values, groups)


def between_experts(rows: Tensor, groups: ProcessGroups, sent: Sequence[int], got: Sequence[int]) -> Tensor:
    """Return the rows that come from other ranks of EP for those that go there."""
    return rows if groups.size("EP") == 1 else _BetweenExperts.apply(rows, groups, sent, got)
