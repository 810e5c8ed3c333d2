"""What rank 0 says on its standard output while it runs: progress, one JSON line each."""

from typing import Literal

from busbw.base.value import Integer, Value

# Marks the lines of standard output that are events; everything else is kept and not interpreted.
EVENT_PREFIX = "busbw-event "


class Event(Value, kw_only=True, frozen=True, tag_field="type"):
    """One line of progress."""


class Preparing(Event, tag="preparing", kw_only=True, frozen=True):
    """Something before the first point: starting, memory copies, streams."""

    what: str


class Measuring(Event, tag="measuring", kw_only=True, frozen=True):
    """Where one point stands."""

    point: Integer
    phase: str
    samples: Integer
    median_s: float | None
    # How far the interval of the median reaches to its farther side, as a share of it.
    half_width: float | None
    # Of the time limit of the whole run.
    remaining_s: float


class PointEnded(Event, tag="point_ended", kw_only=True, frozen=True):
    """A turn of a point is on disk on every rank."""

    point: Integer
    # 0: its first sample.
    turn: Integer = 1
    # Of this turn.
    samples: Integer
    median_s: float | None
    ended: str


class Ending(Event, tag="ending", kw_only=True, frozen=True):
    """All records are written; nothing follows."""

    reason: Literal["complete", "time", "stopped"]


class Refused(Event, tag="refused", kw_only=True, frozen=True):
    """Ranks that must not measure together: nothing begins, and no rank is to blame. Any rank may say so."""

    why: str


AnyEvent = Preparing | Measuring | PointEnded | Ending | Refused
