"""A new folder of files, which is there as a whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from busbw.base.errors import InputError, RunError

_FILE = 0o644
_PROGRAM = 0o755


def write_folder(directory: Path, files: Iterable[tuple[str, str, bool]]) -> None:
    """Make a folder with these files, each a name, a text and whether it is a program.

    Raises InputError where anything is at that place already, or where the folder above is not there, RunError when
    the disk is full or refuses.
    """
    target = directory.absolute()
    if os.path.lexists(target):
        raise InputError(f"{directory} is there already, and is not written over", hint="choose a new folder with -o")
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {target.parent}", hint="make it, or choose another with -o")
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
            hint="free space, or choose another folder with -o",
        ) from error


def _write(path: Path, text: str, mode: int) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(mode)
