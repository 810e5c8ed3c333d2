"""Results that are judged: a run, an import, or files of other tools, which are read and not kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from busbw.api.compared_results import exists
from busbw.api.importing import import_files
from busbw.api.loading import read
from busbw.api.locating import find, is_import
from busbw.base.errors import InputError
from busbw.model.run import Run
from busbw.store import imports

_SHOWN_NAMES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedRun:
    """A run, and where it lies."""

    where: Path
    name: str
    run: Run


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedImport:
    """An import in the folder `where`, and the files that may hold NCCL's log."""

    where: Path
    name: str
    logs: tuple[str, ...]
    # Whether it was made of `logs` now, and is gone afterwards.
    is_passing: bool


Opened = OpenedRun | OpenedImport


@contextmanager
def opened(names: tuple[str, ...]) -> Iterator[Opened]:
    """Yield the result that one name means, or several files together; what was read of files is gone afterwards.

    Raises InputError for a name that means nothing, and for several that are not all files.
    """
    if all(exists(Path(name)) and Path(name).is_file() and not is_import(Path(name).parent) for name in names):
        with TemporaryDirectory(prefix="busbw-judge-") as folder:
            done = import_files(names, Path(folder) / "import", Path(folder), tag=None, with_copies=False)
            shown = ", ".join(Path(name).name for name in names[:_SHOWN_NAMES])
            more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
            yield OpenedImport(where=done.where, name=f"{shown}{more}", logs=names, is_passing=True)
        return
    if len(names) != 1:
        raise InputError(
            f"{len(names)} results are named, and not all are files: {', '.join(names[:_SHOWN_NAMES])}",
            hint="judge runs and imports one by one; to hold them against each other: busbw compare A B",
        )
    where = find(names[0])
    if is_import(where):
        yield OpenedImport(where=where, name=where.name, logs=tuple(map(str, imports.copies(where))), is_passing=False)
    else:
        yield OpenedRun(where=where, name=where.name, run=read(where))
