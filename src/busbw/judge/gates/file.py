"""Files of gates: TOML with a table for each gate, and one for the baseline."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.judge.gates.expression import made_gate, parse_gate
from busbw.model.gates import Gate, Measure, Ranks, Requirement

MOST_BYTES = 2**20
MOST_GATES = 1000
_TABLE = re.compile(r"^\s*\[\[\s*gate\s*\]\]", re.MULTILINE)
_SECTION = re.compile(r"^\s*\[\s*baseline\s*\]", re.MULTILINE)
_NUMBER = re.compile(r"\.gate\[(\d{1,4})\]")


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
    number = _NUMBER.match(path)
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
