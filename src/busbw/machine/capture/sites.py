"""The door to a site's own facts: files that it lays over the catalogue of platforms."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from busbw.base.errors import InputError
from busbw.model.platform import SiteFile

_VARIABLE = "BUSBW_DATA"
_SYSTEM = Path("/etc/busbw")
_PLATFORMS = "platforms"
_FAMILY = "family"
_MOST_BYTES = 2**18
_MOST_FILES = 1000


def site_directories() -> tuple[Path, ...]:
    """Return where a site's platforms may lie, the weakest first: the system's, the user's, and $BUSBW_DATA.

    They lie in such a directory itself, or in its folder `platforms`, as in busbw's own data; the second wins.

    Raises InputError when $BUSBW_DATA names no directory.
    """
    directories = [_SYSTEM, *_of_the_user()]
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        directories.append(_chosen(Path(chosen)))
    return tuple(folder for directory in directories for folder in (directory, directory / _PLATFORMS))


def site_files() -> tuple[SiteFile, ...]:
    """Return the platform files of this site, the weakest first. Most hosts have none.

    Raises InputError for a file that cannot be read, is not text, or is larger than 256 KiB, and for over 1000 of them.
    """
    paths = [path for directory in site_directories() for path in _files(directory)]
    if len(paths) > _MOST_FILES:
        raise InputError(f"{len(paths)} platform files, over the limit of {_MOST_FILES}", where=str(paths[-1].parent))
    return tuple(SiteFile(path=_spelled(path), text=_text(path)) for path in paths)


def _of_the_user() -> Iterator[Path]:
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # The specification of these directories has relative ones ignored.
    if configured.is_absolute():
        yield configured / "busbw"
    elif (home := Path(os.environ.get("HOME", ""))).is_absolute():
        yield home / ".config" / "busbw"


def _chosen(directory: Path) -> Path:
    if not directory.is_dir():
        raise InputError(
            f"{_VARIABLE} names no directory", where=str(directory), hint=f"create it, or: unset {_VARIABLE}"
        )
    return directory


def _files(directory: Path) -> list[Path]:
    """Return the TOML files of a directory and of the families in it, each by name; [] when it is not there."""
    return [
        path
        for folder in (directory, directory / _FAMILY)
        for path in _entries(folder)
        if path.suffix == ".toml" and not path.name.startswith(".")
    ]


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(f"cannot list the platform files: {error.strerror or error}", where=str(folder)) from error


def _spelled(path: Path) -> str:
    """Return a path as text that can be written as JSON, bytes that are no UTF-8 as escapes."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _text(path: Path) -> str:
    try:
        # A pipe would be waited for.
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("not a file", where=str(path))
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise InputError(f"over the limit of {_MOST_BYTES} bytes for a platform file", where=str(path))
        return raw.decode()
    except OSError as error:
        raise InputError(f"cannot read {path.name}: {error.strerror or error}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text: byte {error.start} cannot be read", where=str(path)) from error
