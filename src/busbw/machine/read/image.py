"""The files in an image of Apptainer (SIF) or enroot (SquashFS), read in place: nothing is mounted or unpacked.

Strict and bounded: what is damaged, or packed in a way that Python cannot unpack, is not there or is said.
"""

import contextlib
import importlib
import lzma
import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, NamedTuple

from busbw.machine.read.elf import Read

_SUPERBLOCK = struct.Struct("<4sIIIIHHHHHHQQQQQQQQ")
_MAGIC = b"hsqs"
# Of the superblock: how many bytes the whole file system takes.
_USED = 12
_SIF_MAGIC, _SIF_MAGIC_AT = b"SIF_MAGIC\0", 32
# Of the descriptors: how many there may be, their place.
_SIF_PLACES, _SIF_PLACES_AT = struct.Struct("<qqq"), 88
_DESCRIPTOR = struct.Struct("<i?IIIqqqqqqq128s384s")
_PARTITION, _SQUASH, _PRIMARY = 0x4004, 1, 2
_MOST_DESCRIPTORS = 1024
_PACKERS = {1: "gzip", 2: "lzma", 3: "lzo", 4: "xz", 5: "lz4", 6: "zstd"}
_META_BYTES = 8192
_PLAIN_META, _PLAIN_DATA = 0x8000, 1 << 24
_NO_FRAGMENT = 0xFFFFFFFF
_MOST_BLOCK_BYTES = 2**20
_MOST_FILE_BYTES = 16 * 2**30
_MOST_FOLDER_BYTES = 16 * 2**20
_LONGEST_TARGET = 4096
_MOST_CACHED = 96
_FRAGMENTS_OF_BLOCK = 512

_INODE = struct.Struct("<HHHHII")
_FOLDER = struct.Struct("<IIHHI")
_LONG_FOLDER = struct.Struct("<IIIIHHI")
_FILE = struct.Struct("<IIII")
_LONG_FILE = struct.Struct("<QQQIIII")
_LINK = struct.Struct("<II")
_LISTING = struct.Struct("<III")
_NAME = struct.Struct("<HhHH")
_FRAGMENT = struct.Struct("<QII")

ImageKind = Literal["file", "folder", "link", "other"]


class ImageError(Exception):
    """An image that cannot be read here, though it may be sound, and why."""


class NoImageError(Exception):
    """A file that is no image, or only a part of one, and what is wrong with it."""


class _DamagedError(Exception):
    """A part of an image that is not what it should be."""


class _ImageNode(NamedTuple):
    kind: ImageKind
    # Of a folder: its listing as block, offset and size; of a file: its place, size, and its last, packed with others.
    listing: tuple[int, int, int] = (0, 0, 0)
    start: int = 0
    size_bytes: int = 0
    fragment: tuple[int, int] = (_NO_FRAGMENT, 0)
    # Where the packed_bytes of a file's blocks stand.
    blocks_at: tuple[int, int] = (0, 0)
    target: str = ""


def squash_tree(read: Read, size_bytes: int) -> "SquashTree":
    """Return the files of an image.

    Raises NoImageError for what is none, cut off or damaged, ImageError for an image that cannot be unpacked here.
    """
    start = 0
    if read(_SIF_MAGIC_AT, len(_SIF_MAGIC)) == _SIF_MAGIC:
        start = _partition(read)
    raw = read(start, _SUPERBLOCK.size)
    if raw[:4] != _MAGIC[: len(raw)] or not raw:
        raise NoImageError("is no image: it begins neither as a SIF of Apptainer nor as a SquashFS of enroot")
    if len(raw) < _SUPERBLOCK.size:
        raise NoImageError(f"is cut off: it has {size_bytes} bytes, fewer than the head of an image")
    head = _SUPERBLOCK.unpack(raw)
    if start + head[_USED] > size_bytes:
        raise NoImageError(f"is cut off: it has {size_bytes} bytes, and its head says {start + head[_USED]}")
    tree = SquashTree(lambda offset, count: read(start + offset, count), head, size_bytes - start)
    if tree.kind("/") != "folder":
        raise NoImageError("is damaged: the first folder of its SquashFS cannot be read")
    return tree


def _partition(read: Read) -> int:
    """Return where the file system of a SIF begins."""
    raw = read(_SIF_PLACES_AT, _SIF_PLACES.size)
    if len(raw) == _SIF_PLACES.size:
        count, offset, _length = _SIF_PLACES.unpack(raw)
        for number in range(min(max(count, 0), _MOST_DESCRIPTORS)):
            each = read(offset + number * _DESCRIPTOR.size, _DESCRIPTOR.size)
            if offset < 0 or len(each) < _DESCRIPTOR.size:
                break
            fields = _DESCRIPTOR.unpack(each)
            system, kind = struct.unpack_from("<ii", fields[13])
            if fields[0] == _PARTITION and fields[1] and kind == _PRIMARY and fields[5] >= 0:
                if system != _SQUASH:
                    raise ImageError("its file system is not SquashFS, but encrypted or ext3")
                return int(fields[5])
    raise NoImageError("is cut off or damaged: it is a SIF without a file system to start from")


