"""Lists of devices, NCCL_IB_HCA and NCCL_SOCKET_IFNAME: how NCCL splits them and which devices they take.

parseStringList and matchIf of NCCL's src/misc/utils.cc: `^` and `=`, in this order and at the very beginning only, hold
for the whole list; names are beginnings unless `=` says otherwise; colons set port, rail and plane apart.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from busbw.env.values_c import Given
from busbw.env.versions import reaches
from busbw.model.envvar import (
    DeviceChoice,
    DeviceComparison,
    DeviceEntry,
    DeviceFlaw,
    DeviceList,
    DeviceProblem,
    ValueReading,
)
from busbw.model.platform import Platform

INTERFACES = ("NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME")
_LONGEST_NAME = 63
_MOST_INTERFACES = 16
_MOST_DEVICES = 32
_MOST_FIELDS = 3
# What people put between entries, and wildcards; none of it is in a device's name.
_FOREIGN = ";|*?[]{}/"
_QUOTES = ("'", '"')


def device_problems(
    devices: DeviceList, name: str = "NCCL_IB_HCA", version: tuple[int, ...] | None = None
) -> tuple[DeviceProblem, ...]:
    """Return what is wrong with how a list is written, in the order of the text. `name`: the variable."""
    if len(devices.text) > 1 and devices.text[0] == devices.text[-1] and devices.text[0] in _QUOTES:
        problem = "the quotation marks are part of it, and of no name"
        return (DeviceProblem(kind="operator", written=devices.text, offset=0, problem=problem),)
    found = [problem for entry in devices.entries for problem in _in_entry(entry, name, version)]
    found += _duplicates(devices)
    most = _MOST_INTERFACES if name in INTERFACES or not reaches(version, (2, 18, 5)) else _MOST_DEVICES
    if len(devices.entries) > most:
        first = devices.entries[most]
        what = f"NCCL reads {most} entries: from {first.written!r} on nothing is looked at"
        found.append(DeviceProblem(kind="too many", written=first.written, offset=first.offset, problem=what))
    if not devices.entries and devices.exclude and not (name in INTERFACES and devices.text == "^"):
        what = "it excludes nothing by name, which NCCL reads as everything"
        found.append(DeviceProblem(kind="empty", written=devices.text, offset=0, problem=what))
    return tuple(sorted(found, key=lambda problem: problem.offset))


def _in_entry(entry: DeviceEntry, name: str, version: tuple[int, ...] | None) -> Iterator[DeviceProblem]:
    flaws = (*_name_flaws(entry.name), *_field_flaws(entry, name, version))
    for kind, problem in flaws:
        yield DeviceProblem(kind=kind, written=entry.written, offset=entry.offset, problem=problem)


def _name_flaws(name: str) -> Iterator[tuple[DeviceFlaw, str]]:
    shown = repr(name[:40])
    if name[0] in "^=":
        yield (
            "operator",
            f"`{name[0]}` counts at the beginning of the whole list only, as ^=: here it is part of a name",
        )
    elif "^" in name:
        yield "operator", "`^` counts at the beginning of the whole list only: here it is part of a name"
    if name != name.strip() or " " in name.strip():
        yield "space", f"entries are separated by commas alone: {shown} is a name with a space in it"
    elif any(character in _FOREIGN for character in name):
        yield "operator", f"{shown} is read as a name: NCCL knows commas between entries and no wildcards"
    if len(name) > _LONGEST_NAME:
        yield "too long", f"{shown}... has more than {_LONGEST_NAME} characters"


def _field_flaws(entry: DeviceEntry, name: str, version: tuple[int, ...] | None) -> Iterator[tuple[DeviceFlaw, str]]:
    fields = entry.written.split(":")[1:]
    if name in INTERFACES and fields:
        yield "field", f"interfaces have no ports: what follows {entry.name!r} does nothing"
        return
    if entry.port is not None and entry.port < 1 and entry.port != -1:
        yield "port", f"{fields[0][:20]!r} is no port, they count from 1: {entry.written!r} takes no device"
    if len(fields) > 1 and not reaches(version, (2, 30, 5)):
        yield (
            "field",
            f"before 2.30.5 there is nothing but a port after a name: the rest of {entry.written!r} is ignored",
        )
    elif len(fields) > _MOST_FIELDS:
        yield "field", f"after port, rail and plane the rest of {entry.written!r} is ignored"


def _duplicates(devices: DeviceList) -> Iterator[DeviceProblem]:
    seen: set[tuple[str, int | None]] = set()
    for entry in devices.entries:
        if {(entry.name, None), (entry.name, entry.port)} & seen:
            what = f"{entry.written!r} is named twice"
            yield DeviceProblem(kind="duplicate", written=entry.written, offset=entry.offset, problem=what)
        seen.add((entry.name, entry.port))


_FIELDS = 4
# `mlx5_0`, and in the words of a platform `mlx5_3..9`.
_NAMED = re.compile(r"\b([A-Za-z](?:[A-Za-z0-9_]*[A-Za-z_])?)(\d{1,4})(?:\.\.([A-Za-z_]*)(\d{1,4}))?\b", re.ASCII)
_LONGEST_SERIES = 256


def parse_devices(text: str) -> DeviceList:
    """Return the entries of a list as NCCL splits it; empty ones are passed over, as NCCL does."""
    exclude = text.startswith("^")
    start = 1 if exclude else 0
    exact = text.startswith("=", start)
    offset = start + 1 if exact else start
    entries = []
    for written in text[offset:].split(","):
        entry = _entry(written, offset)
        if entry is not None:
            entries.append(entry)
        offset += len(written) + 1
    return DeviceList(text=text, exclude=exclude, exact=exact, entries=tuple(entries))


def _entry(written: str, offset: int) -> DeviceEntry | None:
    name, *fields = written.split(":", _FIELDS)
    if not name:
        return None
    port, rail, plane = (_number(field) for field in (*fields, "", "", "")[: _FIELDS - 1])
    return DeviceEntry(name=name, port=port, rail=rail, plane=plane, written=written, offset=offset)


def _number(field: str) -> int | None:
    """Return what atoi makes of a field: 0 where it is not a number, None where it is empty."""
    match = re.match(r"\s*([+-]?\d{1,9})", field, re.ASCII)
    return None if not field else int(match[1]) if match is not None else 0


def choose(devices: DeviceList, present: Sequence[str]) -> DeviceChoice:
    """Return which of the devices that are `present` a list takes; `mlx5_0:2` is a port other than the first.

    A list without entries takes every device, or with `^` none.
    """
    prefixes, absent = [], []
    whole = {entry.name for entry in devices.entries}
    for entry in devices.entries:
        names = [name for name in present if _matches(devices, entry, name)]
        own = [name for name in names if _split(name)[0] == entry.name]
        beyond = tuple(name for name in names if _split(name)[0] not in whole)
        if own and beyond:
            prefixes.append((entry.written, beyond))
        if not names:
            absent.append(entry.written)
    taken = tuple(name for name in present if _takes(devices, name))
    return DeviceChoice(taken=taken, prefixes=tuple(prefixes), absent=tuple(absent))


def _split(device: str) -> tuple[str, int]:
    name, _, port = device.partition(":")
    return name, int(port) if port.isdecimal() and len(port) < 6 else 1


def _matches(devices: DeviceList, entry: DeviceEntry, device: str) -> bool:
    name, port = _split(device)
    named = name == entry.name if devices.exact else name.startswith(entry.name)
    return named and entry.port in (None, -1, port)


def _takes(devices: DeviceList, device: str) -> bool:
    named = not devices.entries or any(_matches(devices, entry, device) for entry in devices.entries)
    return named is not devices.exclude


def compare(devices: DeviceList, compute: Sequence[str], others: Sequence[str] = ()) -> DeviceComparison:
    """Return a list against the compute NICs of a machine and its `others`, such as those of the front end."""
    choice = choose(devices, tuple(dict.fromkeys((*compute, *others))))
    return DeviceComparison(
        choice=choice,
        missed=tuple(name for name in compute if name not in choice.taken),
        foreign=tuple(name for name in choice.taken if name not in compute),
    )


def lists_alike(text: str, lists: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of the `lists` that take the same devices by name, in whatever order."""
    asked = _names(parse_devices(text))
    return tuple(key for key, other in lists.items() if asked and _names(parse_devices(other)) == asked)


