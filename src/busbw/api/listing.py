"""The runs there are, one row each, with what can be said of a damaged one."""

from pathlib import Path

from busbw.api.loading import read
from busbw.errors import BusbwError
from busbw.model.listing import Row
from busbw.store import directory as directories


def listing(base: Path) -> tuple[Row, ...]:
    """Return every run under `base`, oldest first. A run that cannot be read has a row that says so."""
    return tuple(_row(directory) for directory in directories.directories(base))


def _row(directory: Path) -> Row:
    try:
        run = read(directory)
    except BusbwError as error:
        return Row(
            run_id=directory.name,
            path=str(directory),
            created=None,
            host=None,
            ranks=None,
            collectives=(),
            measured=0,
            planned=0,
            tag=None,
            outcome="unreadable",
            sentence=error.cause,
        )
    plan = run.plan
    return Row(
        run_id=plan.run_id,
        path=str(directory),
        created=plan.created,
        host=plan.host.name,
        ranks=plan.placement.ranks,
        collectives=tuple(dict.fromkeys(sweep.collective for sweep in plan.sweeps)),
        measured=len(run.measurements),
        planned=sum(len(sweep.sizes_bytes) for sweep in plan.sweeps),
        tag=plan.tag,
        outcome=run.verdict.outcome,
        sentence=run.verdict.sentence,
    )
