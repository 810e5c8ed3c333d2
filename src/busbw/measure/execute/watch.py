"""Watches the ranks of a run from outside: which one ended first, which one stands still."""

import os
import select
import signal
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from busbw.base import layout
from busbw.measure.execute import processes
from busbw.model.plan import Plan
from busbw.model.record import step_words
from busbw.model.visit import Culprit

_WORDS = struct.Struct(f"={len(layout.HEARTBEAT_WORDS)}Q")
_STOP_OFFSET = 8 * layout.HEARTBEAT_WORDS.index("stop_asked")


@dataclass(frozen=True, slots=True)
class Beat:
    """One rank at one instant. Counts only grow while the rank makes progress."""

    process_id: int
    state: str
    point: int
    samples: int
    calls: int
    # 0 outside of a call, 1 inside, 2 when all that is left is to wait for a GPU.
    in_call: int
    # Of any points, begun so far: a point is come back to.
    turns: int


def read(raw: Path, rank: int) -> Beat | None:
    """Return where `rank` is; None before it has started."""
    return parsed_beat(step_in_words(f"{raw}/{layout.heartbeat_name(rank)}"))


def step_in_words(path: str) -> bytes:
    """Return what a heartbeat file holds; nothing where there is none. Cheap: every rank's, ten times a second."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        # A byte more than there should be: a file that is longer is no heartbeat.
        return os.read(descriptor, layout.HEARTBEAT_BYTES + 1)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def parsed_beat(content: bytes) -> Beat | None:
    """Return what the words of a heartbeat say; None before the rank has started, and where they make no sense."""
    if len(content) != layout.HEARTBEAT_BYTES:
        return None
    process_id, state, point, samples, calls, in_call, _stop, turns = _WORDS.unpack(content)
    if process_id == 0 or state >= len(layout.HEARTBEAT_STATES):
        return None
    return Beat(
        process_id=process_id,
        state=layout.HEARTBEAT_STATES[state],
        point=point,
        samples=samples,
        calls=calls,
        in_call=in_call,
        turns=turns,
    )


def ask_to_stop(raw: Path) -> bool:
    """Ask rank 0, which decides for all, to end after the samples in hand. Returns whether it can be asked yet."""
    try:
        descriptor = os.open(raw / layout.heartbeat_name(0), os.O_WRONLY)
    except OSError:
        return False
    try:
        os.pwrite(descriptor, struct.pack("=Q", 1), _STOP_OFFSET)
    finally:
        os.close(descriptor)
    return True


def clear(raw: Path, ranks: int) -> None:
    """Remove the heartbeat files of an earlier attempt."""
    for rank in range(ranks):
        (raw / layout.heartbeat_name(rank)).unlink(missing_ok=True)


def describe(beat: Beat | None, plan: Plan) -> str:
    """Return what a rank does in words: `sampling all_reduce 4 KiB, sample 17`."""
    if beat is None:
        return "starting"
    return step_words(beat.state, beat.point, beat.samples, plan.sweeps)


# A rank in the kernel's stopped state this long, with nothing moving, is not coming back by itself.
STOPPED_S = 5.0
# How often the heartbeats are read.
LOOK_S = 0.1
# Ranks that wait in MPI keep their processor busy; one that uses less than this share of a look is asleep.
_ASLEEP_LOOK_S = 1.0
_ASLEEP_SHARE = 0.03
# How launchers end the ranks that are left.
_FOLLOWERS = tuple(processes.describe_status(-number) for number in (signal.SIGKILL, signal.SIGTERM))


@dataclass(frozen=True, slots=True)
class Death:
    """A rank that ended before its time, seen from outside."""

    rank: int
    process_id: int
    what: str | None
    step: str
    # Number of the look that found it: deaths of one look have no order.
    look: int = 0


class Watch:
    """Follows each rank's heartbeat and process. `look` is cheap enough for ten times a second, `glance` for more."""

    def __init__(self, plan: Plan, raw: Path) -> None:
        self._plan = plan
        self._raw = raw
        self._paths = tuple(f"{raw}/{layout.heartbeat_name(rank)}" for rank in range(plan.placement.ranks))
        # What each heartbeat held at the last look.
        self._words = [b""] * len(self._paths)
        self._looked_s = -LOOK_S
        self._beats: dict[int, Beat] = {}
        self._ends: dict[int, int] = {}
        # Ranks whose end wakes nobody: each is looked at.
        self._unheard: set[int] = set()
        # Readable as soon as any of the others ends.
        self._any_end = select.epoll()
        self._looks = 0
        self._moved_s = time.monotonic()
        self.deaths: list[Death] = []
        # Files under /dev/shm that ranks had mapped when they began to measure.
        self.shared_memory: frozenset[str] = frozenset()
        self._mapped: set[int] = set()

    def close(self) -> None:
        """Give the descriptors back."""
        for descriptor in self._ends.values():
            os.close(descriptor)
        self._ends.clear()
        self._any_end.close()

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when a rank ends, until the next look."""
        return self._any_end.fileno()

    def glance(self) -> None:
        """Note who ended, and look where that is due."""
        if time.monotonic() - self._looked_s >= LOOK_S:
            self.look()
            return
        self._looks += 1
        self._note_ends()

    def look(self) -> None:
        """Read every heartbeat and note what moved and who ended."""
        self._looks += 1
        self._looked_s = time.monotonic()
        for rank, path in enumerate(self._paths):
            words = step_in_words(path)
            if words == self._words[rank]:
                continue
            self._words[rank] = words
            beat = parsed_beat(words)
            if beat is None:
                continue
            if beat != self._beats.get(rank):
                self._moved_s = time.monotonic()
            self._beats[rank] = beat
            if rank not in self._mapped and beat.state not in ("starting", "machine rates"):
                self._mapped.add(rank)
                self.shared_memory |= processes.mapped_by(beat.process_id)
            if rank not in self._ends and rank not in self._unheard and not self._is_dead(rank):
                self._follow(rank, beat.process_id)
        self._note_ends()

    def touch(self) -> None:
        """Count something else as progress: output of the launcher."""
        self._moved_s = time.monotonic()

    @property
    def still_s(self) -> float:
        """Seconds since anything moved."""
        return time.monotonic() - self._moved_s

    def stopped(self) -> Culprit | None:
        """Return the rank that the kernel holds stopped while nothing moves; None when there is none."""
        if self.still_s < STOPPED_S:
            return None
        for rank, beat in sorted(self._beats.items()):
            if processes.state(beat.process_id) in ("T", "t"):
                return self._culprit(rank, f"stopped (SIGSTOP or a debugger) for {self.still_s:.0f} s")
        return None

    def absent(self) -> Culprit | None:
        """Return the rank the others wait for when nothing moves: the one farthest behind, if it is only one."""
        ranks = self._plan.placement.ranks
        missing = [rank for rank in range(ranks) if rank not in self._beats]
        if missing:
            return self._culprit(missing[0], "did not start") if len(missing) == 1 else None
        progress = {rank: _reached(beat) for rank, beat in self._beats.items()}
        last = min(progress.values())
        behind = [rank for rank, reached in progress.items() if reached == last]
        if len(behind) == 1 and len(set(progress.values())) > 1:
            return self._culprit(behind[0], f"did not arrive; the others have waited {self.still_s:.0f} s")
        return self._asleep()

    def _asleep(self) -> Culprit | None:
        """Return the one rank that sleeps while all others wait busily in the same call; None when it is not so."""
        before = {rank: processes.busy_s(beat.process_id) for rank, beat in self._beats.items()}
        time.sleep(_ASLEEP_LOOK_S)
        busy_s = {rank: processes.busy_s(beat.process_id) - before[rank] for rank, beat in self._beats.items()}
        asleep = [rank for rank, spent_s in busy_s.items() if spent_s <= _ASLEEP_SHARE * _ASLEEP_LOOK_S]
        if len(asleep) == 1 and len(busy_s) > 1:
            return self._culprit(asleep[0], f"sleeps while the others wait for it, for {self.still_s:.0f} s")
        return None

    @property
    def step(self) -> str:
        """What the rank that is the least far does, in words."""
        return describe(min(self._beats.values(), key=_reached, default=None), self._plan)

    def by_process(self, process_id: int) -> int | None:
        """Return the rank of a process."""
        for rank, beat in self._beats.items():
            if beat.process_id == process_id:
                return rank
        return None

    def culprit(self, rank: int, what: str) -> Culprit:
        """Return `rank` as the culprit of `what`, doing what it did when last seen."""
        return self._culprit(rank, what)

    def _culprit(self, rank: int, what: str) -> Culprit:
        beat = self._beats.get(rank)
        return Culprit(
            rank=rank,
            host=socket.gethostname(),
            process_id=beat.process_id if beat is not None else 0,
            what=what,
            step=describe(beat, self._plan),
        )

    def _is_dead(self, rank: int) -> bool:
        return any(death.rank == rank for death in self.deaths)

    def _follow(self, rank: int, process_id: int) -> None:
        try:
            descriptor = processes.end_descriptor(process_id)
        except ProcessLookupError:
            self._bury(rank, process_id)
            return
        if descriptor is None:
            self._unheard.add(rank)
            return
        self._ends[rank] = descriptor
        self._any_end.register(descriptor, select.EPOLLIN)

    def _note_ends(self) -> None:
        for rank in tuple(self._unheard):
            if processes.state(self._beats[rank].process_id) in (None, "Z", "X"):
                self._unheard.remove(rank)
                self._bury(rank, self._beats[rank].process_id)
        by_descriptor = {descriptor: rank for rank, descriptor in self._ends.items()}
        for descriptor, _event in self._any_end.poll(0):
            rank = by_descriptor[descriptor]
            self._bury(rank, self._beats[rank].process_id)
            self._any_end.unregister(descriptor)
            os.close(self._ends.pop(rank))

    def _bury(self, rank: int, process_id: int) -> None:
        beat = read(self._raw, rank)
        if beat is not None and beat.state == "done":
            self.deaths.append(Death(rank=rank, process_id=process_id, what="done", step="done", look=self._looks))
            return
        self.deaths.append(
            Death(
                rank=rank,
                process_id=process_id,
                what=processes.how_it_ended(process_id),
                step=describe(beat, self._plan),
                look=self._looks,
            )
        )

    @property
    def early_deaths(self) -> list[Death]:
        """Ranks that ended before they were done, in the order seen."""
        return [death for death in self.deaths if death.what != "done"]

    def first_death(self) -> Death | None:
        """Return the rank that ended first of those that ended early; None when that cannot be told.

        Of ranks found dead in the same look, those killed from outside followed another one.
        """
        early = self.early_deaths
        first = [death for death in early if death.look == early[0].look]
        if len(first) > 1:
            first = [death for death in first if death.what not in _FOLLOWERS]
        return first[0] if len(first) == 1 else None


def _reached(beat: Beat) -> tuple[int, int, int]:
    return beat.turns, beat.calls, beat.in_call
