"""What is wrong with how a list of devices is written: operators in its middle, spaces, duplicates, ports."""

from collections.abc import Iterator

from busbw.env.versions import reaches
from busbw.model.understood import DeviceEntry, DeviceFlaw, DeviceList, DeviceProblem

INTERFACES = ("NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME")
_LONGEST_NAME = 63
_MOST_INTERFACES = 16
_MOST_DEVICES = 32
_MOST_FIELDS = 3
# What people put between entries, and wildcards; none of it is in a device's name.
_FOREIGN = ";|*?[]{}"
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
