"""For which GPUs a binary has code, read from the containers that NVIDIA's compiler puts into it. Strict and bounded.

A container is a header of 16 bytes (magic, version, size of header, size of what follows) and entries; each entry has
a header that says what it is (2: machine code, 1: PTX), how long, and for which architecture. Read from what nvcc 13.0
and the NCCL of wheels 2.18.1 to 2.32.3 have; NVIDIA does not publish the form.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from busbw.machine.read.elf import Read, Section
from busbw.model.host import DeviceCode

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
_MOST_ENTRIES = 200_000
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
    left = _MOST_ENTRIES
    for _number in range(_MOST_CONTAINERS):
        start = _next(read, place, end)
        if start is None:
            return
        _magic, _version, header_bytes, size = _CONTAINER.unpack(read(start, _CONTAINER.size))
        stop = start + header_bytes + size
        if header_bytes < _CONTAINER.size or stop > end:
            return
        entries = list(_entries(read, start + header_bytes, stop, left))
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


def _entries(read: Read, place: int, end: int, most: int) -> Iterator[_Entry]:
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
