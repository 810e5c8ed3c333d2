"""Numbers through C's strtol with base 0, as NCCL, its plug-ins and libfabric read them: the beginning counts."""

import re
from dataclasses import dataclass

from busbw.base.units import format_size
from busbw.base.value import Value
from busbw.env.versions import default_in, reaches
from busbw.model.envvar import EnvVar, ValueProblem, ValueReading


@dataclass(frozen=True, slots=True)
class Given:
    """A text for a variable, and the version of the variable's owner; None: the newest that is known."""

    var: EnvVar
    text: str
    version: tuple[int, ...] | None = None

    @property
    def default(self) -> str:
        """The default of that version, in words where it is not known."""
        default = self.var.default if self.version is None else default_in(self.var, self.version)
        return default if default is not None else "the default"

    @property
    def shown(self) -> str:
        """The text, quoted, as far as a sentence has room for it."""
        return repr(self.text[:40])

    def from_version(self, *since: int) -> bool:
        """Return whether the version is `since` or later."""
        return reaches(self.version, since)


_C_SPACE = " \t\n\v\f\r"
_HEX = re.compile(r"0[xX]([0-9a-fA-F]+)", re.ASCII)
_OCTAL = re.compile(r"0([0-7]*)", re.ASCII)
_DECIMAL = re.compile(r"[1-9][0-9]*", re.ASCII)
_SUFFIX = re.compile(r"(\d{1,15})(?:\.(\d{1,6}))?\s*([kmgt])(i?b)?", re.ASCII | re.IGNORECASE)
_SCIENTIFIC = re.compile(r"(\d{1,9})(?:\.0*)?e\+?(\d{1,2})", re.ASCII | re.IGNORECASE)
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
# More digits than this are no 64-bit integer in any base; Python itself refuses to read very many.
_MOST_DIGITS = 64
_LARGEST = 2**63 - 1


class Numeral(Value, kw_only=True, frozen=True):
    """The integer at the beginning of a text, as strtoll with base 0 takes it."""

    # None: it does not fit into 64 bits.
    value: int | None
    # 8, 10 or 16.
    base: int
    # The digits as written, with a sign and 0x, and what comes after them and is not looked at.
    digits: str
    rest: str


def leading_integer(text: str) -> Numeral | None:
    """Return the integer that `text` begins with: 0x is hexadecimal, a leading 0 octal. None: it begins with none."""
    body = text.lstrip(_C_SPACE)
    sign = body[:1] if body[:1] in ("+", "-") else ""
    unsigned = body[len(sign) :]
    for base, pattern in ((16, _HEX), (8, _OCTAL), (10, _DECIMAL)):
        match = pattern.match(unsigned)
        if match is not None:
            digits = match[0] if base == 10 else match[1]
            rest = unsigned[match.end() :]
            return Numeral(value=_value(sign, digits, base), base=base, digits=sign + match[0], rest=rest)
    return None


def _value(sign: str, digits: str, base: int) -> int | None:
    if len(digits.lstrip("0")) > _MOST_DIGITS:
        return None
    value = int(digits or "0", base) * (-1 if sign == "-" else 1)
    return value if -_LARGEST - 1 <= value <= _LARGEST else None


def meant_bytes(text: str) -> int | None:
    """Return the number that a person means by `8M`, `512 KiB`, `1.5g` or `1e6`; None where that is not plain."""
    match = _SUFFIX.fullmatch(text.strip())
    if match is not None:
        whole, fraction, unit = match[1], match[2] or "", match[3].lower()
        scaled, rest = divmod(int(whole + fraction) * _BINARY[unit], 10 ** len(fraction))
        return scaled if rest == 0 and scaled <= _LARGEST else None
    match = _SCIENTIFIC.fullmatch(text.strip())
    if match is not None:
        value = int(match[1]) * 10 ** int(match[2])
        return value if value <= _LARGEST else None
    return None


def suffixed_bytes(text: str) -> int | None:
    """Return the bytes of a number with at most k, m, g or t and b behind it, as UCX takes it; None: it is none."""
    if re.fullmatch(r"\d{1,18}[bB]?", text, re.ASCII):
        return int(text.rstrip("bB"))
    match = re.fullmatch(r"(\d{1,15})([kmgtKMGT])[bB]?", text, re.ASCII)
    return int(match[1]) * _BINARY[match[2].lower()] if match is not None else None


