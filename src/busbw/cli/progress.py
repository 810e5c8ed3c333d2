"""What a run says while it is under way, on standard error: one live line on a terminal, plain lines elsewhere."""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from busbw.base.text import printable
from busbw.base.units import format_size, format_time
from busbw.measure.execute.launch import Listener
from busbw.model.comparison import ComparisonPlan
from busbw.model.plan import Plan, Point, points_of
from busbw.model.record import AnyEvent, Measuring, PointEnded, Preparing, RoundEnded, StepsEnded
from busbw.model.run import Run

if TYPE_CHECKING:
    from busbw.api.importing import ImportListener, ImportProgress
    from busbw.api.interleave import Follower

# Elsewhere than on a terminal: a line for each turn of a size after its first sample, and one now and then besides.
_PLAIN_EVERY_S = 10.0
_REDRAW_S = 0.12
# What is done sooner needs no word on how far it is.
_QUIET_S = 5.0
_REDRAW_LAUNCH_S = 0.2


@contextmanager
def progress(plan: Plan, where: Path) -> Iterator[Listener]:
    """Show a run's progress while the block runs."""
    for note in plan.notes:
        print(f"note: {printable(note)}", file=sys.stderr)
    print(f"run: {printable(str(where))}", file=sys.stderr)
    shown = _live(plan) if sys.stderr.isatty() else _plain(plan)
    with shown as listener:
        yield listener


@contextmanager
def _plain(plan: Plan) -> Iterator[Listener]:
    lines = _EventLines(plan)
    said_s = time.monotonic()

    def event(event: AnyEvent) -> None:
        nonlocal said_s
        if (
            isinstance(event, (RoundEnded, StepsEnded))
            or (isinstance(event, PointEnded) and event.turn > 0)
            or time.monotonic() - said_s > _PLAIN_EVERY_S
        ):
            said_s = time.monotonic()
            _say(lines.line(event))

    yield Listener(event=event, remark=_say, started=_get_ready)


@contextmanager
def _live(plan: Plan) -> Iterator[Listener]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    lines = _EventLines(plan)
    screen = Console(stderr=True, highlight=False, emoji=False, markup=False)
    drawn_s = 0.0
    # Drawn from here, not from a thread: processes are started while it is on the screen.
    with Live(Text("starting"), console=screen, transient=True, auto_refresh=False) as live:

        def event(event: AnyEvent) -> None:
            nonlocal drawn_s
            if time.monotonic() - drawn_s > _REDRAW_S:
                drawn_s = time.monotonic()
                live.update(Text(lines.line(event), overflow="ellipsis", no_wrap=True), refresh=True)

        yield Listener(event=event, remark=lambda text: screen.print(Text(text)), started=_get_ready)


def _get_ready() -> None:
    """Import what the end of the run needs while its ranks start: nobody waits for it then."""
    from busbw.api import loading  # noqa: F401
    from busbw.show.text import terminal  # noqa: F401


def _say(line: str) -> None:
    if line:
        print(printable(line), file=sys.stderr, flush=True)


