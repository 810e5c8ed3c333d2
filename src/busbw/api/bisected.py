"""Stored bisections: what one found, or what there is of it, and its line in the list of runs."""

import shlex
from pathlib import Path

from msgspec.structs import replace

from busbw.api.compared_row import comparison_row
from busbw.judge.phrases import counted
from busbw.model.bisection import Bisection
from busbw.model.listing import Row
from busbw.store import bisections, comparisons


def read_bisection(directory: Path) -> Bisection:
    """Return what a bisection found; without that, how far it came. Raises InputError for a damaged one."""
    plan = bisections.read_plan(directory)
    return bisections.read(directory) or Bisection(
        plan=plan,
        point=None,
        whole=None,
        steps=(),
        causes=(),
        outcome="cannot_tell",
        sentence=_so_far(directory),
    )


def bisection_row(directory: Path) -> Row:
    """Return the line of a bisection. Raises InputError when it is damaged or too new."""
    found = read_bisection(directory)
    is_ended = bisections.read(directory) is not None
    ends = directory / bisections.ENDS
    if comparisons.is_comparison(ends):
        # Where, on what and since when it was measured are those of its first comparison.
        row = comparison_row(ends)
    else:
        row = Row(
            run_id=directory.name,
            path=str(directory),
            created=None,
            host=None,
            ranks=None,
            collectives=found.plan.collectives,
            measured=0,
            planned=0,
            tag=None,
            outcome=found.outcome,
            sentence=found.sentence,
        )
    return replace(
        row,
        kind="bisection",
        run_id=directory.name,
        path=str(directory),
        ended="complete" if is_ended else "unfinished",
        outcome=found.outcome,
        sentence=found.sentence,
    )


def _so_far(directory: Path) -> str:
    measured = counted(len(bisections.comparison_folders(directory)), "comparison")
    again = f"the same command with --out {shlex.quote(str(directory))} goes on"
    return f"cannot tell: {measured} of it begun, and nothing was found yet; {again}"
