"""The runs and imports there are, one row each, with what can be said of a damaged one."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from busbw.api.loading import read
from busbw.api.locating import import_directories
from busbw.errors import BusbwError
from busbw.model.listing import Row
from busbw.store import directory as directories
from busbw.store import imports

_SOURCES_NAMED = 3


def listing(base: Path) -> tuple[Row, ...]:
    """Return every run and import under `base`, oldest first. One that cannot be read has a row that says so."""
    rows: dict[Path, Callable[[Path], Row]] = dict.fromkeys(import_directories(base), _import_row)
    rows |= dict.fromkeys(directories.directories(base), _row)
    return tuple(row(directory) for directory, row in sorted(rows.items()))


def _import_row(directory: Path) -> Row:
    try:
        imported = imports.read(directory)
    except BusbwError as error:
        return _unreadable("import", directory, error)
    names = ", ".join(Path(source.name).name for source in imported.sources[:_SOURCES_NAMED])
    more = len(imported.sources) - _SOURCES_NAMED
    return Row(
        kind="import",
        run_id=imported.import_id,
        path=str(directory),
        created=imported.created,
        host=None,
        ranks=None,
        collectives=tuple(dict.fromkeys(table.tool for table in imported.tables)),
        measured=imported.readings,
        planned=0,
        tag=imported.tag,
        outcome="imported",
        sentence=f"imported from {names}" + (f" and {more} more" if more > 0 else ""),
    )


def _unreadable(kind: Literal["run", "import"], directory: Path, error: BusbwError) -> Row:
    return Row(
        kind=kind,
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


def _row(directory: Path) -> Row:
    try:
        run = read(directory)
    except BusbwError as error:
        return _unreadable("run", directory, error)
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
