"""What a result has to say to a comparison: a run, an import, or a file that another tool wrote."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from busbw.api.importing import import_files
from busbw.api.loading import read
from busbw.api.locating import find, is_import
from busbw.base.errors import InputError
from busbw.base.layout import RUN_FILE
from busbw.judge.comparing.circumstances import Circumstances, of_run, of_table
from busbw.judge.comparing.launch import Launch, imported_points, measured_points, over_most_ranks
from busbw.model.imported import Reading
from busbw.model.plan import Plan
from busbw.model.run import Run
from busbw.store import imports


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """One result: where it lies, what it is called, its launches, and how they were measured."""

    place: Path
    name: str
    kind: Literal["run", "import"]
    launches: tuple[Launch, ...]
    circumstances: Circumstances
    # Of a run; None of anything else.
    plan: Plan | None = None
    notes: tuple[str, ...] = ()


def result_of(name: str, *, side: int, block: int) -> Result:
    """Return the result that a name means. Its launches are those of a side, their blocks counted from `block`.

    Raises InputError for a name that means nothing, and for a file that nobody reads.
    """
    path = Path(name)
    if exists(path) and path.is_file() and path.name not in (RUN_FILE, imports.IMPORT_FILE):
        with TemporaryDirectory(prefix="busbw-compare-") as folder:
            done = import_files((name,), Path(folder) / "import", Path(folder), with_copies=False)
            return _import(done.where, path.resolve(), path.name, side, block)
    place = find(name)
    if is_import(place):
        return _import(place, place.resolve(), place.name, side, block)
    run = read(place)
    launch = launch_of(run, side=side, block=block, name=place.name)
    return Result(
        place=place.resolve(),
        name=place.name,
        kind="run",
        launches=(launch,),
        circumstances=of_run(run),
        plan=run.plan,
    )


def exists(path: Path) -> bool:
    """Whether there is something at a path, whatever text that is."""
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


def launch_of(run: Run, *, side: int, block: int, name: str) -> Launch:
    """Return what a run has to say to a comparison."""
    return Launch(
        side=side,
        block=block,
        name=name,
        points=measured_points(run.measurements),
        ended=run.outcome.ended if run.outcome is not None else "stopped",
        cause=run.outcome.cause if run.outcome is not None else None,
    )


def _import(where: Path, place: Path, name: str, side: int, block: int) -> Result:
    """Return an import: each table belongs to the first launch that has none of its points yet."""
    imported = imports.read(where)
    by_table: dict[int, list[Reading]] = {}
    kept, most = over_most_ranks(tuple(imports.readings(where)))
    for reading in kept:
        by_table.setdefault(reading.table, []).append(reading)
    parts: list[Launch] = []
    for table in imported.tables:
        points = imported_points(by_table.get(table.number, ()))
        keys = {point.key for point in points}
        number = next(
            (number for number, part in enumerate(parts) if not keys & {point.key for point in part.points}), len(parts)
        )
        if number == len(parts) and points:
            parts.append(Launch(side=side, block=block + number, name=f"{name} table {table.number}", points=points))
        elif points:
            part = parts[number]
            parts[number] = Launch(side=side, block=part.block, name=part.name, points=(*part.points, *points))
    if not parts:
        raise InputError("nothing in it has a size and a time or a bandwidth", where=str(place))
    known = of_table(imported.tables[0])
    if most is None:
        return Result(place=place, name=name, kind="import", launches=tuple(parts), circumstances=known)
    return Result(
        place=place,
        name=name,
        kind="import",
        launches=tuple(parts),
        circumstances={**known, "CMP002": f"{most} ranks"},
        notes=(f"{name} is over several numbers of ranks: compared is the largest of each exchange, at most {most}",),
    )
