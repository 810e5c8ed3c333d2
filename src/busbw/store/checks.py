"""Check directories: what was asked for, each stage whole when it has ended; and the history, a line a node a check."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from busbw.base.errors import InputError, RunError
from busbw.model import codec
from busbw.model.check.report import CHECK_SCHEMA, CheckPlan, CheckReport, NodePast, StageAnswer
from busbw.model.check.screening import ScreenedNodes
from busbw.store.files import entries, make_resumable, named, read_whole, write_whole

PLAN_FILE = "check.json"
RESULT_FILE = "result.json"
SCREENING_FILE = "screening.json"
# In the folder of runs.
FOLDER = "checks"
_HISTORY = "history"
_MAX_BYTES = 2**28
# Of one node: some 10,000 checks. What is over it loses its older half.
_MOST_HISTORY_BYTES = 4 * 2**20
T = TypeVar("T")


def create(directory: Path, plan: CheckPlan) -> None:
    """Make a check directory with its plan. Raises InputError where it cannot be made, or holds something."""
    make_resumable(directory)
    write_whole(directory / PLAN_FILE, codec.encode_pretty(plan))


def find(name: str, base: Path) -> Path:
    """Return the check directory that `name` means: a path, the beginning of a name, or `last`. Raises InputError."""
    path = Path(name)
    if _is_check(path):
        return path
    known = [each for each in entries(base / FOLDER) if _is_check(each)]
    if name == "last" and known:
        return known[-1]
    found = [each for each in known if each.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{name!r} means {len(found)} checks", where=str(base / FOLDER), hint="write more of the name")
    raise InputError(
        f"no check {name[:200]!r}", where=str(base / FOLDER), hint="begin one with: busbw check --profile daily"
    )


def _is_check(path: Path) -> bool:
    try:
        return (path / PLAN_FILE).is_file()
    except (OSError, ValueError):
        return False


def read_plan(directory: Path) -> CheckPlan:
    """Return what a check was asked for. Raises InputError when that is missing, damaged or too new."""
    path = directory / PLAN_FILE
    content = read_whole(path, _MAX_BYTES)
    codec.check_schema(content, CHECK_SCHEMA, where=str(path))
    return codec.decode(content, CheckPlan, where=str(path))


def write_screening(directory: Path, screened: ScreenedNodes) -> None:
    """Store what the nodes found of themselves."""
    write_whole(directory / SCREENING_FILE, codec.encode_pretty(screened))


def read_screening(directory: Path) -> ScreenedNodes | None:
    """Return what the nodes found of themselves; None: the stage has not ended."""
    return _read(directory / SCREENING_FILE, ScreenedNodes)


def write_stage(directory: Path, answer: StageAnswer) -> None:
    """Store what a stage came to."""
    write_whole(directory / f"{answer.name}.stage.json", codec.encode_pretty(answer))


def read_stage(directory: Path, name: str) -> StageAnswer | None:
    """Return what a stage came to; None: it has not ended."""
    return _read(directory / f"{name}.stage.json", StageAnswer)


def write_report(directory: Path, report: CheckReport) -> None:
    """Store the whole."""
    write_whole(directory / RESULT_FILE, codec.encode_pretty(report))


def _read(path: Path, kind: type[T]) -> T | None:
    if not path.is_file():
        return None
    return codec.decode(read_whole(path, _MAX_BYTES), kind, where=str(path))


def add_past(base: Path, past: Iterable[NodePast]) -> None:
    """Add a line for each node to its history. Raises RunError when the disk refuses."""
    folder = base / FOLDER / _HISTORY
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in past:
            path = _history_of(folder, each.host)
            _shorten(path)
            # One write a line: two checks that end at the same time do not mix.
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(descriptor, codec.encode(each) + b"\n")
            finally:
                os.close(descriptor)
    except OSError as error:
        raise RunError(
            f"cannot write the history: {error.strerror or error}",
            where=str(folder),
            hint="free space, or set BUSBW_RUNS to a folder that this user may write",
        ) from error


def read_past(base: Path, hosts: Iterable[str] | None = None) -> tuple[NodePast, ...]:
    """Return the lines of the history, of some hosts or of all; what cannot be read of it is left out."""
    folder = base / FOLDER / _HISTORY
    paths = named(folder, "*.jsonl") if hosts is None else [_history_of(folder, each) for each in hosts]
    found = []
    for path in paths:
        try:
            lines = read_whole(path, 2 * _MOST_HISTORY_BYTES).splitlines()
        except InputError:
            continue
        for line in lines:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                found.append(msgspec.json.decode(line, type=NodePast))
    return tuple(found)


def _history_of(folder: Path, host: str) -> Path:
    # Names of hosts have no slash; one that is read from elsewhere must not leave the folder.
    return folder / f"{host.replace('/', '_').lstrip('.')}.jsonl"


def _shorten(path: Path) -> None:
    """Leave the newer half of a history that has become long."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > _MOST_HISTORY_BYTES:
            lines = path.read_bytes().splitlines(keepends=True)
            write_whole(path, b"".join(lines[len(lines) // 2 :]))