class _EventLines:
    """Words for events."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._points: tuple[Point, ...] = points_of(plan.sweeps)
        self._latest: Measuring | None = None

    def line(self, event: AnyEvent) -> str:
        """Return one line: how far, rank count, collective, size, samples, interval so far, time left."""
        if isinstance(event, Preparing):
            return f"{self._plan.placement.ranks} ranks: {event.what}"
        if isinstance(event, RoundEnded):
            missing = f", {event.unanswered} without an answer" if event.unanswered else ""
            return f"{self._where(event.point)}: round {event.round + 1}, {event.tests} tests{missing}"
        if isinstance(event, StepsEnded):
            return f"the step: {event.steps} taken, {format_time(event.median_s)} on rank 0"
        if isinstance(event, Measuring):
            self._latest = event
            return self._measuring(event)
        if isinstance(event, PointEnded):
            latest = self._latest if self._latest is not None and self._latest.point == event.point else None
            words = self._measuring(latest) if latest is not None else self._where(event.point)
            return f"{words}, ended by {event.ended}" if event.turn > 0 else f"{words}, first sample"
        return ""

    def _where(self, number: int) -> str:
        point = self._points[number] if number < len(self._points) else None
        if point is None:
            return f"point {number}"
        sweep = self._plan.sweeps[point.sweep]
        form = " in place" if sweep.in_place else ""
        place = f"[{number + 1}/{len(self._points)}]"
        return f"{place} {self._plan.placement.ranks} ranks, {sweep.collective}{form} {format_size(point.size_bytes)}"

    def _measuring(self, event: Measuring) -> str:
        parts = [f"{self._where(event.point)}: {event.phase}"]
        if event.phase == "sampling":
            parts.append(f"{event.samples} samples")
        if event.median_s is not None:
            interval = f" ±{100 * event.half_width:.1f} %" if event.half_width is not None else ""
            parts.append(f"{format_time(event.median_s)}{interval}")
        parts.append(f"{event.remaining_s:.0f} s left")
        return ", ".join(parts)


@contextmanager
def comparison_progress(plan: ComparisonPlan, where: Path) -> Iterator["Follower"]:
    """Show a comparison's progress while the block runs: a line for each launch."""
    from busbw.api.interleave import Follower

    for note in plan.notes:
        _say(f"note: {note}")
    _say(f"comparison: {where} ({len(plan.launches)} launches, at most {plan.budget_s:g} s, seed {plan.seed})")
    lines = _LaunchLines()
    try:
        yield Follower(before=lines.before, after=lines.after)
    finally:
        lines.clear()


@contextmanager
def import_progress() -> Iterator["ImportListener"]:
    """Show how far an import is while the block runs, once it takes longer than some seconds."""
    is_live = sys.stderr.isatty()
    began_s = said_s = time.monotonic()
    every_s = _REDRAW_LAUNCH_S if is_live else _PLAIN_EVERY_S
    drawn = False

    def told(progress: "ImportProgress") -> None:
        nonlocal said_s, drawn
        now_s = time.monotonic()
        if now_s - began_s < _QUIET_S or (drawn and now_s - said_s < every_s):
            return
        said_s, drawn = now_s, True
        of = f" ({progress.number} of {progress.files})" if progress.files > 1 else ""
        line = printable(
            f"{progress.file}{of}: {format_size(progress.read_bytes)} read in {now_s - began_s:.0f} s, "
            f"{progress.readings} readings"
        )
        if is_live:
            print(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)
        else:
            _say(line)

    try:
        yield told
    finally:
        if is_live and drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class _LaunchLines:
    """One live line on a terminal, and a line for each finished launch anywhere."""

    def __init__(self) -> None:
        self._is_live = sys.stderr.isatty()
        self._drawn_s = 0.0
        self._began_s = 0.0

    def before(self, number: int, plan: ComparisonPlan, launch: Plan, _where: Path) -> Listener:
        self._began_s = time.monotonic()
        head = _head(number, plan)
        total = len(points_of(launch.sweeps))

        def event(event: AnyEvent) -> None:
            if self._is_live and time.monotonic() - self._drawn_s > _REDRAW_LAUNCH_S:
                self._drawn_s = time.monotonic()
                point = f", point {event.point + 1} of {total}" if isinstance(event, Measuring) else ""
                # A line that wraps could not be taken back.
                line = f"{printable(head)}{point}"[: shutil.get_terminal_size().columns - 1]
                print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

        return Listener(event=event, remark=_say)

    def after(self, number: int, plan: ComparisonPlan, run: Run) -> None:
        self.clear()
        ended = run.outcome.ended if run.outcome is not None else "cut off"
        cause = f": {run.outcome.cause}" if run.outcome is not None and ended == "failed" else ""
        taken_s = time.monotonic() - self._began_s
        points = f"{len(run.measurements)} point{'' if len(run.measurements) == 1 else 's'}"
        _say(f"{_head(number, plan)}: {points} in {taken_s:.1f} s, {ended}{cause}")

    def clear(self) -> None:
        """Leave no half line on the terminal."""
        if self._is_live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _head(number: int, plan: ComparisonPlan) -> str:
    launch = plan.launches[number - 1]
    side = plan.sides[launch.side]
    return f"[{number}/{len(plan.launches)}] block {launch.block + 1}, {side.letter} ({side.name})"
