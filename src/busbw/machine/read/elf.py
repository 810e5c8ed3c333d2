"""ELF files, read strictly without loading them, and the GPU code in them."""

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from busbw.base.value import Integer, Value
from busbw.model.host import DeviceCode

# Reads so many bytes at an offset of the file; fewer at its end.
Read = Callable[[int, int], bytes]

_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRING_TABLE, _SONAME, _RPATH, _RUNPATH = 1, 5, 14, 15, 29
_OFFERED_VERSIONS, _WANTED_VERSIONS = 0x6FFFFFFC, 0x6FFFFFFE
_MOST_SEGMENTS = 256
_MOST_ENTRIES = 4096
_LONGEST_STRING = 4096
_HEADER_BYTES = 64

# Of sections: symbols for the loader, and those that take no room in the file.
_SYMBOLS_FOR_LOADER, _NO_BITS = 11, 8
_MOST_SECTIONS = 1024
_MOST_SYMBOLS = 131_072
_MOST_STRINGS_BYTES = 16 * 2**20
_MOST_VERSIONS = 256
_MOST_FOLDERS = 64
_WEAK = 2
_BASE_VERSION = 1


class _Form(NamedTuple):
    """The layout of one class of ELF file, as struct knows it."""

    # The header's fields behind e_version.
    head: str
    segment: str
    # Type, offset, address and size in the file among the fields of a segment.
    places: tuple[int, int, int, int]
    entry: str
    section: str
    # Name, type, offset, size and link among the fields of a section.
    section_places: tuple[int, int, int, int, int]
    symbol: str
    # Name and section among the fields of a symbol, and its binding.
    symbol_places: tuple[int, int, int]


_FORMS = {
    1: _Form("IIIIHHHHHH", "8I", (0, 1, 2, 4), "iI", "10I", (0, 1, 4, 5, 6), "IIIBBH", (0, 5, 3)),
    2: _Form("QQQIHHHHHH", "2I6Q", (0, 2, 3, 5), "qQ", "2I4Q2I2Q", (0, 1, 4, 5, 6), "IBBHQQ", (0, 3, 1)),
}


class Dynamic(Value, kw_only=True, frozen=True):
    """The dynamic section of a library, as far as the search for other libraries goes."""

    # e_machine and class: a library of another machine is passed over by the loader.
    machine: tuple[Integer, Integer]
    needed: tuple[str, ...] = ()
    # Folders as written, $ORIGIN and all.
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    # The name that it is looked for by; None: it has none.
    soname: str | None = None
    # Versions of symbols: of which file, and which; and those that it has itself.
    wanted_versions: tuple[tuple[str, str], ...] = ()
    offered_versions: tuple[str, ...] = ()


class Section(Value, kw_only=True, frozen=True):
    """One named part of a file."""

    name: str
    offset: Integer
    size_bytes: Integer


class ElfContents(Value, kw_only=True, frozen=True):
    """What is found by the table of sections: they themselves, and the names that a library offers."""

    sections: tuple[Section, ...] = ()
    exports: frozenset[str] = frozenset()


class _Segments:
    """Finds the place in the file of an address in memory."""

    def __init__(self, loads: list[tuple[int, int, int]]) -> None:
        self._loads = loads

    def offset(self, address: int) -> int | None:
        for offset, start, size in self._loads:
            if start <= address < start + size:
                return offset + address - start
        return None


class _ElfHeader(NamedTuple):
    """The header of a file, with the form that the rest of it has."""

    form: _Form
    order: str
    machine: tuple[int, int]
    # Offset, size of each and number, of segments and of sections; and which section has the names.
    segments: tuple[int, int, int]
    sections: tuple[int, int, int]
    names: int


def dynamic_of(read: Read) -> Dynamic | None:
    """Return what a library asks for; None for what is no ELF file of which this can be told."""
    try:
        return _dynamic(read)
    except struct.error:
        # Cut off.
        return None


