"""Where each rank is, read from its heartbeat file."""

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from busbw.base import layout
from busbw.model.plan import Plan
from busbw.model.step import step_words

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
    return understood(words(f"{raw}/{layout.heartbeat_name(rank)}"))


def words(path: str) -> bytes:
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


def understood(content: bytes) -> Beat | None:
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
