"""Files and lists of hosts: those of mpirun, plain ones, and those that batch systems write."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from busbw.base.errors import InputError
from busbw.base.hostlist import MOST_CHARACTERS, MOST_HOSTS, check_host_name, expand_one, split
from busbw.model.launch import HostSlots

# Words of Open MPI and PRRTE for the same two things.
_SLOTS = {"slots", "cpu", "count"}
_MOST_SLOTS = {
    f"{first}{joint}{second}"
    for word in ("slots", "cpu", "count")
    for first, second in (("max", word), (word, "max"))
    for joint in "-_"
}
_ENTRY = re.compile(r"(?P<names>[^:@\s]+)(?::(?P<slots>[0-9]{1,9}))?")
# With brackets and a number of slots, or without.
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\](?::[0-9]+)?|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*")
_COUNT = re.compile(r"[0-9]{1,9}")
_OPTION = re.compile(r"(?P<key>[A-Za-z][A-Za-z_-]*)=(?P<value>\S*)")
_SHOWN = 80
# Names of one file, repeated ones counted: 16 ranks on each of the most hosts.
_MOST_ENTRIES = 2**20


def host_file(text: str, where: str) -> tuple[HostSlots, ...]:
    """Return the hosts of a file as mpirun takes it, in order; names on several lines have that many slots.

    A line is `HOST`, `HOST:4` (Hydra) or `HOST slots=4 max_slots=8` (Open MPI), HOST also a list such as `n[0-3]`; `#`
    begins a comment. Raises InputError with the line for anything else.
    """
    slots: dict[str, int] = {}
    given: dict[str, str] = {}
    entries = 0
    for place, line in _lines(text, where):
        words = _joined(line).split()
        counted = _slots(words[1:], place)
        for name, beside in _entries(words[0], place):
            entries += 1
            if beside is not None and counted is not None:
                raise _unknown(line, "both :N and slots= say how many ranks it takes", place)
            form = "slots=" if counted is not None else ":N" if beside is not None else "a line each"
            if given.setdefault(name, form) != form or (name in slots and form == "slots="):
                raise _unknown(line, f"{name} has its slots twice, and it is not said which counts", place)
            slots[name] = slots.get(name, 0) + (counted or beside or 1)
        if len(slots) > MOST_HOSTS or entries > _MOST_ENTRIES:
            raise InputError(f"more than {MOST_HOSTS} hosts, or {_MOST_ENTRIES} ranks by name", where=place)
    if not slots:
        raise InputError("no host in this file", where=where, hint="a line each: n0 slots=8")
    repeated = {name for name, form in given.items() if form != "a line each" or slots[name] > 1}
    return tuple(HostSlots(name=name, slots=count if name in repeated else None) for name, count in slots.items())


def host_list(text: str, where: str) -> tuple[HostSlots, ...]:
    """Return the hosts of a list as `n0,n1`, `n0:4,n1:4` or `n[0-3]:8`; `n0,n0,n1` are two slots and one.

    Raises InputError.
    """
    entries = list(_entries(text, where))
    if not entries:
        raise InputError("no host is named", where=where, hint="--hosts n[0-3], or a file of hosts")
    counts: dict[str, int] = {}
    counted: dict[str, bool] = {}
    for name, slots in entries:
        if name.isdecimal():
            raise InputError(f"{name} is a number, not the name of a host", where=where, hint=f"--nodes {name}")
        if counted.setdefault(name, slots is not None) != (slots is not None):
            raise InputError(f"{name} is there with and without a number of slots", where=where)
        counts[name] = counts.get(name, 0) + (slots or 1)
    # Whoever names a host twice counts slots by names.
    by_names = any(count > 1 and not counted[name] for name, count in counts.items())
    return tuple(
        HostSlots(name=name, slots=count if by_names or counted[name] else None) for name, count in counts.items()
    )


def node_file(text: str, where: str) -> tuple[HostSlots, ...]:
    """Return the hosts of a file with a name for each slot, as PBS and LSF write it. Raises InputError."""
    return repeated([(line, place) for place, line in _lines(text, where)], where)


def repeated(names: Sequence[tuple[str, str]], where: str) -> tuple[HostSlots, ...]:
    """Return hosts that are named once for each of their slots; each name comes with its place."""
    for name, place in names:
        check_host_name(name, where=place)
    counts = Counter(name for name, _place in names)
    if not 0 < len(counts) <= MOST_HOSTS:
        raise InputError(f"{len(counts)} hosts are listed, and 1 to {MOST_HOSTS} can be used", where=where)
    return tuple(HostSlots(name=name, slots=count) for name, count in counts.items())


def paired(pairs: Sequence[tuple[str, str, str]], where: str) -> tuple[HostSlots, ...]:
    """Return hosts that are named with their slots: (name, slots, place) of each; several of one host are added up."""
    counts: dict[str, int] = {}
    for name, slots, place in pairs:
        check_host_name(name, where=place)
        if _COUNT.fullmatch(slots) is None or int(slots) == 0:
            raise _unknown(f"{name} {slots}", "no number of slots", place)
        counts[name] = counts.get(name, 0) + int(slots)
    if not 0 < len(counts) <= MOST_HOSTS:
        raise InputError(f"{len(counts)} hosts are listed, and 1 to {MOST_HOSTS} can be used", where=where)
    return tuple(HostSlots(name=name, slots=count) for name, count in counts.items())


def grid_engine_file(text: str, where: str) -> tuple[HostSlots, ...]:
    """Return the hosts of a PE_HOSTFILE: host, slots, queue and processors in columns. Raises InputError."""
    pairs = []
    for place, line in _lines(text, where):
        words = line.split()
        if not 2 <= len(words) <= 4:  # the last two are not always there
            raise _unknown(line, "not the columns host, slots, queue, processors", place)
        pairs.append((words[0], words[1], place))
    return paired(pairs, where)


def _lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield `file:line` and what is there beside comments."""
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"over {MOST_CHARACTERS >> 20} MiB: no list of hosts is", where=where)
    for number, raw in enumerate(text.split("\n"), 1):
        line = re.split(r"#|//", raw, maxsplit=1)[0].strip()
        if line:
            yield f"{where}:{number}", line