def contents_of(read: Read) -> ElfContents | None:
    """Return the sections of a file and the names it offers; None where its table of sections cannot be read."""
    try:
        header = _header(read)
        return _contents(read, header) if header is not None else None
    except struct.error:
        return None


def machine_of(read: Read) -> tuple[int, int] | None:
    """Return e_machine and the class of a file; None for what is no ELF file."""
    try:
        header = _header(read)
    except struct.error:
        return None
    return header.machine if header is not None else None


def least_bytes(read: Read) -> int:
    """Return how many bytes a file has at least by its own header and segments; 0 for what is no ELF file."""
    header = _header(read)
    if header is None:
        return 0
    ends = [start + size * count for start, size, count in (header.segments, header.sections) if start]
    start, size, count = header.segments
    form = header.order + header.form.segment
    _kind, offset, _address, length = header.form.places
    for number in range(min(count, _MOST_SEGMENTS) if size == struct.calcsize(form) else 0):
        raw = read(start + number * size, size)
        if len(raw) < size:
            break
        fields = struct.unpack(form, raw)
        ends.append(fields[offset] + fields[length])
    return max(ends, default=0)


def _header(read: Read) -> _ElfHeader | None:
    header = read(0, _HEADER_BYTES)
    if header[:4] != b"\x7fELF" or len(header) < _HEADER_BYTES or header[4] not in _FORMS or header[5] not in (1, 2):
        return None
    order = "<" if header[5] == 1 else ">"
    form = _FORMS[header[4]]
    machine = struct.unpack_from(f"{order}H", header, 18)[0]
    _start, segments, sections, _flags, _size, segment_bytes, count, section_bytes, sections_count, names = (
        struct.unpack_from(order + form.head, header, 24)
    )
    return _ElfHeader(
        form,
        order,
        (machine, header[4]),
        (segments, segment_bytes, count),
        (sections, section_bytes, sections_count),
        names,
    )


def _dynamic(read: Read) -> Dynamic | None:
    header = _header(read)
    if header is None:
        return None
    form, order = header.form, header.order
    table, each_bytes, count = header.segments
    if each_bytes != struct.calcsize(order + form.segment) or count > _MOST_SEGMENTS:
        return None
    loads, dynamic = [], None
    raw = read(table, each_bytes * count)
    for place in range(count):
        fields = struct.unpack_from(order + form.segment, raw, place * each_bytes)
        kind, offset, address, size = (fields[each] for each in form.places)
        if kind == _LOAD:
            loads.append((offset, address, size))
        elif kind == _DYNAMIC:
            dynamic = (offset, size)
    if dynamic is None:
        return None
    return _entries(read, _Segments(loads), dynamic, header)


