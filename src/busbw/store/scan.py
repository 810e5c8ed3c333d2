"""What lies in a folder of runs, with a mark for each that changes when its files do. No file is opened."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from busbw.base import layout
from busbw.store import bisections, comparisons, tags
from busbw.store.imports import IMPORT_FILE

# What the files of a run's raw folder begin with, by which one is known that has lost its plan.
_RECORDS = ("rank-", "launcher.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """A run, an import, a comparison, a bisection, or what is left of a run that had not begun."""

    name: str
    kind: Literal["run", "import", "comparison", "bisection", "remnant"]
    # Inode, size and times of the files that a result is read from.
    mark: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """Everything in one folder, by name."""

    stored: tuple[Stored, ...]
    # Tags given later, of those that have any.
    tags: dict[str, tuple[str, ...]]


def scan(base: Path) -> Scan:
    """Return what lies in a folder of runs; nothing where there is no such folder."""
    stored, tagged = [], {}
    for name in _names(base):
        if name.endswith(tags.SUFFIX):
            tagged[name.removesuffix(tags.SUFFIX)] = tags.tags_in(base / name)
        elif not name.startswith(".") and (found := _stored(f"{base}/{name}", name)) is not None:
            stored.append(found)
    return Scan(stored=tuple(stored), tags=tagged)


def _names(base: Path) -> list[str]:
    """Return the names in a folder. One that is no UTF-8 is no run's: it could neither be shown nor asked for."""
    return sorted(name for name in _names_in(str(base)) or () if _is_text(name))


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _stored(directory: str, name: str) -> Stored | None:
    plan, run = _mark(f"{directory}/{layout.PLAN_FILE}"), _mark(f"{directory}/{layout.RUN_FILE}")
    if plan is not None and run is not None:
        return Stored(name=name, kind="run", mark=f"{plan} {run}")
    if plan is not None:
        outcome = _mark(f"{directory}/{layout.OUTCOME_FILE}")
        return Stored(name=name, kind="run", mark=f"{plan} {outcome} {_marks_in(directory)}")
    return _other(directory, name) or _without_plan(directory, name, run)


def _other(directory: str, name: str) -> Stored | None:
    """Return the import, the comparison or the bisection that a directory holds."""
    imported = _mark(f"{directory}/{IMPORT_FILE}")
    if imported is not None:
        return Stored(name=name, kind="import", mark=imported)
    compared = _mark(f"{directory}/{comparisons.PLAN_FILE}")
    if compared is not None:
        return Stored(name=name, kind="comparison", mark=f"{compared} {_mark_of_comparison(directory)}")
    searched = _mark(f"{directory}/{bisections.PLAN_FILE}")
    if searched is not None:
        return Stored(name=name, kind="bisection", mark=f"{searched} {_mark_of_bisection(directory)}")
    return None


def _without_plan(directory: str, name: str, run: str | None) -> Stored | None:
    raw = _names_in(f"{directory}/{layout.RAW_DIRECTORY}")
    # A run's folder is made with this one in it; the plan is written next, and nothing is started before.
    if raw == []:
        return Stored(name=name, kind="remnant", mark="no plan")
    if any(each.startswith(_RECORDS) for each in raw or ()):
        return Stored(name=name, kind="run", mark=f"no plan {run} {_marks_in(directory)}")
    return None


def _marks_in(directory: str) -> str:
    """Return the marks of the raw files of a run that has no result yet."""
    raw = f"{directory}/{layout.RAW_DIRECTORY}"
    names = (name for name in _names(Path(raw)) if not name.endswith(layout.HEARTBEAT_SUFFIX))
    return " ".join(f"{name} {_mark(f'{raw}/{name}')}" for name in names)


def _mark_of_comparison(directory: str) -> str:
    """Return the mark of a comparison's result, or of how its launches ended while it has none."""
    result = _mark(f"{directory}/{comparisons.RESULT_FILE}")
    if result is not None:
        return result
    return " ".join(f"{name} {_mark(f'{directory}/{name}/{layout.OUTCOME_FILE}')}" for name in _names(Path(directory)))


def _mark_of_bisection(directory: str) -> str:
    """Return the mark of what was found, or of the comparisons there are while nothing was."""
    result = _mark(f"{directory}/{bisections.RESULT_FILE}")
    if result is not None:
        return result
    folders = (f"{directory}/{name}" for name in bisections.comparison_folders(Path(directory)))
    return " ".join(f"{_mark(f'{each}/{comparisons.PLAN_FILE}')} {_mark_of_comparison(each)}" for each in folders)


def _mark(path: str) -> str | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path for each of twenty thousand files takes longer than the call
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return f"{status.st_ino}.{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}"


def _names_in(path: str) -> list[str] | None:
    """Return the names in a folder; None where there is no such folder."""
    try:
        return os.listdir(path)  # noqa: PTH208 - names alone, ten thousand of them
    except (OSError, ValueError):
        return None