class SquashTree:
    """The files of a SquashFS, as a tree."""

    def __init__(self, read: Read, head: tuple[int, ...], size_bytes: int) -> None:
        """Take what reads it, and its first block. Raises ImageError for what cannot be unpacked here."""
        self._read = read
        self._size_bytes = size_bytes
        self._block_bytes, self._fragments = head[3], head[4]
        packer, major = head[5], head[9]
        if major != 4 or not 4096 <= self._block_bytes <= _MOST_BLOCK_BYTES:
            raise ImageError(f"it is a SquashFS of version {major}, and 4 is known")
        self._unpack = _unpacker(packer)
        self._root = head[11]
        self._inodes, self._folders, self._fragment_table = head[15], head[16], head[17]
        self._cache: OrderedDict[tuple[str, int], tuple[bytes, int]] = OrderedDict()
        self._nodes: dict[str, _ImageNode | None] = {}
        self._listings: dict[str, dict[str, int]] = {}

    def kind(self, path: str) -> ImageKind | None:
        """Return what is at a path, without following a last link; None: nothing."""
        node = self._node(path)
        return node.kind if node is not None else None

    def target(self, path: str) -> str:
        """Return what a link says."""
        node = self._node(path)
        return node.target if node is not None else ""

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, in order."""
        return tuple(sorted(self._listing(path)))

    def opened(self, path: str) -> tuple[Read, int] | None:
        """Return what reads a file, and its size in bytes."""
        node = self._node(path)
        if node is None or node.kind != "file":
            return None
        try:
            packed_bytes = self._block_sizes(node)
        except (_DamagedError, struct.error):
            return None
        places = [node.start]
        for size in packed_bytes:
            places.append(places[-1] + (size & ~_PLAIN_DATA))

        def read(offset: int, count: int) -> bytes:
            try:
                return self._part(node, packed_bytes, places, offset, count)
            except (_DamagedError, struct.error):
                return b""

        return read, node.size_bytes

    def _node(self, path: str) -> _ImageNode | None:
        path = path.rstrip("/")
        if path not in self._nodes:
            try:
                if path == "":
                    self._nodes[path] = self._inode(self._root)
                else:
                    folder, _, name = path.rpartition("/")
                    place = self._listing(folder).get(name)
                    self._nodes[path] = self._inode(place) if place is not None else None
            except (_DamagedError, struct.error):
                self._nodes[path] = None
        return self._nodes[path]

    def _listing(self, path: str) -> dict[str, int]:
        """Return the names in a folder, each with the place of what it names."""
        path = path.rstrip("/")
        if path not in self._listings:
            node = self._node(path)
            found: dict[str, int] = {}
            if node is not None and node.kind == "folder":
                with contextlib.suppress(_DamagedError, struct.error):
                    self._list(node, found)
            self._listings[path] = found
        return self._listings[path]

    def _list(self, node: _ImageNode, found: dict[str, int]) -> None:
        block, offset, size = node.listing
        # Three bytes stand for `.` and `..`, which are not written down.
        raw = self._metadata(self._folders, block, offset, min(max(size - 3, 0), _MOST_FOLDER_BYTES))
        place = 0
        while place + _LISTING.size <= len(raw):
            count, start, _number = _LISTING.unpack_from(raw, place)
            place += _LISTING.size
            for _each in range(min(count + 1, 256)):
                at, _delta, _kind, length = _NAME.unpack_from(raw, place)
                name = raw[place + _NAME.size : place + _NAME.size + length + 1].decode("utf-8", "surrogateescape")
                place += _NAME.size + length + 1
                if name not in ("", ".", "..") and "/" not in name:
                    found[name] = (start << 16) | at

    def _inode(self, place: int) -> _ImageNode:
        block, offset = place >> 16, place & 0xFFFF
        raw = self._metadata(self._inodes, block, offset, _INODE.size + 64, least=_INODE.size)
        kind, at = _INODE.unpack_from(raw)[0], _INODE.size
        if kind == 1:
            start, _links, size, where, _parent = _FOLDER.unpack_from(raw, at)
            return _ImageNode("folder", listing=(start, where, size))
        if kind == 8:
            _links, size, start, _parent, _index, where, _more = _LONG_FOLDER.unpack_from(raw, at)
            return _ImageNode("folder", listing=(start, where, size))
        if kind == 2:
            start, fragment, inside, size = _FILE.unpack_from(raw, at)
            return _ImageNode("file", (0, 0, 0), start, size, (fragment, inside), (block, offset + at + _FILE.size))
        if kind == 9:
            start, size, _sparse, _links, fragment, inside, _more = _LONG_FILE.unpack_from(raw, at)
            return _ImageNode(
                "file", (0, 0, 0), start, size, (fragment, inside), (block, offset + at + _LONG_FILE.size)
            )
        if kind in (3, 10):
            _links, length = _LINK.unpack_from(raw, at)
            whole = self._metadata(self._inodes, block, offset, at + _LINK.size + min(length, _LONGEST_TARGET))
            return _ImageNode("link", target=whole[at + _LINK.size :].decode("utf-8", "surrogateescape"))
        return _ImageNode("other")

    def _block_sizes(self, node: _ImageNode) -> tuple[int, ...]:
        if node.size_bytes > _MOST_FILE_BYTES:
            raise _DamagedError
        whole, rest = divmod(node.size_bytes, self._block_bytes)
        count = whole + (1 if rest and node.fragment[0] == _NO_FRAGMENT else 0)
        raw = self._metadata(self._inodes, *node.blocks_at, count * 4)
        return struct.unpack(f"<{count}I", raw)

    def _part(
        self, node: _ImageNode, packed_bytes: tuple[int, ...], places: list[int], offset: int, count: int
    ) -> bytes:
        if offset < 0 or count <= 0 or offset >= node.size_bytes:
            return b""
        end = min(offset + count, node.size_bytes)
        parts = []
        at = offset
        while at < end:
            number, inside = divmod(at, self._block_bytes)
            block = self._data(node, packed_bytes, places, number)
            taken = block[inside : inside + end - at]
            if not taken:
                break
            parts.append(taken)
            at += len(taken)
        return b"".join(parts)

    def _data(self, node: _ImageNode, packed_bytes: tuple[int, ...], places: list[int], number: int) -> bytes:
        if number < len(packed_bytes):
            size = packed_bytes[number] & ~_PLAIN_DATA
            if size == 0:
                return bytes(min(self._block_bytes, node.size_bytes - number * self._block_bytes))
            return self._block("data", places[number], size, is_plain=bool(packed_bytes[number] & _PLAIN_DATA))
        index, inside = node.fragment
        if index >= self._fragments:
            raise _DamagedError
        table = self._read(self._fragment_table + index // _FRAGMENTS_OF_BLOCK * 8, 8)
        raw = self._metadata(struct.unpack("<Q", table)[0], 0, index % _FRAGMENTS_OF_BLOCK * 16, _FRAGMENT.size)
        start, size, _unused = _FRAGMENT.unpack(raw)
        whole = self._block("data", start, size & ~_PLAIN_DATA, is_plain=bool(size & _PLAIN_DATA))
        return whole[inside : inside + node.size_bytes % self._block_bytes]

    def _metadata(self, table: int, block: int, offset: int, count: int, *, least: int | None = None) -> bytes:
        """Return bytes of the tables, which go on from block to block. Raises _DamagedError where there are too few."""
        found, place = bytearray(), table + block
        skip = offset
        while len(found) < count:
            header = self._read(place, 2)
            if len(header) < 2:
                break
            size = struct.unpack("<H", header)[0]
            taken = self._block("meta", place + 2, size & ~_PLAIN_META, is_plain=bool(size & _PLAIN_META))
            if not taken:
                break
            found += taken[skip:][: count - len(found)]
            skip = max(0, skip - len(taken))
            place += 2 + (size & ~_PLAIN_META)
        if len(found) < (count if least is None else least):
            raise _DamagedError
        return bytes(found)

    def _block(self, what: str, place: int, size_bytes: int, *, is_plain: bool) -> bytes:
        most = _META_BYTES if what == "meta" else self._block_bytes
        known = self._cache.get((what, place))
        if known is not None and known[1] == size_bytes:
            self._cache.move_to_end((what, place))
            return known[0]
        if size_bytes > most + 1024 or place < 0 or place > self._size_bytes:
            raise _DamagedError
        raw = self._read(place, size_bytes)
        if len(raw) < size_bytes:
            raise _DamagedError
        whole = raw[:most] if is_plain else self._unpack(raw, most)
        self._cache[what, place] = (whole, size_bytes)
        while len(self._cache) > _MOST_CACHED:
            self._cache.popitem(last=False)
        return whole


def _unpacker(packer: int) -> Callable[[bytes, int], bytes]:
    """Return what unpacks a block into so many bytes at most. Raises ImageError for what Python cannot unpack."""
    name = _PACKERS.get(packer, str(packer))
    if name == "gzip":
        return _gzip
    if name in ("xz", "lzma"):
        return _xz
    if name == "lz4":
        return _lz4
    if name == "lzo":
        return _lzo
    if name == "zstd":
        try:
            zstd = importlib.import_module("compression.zstd")
        except ImportError:
            pass
        else:
            return lambda raw, most: _bounded(zstd.ZstdDecompressor().decompress, raw, most, (zstd.ZstdError, EOFError))
    needs = " before 3.14" if name == "zstd" else ""
    raise ImageError(f"it is packed with {name}, which Python{needs} cannot unpack")


def _bounded(unpack: Callable[[bytes, int], bytes], raw: bytes, most: int, wrong: tuple[type[Exception], ...]) -> bytes:
    try:
        return unpack(raw, most)
    except wrong as error:
        raise _DamagedError from error


def _gzip(raw: bytes, most: int) -> bytes:
    return _bounded(zlib.decompressobj().decompress, raw, most, (zlib.error,))


def _xz(raw: bytes, most: int) -> bytes:
    return _bounded(lzma.LZMADecompressor().decompress, raw, most, (lzma.LZMAError, EOFError))


def _copied(out: bytearray, distance: int, length: int, most: int) -> None:
    """Append what stands so far back, as often as the length asks for. Raises _DamagedError for what cannot be."""
    if not 0 < distance <= len(out) or len(out) + length > most:
        raise _DamagedError
    start = len(out) - distance
    pattern = out[start:]
    times, rest = divmod(length, distance)
    out += pattern * times + pattern[:rest]


def _lz4(raw: bytes, most: int) -> bytes:
    """Return an LZ4 block unpacked (lz4, doc/lz4_Block_format.md)."""
    out = bytearray()
    place = 0

    def more(length: int) -> int:
        nonlocal place
        while True:
            byte = raw[place]
            place += 1
            length += byte
            if byte != 255:
                return length

    try:
        while True:
            token = raw[place]
            place += 1
            literals = token >> 4
            literals = more(literals) if literals == 15 else literals
            out += raw[place : place + literals]
            place += literals
            if place >= len(raw) or len(out) > most:
                return bytes(out[:most])
            distance = raw[place] | raw[place + 1] << 8
            place += 2
            length = token & 15
            _copied(out, distance, (more(length) if length == 15 else length) + 4, most)
    except IndexError:
        raise _DamagedError from None


def _lzo(raw: bytes, most: int) -> bytes:
    """Return a block of LZO1X unpacked (Linux, Documentation/staging/lzo.rst)."""
    try:
        return _Lzo(raw, most).unpacked()
    except IndexError:
        raise _DamagedError from None


class _Lzo:
    """A block of LZO1X: instructions that copy what follows them, or what was written before."""

    def __init__(self, raw: bytes, most: int) -> None:
        self._raw = raw
        self._most = most
        self._place = 0
        self._out = bytearray()

    def unpacked(self) -> bytes:
        """Return the whole; IndexError where the block ends too early."""
        # How many bytes the last instruction copied from the block: 0, 1 to 3, or 4 for more.
        state = 0
        if self._raw[0] > 17:
            length = self._raw[0] - 17
            self._place = 1
            self._literals(length)
            state = min(length, 4)
        while True:
            code = self._next()
            if code < 16 and state == 0:
                self._literals((code or self._long(15)) + 3)
                state = 4
                continue
            if code < 16:
                base, length = (1, 2) if state < 4 else (2049, 3)
                distance, after = (self._next() << 2) + (code >> 2) + base, code & 3
            elif code >= 64:
                length = (code >> 5) + 1
                distance, after = (self._next() << 3) + ((code >> 2) & 7) + 1, code & 3
            else:
                length, distance, after = self._far(code)
                if distance == 0:
                    return bytes(self._out)
            _copied(self._out, distance, length, self._most)
            self._literals(after)
            state = after

    def _far(self, code: int) -> tuple[int, int, int]:
        """Return length, distance and literals after it; distance 0: the end."""
        if code >= 32:
            length = ((code & 31) or self._long(31)) + 2
            low = self._next() | self._next() << 8
            return length, (low >> 2) + 1, low & 3
        length = ((code & 7) or self._long(7)) + 2
        low = self._next() | self._next() << 8
        distance = ((code & 8) << 11) + (low >> 2)
        return length, distance + 16384 if distance else 0, low & 3

    def _next(self) -> int:
        self._place += 1
        return self._raw[self._place - 1]

    def _long(self, base: int) -> int:
        length = base
        while (byte := self._next()) == 0:
            length += 255
        return length + byte

    def _literals(self, count: int) -> None:
        if self._place + count > len(self._raw) or len(self._out) + count > self._most:
            raise _DamagedError
        self._out += self._raw[self._place : self._place + count]
        self._place += count
