"""Gates as they are written: `all_reduce@1G..8G,in-place=380GB/s`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import get_args

import msgspec

from busbw.base.collectives import DTYPE_ALIASES, DTYPE_BYTES, OPERATIONS
from busbw.base.errors import InputError
from busbw.base.toml import check_key_lengths
from busbw.base.units import parse_size
from busbw.base.value import Value
from busbw.model.gates import Gate, Measure, Ranks, Requirement

RATE_UNITS: dict[str, float] = {
    "MB/s": 1e6,
    "GB/s": 1e9,
    "TB/s": 1e12,
    "MiB/s": 2.0**20,
    "GiB/s": 2.0**30,
    "Mb/s": 1e6 / 8,
    "Gb/s": 1e9 / 8,
    "Tb/s": 1e12 / 8,
}
TIME_UNITS: dict[str, float] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_SAME_UNITS = {
    "Mbps": "Mb/s",
    "Gbps": "Gb/s",
    "Tbps": "Tb/s",
    "\N{MICRO SIGN}s": "us",
    "\N{GREEK SMALL LETTER MU}s": "us",
}
_UNITS: dict[Requirement, tuple[str, ...]] = {
    "at_least": tuple(RATE_UNITS),
    "at_most": tuple(TIME_UNITS),
    "within": ("%",),
}
EXAMPLES: dict[Requirement, str] = {
    "at_least": "--at-least 'all_reduce@1G=380GB/s'",
    "at_most": "--at-most 'latency@8=2us'",
    "within": "--within 5%, or --within 'all_reduce@1M..=5%'",
}
_LONGEST = 200
_NUMBER = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(\S*)", re.ASCII)
_RANKS = re.compile(r"([1-9]\d{0,5}) ?ranks", re.ASCII)
_NAME = re.compile(r"[A-Za-z][\w+.-]*", re.ASCII)
_OF_RATES = frozenset({"algbw"})
_PLACES = {"in-place": True, "out-of-place": False}
_SIZES = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

# What a condition of a gate says: fields of a Gate.
_Said = Mapping[str, object]


def parse_gate(text: str, requirement: Requirement) -> Gate:
    """Return the gate that `text` spells: `COLLECTIVE@SIZES,CONDITIONS=NUMBER UNIT`.

    Only `within` may leave out the collective, or everything before the number. Raises InputError for anything else.
    """
    where = f"--{requirement.replace('_', '-')} {text[:_LONGEST]!r}"
    try:
        return _parsed(text, requirement)
    except InputError as error:
        raise InputError(error.cause, where=where, hint=error.hint or EXAMPLES[requirement]) from error


def _parsed(text: str, requirement: Requirement) -> Gate:
    if len(text) > _LONGEST:
        raise InputError(f"a gate of {len(text)} characters; {_LONGEST} are the most")
    # A size may begin with `>=`; a number holds no equals sign.
    points, equals, bound = text.rpartition("=")
    if not equals and requirement != "within":
        raise InputError("no number: a gate is points, =, and a bound")
    first, *conditions = [part.strip() for part in points.split(",")]
    collective, at, sizes = (part.strip() for part in first.partition("@"))
    said: dict[str, object] = {"collective": collective, "size": sizes if at else None}
    for condition in conditions:
        name, value = _condition(condition)
        if name in said:
            raise InputError(f"{condition!r}: said twice")
        said[name] = value
    if not collective and requirement == "within":
        said["collective"] = None
    return made_gate(said, bound, requirement)


def made_gate(said: Mapping[str, object], bound: str, requirement: Requirement) -> Gate:
    """Return a gate from its parts, as an expression or a table of a file gives them: `size` as a text.

    Raises InputError for what no gate can have.
    """
    number, unit = _bound(bound, requirement)
    parts = {name: value for name, value in said.items() if name != "size"}
    sizes = said.get("size")
    from_bytes, to_bytes = parse_sizes(sizes) if isinstance(sizes, str) else (None, None)
    gate = msgspec.convert(
        {"requirement": requirement, "number": number, "unit": unit, "from_bytes": from_bytes, "to_bytes": to_bytes}
        | {name: _known(name, value) for name, value in parts.items()},
        Gate,
    )
    if gate.collective is None and requirement != "within":
        raise InputError("no collective is named")
    if (
        gate.measure is not None
        and requirement != "within"
        and (gate.measure in _OF_RATES) != (requirement == "at_least")
    ):
        raise InputError(f"{gate.measure} is no {'bandwidth' if requirement == 'at_least' else 'time'}")
    return gate


def _known(name: str, value: object) -> object:
    """Return a part of a gate in the house's spelling. Raises InputError for an unknown name."""
    if not isinstance(value, str):
        return value
    if name == "dtype":
        value = DTYPE_ALIASES.get(value, value)
    known: dict[str, Callable[[str], bool]] = {
        "collective": lambda word: _NAME.fullmatch(word) is not None,
        "dtype": DTYPE_BYTES.__contains__,
        "op": OPERATIONS.__contains__,
        "measure": get_args(Measure).__contains__,
    }
    if not known[name](value):
        raise InputError(f"{value!r} is no {name}" if value else f"no {name} is named")
    return value


