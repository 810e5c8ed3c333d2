"""Stored results held against each other: runs, imports, and the launches of a measured comparison."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from msgspec.structs import replace

from busbw.api.importing import import_files
from busbw.api.loading import read
from busbw.api.stored import find, is_import
from busbw.base.errors import InputError
from busbw.base.layout import RUN_FILE
from busbw.judge.comparing.comparison import compare
from busbw.judge.comparing.launch import (
    Circumstances,
    Launch,
    imported_points,
    measured_points,
    of_run,
    of_table,
    over_most_ranks,
    rank_placements_of,
)
from busbw.model.comparison import COMPARISON_SCHEMA, Comparison, ComparisonPlan, RankPlacement, Side
from busbw.model.imported import Reading
from busbw.model.plan import Plan, points_of
from busbw.model.run import Run
from busbw.show.reproduce import bisect_command, command_in_turn
from busbw.store import comparisons, imports
from busbw.store import outcome as outcomes
from busbw.store.files import exists, is_file


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
    if is_file(path) and path.name not in (RUN_FILE, imports.IMPORT_FILE):
        with TemporaryDirectory(prefix="busbw-compare-") as folder:
            done = import_files((name,), Path(folder) / "import", Path(folder), with_copies=False)
            return _import(done.where, path.resolve(), path.name, side, block)
    place = find(name)
    if is_import(place):
        return _import(place, place.resolve(), place.name, side, block)
    run = read(place)
    if run.plan.fabric is not None:
        raise InputError(
            f"{place.name} is a sweep over pairs of hosts: it has no points to compare",
            where=str(place),
            hint=f"judge each by itself: busbw fabric {place.name}",
        )
    if run.plan.step is not None:
        raise InputError(
            f"{place.name} is a replayed step: its collectives ran in groups of ranks, and are not compared",
            where=str(place),
            hint=f"see what each took: busbw show {place.name}",
        )
    launch = launch_of(run, side=side, block=block, name=place.name)
    return Result(
        place=place.resolve(),
        name=place.name,
        kind="run",
        launches=(launch,),
        circumstances=of_run(run),
        plan=run.plan,
    )


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


_MOST_SIDES = 26
# One setting alone needs no search.
_SEVERAL = 2
# Other processes ran on the cores of the ranks.
_DISTURBED = ("RUN022",)


def compare_stored(names: tuple[str, ...], *, anyway: bool, geometric_mean: bool) -> Comparison:
    """Return what results come to, the first one being what the others are held against.

    Each name is a run, an import or a file of another tool; several launches of one side are separated by commas.

    Raises InputError for names that mean nothing, and for what is not a fair comparison unless `anyway`.
    """
    if not 2 <= len(names) <= _MOST_SIDES:
        raise InputError(f"{len(names)} results cannot be compared", hint=f"name 2 to {_MOST_SIDES} runs or imports")
    sides: list[Side] = []
    known: set[Path] = set()
    notes: list[str] = []
    launches: list[Launch] = []
    circumstances: list[Circumstances] = []
    first_of_side: list[Result] = []
    for number, name in enumerate(names):
        parts = [name] if exists(Path(name)) else [part for part in name.split(",") if part]
        results: list[Result] = []
        for part in parts:
            result = result_of(part, side=number, block=sum(len(earlier.launches) for earlier in results))
            if result.place in known:
                raise InputError(f"{result.name} is named twice: a result tells nothing beside itself", where=name)
            known.add(result.place)
            notes += result.notes
            results.append(result)
        if not results:
            raise InputError("a result has no name", where=repr(name))
        own = [launch for result in results for launch in result.launches]
        launches += own
        first_of_side.append(results[0])
        circumstances.append({code: words for result in results for code, words in result.circumstances.items()})
        sides.append(
            Side(
                letter=chr(ord("A") + number),
                name=" + ".join(result.name for result in results),
                kind=results[0].kind,
                launches=tuple(launch.name for launch in own),
            )
        )
    return compare(
        sides,
        launches,
        circumstances,
        design="descriptive",
        anyway=anyway,
        geometric_mean=geometric_mean,
        notes=(*notes, *_ranks_words(sides, launches)),
        claim_command=_claim_command(first_of_side, known),
    )


def _claim_command(first_of_side: Sequence[Result], places: Iterable[Path]) -> str | None:
    """Return the command that tells whether sides differ that were not interleaved; None where it is not known.

    Launches of one comparison were interleaved, and together they tell.
    """
    parents = {place.parent for place in places}
    if len(parents) == 1 and comparisons.is_comparison(whole := parents.pop()):
        return f"busbw compare {shlex.quote(str(whole))}"
    plans = [result.plan for result in first_of_side if result.plan is not None]
    return command_in_turn(plans) if len(plans) == len(first_of_side) else None


def _ranks_words(sides: Sequence[Side], launches: Sequence[Launch]) -> tuple[str, ...]:
    """Return a note where it is not told over how many ranks something was measured, as OSU does not tell it."""
    untold = sorted({launch.side for launch in launches if any(point.ranks == 0 for point in launch.points)})
    if not untold:
        return ()
    letters = " and ".join(sides[side].letter for side in untold)
    return (f"over how many ranks is not told of {letters}: that it was the same is for you to know",)


def compare_launches(directory: Path) -> Comparison:
    """Return what the launches of a measured comparison come to, as far as there are any, and store it.

    Raises InputError for a directory that is none, RunError when the result cannot be written.
    """
    found = launches_compared(directory)
    comparisons.write(directory, found)
    return found


def read_comparison(directory: Path) -> Comparison:
    """Return the stored result of a comparison; without one that holds, what its launches come to, and store nothing.

    Raises InputError for a directory that is none, or damaged.
    """
    stored = comparisons.read(directory)
    if stored is not None and stored.schema == COMPARISON_SCHEMA:
        return stored
    return launches_compared(directory)


def launches_compared(directory: Path) -> Comparison:
    """Return what the launches of a measured comparison come to, as far as there are any, and store nothing.

    Raises InputError for a directory that is none.
    """
    plan = comparisons.read_plan(directory)
    launches: list[Launch] = []
    circumstances: list[Circumstances] = [{} for _side in plan.sides]
    rank_placements: list[list[tuple[RankPlacement, ...]]] = [[] for _side in plan.sides]
    first: list[Plan | None] = [None for _side in plan.sides]
    disturbed = short = 0
    for planned in plan.launches:
        place = directory / planned.folder
        outcome = outcomes.read(place)
        if outcome is None or outcome.ended == "stopped":
            continue
        run = read(place)
        short += len(run.measurements) < len(points_of(run.plan.sweeps))
        disturbed += any(finding.code in _DISTURBED for finding in run.findings)
        launches.append(launch_of(run, side=planned.side, block=planned.block, name=planned.folder))
        circumstances[planned.side] = {**of_run(run), **circumstances[planned.side]}
        rank_placements[planned.side] += [told] if (told := rank_placements_of(run)) else []
        first[planned.side] = first[planned.side] or run.plan
    sides = tuple(
        Side(
            letter=side.letter,
            name=side.name,
            kind="settings",
            launches=tuple(launch.name for launch in launches if launch.side == number),
            rank_placements=rank_placements[number][0] if rank_placements[number] else (),
            placements_vary=len(set(rank_placements[number])) > 1,
            recommended=own.recommended if (own := first[number]) is not None else None,
        )
        for number, side in enumerate(plan.sides)
    )
    found = compare(
        sides,
        launches,
        circumstances,
        design=plan.design,
        anyway=plan.anyway,
        geometric_mean=plan.geometric_mean,
        comparison_id=plan.comparison_id,
        blocks_planned=len({launch.block for launch in plan.launches}),
        notes=(*plan.notes, *_short_words(short, len(launches)), *_disturbed_words(disturbed, len(launches))),
    )
    return replace(found, next_steps=tuple(_next_steps(found, plan, first)))


def _next_steps(found: Comparison, plan: ComparisonPlan, first: Sequence[Plan | None]) -> Iterator[str]:
    """Yield which of several recommended settings matters, where they make a difference together."""
    for versus in found.versus:
        own = first[versus.other]
        layer = own.recommended if own is not None else None
        base = plan.sides[0]
        if own is None or layer is None or own.request is None or len(layer.env()) < _SEVERAL:
            continue
        is_shown = any(point.estimate.claim in ("faster", "slower") for point in versus.points)
        if is_shown and (first[0] is None or first[0].recommended is None) and not base.options:
            good = shlex.join([f"{name}={value}" for name, value in base.environment]) or base.name
            yield f"which of the {len(layer.env())} settings matters: {bisect_command(own.request, good, layer.env())}"


def _short_words(short: int, launches: int) -> tuple[str, ...]:
    if not short:
        return ()
    return (f"{short} of {launches} launches ended before they had every point: more --budget, or fewer sizes",)


def _disturbed_words(disturbed: int, launches: int) -> tuple[str, ...]:
    if not disturbed:
        return ()
    words = f"other processes ran on the ranks' cores in {disturbed} of {launches} launches"
    return (f"{words}: only larger differences can be shown",)