def _entries(read: Read, segments: _Segments, dynamic: tuple[int, int], header: _ElfHeader) -> Dynamic | None:
    offset, size = dynamic
    form = header.order + header.form.entry
    each_bytes = struct.calcsize(form)
    raw = read(offset, min(size, each_bytes * _MOST_ENTRIES))
    found: dict[int, list[int]] = {}
    for tag, value in struct.iter_unpack(form, raw[: len(raw) // each_bytes * each_bytes]):
        if tag == 0:
            break
        found.setdefault(tag, []).append(value)
    strings = segments.offset(found.get(_STRING_TABLE, [-1])[0])
    if strings is None:
        return None

    def texts(tag: int) -> tuple[str, ...]:
        return tuple(text for value in found.get(tag, ()) if (text := _string(read, strings + value)))

    def folders(tag: int) -> tuple[str, ...]:
        return tuple(folder for text in texts(tag)[:1] for folder in text.split(":", _MOST_FOLDERS) if folder)

    versions = _Versions(read, header.order, strings)
    wanted = segments.offset(found.get(_WANTED_VERSIONS, [-1])[0])
    offered = segments.offset(found.get(_OFFERED_VERSIONS, [-1])[0])
    return Dynamic(
        machine=header.machine,
        needed=texts(_NEEDED),
        rpath=folders(_RPATH),
        runpath=folders(_RUNPATH),
        soname=next(iter(texts(_SONAME)), None),
        wanted_versions=tuple(versions.wanted(wanted)) if wanted is not None else (),
        offered_versions=tuple(versions.offered(offered)) if offered is not None else (),
    )


class _Versions:
    """Reads the chains of versions of symbols; each goes forward only, and is bounded."""

    def __init__(self, read: Read, order: str, strings: int) -> None:
        self._read = read
        self._order = order
        self._strings = strings

    def wanted(self, start: int) -> Iterator[tuple[str, str]]:
        """Yield the file and the name of each version without which nothing starts."""
        for place, (_version, count, file, first, _next) in self._chain(start, "HHIII", _MOST_VERSIONS):
            name = _string(self._read, self._strings + file)
            for _place, (_hash, flags, _other, version, _after) in self._chain(place + first, "IHHII", count):
                text = _string(self._read, self._strings + version)
                if name and text and not flags & _WEAK:
                    yield name, text

    def offered(self, start: int) -> Iterator[str]:
        """Yield the name of each version, without the one that is the file itself."""
        for place, fields in self._chain(start, "HHHHIII", _MOST_VERSIONS):
            _version, flags, _index, _count, _hash, first, _next = fields
            name = struct.unpack_from(f"{self._order}I", self._read(place + first, 4))[0]
            if not flags & _BASE_VERSION and (text := _string(self._read, self._strings + name)):
                yield text

    def _chain(self, start: int, form: str, most: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield place and fields of each link; the last field says how far the next one is."""
        size = struct.calcsize(self._order + form)
        place = start
        for _number in range(min(most, _MOST_VERSIONS)):
            fields = struct.unpack(self._order + form, self._read(place, size))
            yield place, fields
            if fields[-1] == 0:
                return
            place += fields[-1]


def _contents(read: Read, header: _ElfHeader) -> ElfContents | None:
    form, order = header.form, header.order
    table, each_bytes, count = header.sections
    if count == 0 or count > _MOST_SECTIONS or each_bytes != struct.calcsize(order + form.section):
        return None
    raw = read(table, each_bytes * count)
    rows = []
    for place in range(count):
        fields = struct.unpack_from(order + form.section, raw, place * each_bytes)
        rows.append([fields[each] for each in form.section_places])
    names = _table(read, rows[header.names]) if header.names < count else b""
    sections, exports = [], frozenset[str]()
    for name, kind, offset, size, link in rows:
        if kind != _NO_BITS and (text := _text(names, name)):
            sections.append(Section(name=text, offset=offset, size_bytes=size))
        if kind == _SYMBOLS_FOR_LOADER and link < count:
            exports = frozenset(_exports(read, header, (offset, size), _table(read, rows[link])))
    return ElfContents(sections=tuple(sections), exports=exports)


def _table(read: Read, row: list[int]) -> bytes:
    """Return the strings of a section."""
    _name, kind, offset, size, _link = row
    return read(offset, min(size, _MOST_STRINGS_BYTES)) if kind != _NO_BITS else b""


def _exports(read: Read, header: _ElfHeader, place: tuple[int, int], strings: bytes) -> Iterator[str]:
    """Yield the names of symbols that are defined here and seen from outside."""
    form = header.order + header.form.symbol
    each_bytes = struct.calcsize(form)
    name, section, binding = header.form.symbol_places
    raw = read(place[0], min(place[1], each_bytes * _MOST_SYMBOLS))
    for fields in struct.iter_unpack(form, raw[: len(raw) // each_bytes * each_bytes]):
        if fields[section] != 0 and fields[binding] >> 4 != 0 and (text := _text(strings, fields[name])):
            yield text


def _text(strings: bytes, offset: int) -> str | None:
    end = strings.find(b"\0", offset, offset + _LONGEST_STRING)
    return strings[offset:end].decode("utf-8", "backslashreplace") if end > offset else None


def _string(read: Read, offset: int) -> str | None:
    """Return the text that ends with the first zero; None where there is none near."""
    raw, zero, _rest = read(offset, _LONGEST_STRING).partition(b"\0")
    return raw.decode("utf-8", "backslashreplace") if zero else None


SECTIONS = (".nv_fatbin", "__nv_relfatbin")

_MAGIC = 0xBA55ED50
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQ")
# From its 28th byte on: the architecture, ten bytes of names and lengths, the flags.
_ARCHITECTURE = struct.Struct("<I8xQ")
_ARCHITECTURE_AT = 28
_LEAST_ENTRY_BYTES = 48
_PTX, _MACHINE_CODE = 1, 2
# Code that only this very GPU runs (sm_90a), or its family (sm_120f).
_THIS_GPU, _FAMILY = 0x100000, 0x200000
_MOST_CONTAINERS = 20_000
_MOST_CODE_ENTRIES = 200_000
_ALIGNED_BYTES = 8
# Between containers there is padding at most.
_FARTHEST_BYTES = 4096
_LEAST_SM, _MOST_SM = 20, 999


class _Entry(NamedTuple):
    kind: int
    sm: int
    suffix: Literal["", "a", "f"]


def device_code_of(read: Read, sections: Iterable[Section]) -> tuple[DeviceCode, ...]:
    """Return the architectures that a binary has code for, in order; nothing where it has none.

    Libraries have a container for each of their sources. An architecture counts that at least half of them have; where
    none does, each that any has.
    """
    containers = 0
    counts: Counter[_Entry] = Counter()
    for section in sections:
        if section.name in SECTIONS:
            for entries in _containers(read, section):
                containers += bool(entries)
                counts.update(set(entries))
    usual = [each for each, count in counts.items() if count * 2 >= containers] or list(counts)
    return tuple(
        DeviceCode(sm=each.sm, kind="ptx" if each.kind == _PTX else "machine", suffix=each.suffix)
        for each in sorted(usual, key=lambda each: (each.sm, -each.kind, each.suffix))
    )


def _containers(read: Read, section: Section) -> Iterator[list[_Entry]]:
    """Yield the entries of each container, until one is damaged."""
    place, end = section.offset, section.offset + section.size_bytes
    left = _MOST_CODE_ENTRIES
    for _number in range(_MOST_CONTAINERS):
        start = _next(read, place, end)
        if start is None:
            return
        _magic, _version, header_bytes, size = _CONTAINER.unpack(read(start, _CONTAINER.size))
        stop = start + header_bytes + size
        if header_bytes < _CONTAINER.size or stop > end:
            return
        entries = list(_code_entries(read, start + header_bytes, stop, left))
        left -= len(entries)
        yield entries
        place = stop


def _next(read: Read, place: int, end: int) -> int | None:
    """Return where the next container begins; None where there is none near."""
    raw = read(place, min(_FARTHEST_BYTES, max(0, end - place)))
    wanted = struct.pack("<I", _MAGIC)
    found = raw.find(wanted)
    while found >= 0 and (place + found) % _ALIGNED_BYTES:
        found = raw.find(wanted, found + 1)
    is_whole = found >= 0 and place + found + _CONTAINER.size <= end and found + _CONTAINER.size <= len(raw)
    return place + found if is_whole else None


def _code_entries(read: Read, place: int, end: int, most: int) -> Iterator[_Entry]:
    for _number in range(most):
        raw = read(place, _LEAST_ENTRY_BYTES)
        if place + _LEAST_ENTRY_BYTES > end or len(raw) < _LEAST_ENTRY_BYTES:
            return
        kind, _version, header_bytes, size = _ENTRY.unpack_from(raw)
        sm, flags = _ARCHITECTURE.unpack_from(raw, _ARCHITECTURE_AT)
        if header_bytes < _LEAST_ENTRY_BYTES or place + header_bytes + size > end:
            return
        if kind in (_PTX, _MACHINE_CODE) and _LEAST_SM <= sm <= _MOST_SM:
            yield _Entry(kind, sm, "a" if flags & _THIS_GPU else "f" if flags & _FAMILY else "")
        place += header_bytes + size
