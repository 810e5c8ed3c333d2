"""A measured comparison as a line of the list of runs."""

from pathlib import Path

from busbw.api.run_platform import platform_of
from busbw.model.comparison import Comparison
from busbw.model.comparison_plan import ComparisonPlan
from busbw.model.listing import Row
from busbw.model.sweep import points_of
from busbw.store import comparisons
from busbw.store import outcome as outcomes


def comparison_row(directory: Path) -> Row:
    """Return the line of a comparison. Raises InputError when it is damaged or too new."""
    plan = comparisons.read_plan(directory)
    found = comparisons.read(directory)
    # All launches measure the same, in the same place.
    first = comparisons.launch_plan(directory / plan.launches[0].folder)
    whole = found is not None and found.blocks >= found.blocks_planned
    return Row(
        kind="comparison",
        run_id=plan.comparison_id,
        path=str(directory),
        created=plan.created,
        host=first.host.name,
        hosts=first.placement.hosts,
        ranks=first.placement.ranks,
        platform=platform_of(first),
        backend=first.backend,
        nccl=(first.gpus.nccl.version,) if first.gpus is not None and first.gpus.nccl.version else (),
        busbw_version=plan.busbw_version,
        collectives=tuple(dict.fromkeys(sweep.collective for sweep in first.sweeps)),
        measured=_most_points(found),
        planned=len(points_of(first.sweeps)),
        tag=None,
        ended="complete" if whole else "unfinished",
        outcome=found.verdict.outcome if found is not None else "cannot_tell",
        sentence=found.verdict.sentence if found is not None else _so_far(plan, directory),
    )


def _most_points(found: Comparison | None) -> int:
    return max((len(versus.points) for versus in found.versus), default=0) if found is not None else 0


def _so_far(plan: ComparisonPlan, directory: Path) -> str:
    ended = sum(outcomes.read(directory / launch.folder) is not None for launch in plan.launches)
    return f"cannot tell: {ended} of {len(plan.launches)} launches have ended, and nothing was compared yet"
