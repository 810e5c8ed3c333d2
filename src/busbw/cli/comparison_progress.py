"""What a measured comparison says while it is under way, on standard error: a line for each launch."""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from busbw.api.interleave import Follower
from busbw.measure.execute.execution import Listener
from busbw.model.comparison import ComparisonPlan
from busbw.model.plan import Plan, points_of
from busbw.model.record import AnyEvent, Measuring
from busbw.model.run import Run
from busbw.show.plain import printable

_REDRAW_S = 0.2


@contextmanager
def comparison_progress(plan: ComparisonPlan, where: Path) -> Iterator[Follower]:
    """Show a comparison's progress while the block runs."""
    for note in plan.notes:
        _say(f"note: {note}")
    _say(f"comparison: {where} ({len(plan.launches)} launches, at most {plan.budget_s:g} s, seed {plan.seed})")
    lines = _LaunchLines()
    try:
        yield Follower(before=lines.before, after=lines.after)
    finally:
        lines.clear()


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
            if self._is_live and time.monotonic() - self._drawn_s > _REDRAW_S:
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


def _say(line: str) -> None:
    if line:
        print(printable(line), file=sys.stderr, flush=True)
