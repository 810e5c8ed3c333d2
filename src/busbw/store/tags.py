"""Tags of runs and imports: a folder `RUN.tags` beside the directory, in it an empty file for each tag.

A run directory never changes once it is finished, and a tag is given later. To create a file and to remove one are
each one step on every file system, shared ones too: nothing is read, changed and written back, so that no tag is lost
where several people tag at once, and there is no lock.
"""

import os
import re
from pathlib import Path

from busbw.base.errors import InputError, RunError

SUFFIX = ".tags"
_TAG = re.compile(r"[^\W_][\w.:+@=-]{0,63}")


def check_tag(tag: str) -> None:
    """Raise InputError for what is not a tag: it is the name of a file, and stands in lists."""
    if not _TAG.fullmatch(tag):
        raise InputError(
            f"{tag[:80]!r} is not a tag",
            hint="a letter or digit, then up to 63 letters, digits and _ . : + @ = -, such as nccl-2.28",
        )


def add(directory: Path, tag: str) -> None:
    """Give a run a tag; one that it has already stays. Raises InputError and RunError."""
    check_tag(tag)
    folder = _folder(directory)
    try:
        folder.mkdir(exist_ok=True)
        (folder / tag).touch()
    except OSError as error:
        raise _refused(folder, error) from error


def remove(directory: Path, tag: str) -> bool:
    """Take a tag from a run, and return whether it had it. Raises InputError and RunError."""
    check_tag(tag)
    folder = _folder(directory)
    try:
        (folder / tag).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refused(folder, error) from error
    return True


def tags_of(directory: Path) -> tuple[str, ...]:
    """Return the tags that a run was given later, in their order of names; files of any other name are no tags."""
    return tags_in(_folder(directory))


def tags_in(folder: Path) -> tuple[str, ...]:
    """Return the tags in a folder of them."""
    try:
        return tuple(sorted(name for name in os.listdir(folder) if _TAG.fullmatch(name)))  # noqa: PTH208 - names alone
    except OSError:
        return ()


def _folder(directory: Path) -> Path:
    return directory.with_name(directory.name + SUFFIX)


def _refused(folder: Path, error: OSError) -> RunError:
    return RunError(
        f"cannot change the tags: {error.strerror or error}",
        where=str(folder),
        hint="tags lie beside the run: the folder it is in must let you write",
    )
