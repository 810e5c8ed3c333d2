"""Names of hosts as batch systems list them: `n[0-3,07-12],rack[1-2]n[0-3]`, both ways.

Each comma outside brackets begins an expression; each pair of brackets holds numbers and ranges, the last pair counting
fastest. A range keeps the width of its first number, as Slurm and Flux have it (RFC 29 of Flux).
"""

import re
from collections.abc import Sequence
from itertools import product
from math import prod

from busbw.base.errors import InputError

# As many as there may be ranks; a list that stands for more is refused before it is expanded.
MOST_HOSTS = 65_536
# 65,536 names at their longest.
MOST_CHARACTERS = 2**24
# RFC 1123, with `_` taken for a letter: Slurm and LSF have nodes with it, and resolvers find them. A name that began
# with a hyphen would be an option of ssh and of every launcher. Addresses of IPv4 have the same form.
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_LONGEST_NAME = 253
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_DIGITS = re.compile(r"([0-9]+)")
# Longer ones are no numbers of hosts: they stay as they are.
_MOST_DIGITS = 18
_SHOWN = 60

# (first, last, digits) of each range of a pair of brackets.
_Ranges = tuple[tuple[int, int, int], ...]


def is_host_name(text: str) -> bool:
    """Whether a host can have this name or IPv4 address, as `check_host_name` has it."""
    return len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None


def check_host_name(name: str, *, where: str | None = None) -> None:
    """Raise InputError for what cannot be the name or the IPv4 address of a host."""
    if not is_host_name(name):
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        raise InputError(
            f"{shown!r} cannot be the name of a host",
            where=where,
            hint="letters, digits, `_`, `-` and dots, at most 253; no part is empty, over 63 or has `-` at an end",
        )


def expand(text: str, *, where: str) -> tuple[str, ...]:
    """Return the names that a list stands for, in its order, repeated ones repeated; () for an empty text.

    Raises InputError for what is not a list of host names, and for more than 65,536 of them.
    """
    names: list[str] = []
    for expression in split(text, where=where) if text else ():
        names.extend(expand_one(expression, where=where, room=MOST_HOSTS - len(names)))
    return tuple(names)


def split(text: str, *, where: str) -> tuple[str, ...]:
    """Return the expressions of a list: the texts between commas that stand outside brackets.

    Raises InputError for an empty one, for brackets that do not pair, and for a list of over 16 MiB.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            f"a list of hosts of {len(text)} characters is over the limit of {MOST_CHARACTERS}", where=where
        )
    parts: list[str] = []
    start = depth = 0
    for found in re.finditer(r"[\[\],]", text):
        if found[0] == ",":
            if depth == 0:
                parts.append(text[start : found.start()])
                start = found.end()
            continue
        depth += 1 if found[0] == "[" else -1
        if depth not in (0, 1):
            raise _wrong(text[max(start, found.start() - _SHOWN) :], "brackets that do not pair", where)
    if depth:
        raise _wrong(text[start:], "a bracket that is not closed", where)
    parts.append(text[start:])
    if not all(parts):
        raise _wrong(text, "an empty name", where)
    return tuple(parts)


def expand_one(expression: str, *, where: str, room: int = MOST_HOSTS) -> tuple[str, ...]:
    """Return the names of one expression, at most `room`. Raises InputError."""
    literals, choices = _BRACKETS.split(expression)[::2], _BRACKETS.split(expression)[1::2]
    ranges = [_ranges(numbers, expression, where) for numbers in choices]
    if prod(sum(last - first + 1 for first, last, _digits in found) for found in ranges) > room:
        raise _wrong(expression, f"more than {MOST_HOSTS} hosts", where)
    names = tuple(
        "".join(part for pair in zip(literals, (*numbers, ""), strict=True) for part in pair)
        for numbers in product(*(_numbers(found) for found in ranges))
    )
    # They differ in digits alone: but for their length the first stands for all.
    for name in {names[0], max(names, key=len)}:
        check_host_name(name, where=where)
    return names


def compressed(names: Sequence[str]) -> str:
    """Return names as a list that expands to them, neighbours that differ in one number together: `n[0-3],gpu1`."""
    parts: list[str] = []
    run: list[list[str]] = []
    place: int | None = None
    for name in names:
        pieces = _DIGITS.split(name)
        differs = _difference(run[-1], pieces) if run else None
        if run and differs is not None and place in (None, differs):
            place = differs
        elif run:
            parts.append(_joined(run, place))
            run, place = [], None
        run.append(pieces)
    if run:
        parts.append(_joined(run, place))
    return ",".join(parts)


def _ranges(numbers: str, expression: str, where: str) -> _Ranges:
    found = []
    for part in numbers.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise _wrong(expression, f"brackets with {part[:_SHOWN]!r}, neither a number nor a range", where)
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise _wrong(expression, f"a range that runs backwards, {part}", where)
        if len(last) > len(first) and last.startswith("0"):
            raise _wrong(expression, f"a range with two widths, {part}", where)
        found.append((int(first), int(last), len(first)))
    return tuple(found)


def _numbers(ranges: _Ranges) -> list[str]:
    return [f"{number:0{digits}d}" for first, last, digits in ranges for number in range(first, last + 1)]


def _difference(before: list[str], after: list[str]) -> int | None:
    """Return the place of the one number that differs between the pieces of two names; None unless it is one."""
    if len(before) != len(after):
        return None
    places = [place for place, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    if len(places) != 1 or places[0] % 2 == 0:
        return None
    longest = max(len(before[places[0]]), len(after[places[0]]))
    return places[0] if longest <= _MOST_DIGITS else None


def _joined(run: list[list[str]], place: int | None) -> str:
    if place is None:
        return "".join(run[0])
    ranges: list[list[str]] = []
    for pieces in run:
        number = pieces[place]
        if ranges and number == f"{int(ranges[-1][-1]) + 1:0{len(ranges[-1][0])}d}":
            ranges[-1].append(number)
        else:
            ranges.append([number])
    inside = ",".join(found[0] if len(found) == 1 else f"{found[0]}-{found[-1]}" for found in ranges)
    return "".join(run[0][:place]) + f"[{inside}]" + "".join(run[0][place + 1 :])


def _wrong(text: str, what: str, where: str) -> InputError:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return InputError(f"{shown!r} has {what}", where=where, hint="lists of hosts look like n[0-3,7],gpu1")
