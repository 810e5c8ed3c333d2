"""Import directories: made beside the place they will have, moved there whole, never written again."""

import gzip
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from busbw.base import layout
from busbw.base.errors import InputError, RunError
from busbw.model import codec
from busbw.model.imported import IMPORT_SCHEMA, Imported, Reading, UnreadLine
from busbw.store.files import read_whole

IMPORT_FILE = "import.json"
READINGS_FILE = "readings.jsonl"
UNREAD_FILE = "unread.jsonl"
_MAX_BYTES = 2**30
_LONGEST_LINE_BYTES = 64 * 2**20
_BUFFER_BYTES = 2**20
_UNSAFE = re.compile(r"[^\w.-]+", re.ASCII)


class Draft:
    """An import directory that is being written."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._directory = directory
        self._stack = stack
        self._encoder = msgspec.json.Encoder()
        self._readings = self._open(READINGS_FILE)
        self._unread = self._open(UNREAD_FILE)
        self.is_kept = False

    def keep(self, readings: Sequence[Reading], unread: Sequence[UnreadLine]) -> None:
        """Store readings and unread lines, each in their order. Raises RunError when the disk refuses."""
        _write(self._readings, self._encoder.encode_lines(readings))
        _write(self._unread, self._encoder.encode_lines(unread))

    def copy_of(self, source: int, name: str, *, compressed: bool) -> Callable[[bytes], None]:
        """Return what takes the bytes of a source's copy, which is compressed when the source is."""
        safe = _UNSAFE.sub("_", Path(name).name).strip("._")[-80:] or "source"
        path = f"{layout.RAW_DIRECTORY}/{source:05d}-{safe.removesuffix('.gz')}"
        (self._directory / layout.RAW_DIRECTORY).mkdir(exist_ok=True)
        file = self._open(f"{path}.gz" if compressed else path)
        if compressed:
            squeezed = self._stack.enter_context(gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0))
            return lambda content: _write(squeezed, content)
        return lambda content: _write(file, content)

    def finish(self, imported: Imported) -> None:
        """Store the whole beside its parts, and keep the directory."""
        with self._open(IMPORT_FILE) as file:
            _write(file, codec.encode_pretty(imported))
        self.is_kept = True

    def _open(self, name: str) -> BinaryIO:
        return self._stack.enter_context((self._directory / name).open("wb", buffering=_BUFFER_BYTES))


@contextmanager
def draft(directory: Path) -> Iterator[Draft]:
    """Write an import directory. It appears whole when the block ends and it was finished; otherwise nothing stays.

    Raises InputError when there is something already, RunError when the disk refuses.
    """
    part = directory.with_name(f".{directory.name}.part")
    try:
        if directory.exists():
            raise InputError(f"{directory} is there already", hint="choose another folder with -o")
        part.mkdir(parents=True)
    except OSError as error:
        raise InputError(
            f"cannot make the import's folder: {error.strerror or error}",
            where=str(directory),
            hint="choose another folder with -o",
        ) from error
    try:
        with ExitStack() as stack:
            made = Draft(part, stack)
            yield made
        if made.is_kept:
            _seal(part)
            part.rename(directory)
    except OSError as error:
        raise _refused(directory, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def read(directory: Path) -> Imported:
    """Return what an import found. Raises InputError when it is missing, damaged or too new."""
    path = directory / IMPORT_FILE
    content = read_whole(path, _MAX_BYTES)
    codec.check_schema(content, IMPORT_SCHEMA, where=str(path))
    return codec.decode(content, Imported, where=str(path))


def readings(directory: Path) -> Iterator[Reading]:
    """Yield the readings of an import, in the order of its sources and lines."""
    for where, line in _lines(directory / READINGS_FILE):
        yield codec.decode(line, Reading, where=where)


def copies(directory: Path) -> tuple[Path, ...]:
    """Return the copies of what was read, in the order of the sources; none where none were kept."""
    kept = directory / layout.RAW_DIRECTORY
    return tuple(sorted(kept.iterdir())) if kept.is_dir() else ()


def unread(directory: Path) -> Iterator[UnreadLine]:
    """Yield the lines that an import could not read."""
    for where, line in _lines(directory / UNREAD_FILE):
        yield codec.decode(line, UnreadLine, where=where)


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE_BYTES):
                number += 1
                yield f"{path}:{number}", line
    except OSError as error:
        raise InputError(f"cannot read {path.name}: {error.strerror or error}", where=str(path)) from error


def _seal(directory: Path) -> None:
    """Take the right to write from every file: an import is what it was when it was made."""
    for path in directory.rglob("*"):
        if path.is_file():
            with suppress(OSError):
                path.chmod(0o444)


def _write(file: BinaryIO | gzip.GzipFile, content: bytes) -> None:
    file.write(content)


def _refused(directory: Path, error: OSError) -> RunError:
    return RunError(
        f"cannot write the import: {error.strerror or error}",
        where=str(directory.parent),
        hint="free space, or choose another folder with -o",
    )
