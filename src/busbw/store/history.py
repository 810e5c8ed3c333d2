"""What was read of stored runs, kept in one Parquet file per folder of runs in the user's cache folder.

The run directories are the truth. A row of the file counts only while the mark it was read under is still the run's
(`store.scan`); the file is replaced whole, never locked, and may be deleted at any time. Of two who write it at once
the later wins, and what the other had read is read again.
"""

import contextlib
import hashlib
import os
import secrets
import shlex
import stat
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from busbw.base import layout
from busbw.base.errors import RunError
from busbw.model.history import HistoryPoint, HistoryRun, ListRow
from busbw.store import bisections, comparisons, duck, isolations, tags
from busbw.store.imports import IMPORT_FILE

# What the files of a run's raw folder begin with, by which one is known that has lost its plan.
_RECORDS = ("rank-", "launcher.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """A run, an import, a comparison, a bisection, or what is left of a run that had not begun."""

    name: str
    kind: Literal["run", "import", "comparison", "bisection", "isolation", "remnant"]
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
    """Return the names in a folder. One that is no UTF-8 is not a run's: it could neither be shown nor asked for."""
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
    isolated = _mark(f"{directory}/{isolations.PLAN_FILE}")
    if isolated is not None:
        result, runs = (_mark(f"{directory}/{file}") for file in (isolations.RESULT_FILE, isolations.RUNS_FILE))
        return Stored(name=name, kind="isolation", mark=f"{isolated} {result or runs}")
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


# Part of the file's name: another one when what is kept of a run changes.
_SCHEMA = 2
_PART = ".part"
_RUNS, _POINTS = "runs.jsonl", "points.jsonl"
# The file is written again from this many changed runs on, or this share of those in it: fewer are read faster than
# all of it is written.
_MANY_CHANGED = 50
_SHARE_CHANGED = 0.05
# Runs whose lines lie on disk together on their way into memory.
_AT_ONCE = 500
_ABANDONED_S = 86_400.0
ROW_COLUMNS = tuple(name for name in duck.columns(ListRow) if name not in {"path", "tags"})
_RUN_TYPES = {"name": "VARCHAR", "mark": "VARCHAR", "created_unix_s": "DOUBLE", "settings": "VARCHAR[]"} | {
    name: kind for name, kind in duck.columns(ListRow).items() if name in ROW_COLUMNS
}
_POINT_TYPES = duck.columns(HistoryPoint)


class History:
    """The stored runs of one folder: a connection in which the view `runs` has a row for each of them.

    Its columns are those of model.listing.Row without `path` and `tags`, with `name` (of the directory), `mark`,
    `created_unix_s`, `settings` and `points` of model.history.HistoryRun. The table `tagged` has (name, tag).
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self._scan = scan(base)
        # Tags given later, by the name of the directory.
        self.tags = self._scan.tags
        self._marks = {stored.name: stored.mark for stored in self._scan.stored}
        self._file = _cache_file(base)
        self._stack = contextlib.ExitStack()
        self.connection = self._stack.enter_context(contextlib.closing(duck.connect()))
        # One file as it was opened, whoever replaces it meanwhile.
        self._pinned = self._pin(self._file)
        self._cached = self._read_marks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_details: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection and of the file it reads."""
        self._stack.close()

    def stale(self) -> tuple[Stored, ...]:
        """Return what is new or has changed since it was last read."""
        return tuple(stored for stored in self._scan.stored if self._cached.get(stored.name) != stored.mark)

    def renew(self, read: Iterable[tuple[str, HistoryRun]]) -> None:
        """Take in what was read of each stale name and open the whole to questions; keep it for later calls.

        Raises RunError where there is no room for it.
        """
        changed = len(self.stale()) + len(self._cached.keys() - self._marks.keys())
        try:
            self._take(read if changed else ())
            if changed >= min(_MANY_CHANGED, _SHARE_CHANGED * len(self._cached)) and changed:
                self._keep()
        except (OSError, duck.error()) as error:
            raise RunError(
                f"cannot keep what was read of the runs: {error}",
                where=str(self._file.parent),
                hint="free space, or choose other folders with TMPDIR and XDG_CACHE_HOME",
            ) from error

    def ask(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises RunError where what was kept is damaged inside."""
        try:
            return self.connection.execute(query, parameters).fetchall()
        except duck.error() as error:
            raise RunError(
                f"cannot ask what is kept of the runs: {error}",
                where=str(self._file),
                hint=f"remove it, it is made again: rm {shlex.quote(str(self._file))}",
            ) from error

    def _pin(self, file: Path) -> str | None:
        """Open a file until this is closed, and return a path to it as it is now; None where there is none."""
        try:
            return f"/proc/self/fd/{self._stack.enter_context(file.open('rb')).fileno()}"
        except OSError:
            return None

    def _read_marks(self) -> dict[str, str]:
        """Return the mark of each run in the file; nothing where there is none or it is damaged."""
        if self._pinned is None:
            return {}
        try:
            names = ", ".join(map(duck.quoted, (*_RUN_TYPES, "points")))
            file = f"read_parquet('{self._pinned}')"
            self.connection.execute(f"SELECT {names} FROM {file} LIMIT 0")  # noqa: S608 - names of our own fields
            return dict(self.connection.execute(f"SELECT name, mark FROM {file}").fetchall())  # noqa: S608 - as above
        except duck.error():
            return {}

    def _take(self, read: Iterable[tuple[str, HistoryRun]]) -> None:
        """Make the tables: what was just read, what still holds of the file, both as `runs`, and the tags."""
        of_point = ", ".join(f"{duck.quoted(name)} {kind}" for name, kind in _POINT_TYPES.items())
        of_run = ", ".join(f"{duck.quoted(name)} {kind}" for name, kind in _RUN_TYPES.items())
        self.connection.execute(f"CREATE TABLE fresh ({of_run}, points STRUCT({of_point})[])")
        waiting = iter(read)
        with tempfile.TemporaryDirectory(prefix="busbw-history-") as folder:
            while self._write_lines(Path(folder), islice(waiting, _AT_ONCE)):
                self.connection.execute(f"INSERT INTO fresh {_joined(Path(folder))}")
        gone = [name for name, mark in self._cached.items() if self._marks.get(name) != mark]
        self._fill("gone", ("name",), [{"name": name} for name in gone])
        where = " WHERE name NOT IN (SELECT name FROM gone)" if gone else ""
        of_file = f" UNION ALL SELECT * FROM read_parquet('{self._pinned}'){where}" if self._cached else ""  # noqa: S608
        self.connection.execute(f"CREATE VIEW runs AS SELECT * FROM fresh{of_file}")  # noqa: S608 - our own path
        pairs = [{"name": name, "tag": tag} for name, tags in self.tags.items() for tag in tags]
        self._fill("tagged", ("name", "tag"), pairs)

    def _fill(self, table: str, columns: tuple[str, ...], rows: list[dict[str, str]]) -> None:
        """Make a table of texts. As JSON: a list of Python's as a parameter takes seventy times as long."""
        kinds = msgspec.json.encode([dict.fromkeys(columns, "VARCHAR")]).decode()
        self.connection.execute(
            f"CREATE TABLE {table} AS SELECT unnest(from_json(?, '{kinds}'), recursive := true)",
            [msgspec.json.encode(rows).decode()],
        )

    def _write_lines(self, folder: Path, read: Iterable[tuple[str, HistoryRun]]) -> int:
        """Write a line for each run and each point that was read, and return how many runs there were."""
        encoder = msgspec.json.Encoder()
        number = 0
        with (folder / _RUNS).open("wb") as runs, (folder / _POINTS).open("wb") as points:
            for name, run in read:
                number += 1
                keys: dict[str, object] = {"name": name, "mark": self._marks[name]}
                keys |= {"created_unix_s": run.created_unix_s, "settings": run.settings}
                fields = {column: getattr(run.row, column) for column in ROW_COLUMNS}
                runs.write(encoder.encode(keys | fields) + b"\n")
                for point in run.points:
                    points.write(encoder.encode({"name": name} | msgspec.structs.asdict(point)) + b"\n")
        return number

    def _keep(self) -> None:
        """Replace the file, whole. Where its folder takes none, runs are read again at each call."""
        if not _takes_files(self._file.parent):
            return
        _sweep(self._file.parent)
        part = self._file.with_name(f"{self._file.name}.{os.getpid()}.{secrets.token_hex(4)}{_PART}")
        try:
            self.connection.execute(
                f"COPY (SELECT * FROM runs ORDER BY name) TO {duck.literal(part)} (FORMAT parquet)"  # noqa: S608 - our own path
            )
            part.replace(self._file)
        finally:
            part.unlink(missing_ok=True)


def _joined(folder: Path) -> str:
    """Return the query for the runs in a folder of lines, each with the list of its points."""
    of_point = ", ".join(f"{duck.quoted(name)} := {duck.quoted(name)}" for name in _POINT_TYPES)
    return f"""
        SELECT runs.*, coalesce(points, []) AS points
        FROM {duck.lines(folder / _RUNS, _RUN_TYPES)} AS runs
        LEFT JOIN (
            SELECT name, list(struct_pack({of_point}) ORDER BY "number") AS points
            FROM {duck.lines(folder / _POINTS, {"name": "VARCHAR"} | _POINT_TYPES)} GROUP BY name
        ) USING (name)"""  # noqa: S608 - names of our own fields


def _cache_file(base: Path) -> Path:
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    except RuntimeError:
        # A user without a home, as in some containers. No folder that others can write to would do.
        cache = os.devnull
    digest = hashlib.sha256(os.fsencode(base.resolve())).hexdigest()[:16]
    return Path(cache, "busbw", f"history-{_SCHEMA}-{digest}.parquet")


def _takes_files(folder: Path) -> bool:
    """Whether the cache folder is there, or can be made, and may be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _sweep(folder: Path) -> None:
    """Remove what writers left that were killed more than a day ago."""
    with contextlib.suppress(OSError):
        for part in folder.glob(f"*{_PART}"):
            if time.time() - part.stat().st_mtime > _ABANDONED_S:
                part.unlink(missing_ok=True)
