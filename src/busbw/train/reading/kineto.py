"""Traces of PyTorch's profiler (Kineto): chrome's JSON, `export_chrome_trace` or `tensorboard_trace_handler`.

Events of GPUs are complete ones (`ph` X) in microseconds with `cat` kernel; steps are annotations `ProfilerStep#N`
(torch/profiler/profiler.py), on the GPU `gpu_user_annotation`, once for each stream; up to 1.11 `cat` is Kernel, and
steps are of `cat` Operator, on the host alone. Kernels of NCCL say their group
since PyTorch 2.3: `Process Group Name`, `Process Group Description`, `Group size`, `Collective name` (kineto,
libkineto; torch/csrc/distributed/c10d/ParamCommsUtils.hpp).
"""

import math
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from busbw.base.errors import InputError
from busbw.stats.distributions import median

MOST_BYTES = 4 * 2**30
_STEP = re.compile(r"ProfilerStep#(\d{1,12})", re.ASCII)
# NCCL, RCCL, MSCCL, and what sends from within kernels.
_COMMUNICATION = re.compile(r"(?:void )?(?:nccl|rccl|mscclKernel|mscclpp|nvshmem|deep_ep::)", re.IGNORECASE)
_LONGEST_NAME = 80
# So many times as long as the others a last step may be.
_MOST_TIMES = 1.5
_NOTHING = msgspec.Raw(b"{}")


class _TraceEvent(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: float = 0.0
    dur: float = 0.0
    pid: Any = None
    args: msgspec.Raw = _NOTHING


class _Trace(msgspec.Struct):
    traceEvents: list[_TraceEvent]  # noqa: N815 - as the file has it
    distributedInfo: dict[str, Any] | None = None  # noqa: N815 - as the file has it


class _KernelArguments(msgspec.Struct):
    group_name: str | None = msgspec.field(name="Process Group Name", default=None)
    group_description: str | None = msgspec.field(name="Process Group Description", default=None)
    group_ranks: int | None = msgspec.field(name="Group size", default=None)
    collective: str | None = msgspec.field(name="Collective name", default=None)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that communicates: seconds from the trace's zero, group and collective as the trace names them."""

    begin_s: float
    end_s: float
    group: str
    collective: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedSteps:
    """What counts of a trace, of the GPU with most kernels. Seconds from the trace's zero."""

    compute: list[tuple[float, float]]
    communication: list[Kernel]
    # Number, begin and end; () where the trace marks none.
    steps: tuple[tuple[int, float, float], ...]
    # Steps are those of the host: kernels of a step may end after it.
    steps_of_host: bool
    rank: int | None
    gpus: int | None
    other_gpus: int
    garbled: int


def is_trace(head: bytes) -> bool:
    """Whether a file begins as such a trace does."""
    start = head.lstrip()[:1]
    return (start == b"{" and (b'"traceEvents"' in head or b'"deviceProperties"' in head)) or (
        start == b"[" and b'"ph"' in head and b'"cat"' in head
    )


def read_trace(content: bytes, where: str) -> TracedSteps:
    """Return the kernels and steps of a trace. Raises InputError for one that is damaged, or has no kernels."""
    try:
        if content.lstrip()[:1] == b"[":
            trace = _Trace(msgspec.json.decode(content, type=list[_TraceEvent]))
        else:
            trace = msgspec.json.decode(content, type=_Trace)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"a trace that cannot be read: {str(error)[:160]}",
            where=where,
            hint="the profiler writes it in one go: one that was cut off has to be made again",
        ) from error
    complete = [each for each in trace.traceEvents if each.ph == "X"]
    sound = [each for each in complete if math.isfinite(each.ts) and math.isfinite(each.dur) and 0 <= each.dur < 1e12]
    kernels: dict[str, list[_TraceEvent]] = {}
    for each in sound:
        # PyTorch up to 1.11 writes it with a capital.
        if each.cat in ("kernel", "Kernel"):
            kernels.setdefault(str(each.pid), []).append(each)
    if not kernels:
        raise InputError(
            "no kernel of a GPU in this trace",
            where=where,
            hint="profile with ProfilerActivity.CUDA",
        )
    chosen = max(kernels.values(), key=len)
    zero_us = min(each.ts for each in chosen)
    steps, of_host = _steps(sound, zero_us, max(_interval(each, zero_us)[1] for each in chosen))
    info = trace.distributedInfo or {}
    return TracedSteps(
        compute=[_interval(each, zero_us) for each in chosen if not _COMMUNICATION.match(each.name)],
        communication=[_kernel(each, zero_us) for each in chosen if _COMMUNICATION.match(each.name)],
        steps=steps,
        steps_of_host=of_host,
        rank=_whole(info.get("rank")),
        gpus=_whole(info.get("world_size")),
        other_gpus=len(kernels) - 1,
        garbled=len(complete) - len(sound),
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _interval(event: _TraceEvent, zero_us: float) -> tuple[float, float]:
    begin_s = (event.ts - zero_us) * 1e-6
    return begin_s, begin_s + event.dur * 1e-6


def _kernel(event: _TraceEvent, zero_us: float) -> Kernel:
    try:
        said = msgspec.json.decode(event.args, type=_KernelArguments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        said = _KernelArguments()
    label = said.group_description or said.group_name
    if label is not None and said.group_name not in (None, label):
        # Groups of one description, as those of several layers, are told apart by their names.
        label = f"{label} ({said.group_name})"
    if label is not None and said.group_ranks is not None:
        label = f"{label}, {said.group_ranks} ranks"
    begin_s, end_s = _interval(event, zero_us)
    collective = said.collective or event.name.partition("(")[0]
    return Kernel(begin_s, end_s, (label or "group not told")[:_LONGEST_NAME], collective[:_LONGEST_NAME])


def _steps(
    events: list[_TraceEvent], zero_us: float, last_s: float
) -> tuple[tuple[tuple[int, float, float], ...], bool]:
    """Return the steps, each from its begin to that of the next, and whether they are those of the host.

    `last_s`: the end of the last kernel. The mark of a step on the GPU leaves out kernels in annotations of their own,
    as PyTorch has them for collectives: the last step, which no other follows, ends with that kernel where this makes
    it no longer than others are.
    """
    for cat, of_host in (("gpu_user_annotation", False), ("user_annotation", True), ("Operator", True)):
        spans: dict[int, tuple[float, float]] = {}
        for each in events:
            match = _STEP.fullmatch(each.name) if each.cat == cat else None
            if match is not None:
                begin_s, end_s = _interval(each, zero_us)
                low, high = spans.get(int(match[1]), (begin_s, end_s))
                spans[int(match[1])] = (min(low, begin_s), max(high, end_s))
        if spans:
            ordered = sorted((begin_s, end_s, number) for number, (begin_s, end_s) in spans.items())
            nexts = [begin_s for begin_s, _, _ in ordered[1:]]
            begin_s, end_s, _ = ordered[-1]
            others = sorted(after - before for (before, _, _), after in zip(ordered[:-1], nexts, strict=True))
            is_whole = bool(others) and last_s - begin_s <= _MOST_TIMES * median(others)
            ends = [*nexts, max(end_s, last_s) if is_whole else end_s]
            return tuple(
                (number, begin_s, end_s)
                for (begin_s, _, number), end_s in zip(ordered, ends, strict=True)
                if end_s > begin_s
            ), of_host
    return (), False
