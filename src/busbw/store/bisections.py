"""Bisection directories: what is searched, a comparison for each question, and what was found."""

import shlex
from pathlib import Path

from msgspec.structs import replace

from busbw.base.errors import InputError
from busbw.model import codec
from busbw.model.comparison import BISECTION_PLAN_SCHEMA, BISECTION_SCHEMA, Bisection, BisectionPlan
from busbw.store import comparisons
from busbw.store.files import read_whole, write_whole

PLAN_FILE = "bisection.json"
RESULT_FILE = "result.json"
# The folder of the comparison of good and bad.
ENDS = "ends"
_MAX_BYTES = 2**26


def create(directory: Path, plan: BisectionPlan) -> None:
    """Make a bisection directory, or go on in one that was made for the same.

    Raises InputError where it cannot be made, or holds something else.
    """
    path = directory / PLAN_FILE
    try:
        if path.is_file():
            if read_plan(directory) != plan:
                raise InputError(
                    "another bisection is in this folder", where=str(directory), hint="choose another with --out"
                )
            return
        if directory.exists() and any(directory.iterdir()):
            raise InputError(f"{directory} is not empty", hint="choose another folder with --out")
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder: {error.strerror or error}", where=str(directory)) from error
    write_whole(path, codec.encode_pretty(plan))


def read_plan(directory: Path) -> BisectionPlan:
    """Return what a bisection searches. Raises InputError when that is missing, damaged or too new."""
    path = directory / PLAN_FILE
    content = read_whole(path, _MAX_BYTES)
    codec.check_schema(content, BISECTION_PLAN_SCHEMA, where=str(path))
    return codec.decode(content, BisectionPlan, where=str(path))


def is_begun(directory: Path) -> bool:
    """Whether a bisection lies here already."""
    return (directory / PLAN_FILE).is_file()


def comparison_folders(directory: Path) -> tuple[str, ...]:
    """Return the names of its comparisons, that of the two ends first."""
    try:
        names = sorted(each.name for each in directory.iterdir() if (each / comparisons.PLAN_FILE).is_file())
    except OSError:
        return ()
    return tuple(sorted(names, key=lambda name: name != ENDS))


def write(directory: Path, found: Bisection) -> None:
    """Store what was found."""
    write_whole(directory / RESULT_FILE, codec.encode_pretty(found))


def read(directory: Path) -> Bisection | None:
    """Return what was found; None where that is not stored. Raises InputError for a damaged one.

    One of schema 1 keeps what was measured and loses its answer, as comparisons of schema 1 do.
    """
    path = directory / RESULT_FILE
    if not path.is_file():
        return None
    content = read_whole(path, _MAX_BYTES)
    codec.check_schema(content, BISECTION_SCHEMA, where=str(path))
    found = codec.decode(content, Bisection, where=str(path))
    named = [item for step in found.steps for item in step.items] + [item for one in found.causes for item in one.items]
    if any(item not in range(len(found.plan.items)) for item in named):
        raise InputError("not a bisection: it speaks of a difference that is not among its own", where=str(path))
    return found if found.schema >= BISECTION_SCHEMA else _without_answers(found, directory)


def _without_answers(old: Bisection, directory: Path) -> Bisection:
    again = f"the same command with --out {shlex.quote(str(directory))} judges its launches anew"
    why = f"busbw {old.plan.busbw_version} took launches that depend on each other as independent"
    return replace(
        old,
        whole=comparisons.as_measured(old.whole) if old.whole is not None else None,
        steps=tuple(
            replace(step, estimate=comparisons.as_measured(step.estimate), answer="unclear") for step in old.steps
        ),
        causes=(),
        outcome="cannot_tell",
        sentence=f"cannot tell: {why}; {again}",
    )
