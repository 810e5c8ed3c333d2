"""Where a run or an import is that somebody names."""

from pathlib import Path

from busbw.errors import InputError
from busbw.store import directory as directories
from busbw.store import imports


def find(name: str) -> Path:
    """Return the run or the import that `name` means: a path, the beginning of a name, or `last`.

    The last one is a run, or an import where there is no run. Raises InputError when there is none or more than one.
    """
    path, base = Path(name), directories.root()
    if is_import(path):
        return path
    if path.name == imports.IMPORT_FILE and is_import(path.parent):
        return path.parent
    stored = import_directories(base)
    if name == "last" and stored and not directories.directories(base):
        return stored[-1]
    found = [directory for directory in stored if directory.name.startswith(name)]
    if not found or name in {directory.name for directory in directories.directories(base)}:
        return directories.find(name, base)
    exact = [directory for directory in found if directory.name == name]
    runs = [directory for directory in directories.directories(base) if directory.name.startswith(name)]
    if exact or len(found) + len(runs) == 1:
        return (exact or found)[0]
    names = ", ".join(directory.name for directory in [*runs, *found][:3])
    raise InputError(
        f"{name!r} means {len(runs) + len(found)} runs and imports: {names}", hint="write more of the name"
    )


def is_import(directory: Path) -> bool:
    """Whether a directory holds an import."""
    try:
        return (directory / imports.IMPORT_FILE).is_file()
    except (OSError, ValueError):
        # No directory has such a name.
        return False


def import_directories(base: Path) -> list[Path]:
    """Return every import under `base`, oldest first (names begin with the time)."""
    try:
        entries = sorted(base.iterdir())
    except OSError:
        return []
    return [entry for entry in entries if is_import(entry)]