def _condition(word: str) -> tuple[str, object]:
    """Return the field of a gate that a condition sets, and its value."""
    ranks = _RANKS.fullmatch(word)
    if ranks is not None:
        return "ranks", int(ranks[1])
    if word in _PLACES:
        return "in_place", _PLACES[word]
    if word == "checked":
        return "checked", True
    if word in get_args(Measure):
        return "measure", word
    if word in OPERATIONS:
        return "op", word
    if word in DTYPE_BYTES or word in DTYPE_ALIASES:
        return "dtype", word
    raise InputError(
        f"{word!r} is not a condition",
        hint="in-place, out-of-place, a data type, an operation, 16ranks, checked, algbw, p95, p99, slowest",
    )


def parse_sizes(text: str) -> tuple[int | None, int | None]:
    """Return the least and the greatest size that `text` means: `1G`, `1G..8G`, `1G..`, `..64K`, `>=1G`, `<=64K`.

    None: no end. Raises InputError for anything else, and for no end at all.
    """
    word = text.strip()
    if word.startswith((">=", "<=")):
        size_bytes = parse_size(word[2:])
        return (size_bytes, None) if word[0] == ">" else (None, size_bytes)
    low, dots, high = (part.strip() for part in word.partition(".."))
    if not dots:
        size_bytes = parse_size(word)
        return size_bytes, size_bytes
    if not low and not high:
        raise InputError("'..' is not a range of sizes", hint="1G, 1G..8G, 1G.. (and larger), ..64K (and smaller)")
    from_bytes, to_bytes = parse_size(low) if low else None, parse_size(high) if high else None
    if from_bytes is not None and to_bytes is not None and from_bytes > to_bytes:
        raise InputError(f"{word!r}: the first size is the greater one", hint=f"{high}..{low}")
    return from_bytes, to_bytes


