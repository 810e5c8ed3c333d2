"""Where a run, an import, a comparison or a bisection is that somebody names."""

import shlex
from pathlib import Path
from typing import Literal

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.store import bisections, comparisons, imports, isolations
from busbw.store import directory as directories
from busbw.store.files import entries, is_file

Kind = Literal["run", "import", "comparison", "bisection", "isolation"]


# What a folder holds that is one.
_MARKS: dict[Kind, str] = {
    "run": layout.PLAN_FILE,
    "import": imports.IMPORT_FILE,
    "comparison": comparisons.PLAN_FILE,
    "bisection": bisections.PLAN_FILE,
    "isolation": isolations.PLAN_FILE,
}


# Files whose path means the folder they are in.
_NAMED_BY = (
    layout.RUN_FILE,
    imports.IMPORT_FILE,
    comparisons.PLAN_FILE,
    comparisons.RESULT_FILE,
    bisections.PLAN_FILE,
    bisections.RESULT_FILE,
    isolations.PLAN_FILE,
    isolations.RUNS_FILE,
)


_SHOWN_NAMES = 3


def find(name: str) -> Path:
    """Return the run or the import that `name` means, as `find_stored` does.

    Raises InputError for a comparison and a bisection too: what was measured is in the runs of their launches.
    """
    where = find_stored(name)
    if is_comparison(where):
        raise InputError(
            "this is a comparison, and a run or an import is asked for",
            where=str(where),
            hint=f"its result: busbw show {shlex.quote(str(where))}; its launches in that folder are runs",
        )
    if is_bisection(where):
        raise InputError(
            "this is a bisection, and a run or an import is asked for",
            where=str(where),
            hint=f"what it found: busbw show {shlex.quote(str(where))}; it holds comparisons, and they hold runs",
        )
    if is_isolation(where):
        raise InputError(
            "this is a search over groups of nodes, and a run or an import is asked for",
            where=str(where),
            hint=f"what it found: busbw show {shlex.quote(str(where))}",
        )
    return where


def find_stored(name: str) -> Path:
    """Return the run, import, comparison or bisection that `name` means: a path, the beginning of a name, or `last`.

    The last one is a run; where there is no run, an import; where there is none, a comparison or a bisection. Raises
    InputError when there is none or more than one.
    """
    path, base = Path(name), directories.root()
    if kind_of(path) is not None:
        return path
    if path.name in _NAMED_BY and kind_of(path.parent) is not None:
        return path.parent
    if name == "last":
        return _last(base)
    found = [entry for entry in entries(base) if entry.name.startswith(name) and kind_of(entry) is not None]
    exact = [directory for directory in found if directory.name == name]
    if len(exact or found) > 1:
        by_kind = {kind: [each for each in found if kind_of(each) == kind] for kind in _MARKS}
        *others, last = [f"{kind}s" for kind, there in by_kind.items() if there]
        kinds = f"{', '.join(others)} and {last}" if others else last
        names = ", ".join([each.name for there in by_kind.values() for each in there][:_SHOWN_NAMES])
        raise InputError(f"{name!r} means {len(found)} {kinds}: {names}", hint="write more of the name")
    if not found:
        for each in (path, base / name):
            _refuse_other(each)
        # The same words as for a verb that asks for runs alone.
        return directories.find(name, base)
    return (exact or found)[0]


def kind_of(directory: Path) -> Kind | None:
    """Return what a directory holds; None: none of these."""
    return next((kind for kind, file in _MARKS.items() if is_file(directory / file)), None)


def is_import(directory: Path) -> bool:
    """Whether a directory holds an import."""
    return kind_of(directory) == "import"


def is_comparison(directory: Path) -> bool:
    """Whether a directory holds a comparison that was measured."""
    return kind_of(directory) == "comparison"


def is_bisection(directory: Path) -> bool:
    """Whether a directory holds a bisection."""
    return kind_of(directory) == "bisection"


def is_isolation(directory: Path) -> bool:
    """Whether a directory holds a search of `busbw isolate`."""
    return kind_of(directory) == "isolation"


def import_directories(base: Path) -> list[Path]:
    """Return every import under `base`, oldest first (names begin with the time)."""
    return [entry for entry in entries(base) if is_import(entry)]


def _refuse_other(path: Path) -> None:
    """Raise InputError for a folder that lies among runs, or holds them, and is none."""
    within = entries(path)
    if within and path.name.endswith(layout.JOB_SUFFIX):
        run = path.with_name(path.name.removesuffix(layout.JOB_SUFFIX))
        raise InputError(
            "this is what a job of the queue was submitted with, and what it printed",
            where=str(path),
            hint=f"what it measured is beside it: busbw show {shlex.quote(str(run))}",
        )
    if any(kind_of(entry) is not None for entry in within):
        raise InputError(
            "this folder holds runs and is not one itself",
            where=str(path),
            hint=f"what is in it: BUSBW_RUNS={shlex.quote(str(path))} busbw runs",
        )


def _last(base: Path) -> Path:
    newest: dict[Kind, Path] = {}
    for entry in reversed(entries(base)):
        kind = kind_of(entry)
        if kind is not None:
            newest.setdefault(kind, entry)
        if kind == "run":
            break
    found = next((newest[kind] for kind in _MARKS if kind in newest), None)
    return found if found is not None else directories.find("last", base)
