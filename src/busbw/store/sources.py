"""Files to import, as they are found and read: bounded, decompressed, with the digest of their bytes."""

import codecs
import hashlib
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.model.imported import Source
from busbw.store.files import STANDARD_INPUT, read_bounded
from busbw.store.snapshots import is_snapshot
from busbw.topo.file.reader import MOST_BYTES

STDIN = "-"
_BLOCK_BYTES = 2**20
_GZIP = b"\x1f\x8b"
# Programs end a text with one now and then, as mpirun of Open MPI 5 does its messages.
_FEW_NULLS = 8
# What Windows' shell writes where output is redirected.
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Repeated log lines shrink to a hundredth; a bomb grows a thousandfold. What lies beyond is said to be unread.
MOST_DECOMPRESSED_BYTES = 16 * 2**30
_MOST_GROWTH = 400
_GROWTH_FROM_BYTES = 256 * 2**20
_MOST_FILES = 10_000
_MOST_DEPTH = 16


def found(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that `paths` name, folders walked in the order of names; "-" stays.

    Raises InputError for what is not there, is neither file nor folder, or is too much. Links in a folder are not
    followed; names that begin with a dot, and the heartbeats of a run, are left out.
    """
    files: list[str] = []
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            files += _walked(Path(path))
        elif path == STDIN or Path(path).exists():
            files.append(path)
        else:
            raise InputError(f"there is no {path}", where=path)
        if len(files) > _MOST_FILES:
            raise InputError(f"more than {_MOST_FILES} files", where=path, hint="import them in several parts")
    if not files:
        raise InputError("there is no file in it", where=", ".join(paths))
    return tuple(files)


class OpenSource:
    """One file that is being read. Afterwards it knows its size, its digest, and what was wrong with it."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self._name = name
        self._file = file
        self._digest = hashlib.sha256()
        self._size_bytes = 0
        self._first = self._next()
        self.compressed = self._first.startswith(_GZIP)
        # Why it could not be read to its end.
        self.problem: str | None = None

    def blocks(self) -> Iterator[bytes]:
        """Yield its text in blocks. Raises InputError when reading fails at once."""
        for number, block in enumerate(_as_utf8(self._decompressed() if self.compressed else self._raw())):
            if number == 0 and block[:8192].count(0) > _FEW_NULLS:
                self.problem = "not text: it holds null bytes"
                break
            yield block.replace(b"\0", b"")
        for _ in self._raw():
            pass

    @property
    def read_bytes(self) -> int:
        """How much of it has been read so far, as it lies on the disk."""
        return self._size_bytes

    def source(self, lines: int) -> Source:
        """Return what is to be kept of it."""
        return Source(
            name=self._name,
            size_bytes=self._size_bytes,
            sha256=self._digest.hexdigest(),
            compressed=self.compressed,
            lines=lines,
        )

    def _raw(self) -> Iterator[bytes]:
        block, self._first = self._first, b""
        while block:
            yield block
            block = self._next()

    def _next(self) -> bytes:
        try:
            block = self._file.read(_BLOCK_BYTES)
        except OSError as error:
            raise InputError(f"cannot read it: {error.strerror or error}", where=self._name) from error
        self._digest.update(block)
        self._size_bytes += len(block)
        return block

    def _decompressed(self) -> Iterator[bytes]:
        made_bytes = 0
        member = zlib.decompressobj(wbits=31)
        for compressed in self._raw():
            data = compressed
            while data:
                try:
                    block = member.decompress(data, _BLOCK_BYTES)
                except zlib.error as error:
                    self.problem = f"its compressed data is damaged: {error}"
                    return
                made_bytes += len(block)
                if block:
                    yield block
                if self._is_bomb(made_bytes):
                    self.problem = f"its compressed data grows to more than {made_bytes // 2**20} MiB: not read further"
                    return
                data = member.unused_data if member.eof else member.unconsumed_tail
                if member.eof and data:
                    # Several members one after the other are one file; zeros may pad it.
                    if not data.strip(b"\0"):
                        break
                    member = zlib.decompressobj(wbits=31)
        if not member.eof:
            self.problem = "its compressed data was cut off"

    def _is_bomb(self, made_bytes: int) -> bool:
        grown = made_bytes > _GROWTH_FROM_BYTES and made_bytes > _MOST_GROWTH * self._size_bytes
        return grown or made_bytes > MOST_DECOMPRESSED_BYTES


def _as_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks as they are, or those of a text in UTF-16, which its mark shows, in UTF-8."""
    decoder: codecs.IncrementalDecoder | None = None
    for number, block in enumerate(blocks):
        if number == 0 and block.startswith(_UTF16):
            decoder = codecs.getincrementaldecoder("utf-16")("replace")
        yield block if decoder is None else decoder.decode(block).encode("utf-8", "replace")


@contextmanager
def opened(path: str) -> Iterator[OpenSource]:
    """Open a file, or standard input for "-". Raises InputError when that fails."""
    if path == STDIN:
        yield OpenSource("standard input", sys.stdin.buffer)
        return
    try:
        # A named pipe would wait for its writer for ever.
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror or error}", where=path) from error
    with file:
        os.set_blocking(file.fileno(), True)
        yield OpenSource(path, file)


def _walked(folder: Path) -> list[str]:
    files: list[str] = []
    folders = [(folder, 0)]
    while folders:
        here, depth = folders.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            raise InputError(f"cannot read the folder: {error.strerror or error}", where=str(here)) from error
        for entry in entries:
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir() and depth < _MOST_DEPTH:
                folders.append((Path(entry.path), depth + 1))
            elif entry.is_file() and not entry.name.endswith(layout.HEARTBEAT_SUFFIX):
                files.append(entry.path)
        if len(files) > _MOST_FILES:
            raise InputError(f"more than {_MOST_FILES} files", where=str(folder), hint="import them in several parts")
    return sorted(files)


SourceKind = Literal["absent", "snapshot", "topology"]
_BEGINNING_BYTES = 512


def source_kind(name: str) -> SourceKind:
    """Return what a name stands for on disk, by content; standard input, and what cannot be read, count as topologies.

    Whoever reads it then says exactly what is wrong with it.
    """
    if name == STANDARD_INPUT:
        return "topology"
    path = Path(name)
    try:
        if not path.exists():
            return "absent"
        if not path.is_file():
            return "topology"
        with path.open("rb") as file:
            return "snapshot" if is_snapshot(file.read(_BEGINNING_BYTES)) else "topology"
    except ValueError:
        # A name with a null byte in it.
        return "absent"
    except OSError:
        return "topology"


def read_topology_file(path: Path) -> bytes:
    """Return the bytes of a file, or of standard input where it is named `-`.

    Raises InputError when it is missing, is not a regular file, cannot be read, or is over 8 MiB.
    """
    return read_bounded(path, most_bytes=MOST_BYTES, kind="topology file")