def _bound(text: str, requirement: Requirement) -> tuple[float, str]:
    """Return number and unit of a bound."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is not a number with a unit")
    number, unit = float(match[1]), _SAME_UNITS.get(match[2], match[2])
    if unit not in _UNITS[requirement]:
        raise _unfit(unit, requirement)
    if requirement == "within" and number >= 100:
        raise InputError(f"{number:g} %: below 100 it must be")
    if requirement != "within" and number <= 0:
        raise InputError("a bound of 0 holds nothing back")
    return number, unit


def _unfit(unit: str, requirement: Requirement) -> InputError:
    if unit in TIME_UNITS and requirement == "at_least":
        return InputError("a time is bounded from above", hint=EXAMPLES["at_most"])
    if unit in RATE_UNITS and requirement == "at_most":
        return InputError("a bandwidth is bounded from below", hint=EXAMPLES["at_least"])
    if unit.lower() in {"gb/s", "gbs", "gb"}:
        return InputError(f"{unit!r} is not a unit", hint="GB/s is bytes, Gb/s is bits: 380GB/s is 3040Gb/s")
    said = f"{unit!r} is not a unit of it" if unit else "no unit"
    return InputError(said, hint=f"one of: {', '.join(_UNITS[requirement])}")


def format_gate(gate: Gate) -> str:
    """Return the expression that `parse_gate` reads as `gate`."""
    sizes = _sizes_words(gate.from_bytes, gate.to_bytes)
    places = [word for word, is_in in _PLACES.items() if is_in is gate.in_place]
    parts = (
        (gate.collective or "") + (f"@{sizes}" if sizes else ""),
        gate.dtype,
        gate.op,
        *places,
        f"{gate.ranks}ranks" if gate.ranks is not None else None,
        gate.measure,
        "checked" if gate.checked else None,
    )
    first, *more = parts
    points = ",".join([first or "", *(part for part in more if part)])
    return f"{points}={_number_words(gate.number)}{gate.unit}" if points else f"{_number_words(gate.number)}{gate.unit}"


def _number_words(number: float) -> str:
    return f"{number:.6f}".rstrip("0").rstrip(".")


def _sizes_words(from_bytes: int | None, to_bytes: int | None) -> str:
    if from_bytes == to_bytes:
        return _size_words(from_bytes)
    return f"{_size_words(from_bytes)}..{_size_words(to_bytes)}"


def _size_words(size_bytes: int | None) -> str:
    """Return a size as `parse_size` reads it, in the largest unit that keeps it whole."""
    if size_bytes is None:
        return ""
    unit = next((name for name in reversed(_SIZES) if size_bytes and size_bytes % _SIZES[name] == 0), "")
    return f"{size_bytes // _SIZES.get(unit, 1)}{unit}"


MOST_BYTES = 2**20
MOST_GATES = 1000
_TABLE = re.compile(r"^\s*\[\[\s*gate\s*\]\]", re.MULTILINE)
_SECTION = re.compile(r"^\s*\[\s*baseline\s*\]", re.MULTILINE)
_FILE_NUMBER = re.compile(r"\.gate\[(\d{1,4})\]")


class _Table(Value, kw_only=True, frozen=True):
    """One gate as a table; its fields are those of `Gate`."""

    collective: str
    size: str | None = None
    at_least: str | None = None
    at_most: str | None = None
    dtype: str | None = None
    op: str | None = None
    in_place: bool | None = None
    ranks: Ranks | None = None
    measure: Measure | None = None
    checked: bool = False


class _Baseline(Value, kw_only=True, frozen=True):
    run: str
    # As after --within; one or several.
    within: str | tuple[str, ...]


class _File(Value, kw_only=True, frozen=True):
    baseline: _Baseline | None = None
    gate: tuple[_Table, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class GatesFile:
    """What a file asks for. `baseline` is the name of a result as it is written there."""

    gates: tuple[Gate, ...]
    baseline: str | None


def parse_gates_file(raw: bytes, *, where: str) -> GatesFile:
    """Return what a file asks for. `where` is its name.

    Raises InputError, with the line where it is known, for what is no TOML, unknown keys, wrong types, gates that say
    nothing, more than MOST_BYTES or MOST_GATES.
    """
    if len(raw) > MOST_BYTES:
        raise InputError(f"{len(raw)} bytes; gates take {MOST_BYTES} at most", where=where)
    text = raw.decode(errors="replace")
    check_key_lengths(text, where)
    try:
        read = msgspec.toml.decode(raw, type=_File)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), text, where) from error
    # The parser lets Python's own refusal of very long numbers through.
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"not valid TOML: {error}", where=where) from error
    within = () if read.baseline is None else read.baseline.within
    asked = (within,) if isinstance(within, str) else within
    if len(read.gate) + len(asked) > MOST_GATES:
        raise InputError(f"{len(read.gate) + len(asked)} gates; {MOST_GATES} are the most", where=where)
    gates = [_read(table, partial(_place, where, text, number)) for number, table in enumerate(read.gate)]
    gates += [_read(each, partial(_section, where, text)) for each in asked]
    if not gates:
        raise InputError("no gate in it", where=where, hint="[[gate]] with collective, size, and at_least or at_most")
    return GatesFile(gates=tuple(gates), baseline=read.baseline.run if read.baseline is not None else None)


def _read(asked: _Table | str, place: Callable[[], str]) -> Gate:
    """Return a gate of a table, or of a percentage. `place` says where it is, which takes long in a long file."""
    try:
        return parse_gate(asked, "within") if isinstance(asked, str) else _of_table(asked)
    except InputError as error:
        raise InputError(error.cause, where=place(), hint=error.hint) from error


def _of_table(table: _Table) -> Gate:
    bounds: dict[Requirement, str | None] = {"at_least": table.at_least, "at_most": table.at_most}
    given = [(requirement, bound) for requirement, bound in bounds.items() if bound is not None]
    if len(given) != 1:
        cause = "both at_least and at_most" if given else "neither at_least nor at_most"
        raise InputError(f"{cause} in one gate", hint='at_least = "380GB/s", or at_most = "2us"')
    requirement, bound = given[0]
    said = {name: value for name, value in msgspec.structs.asdict(table).items() if name not in bounds}
    return made_gate(said, bound, requirement)


def _invalid(said: str, text: str, where: str) -> InputError:
    """Return what the schema refuses, with the line of the table that it is in."""
    cause, _, path = said.partition(" - at `$")
    number = _FILE_NUMBER.match(path)
    if number is not None:
        return InputError(cause, where=_place(where, text, int(number[1])), hint=_keys(_Table))
    if path.startswith(".baseline"):
        return InputError(cause, where=_section(where, text), hint=_keys(_Baseline))
    return InputError(cause, where=where, hint="[[gate]] tables, and [baseline]")


def _keys(kind: type[Value]) -> str:
    return "keys: " + ", ".join(kind.__struct_fields__)


def _place(where: str, text: str, number: int) -> str:
    """Return the file with the line of its gate `number`; without where the tables are written otherwise."""
    lines = [text.count("\n", 0, match.start()) + 1 + match[0].count("\n") for match in _TABLE.finditer(text)]
    return f"{where}:{lines[number]}" if number < len(lines) else f"{where}, gate {number + 1}"


def _section(where: str, text: str) -> str:
    match = _SECTION.search(text)
    return where if match is None else f"{where}:{text.count(chr(10), 0, match.start()) + 1 + match[0].count(chr(10))}"
