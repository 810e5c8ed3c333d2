"""Comparison directories: the plan, a run directory for each launch, and what it came to."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from busbw.base import layout
from busbw.base.errors import InputError, RunError
from busbw.model import codec
from busbw.model.comparison import (
    COMPARISON_PLAN_SCHEMA,
    COMPARISON_SCHEMA,
    Comparison,
    ComparisonPlan,
    ComparisonVerdict,
    SpeedEstimate,
)
from busbw.model.plan import Plan
from busbw.store import directory as directories
from busbw.store import documents
from busbw.store.files import make_resumable, read_whole, write_whole

PLAN_FILE = "comparison.json"
RESULT_FILE = "result.json"
_MAX_BYTES = 2**28


def is_comparison(directory: Path) -> bool:
    """Whether a directory holds a measured comparison."""
    try:
        return (directory / PLAN_FILE).is_file()
    except (OSError, ValueError):
        return False


def find(name: str, base: Path) -> Path | None:
    """Return the comparison that `name` means: a path, or the beginning of one's name; None where there is none.

    Raises InputError when it means more than one.
    """
    if is_comparison(Path(name)):
        return Path(name)
    try:
        matching = [entry for entry in sorted(base.iterdir()) if entry.name.startswith(name) and is_comparison(entry)]
    except OSError:
        return None
    exact = [entry for entry in matching if entry.name == name]
    if len(exact or matching) > 1:
        names = ", ".join(entry.name for entry in matching[:3])
        raise InputError(f"{name!r} means {len(matching)} comparisons: {names}", hint="write more of the name")
    return next(iter(exact or matching), None)


def create(plan: ComparisonPlan, launches: tuple[Plan, ...], directory: Path) -> None:
    """Make a comparison directory with its plan and those of its launches, in the order of `plan.launches`.

    Raises InputError when it cannot be made or holds something already.
    """
    make_resumable(directory)
    for launch, own in zip(plan.launches, launches, strict=True):
        directories.create(own, directory / launch.folder)
    # Last: a folder that has it has everything.
    write_whole(directory / PLAN_FILE, codec.encode_pretty(plan))


def read_plan(directory: Path) -> ComparisonPlan:
    """Return the plan of a comparison. Raises InputError when it is missing, damaged or too new."""
    path = directory / PLAN_FILE
    content = read_whole(path, _MAX_BYTES)
    codec.check_schema(content, COMPARISON_PLAN_SCHEMA, where=str(path))
    plan = codec.decode(content, ComparisonPlan, where=str(path))
    if not plan.launches:
        raise InputError("not a comparison: it has no launch", where=str(path))
    for launch in plan.launches:
        named = Path(launch.folder)
        if named.name != launch.folder or launch.folder in ("", ".", "..") or not 0 <= launch.side < len(plan.sides):
            raise InputError(f"not a launch of this comparison: {launch.folder!r}", where=str(path))
    return plan


def launch_plan(directory: Path) -> Plan:
    """Return the plan of one launch."""
    return directories.read_plan(directory)


def was_begun(directory: Path) -> bool:
    """Whether anything of a launch was started already."""
    return any((directory / layout.RAW_DIRECTORY).iterdir())


def start_again(directory: Path) -> None:
    """Put a launch that was cut off aside, and make its folder anew with the same plan.

    Half of one launch and half of another are no launch. Raises RunError when that is not allowed.
    """
    plan = directories.read_plan(directory)
    number = 1
    while (aside := directory.with_name(f"{directory.name}.cut-off-{number}")).exists():
        number += 1
    try:
        directory.rename(aside)
    except OSError as error:
        raise RunError(f"cannot put a cut-off launch aside: {error.strerror or error}", where=str(directory)) from error
    directories.create(plan, directory)


def write(directory: Path, comparison: Comparison) -> None:
    """Store what a comparison came to; readers see the old or the new one, whole."""
    write_whole(directory / RESULT_FILE, codec.encode_pretty(comparison))


def read(directory: Path) -> Comparison | None:
    """Return what a comparison came to; None where that is not stored. Raises InputError for a damaged one."""
    path = directory / RESULT_FILE
    if not path.is_file():
        return None
    return decoded(read_whole(path, _MAX_BYTES), where=str(path))


class _Comparison(msgspec.Struct):
    """What tells of which form a stored comparison is."""

    schema: int = COMPARISON_SCHEMA
    comparison_id: str | None = None


def decoded(content: bytes, *, where: str) -> Comparison:
    """Return the comparison that a file holds, one of schema 1 without its claims and intervals.

    Those took blocks of a mirrored pair as independent, and launches that were not interleaved as if they had been.
    Raises InputError for a damaged one, and for one that is too new.
    """
    codec.check_schema(content, COMPARISON_SCHEMA, where=where)
    hint = "busbw compare ... --json > FILE"
    form = documents.decoded(content, _Comparison, where=where, called="a comparison", hint=hint)
    if form.schema >= COMPARISON_SCHEMA:
        return documents.decoded(content, Comparison, where=where, called="a comparison", hint=hint)
    design = "mirrored_pairs" if form.comparison_id is not None else "descriptive"
    fields: dict[str, Any] = msgspec.json.decode(content)
    whole = msgspec.json.encode({**fields, "design": design})
    return _without_claims(documents.decoded(whole, Comparison, where=where, called="a comparison", hint=hint))


def _without_claims(old: Comparison) -> Comparison:
    again = f"busbw compare {old.comparison_id}" if old.comparison_id is not None else "compare the results anew"
    why = f"busbw {old.busbw_version} took launches that depend on each other as independent; for an answer: {again}"
    is_wrong = old.verdict.outcome == "wrong"
    return replace(
        old,
        versus=tuple(
            replace(
                each,
                points=tuple(replace(point, estimate=as_measured(point.estimate)) for point in each.points),
                bands=tuple(replace(band, estimate=as_measured(band.estimate)) for band in each.bands),
                geometric_mean=as_measured(each.geometric_mean) if each.geometric_mean is not None else None,
            )
            for each in old.versus
        ),
        false_claims=None,
        blocks=old.blocks if old.comparison_id is not None else 0,
        verdict=old.verdict if is_wrong else ComparisonVerdict(outcome="cannot_tell", sentence=f"cannot tell: {why}"),
    )


def as_measured(estimate: SpeedEstimate) -> SpeedEstimate:
    """Return what was measured, without what was concluded from it."""
    return SpeedEstimate(ratio=estimate.ratio, confidence=None, blocks=estimate.blocks, claim="cannot_tell")