def _entries(text: str, place: str) -> Iterator[tuple[str, int | None]]:
    """Yield each host of `n0:4,n[1-3]` with its slots; None where none are said."""
    room = MOST_HOSTS
    line = _joined(text.strip())
    for expression in split(line, where=place) if line else ():
        if _IPV6.fullmatch(expression) is not None:
            raise _unknown(expression, "an address of IPv6; launchers take names: put one into /etc/hosts", place)
        if "@" in expression:
            raise _unknown(expression, "a user belongs into the settings of ssh, not into a list of hosts", place)
        if expression[0] in "^+":
            raise _unknown(expression, "hosts left out, and hosts by their number, depend on another list", place)
        match = _ENTRY.fullmatch(expression)
        if match is None:
            raise _unknown(expression, "not a host, HOST:SLOTS, or a list such as n[0-3]", place)
        slots = int(match["slots"]) if match["slots"] is not None else None
        if slots == 0:
            raise _unknown(expression, "a host without slots takes no rank", place)
        names = expand_one(match["names"], where=place, room=room)
        room -= len(names)
        for name in names:
            yield name, slots


def _joined(text: str) -> str:
    """Return a line without the blanks beside its commas and equals signs."""
    return re.sub(r"\s*([=,])\s*", r"\1", text)


def _slots(options: Sequence[str], place: str) -> int | None:
    """Return the slots that the words behind a host's name say; None where they say none."""
    found: dict[str, int] = {}
    for option in options:
        match = _OPTION.fullmatch(option)
        if match is None or match["key"] not in _SLOTS | _MOST_SLOTS:
            raise _unknown(option, "known are slots=N and max_slots=N", place)
        if _COUNT.fullmatch(match["value"]) is None or int(match["value"]) == 0:
            raise _unknown(option, "no number of slots", place)
        kind = "slots" if match["key"] in _SLOTS else "most"
        if kind in found:
            raise _unknown(option, "the same is said before", place)
        found[kind] = int(match["value"])
    if found.get("most", found.get("slots", 0)) < found.get("slots", 0):
        raise _unknown(" ".join(options), "more slots than the most", place)
    return found.get("slots")


def _unknown(text: str, why: str, place: str) -> InputError:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return InputError(f"cannot take {shown!r}: {why}", where=place)
