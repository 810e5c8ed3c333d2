"""Stored results held against each other: runs, imports, and the launches of a measured comparison."""

from pathlib import Path

from busbw.api.loading import read
from busbw.api.locating import find, is_import
from busbw.errors import InputError
from busbw.judge.comparing.circumstances import Circumstances, of_run, of_table
from busbw.judge.comparing.comparison import compare
from busbw.judge.comparing.launch import Launch, imported_points, measured_points
from busbw.model.comparison import Comparison, Side
from busbw.model.imported import Reading
from busbw.model.run import Run
from busbw.store import comparisons, imports
from busbw.store import outcome as outcomes

_MOST_SIDES = 26
# Other processes ran on the cores of the ranks.
_DISTURBED = ("RUN022",)


def compare_stored(names: tuple[str, ...], *, anyway: bool, geometric_mean: bool) -> Comparison:
    """Return what stored results come to, the first one being what the others are held against.

    Each name is a run or an import; several launches of one side are separated by commas.

    Raises InputError for names that mean nothing, and for what is no fair comparison unless `anyway`.
    """
    if not 2 <= len(names) <= _MOST_SIDES:
        raise InputError(f"{len(names)} results cannot be compared", hint=f"name 2 to {_MOST_SIDES} runs or imports")
    sides: list[Side] = []
    known: set[Path] = set()
    launches: list[Launch] = []
    circumstances: list[Circumstances] = []
    for number, name in enumerate(names):
        places = [find(part) for part in name.split(",") if part] or [find(name)]
        twice = next((place for place in places if place.resolve() in known), None)
        if twice is not None or len(set(places)) < len(places):
            raise InputError(
                f"{(twice or places[0]).name} is named twice: a result tells nothing beside itself", where=name
            )
        known |= {place.resolve() for place in places}
        own: list[Launch] = []
        seen: Circumstances = {}
        for place in places:
            more, around = (
                _import_launches(place, number, len(own)) if is_import(place) else _run(place, number, len(own))
            )
            own += more
            seen = {**around, **seen}
        launches += own
        circumstances.append(seen)
        sides.append(
            Side(
                letter=chr(ord("A") + number),
                name=" + ".join(place.name for place in places),
                kind="import" if is_import(places[0]) else "run",
                launches=tuple(launch.name for launch in own),
            )
        )
    return compare(sides, launches, circumstances, in_turn=False, anyway=anyway, geometric_mean=geometric_mean)


def launch_of(run: Run, *, side: int, block: int, name: str) -> Launch:
    """Return what a run has to say to a comparison."""
    ended = run.outcome.ended if run.outcome is not None else "stopped"
    return Launch(
        side=side,
        block=block,
        name=name,
        points=measured_points(run.measurements),
        ended=ended,
        cause=run.outcome.cause if run.outcome is not None else None,
    )


def _run(place: Path, side: int, block: int) -> tuple[list[Launch], Circumstances]:
    run = read(place)
    return [launch_of(run, side=side, block=block, name=place.name)], of_run(run)


def _import_launches(place: Path, side: int, block: int) -> tuple[list[Launch], Circumstances]:
    """Return the launches in an import: its tables, those of one launch together."""
    imported = imports.read(place)
    by_table: dict[int, list[Reading]] = {}
    for reading in imports.readings(place):
        by_table.setdefault(reading.table, []).append(reading)
    launches: list[Launch] = []
    for table in imported.tables:
        points = imported_points(by_table.get(table.number, ()))
        if not points:
            continue
        known = {point.key for point in points}
        open_launch = next((launch for launch in launches if not known & {point.key for point in launch.points}), None)
        if open_launch is None:
            name = f"{place.name} table {table.number}"
            launches.append(Launch(side=side, block=block + len(launches), name=name, points=points))
        else:
            grown = Launch(
                side=side, block=open_launch.block, name=open_launch.name, points=(*open_launch.points, *points)
            )
            launches[launches.index(open_launch)] = grown
    if not launches:
        raise InputError("nothing in this import has a collective, a size and a time", where=str(place))
    return launches, of_table(imported.tables[0])


def compare_launches(directory: Path) -> Comparison:
    """Return what the launches of a measured comparison come to, as far as there are any, and store it.

    Raises InputError for a directory that is none, RunError when the result cannot be written.
    """
    plan = comparisons.read_plan(directory)
    launches: list[Launch] = []
    circumstances: list[Circumstances] = [{} for _side in plan.sides]
    disturbed = 0
    for planned in plan.launches:
        place = directory / planned.folder
        outcome = outcomes.read(place)
        if outcome is None or outcome.ended == "stopped":
            continue
        run = read(place)
        disturbed += any(finding.code in _DISTURBED for finding in run.findings)
        launches.append(launch_of(run, side=planned.side, block=planned.block, name=planned.folder))
        circumstances[planned.side] = {**of_run(run), **circumstances[planned.side]}
    sides = tuple(
        Side(
            letter=side.letter,
            name=side.name,
            kind="settings",
            launches=tuple(launch.name for launch in launches if launch.side == number),
        )
        for number, side in enumerate(plan.sides)
    )
    found = compare(
        sides,
        launches,
        circumstances,
        in_turn=True,
        anyway=plan.anyway,
        geometric_mean=plan.geometric_mean,
        comparison_id=plan.comparison_id,
        blocks_planned=len({launch.block for launch in plan.launches}),
        notes=(*plan.notes, *_disturbed_words(disturbed, len(launches))),
    )
    comparisons.write(directory, found)
    return found


def _disturbed_words(disturbed: int, launches: int) -> tuple[str, ...]:
    if not disturbed:
        return ()
    return (f"other processes ran on the ranks' cores in {disturbed} of {launches} launches: what is shown takes more",)