def _names(devices: DeviceList) -> tuple[bool, frozenset[str]] | None:
    names = frozenset(entry.name for entry in devices.entries)
    return (devices.exclude, names) if names else None


def compute_nics(platform: Platform) -> tuple[str, ...]:
    """Return the names of a platform's compute NICs as NCCL_IB_HCA has them; () where they are not published."""
    placed = tuple(nic.name for nic in platform.nics if nic.name is not None)
    if placed and len(placed) == len(platform.nics):
        return tuple(dict.fromkeys(placed))
    if platform.nic.hca_list is not None:
        return tuple(dict.fromkeys(entry.name for entry in parse_devices(platform.nic.hca_list).entries))
    return device_names(platform.nic.names)


def frontend_devices(platform: Platform) -> tuple[str, ...]:
    """Return the names of a platform's other network devices, interfaces among them; () where not published."""
    return device_names(platform.frontend.names)


def device_names(words: str | None) -> tuple[str, ...]:
    """Return the devices that words such as `mlx5_0, mlx5_3..6` name; () where they do not name each."""
    if words is None or " to " in words:
        return ()
    found: dict[str, None] = {}
    for prefix, first, _again, last in _NAMED.findall(words):
        end = int(last) if last else int(first)
        for number in range(int(first), min(end, int(first) + _LONGEST_SERIES) + 1):
            found[f"{prefix}{number}" if last else f"{prefix}{first}"] = None
    return tuple(found)


def read_devices(given: Given) -> ValueReading:
    """Return what NCCL makes of a list of devices, in words."""
    devices = parse_devices(given.text)
    problems = device_problems(devices, given.var.name, given.version)
    if not problems:
        return ValueReading(value=in_words(devices, given.var.name))
    said = "; ".join(dict.fromkeys(problem.problem for problem in problems))
    harmless = all(problem.kind == "duplicate" for problem in problems)
    return ValueReading(
        value=in_words(devices, given.var.name), problem=said, kind="odd" if harmless else "other value"
    )


def in_words(devices: DeviceList, name: str = "NCCL_IB_HCA") -> str:
    """Return what a list takes, in words."""
    what = "interfaces" if name in INTERFACES else "devices"
    if not devices.entries:
        return f"no {what}" if devices.exclude else f"all {what}"
    named = _shown(devices.entries)
    how = "named" if devices.exact else "whose names begin with"
    return f"all {what} but those {how} {named}" if devices.exclude else f"{what} {how} {named}"


def _shown(entries: Iterable[DeviceEntry]) -> str:
    return ", ".join(dict.fromkeys(entry.written for entry in entries))
