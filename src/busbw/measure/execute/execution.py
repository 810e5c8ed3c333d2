"""How a job ended, and who is told how it goes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from busbw.model.record import AnyEvent
from busbw.model.visit import Culprit


@dataclass(frozen=True, slots=True)
class Execution:
    """How a job ended, before anyone looks at what it measured."""

    ended: Literal["complete", "time", "stopped", "failed"]
    cause: str | None
    culprit: Culprit | None
    exit_code: int | None
    wall_s: float


@dataclass(frozen=True, slots=True)
class Listener:
    """Who is told how a run goes: its events, remarks for a person, and that ranks of ours were started.

    Until their first event they measure nothing: `started` may take a while.
    """

    event: Callable[[AnyEvent], None]
    remark: Callable[[str], None]
    started: Callable[[], None] = lambda: None
