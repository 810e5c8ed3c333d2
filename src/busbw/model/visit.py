"""What was found on the hosts of a run that ended before its time, and whom the failure began on."""

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


class Culprit(Value, kw_only=True, frozen=True):
    """The rank a failure began on, as far as it could be told."""

    rank: Integer
    host: str
    process_id: Integer
    # What happened to it: "killed by signal 9 (SIGKILL)", "exited with code 3", "stopped (SIGSTOP)", ...
    what: str
    # What it was doing: "all_reduce 4 KiB, sample 17", "starting".
    step: str


class RankFound(Value, kw_only=True, frozen=True):
    """One rank as its host showed it."""

    rank: Integer
    host: str
    # None: nothing of it was found.
    process_id: Integer | None
    # What it was doing by its heartbeat: `sampling all_reduce 4 KiB, sample 17`.
    step: str
    # How many calls it had completed, and whether it was inside of one; None without a heartbeat.
    calls: Integer | None
    in_call: bool
    # In words: `running`, `stopped`, `gone`, `not seen`.
    state: str
    # Share of a processor it used while it was watched; None: not watched.
    busy_share: float | None
    wchan: str | None
    # Its innermost Python call.
    frame: str | None


class HostFound(Value, kw_only=True, frozen=True):
    """One host that answered."""

    host: str
    load_average: float | None
    # How many network counters there are, and those that moved while the run stood still: `eth0 tx_bytes +1234`.
    counters: Integer
    moved: tuple[str, ...]
    # Counters that tell of errors and loss, and rose since the point began.
    faults: tuple[str, ...]
    kernel_lines: tuple[str, ...] = ()
    # Processes of the run that would not end.
    left: tuple[Integer, ...] = ()


class Autopsy(Value, kw_only=True, frozen=True):
    """The visits to all hosts, read together."""

    # None: cannot be told, and `because` says why.
    culprit: Culprit | None
    because: str
    # Whether it rests on holding against each other what hosts said one after the other; a second look makes it sure.
    compared: bool
    ranks: tuple[RankFound, ...]
    hosts: tuple[HostFound, ...]
    silent: tuple[Silent, ...]
    # What NCCL's own diagnosis service said, the longest answer.
    ras: str | None
    # The last lines of the launcher.
    words: tuple[str, ...]
