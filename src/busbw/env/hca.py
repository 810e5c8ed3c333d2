"""Lists of devices, NCCL_IB_HCA and NCCL_SOCKET_IFNAME: how NCCL splits them and which devices they take.

parseStringList and matchIf of NCCL's src/misc/utils.cc: `^` and `=`, in this order and at the very beginning only, hold
for the whole list; names are beginnings unless `=` says otherwise; colons set port, rail and plane apart.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from busbw.env.given import Given
from busbw.env.hca_problems import INTERFACES, device_problems
from busbw.model.platform import Platform
from busbw.model.understood import DeviceChoice, DeviceComparison, DeviceEntry, DeviceList, Understood

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
    """Return what atoi makes of a field: 0 where it is no number, None where it is empty."""
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


def understood_devices(given: Given) -> Understood:
    """Return what NCCL makes of a list of devices, in words."""
    devices = parse_devices(given.text)
    problems = device_problems(devices, given.var.name, given.version)
    if not problems:
        return Understood(value=in_words(devices, given.var.name))
    said = "; ".join(dict.fromkeys(problem.problem for problem in problems))
    harmless = all(problem.kind == "duplicate" for problem in problems)
    return Understood(value=in_words(devices, given.var.name), problem=said, kind="odd" if harmless else "other value")


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
