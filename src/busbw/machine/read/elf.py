"""What a shared library asks of the dynamic loader, read from its ELF file without loading it. Strict and bounded."""

import struct
from collections.abc import Callable
from typing import NamedTuple

from busbw.base.value import Integer, Value

# Reads so many bytes at an offset of the file; fewer at its end.
Read = Callable[[int, int], bytes]

_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRING_TABLE, _RPATH, _RUNPATH = 1, 5, 15, 29
_MOST_SEGMENTS = 256
_MOST_ENTRIES = 4096
_LONGEST_STRING = 4096
_HEADER_BYTES = 64


class _Form(NamedTuple):
    """The layout of one class of ELF file, as struct knows it."""

    # The header's fields behind e_version.
    head: str
    segment: str
    # Type, offset, address and size in the file among the fields of a segment.
    places: tuple[int, int, int, int]
    entry: str


_FORMS = {1: _Form("IIIIHHH", "8I", (0, 1, 2, 4), "iI"), 2: _Form("QQQIHHH", "2I6Q", (0, 2, 3, 5), "qQ")}


class Dynamic(Value, kw_only=True, frozen=True):
    """The dynamic section of a library, as far as the search for other libraries goes."""

    # e_machine and class: a library of another machine is passed over by the loader.
    machine: tuple[Integer, Integer]
    needed: tuple[str, ...] = ()
    # Folders as written, $ORIGIN and all.
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()


class _Segments:
    """Finds the place in the file of an address in memory."""

    def __init__(self, loads: list[tuple[int, int, int]]) -> None:
        self._loads = loads

    def offset(self, address: int) -> int | None:
        for offset, start, size in self._loads:
            if start <= address < start + size:
                return offset + address - start
        return None


def dynamic_of(read: Read) -> Dynamic | None:
    """Return what a library asks for; None for what is no ELF file of which this can be told."""
    try:
        return _dynamic(read)
    except struct.error:
        # Cut off.
        return None


def _dynamic(read: Read) -> Dynamic | None:
    header = read(0, _HEADER_BYTES)
    if header[:4] != b"\x7fELF" or len(header) < _HEADER_BYTES or header[4] not in _FORMS or header[5] not in (1, 2):
        return None
    order = "<" if header[5] == 1 else ">"
    form = _FORMS[header[4]]
    machine = struct.unpack_from(f"{order}H", header, 18)[0]
    _start, table, _sections, _flags, _size, each_bytes, count = struct.unpack_from(order + form.head, header, 24)
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
    return _entries(read, _Segments(loads), dynamic, order + form.entry, (machine, header[4]))


def _entries(
    read: Read, segments: _Segments, dynamic: tuple[int, int], form: str, machine: tuple[int, int]
) -> Dynamic | None:
    offset, size = dynamic
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
        return tuple(folder for text in texts(tag) for folder in text.split(":") if folder)

    return Dynamic(machine=machine, needed=texts(_NEEDED), rpath=folders(_RPATH), runpath=folders(_RUNPATH))


def _string(read: Read, offset: int) -> str | None:
    """Return the text that ends with the first zero; None where there is none near."""
    raw, zero, _rest = read(offset, _LONGEST_STRING).partition(b"\0")
    return raw.decode("utf-8", "backslashreplace") if zero else None
