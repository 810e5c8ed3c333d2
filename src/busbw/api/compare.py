"""Stored results held against each other: runs, imports, and the launches of a measured comparison."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from busbw.api.compared_results import Result, exists, launch_of, result_of
from busbw.api.loading import read
from busbw.base.errors import InputError
from busbw.judge.comparing.circumstances import Circumstances, of_run
from busbw.judge.comparing.comparison import compare
from busbw.judge.comparing.launch import Launch
from busbw.model.comparison import COMPARISON_SCHEMA, Comparison, Side
from busbw.model.sweep import points_of
from busbw.show.reproduce_in_turn import command_in_turn
from busbw.store import comparisons
from busbw.store import outcome as outcomes

_MOST_SIDES = 26
# Other processes ran on the cores of the ranks.
_DISTURBED = ("RUN022",)


def compare_stored(names: tuple[str, ...], *, anyway: bool, geometric_mean: bool) -> Comparison:
    """Return what results come to, the first one being what the others are held against.

    Each name is a run, an import or a file of another tool; several launches of one side are separated by commas.

    Raises InputError for names that mean nothing, and for what is no fair comparison unless `anyway`.
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
    sides = tuple(
        Side(
            letter=side.letter,
            name=side.name,
            kind="settings",
            launches=tuple(launch.name for launch in launches if launch.side == number),
        )
        for number, side in enumerate(plan.sides)
    )
    return compare(
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


def _short_words(short: int, launches: int) -> tuple[str, ...]:
    if not short:
        return ()
    return (f"{short} of {launches} launches ended before they had every point: more --budget, or fewer sizes",)


def _disturbed_words(disturbed: int, launches: int) -> tuple[str, ...]:
    if not disturbed:
        return ()
    return (f"other processes ran on the ranks' cores in {disturbed} of {launches} launches: what is shown takes more",)
