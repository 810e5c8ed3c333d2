"""What reports are made of: runs with their settings and their machine, imports, a comparison, a bisection, scaling."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from busbw.api.bisected import read_bisection
from busbw.api.compare import read_comparison
from busbw.api.compared_results import exists
from busbw.api.locating import Kind, find_stored, is_bisection, is_comparison, kind_of
from busbw.api.reported_imports import file_subject, import_subject
from busbw.api.reported_runs import named_grounds, run_subjects
from busbw.base.errors import InputError
from busbw.machine.named import node_view, platform
from busbw.model import codec
from busbw.model.bisection import Bisection
from busbw.model.comparison import Comparison
from busbw.model.scaling import SCALING_SCHEMA, ScalingReport
from busbw.show.page.import_subject import ImportSubject
from busbw.show.page.subject import Picture, Subject
from busbw.store import bisections, comparisons
from busbw.store.files import read_whole
from busbw.store.node_files import source_kind

MOST_RUNS = 1000
MOST_IMPORTS = 40
_SHOWN_NAMES = 3
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """What a report or a drawing is about."""

    subjects: tuple[Subject, ...] = ()
    imports: tuple[ImportSubject, ...] = ()
    # Of a bisection, which is beside it, that of its two ends.
    comparison: Comparison | None = None
    bisection: Bisection | None = None
    # What was asked for and cannot be shown, a line each.
    notes: tuple[str, ...] = ()


def page_of(names: Sequence[str], machine: str | None = None) -> Page:
    """Return the runs, imports, and the comparison or bisection that `names` mean, in their order, each once.

    A file that is none of them is read as an import is, and not kept. `machine` names the node to draw, and to hold
    results against: an NCCL topology file, a platform or a snapshot; None: the platform that a run stored, if it did.

    Raises InputError for a name that means nothing, for two comparisons or bisections, and for too many names.
    """
    if len(names) > MOST_RUNS:
        raise InputError(f"{len(names)} runs are too many for one page", hint=f"name at most {MOST_RUNS}")
    places = tuple(dict.fromkeys(_place(name) for name in names))
    by_kind: dict[Kind | None, list[Path]] = {kind: [] for kind in ("run", "import", "comparison", "bisection", None)}
    for place in places:
        by_kind[kind_of(place)].append(place)
    files = (*by_kind["import"], *by_kind[None])
    if len(files) > MOST_IMPORTS:
        raise InputError(f"{len(files)} imports are too many for one page", hint=f"name at most {MOST_IMPORTS}")
    compared = [*by_kind["comparison"], *by_kind["bisection"]]
    if len(compared) > 1:
        names_of = ", ".join(place.name for place in compared[:_SHOWN_NAMES])
        raise InputError(f"one page holds one comparison, and {len(compared)} are named: {names_of}")
    grounds = named_grounds(machine) if files else None
    picture, notes = _named_picture(machine)
    return Page(
        notes=notes,
        subjects=run_subjects(by_kind["run"], machine, picture),
        imports=tuple(
            import_subject(place, grounds) if kind_of(place) == "import" else file_subject(place, grounds)
            for place in files
            if grounds is not None
        ),
        comparison=_comparison_of(compared[0]) if compared else None,
        bisection=read_bisection(by_kind["bisection"][0]) if by_kind["bisection"] else None,
    )


def _place(name: str) -> Path:
    """Return where a name lies: something stored, else the file of another tool."""
    path = Path(name)
    is_file = exists(path) and path.is_file() and kind_of(path.parent) is None
    return path if is_file else find_stored(name)


def _comparison_of(where: Path) -> Comparison | None:
    """Return a comparison, or that of the ends of a bisection; None where they were not measured."""
    ends = where / bisections.ENDS
    if is_bisection(where):
        return read_comparison(ends) if is_comparison(ends) else None
    return read_comparison(where)


def _named_picture(machine: str | None) -> tuple[Picture | None, tuple[str, ...]]:
    """Return the node that is named, and why a platform's is not drawn. Raises InputError for what there is not."""
    if machine is None:
        return None, ()
    try:
        return Picture(view=node_view(machine), whose=f"{machine}, as named for this report"), ()
    except InputError as error:
        if source_kind(machine) != "absent":
            raise
        # Of a platform that there is, results can be judged all the same.
        return None, (f"the inside of a node of {platform(machine).platform.id} is not drawn: {error.cause}",)


def comparison(path: Path) -> Comparison:
    """Return what `busbw compare --json` wrote, or a comparison by its folder or the beginning of its name.

    Raises InputError for anything else.
    """
    if path.is_dir() or not path.suffix:
        where = find_stored(str(path))
        if not is_comparison(where):
            raise InputError("this is no comparison", where=str(where), hint="busbw runs --kind comparison")
        return read_comparison(where)
    found = comparisons.decoded(read_whole(path, _MOST_BYTES), where=str(path))
    if any(not 0 < versus.other < len(found.sides) for versus in found.versus):
        raise InputError("not a comparison: a side is held against the first that is not there", where=str(path))
    return found


def scaling(path: Path) -> ScalingReport:
    """Return what `busbw scaling --json` wrote. Raises InputError for a file that holds something else."""
    content = read_whole(path, _MOST_BYTES)
    codec.check_schema(content, SCALING_SCHEMA, where=str(path))
    return codec.decode(content, ScalingReport, where=str(path))
