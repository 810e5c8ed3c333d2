"""What a visit to a host finds there of a run: its processes, where they are, and what the host says besides."""

from typing import Literal

import msgspec

from busbw.base.value import Integer, Value

# Marks the lines of a visit's standard output that are for the launching side.
VISIT_PREFIX = "busbw-visit "


class BeatSeen(Value, kw_only=True, frozen=True):
    """The heartbeat of one rank as it was found; it outlives the rank."""

    rank: Integer
    process_id: Integer
    # One of layout.HEARTBEAT_STATES.
    state: str
    point: Integer
    samples: Integer
    calls: Integer
    # 0 outside of a call, 1 inside, 2 when all that is left is to wait for a GPU.
    in_call: Integer
    # Whether a signal had asked it to stop, as launchers do before they kill; None: a visit that did not look.
    told_to_stop: bool | None = None
    # Of any points, begun so far; 0: a visit that did not look.
    turns: Integer = 0


def progress(beats: tuple[BeatSeen, ...]) -> tuple[BeatSeen, ...]:
    """Return heartbeats without what others do to a rank: they differ only where a rank itself has moved."""
    return tuple(msgspec.structs.replace(beat, told_to_stop=None) for beat in beats)


class ProcessSeen(Value, kw_only=True, frozen=True):
    """One process of a run. None: the kernel does not say, or not to this user."""

    process_id: Integer
    # None: no rank, but something that a rank or its launcher started.
    rank: Integer | None
    # Its name as the kernel has it, at most 15 characters.
    name: str
    # The kernel's letter: R running, S sleeping, D waiting in the kernel, T stopped, Z ended and not collected.
    state: str
    # The kernel's function it waits in.
    wchan: str | None
    kernel_stack: tuple[str, ...] = ()
    # Processor seconds it used while it was watched, and how long that was.
    busy_s: float | None = None
    watched_s: float | None = None
    # What of these seconds the kernel spent for it.
    system_s: float | None = None
    # Innermost call first, as `function (file:line)`; () where it could not be asked.
    python_stack: tuple[str, ...] = ()
    # What a debugger says of its native code, where there is one.
    native_stack: tuple[str, ...] = ()


class CounterSeen(Value, kw_only=True, frozen=True):
    """One counter of a network device: when the point began (None: not kept), at the visit, and a moment later."""

    # `mlx5_0/1 port_xmit_data`, `eth0 tx_bytes`.
    name: str
    at_point: Integer | None
    now: Integer
    later: Integer


class Visit(Value, kw_only=True, frozen=True, tag_field="type", tag="visit"):
    """What one host says of a run."""

    host: str
    asked: Literal["look", "end"]
    unix_s: float
    beats: tuple[BeatSeen, ...] = ()
    # Whether any of them changed while the host was looked at.
    moved: bool = False
    processes: tuple[ProcessSeen, ...] = ()
    counters: tuple[CounterSeen, ...] = ()
    # Files of the run under /dev/shm.
    shared_memory: tuple[str, ...] = ()
    load_average: float | None = None
    # Whether the run's plan is there, in the run directory; None: a visit that did not look, or got no answer.
    sees_plan: bool | None = None
    # Lines of the kernel's log about GPUs, network devices and memory, the last ones.
    kernel_lines: tuple[str, ...] = ()
    # What NCCL's own diagnosis service says of the job.
    ras: str | None = None
    # How many processes were ended, and the ids of those that did not end.
    ended: Integer = 0
    left: tuple[Integer, ...] = ()
    # What could not be looked at, and why.
    problems: tuple[str, ...] = ()


class Silent(Value, kw_only=True, frozen=True, tag_field="type", tag="silent"):
    """A host that was asked and gave no answer."""

    host: str
    asked: Literal["look", "end"]
    unix_s: float
    # How long it was waited for.
    waited_s: float
    # The last words of the launcher that was to start the visit; None: it said nothing.
    words: str | None = None


class Heard(Value, kw_only=True, frozen=True, tag_field="type", tag="heard"):
    """The end of what the launcher had printed when the hosts were visited, before anything was ended by busbw."""

    text: str


Answer = Visit | Silent
VisitLine = Visit | Silent | Heard