ON_WORDS = ("true", "yes", "on", "y", "t", "enable", "enabled")
OFF_WORDS = ("false", "no", "off", "n", "f", "disable", "disabled", "none")
# What stands for "not said" in parameters of NCCL and its plug-ins.
_UNSAID = (-2, -(2**31))


def read_c_number(given: Given) -> ValueReading:
    """Return what a reader with strtol makes of a text; other kinds than numbers are taken as they are."""
    if given.var.kind not in ("int", "bool", "size"):
        return ValueReading(value=given.text)
    if not given.text:
        return ValueReading(value="0")
    number = leading_integer(given.text)
    if number is None:
        return without_number(given.var, given.text, taken="0")
    return judged_number(given.var, given.text, number)


def without_number(var: EnvVar, text: str, *, taken: str, kind: ValueProblem = "other value") -> ValueReading:
    """Return what a text without any digit at its beginning is taken for: `taken`."""
    word = text.strip().lower()
    counts = "it counts as 0" if taken == "0" else f"{taken} stays"
    problem = f"{var.owner} reads a number here, and {text[:40]!r} begins with none: {counts}"
    if word in ON_WORDS and var.kind != "size":
        return ValueReading(value=taken, problem=problem, kind=kind, instead="1")
    if word in OFF_WORDS and var.kind != "size":
        odd: ValueProblem = "odd" if taken == "0" else kind
        return ValueReading(value=taken, problem=problem, kind=odd, instead="0")
    return ValueReading(value=taken, problem=problem, kind=kind)


def judged_number(var: EnvVar, text: str, number: Numeral) -> ValueReading:
    """Return the number that `text` begins with, and what is wrong with how it is written or how large it is."""
    if number.value is None:
        problem = f"{number.digits[:24]}... does not fit into 64 bits: the default stays"
        return ValueReading(value=default_of(var), problem=problem, kind="ignored")
    value = str(number.value)
    rest = number.rest.strip()
    if number.base == 8 and (int(number.digits) != number.value or rest[:1].isdigit()):
        meant = text.strip().lstrip("0")
        return ValueReading(
            value=value,
            problem=f"{var.owner} reads {value}: a leading 0 makes the number octal",
            kind="other value",
            instead=meant if meant.isdigit() else None,
        )
    if rest:
        return _with_rest(var, text, number.value, rest)
    return in_bounds(var, number.value)


def _with_rest(var: EnvVar, text: str, value: int, rest: str) -> ValueReading:
    meant = meant_bytes(text)
    if meant is None:
        problem = f"{var.owner} reads {value}: only the number at the beginning counts"
        return ValueReading(value=str(value), problem=problem, kind="other value")
    shown = format_size(meant) if var.kind == "size" else str(meant)
    return ValueReading(
        value=str(value),
        problem=f"{var.owner} reads {value}, not {shown}: {rest[:20]!r} is not looked at",
        kind="other value",
        instead=str(meant),
    )


def in_bounds(var: EnvVar, value: int) -> ValueReading:
    """Return `value`, with a problem where it is none that the variable is for."""
    shown = str(value)
    if shown in (var.default, *var.defaults.values()) or value in _UNSAID:
        return ValueReading(value=shown)
    if var.choices and all(_is_integer(choice) for choice in var.choices) and shown not in var.choices:
        known = ", ".join(var.choices)
        return ValueReading(value=shown, problem=f"{shown} is none of {known}", kind="out of range")
    if var.kind == "bool" and value not in (0, 1):
        return ValueReading(value=shown, problem=f"{shown} is neither 0 nor 1", kind="odd")
    if var.least is not None and value < var.least:
        return ValueReading(value=shown, problem=f"{shown} is less than {var.least}", kind="out of range")
    if var.most is not None and value > var.most:
        return ValueReading(value=shown, problem=f"{shown} is more than {var.most}", kind="out of range")
    return ValueReading(value=shown)


def _is_integer(text: str) -> bool:
    return text.lstrip("-").isdecimal()


def default_of(var: EnvVar) -> str:
    """Return the default of `var` as words for a reader of the result."""
    return var.default if var.default is not None else "the default"
