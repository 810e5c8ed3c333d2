"""Whole files, written so that a reader finds the old or the new one and never half of it."""

import contextlib
import os
import shlex
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from busbw.base import layout
from busbw.base.errors import InputError, RunError
from busbw.model.plan import JobFile


def exists(path: Path) -> bool:
    """Whether there is something at a path, whatever text that is."""
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


def is_file(path: Path) -> bool:
    """Whether a file is there, and no folder or device."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether a folder is there."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def entries(folder: Path) -> tuple[Path, ...]:
    """Return what is in a folder, in the order of its names; nothing where there is no such folder."""
    try:
        return tuple(sorted(folder.iterdir()))
    except (OSError, ValueError):
        return ()


def named(folder: Path, pattern: str) -> list[Path]:
    """Return what is in a folder with a name like `pattern`, in the order of the names."""
    return sorted(folder.glob(pattern))


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file at `path`.

    Raises InputError when something else than a file is there, RunError when the disk is full or refuses.
    """
    check_replaceable(path)
    with _part_of(path, content) as part:
        part.replace(path)


def write_new(path: Path, content: bytes) -> bool:
    """Write the file at `path` where there is none, and say whether it was: of several who write it one does.

    Raises RunError when the disk is full or refuses, as one that knows no hard links does.
    """
    with _part_of(path, content) as part:
        try:
            path.hardlink_to(part)
        except FileExistsError:
            return False
        finally:
            part.unlink()
    return True


@contextlib.contextmanager
def _part_of(path: Path, content: bytes) -> Iterator[Path]:
    """Yield a file beside `path` with all of its content; what fails then is a RunError, and leaves none.

    Each thread has its own: readers of a history write what they were the first to read.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield part
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise RunError(
            f"cannot write {path.name}: {error.strerror or error}",
            where=str(path.parent),
            hint="free space, or choose another folder",
        ) from error


def check_replaceable(path: Path) -> None:
    """Raise InputError for a folder, a device, a pipe: a file in its place would take it from everybody."""
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except OSError:
        # Nothing is there, or writing says better what is wrong.
        return
    if not is_file:
        raise InputError(
            f"{path} is not a file, and is not replaced by one", hint="choose another name with -o, or leave it out"
        )


def read_whole(path: Path, limit_bytes: int) -> bytes:
    """Return a file's content. Raises InputError when it is missing, unreadable or over the limit."""
    try:
        size_bytes = path.stat().st_size
        if size_bytes > limit_bytes:
            raise InputError(f"{path.name} has {size_bytes} bytes, over the limit of {limit_bytes}", where=str(path))
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path.name}: {error.strerror or error}", where=str(path)) from error


_FILE = 0o644
_PROGRAM = 0o755


def check_new_folder(directory: Path) -> None:
    """Raise InputError where anything is at that place already, or where the folder above is not there."""
    target = directory.absolute()
    if os.path.lexists(target):
        raise InputError(f"{directory} is there already, and is not written over", hint="choose a new folder with -o")
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {target.parent}", hint="make it, or choose another with -o")


def make_resumable(directory: Path) -> None:
    """Make the folder of what `--resume` goes on with. Raises InputError where it cannot be made or holds something."""
    other = "choose another folder with --out"
    try:
        if directory.exists() and any(directory.iterdir()):
            again = f"--resume {shlex.quote(str(directory))}"
            raise InputError(f"{directory} is not empty", hint=f"{other}, or go on with: {again}")
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        cause = f"cannot make the folder: {error.strerror or error}"
        raise InputError(cause, where=str(directory), hint=other) from error


def write_folder(directory: Path, files: Iterable[tuple[str, str, bool]]) -> None:
    """Make a folder with these files, each a name, a text and whether it is a program.

    Raises InputError where anything is at that place already, or where the folder above is not there, RunError when
    the disk is full or refuses.
    """
    check_new_folder(directory)
    target = directory.absolute()
    part: Path | None = None
    try:
        # Beside the target, so that it can take its place at once.
        part = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent))
        for name, text, is_program in files:
            _write(part / name, text, _PROGRAM if is_program else _FILE)
        part.chmod(_PROGRAM)
        # An empty folder that somebody has made in between is all that this could replace.
        part.rename(target)
    except OSError as error:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)
        raise RunError(
            f"cannot write {target.name}: {error.strerror or error}",
            where=str(target.parent),
            hint="free space, or choose another folder",
        ) from error


def _write(path: Path, text: str, mode: int) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(mode)


STANDARD_INPUT = "-"


def read_bounded(path: Path, *, most_bytes: int, kind: str) -> bytes:
    """Return the bytes of a file, or of standard input where it is named `-`. `kind` says what it should be.

    Raises InputError when it is missing, is not a regular file, cannot be read, or has more than `most_bytes`.
    """
    if str(path) == STANDARD_INPUT:
        return _read(sys.stdin.buffer, "standard input", most_bytes, kind)
    try:
        # A pipe would wait for its writer, and a device may never end.
        _check_regular(path, path.stat().st_mode)
        with path.open("rb") as file:
            return _read(file, str(path), most_bytes, kind)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {cause}", where=str(path)) from error


def _check_regular(path: Path, mode: int) -> None:
    kinds = (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISSOCK, "a socket"),
    )
    for is_kind, name in kinds:
        if is_kind(mode):
            raise InputError(f"{path} is {name}, not a file", where=str(path), hint="give a file, or pipe it into `-`")


def _read(file: BinaryIO, where: str, most_bytes: int, kind: str) -> bytes:
    """Return what is in the file. Raises InputError once more than the most came out of it."""
    content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise InputError(f"{where} is over {most_bytes >> 20} MiB: no {kind} is", where=where)
    return content


# What busbw itself keeps there.
_TAKEN = ((), (layout.PLAN_FILE,), (layout.RUN_FILE,), (layout.OUTCOME_FILE,), (layout.RAW_DIRECTORY,))


def write(files: Iterable[JobFile], folder: Path) -> None:
    """Write files below `folder`, which is made where it is missing.

    Raises InputError for two files of one name, for one that would lie elsewhere, and where nothing can be written.
    """
    written: dict[str, JobFile] = {}
    for file in files:
        if written.setdefault(file.path, file) != file:
            raise InputError(f"two jobs of the plan need another file at {file.path}", where=str(folder))
    for file in written.values():
        path = PurePosixPath(file.path)
        if path.is_absolute() or ".." in path.parts or path.parts[:1] in _TAKEN:
            raise InputError(f"a file of the plan must lie in the run's folder, and this does not: {file.path!r}")
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(file.text, encoding="utf-8", errors="surrogateescape", newline="")
            (folder / path).chmod(0o755 if file.executable else 0o644)
        except OSError as error:
            raise InputError(
                f"cannot write a file of the job: {error.strerror or error}",
                where=str(folder / path),
                hint="choose another folder",
            ) from error
