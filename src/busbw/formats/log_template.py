"""Templates that pick numbers out of the lines of a log: `Benchmark time: {cores} CPUs {s_per_step} s/step`.

A template is the text of a line, from where it is known to where it matters. `{name}` is a number, its name as in
`busbw.formats.scaling_columns`; `{*}` is anything up to the text after it. Spaces stand for any white space. A count
that stands twice is a grid, `{ranks} x {ranks}`, and their product. There is
no other syntax: each template is matched from left to right without ever going back, so that no line costs more than
its length times the number of places where the template's first words stand.
"""

import re

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.formats.scaling_columns import ScalingColumn, column

LONGEST_LINE = 4096
_LONGEST_TEMPLATE = 512
_MOST_FIELDS = 16
_MOST_STARTS = 64
_FIELD = re.compile(r"\{([^{}]*)\}")
_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,3})?", re.ASCII)


class Template(Value, kw_only=True, frozen=True):
    """A text taken apart: what stands before each field and after the last, and the fields; None: anything."""

    text: str
    literals: tuple[str, ...]
    fields: tuple[ScalingColumn | None, ...]


def template(text: str) -> Template:
    """Return a template taken apart. Raises InputError for one that could not be matched."""
    if len(text) > _LONGEST_TEMPLATE:
        raise InputError(f"a template of {len(text)} characters", hint=f"at most {_LONGEST_TEMPLATE}")
    parts = _FIELD.split(_spaced(text))
    literals, names = parts[0::2], parts[1::2]
    if any("{" in literal or "}" in literal for literal in literals):
        raise InputError("a brace that is no field", where=text, hint="write a field as {time_s}")
    fields = [None if name == "*" else column(name) for name in names]
    numbers = [field for field in fields if field is not None]
    if not numbers or len(fields) > _MOST_FIELDS:
        raise InputError("a template without a field" if not numbers else "too many fields", where=text)
    for field in numbers:
        if field.kind == "setting":
            raise InputError(
                f"{{{field.name}}} is neither a count nor a result",
                where=text,
                hint="such as {nodes}, {gpus}, {cores}, {time_s}, {tokens_per_s}, {ns_per_day}",
            )
    if any(not literal for literal in literals[1:-1]) or not any(literal.strip() for literal in literals):
        raise InputError("two fields without a text between them", where=text)
    return Template(text=text, literals=tuple(literals), fields=tuple(fields))


def match(pattern: Template, line: str) -> tuple[tuple[ScalingColumn, str], ...] | None:
    """Return the numbers of the first place in a line that a template fits, as they are written; None: in none."""
    if len(line) > LONGEST_LINE:
        return None
    text = _spaced(line)
    first = pattern.literals[0]
    start = text.find(first)
    for _ in range(_MOST_STARTS):
        if start < 0:
            return None
        found = _match_at(pattern, text, start + len(first))
        if found is not None or not first:
            return found
        start = text.find(first, start + 1)
    return None


def _match_at(pattern: Template, text: str, start: int) -> tuple[tuple[ScalingColumn, str], ...] | None:
    found: list[tuple[ScalingColumn, str]] = []
    position = start
    for field, literal in zip(pattern.fields, pattern.literals[1:], strict=True):
        if field is None:
            position = text.find(literal, position)
            if position < 0:
                return None
        else:
            number = _NUMBER.match(text, position)
            if number is None:
                return None
            digits = number[0]
            # `4.log`: the point is the text's where the text begins with one.
            if digits.endswith(".") and not text.startswith(literal, position + len(digits)):
                digits = digits[:-1]
            position += len(digits)
            if not text.startswith(literal, position):
                return None
            found.append((field, digits))
        position += len(literal)
    return tuple(found)


def _spaced(text: str) -> str:
    """Return a text with one space for each white space in it."""
    return " ".join(text.split())
