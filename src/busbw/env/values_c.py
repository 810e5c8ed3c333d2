"""Numbers through C's strtol with base 0, as NCCL, its plug-ins and libfabric read them: the beginning counts."""

from busbw.base.units import format_size
from busbw.env.given import Given
from busbw.env.sizes import Numeral, leading_integer, meant_bytes
from busbw.model.envvar import EnvVar
from busbw.model.understood import Understood, ValueProblem

ON_WORDS = ("true", "yes", "on", "y", "t", "enable", "enabled")
OFF_WORDS = ("false", "no", "off", "n", "f", "disable", "disabled", "none")
# What stands for "not said" in parameters of NCCL and its plug-ins.
_UNSAID = (-2, -(2**31))


def read_c_number(given: Given) -> Understood:
    """Return what a reader with strtol makes of a text; other kinds than numbers are taken as they are."""
    if given.var.kind not in ("int", "bool", "size"):
        return Understood(value=given.text)
    if not given.text:
        return Understood(value="0")
    number = leading_integer(given.text)
    if number is None:
        return without_number(given.var, given.text, taken="0")
    return judged_number(given.var, given.text, number)


def without_number(var: EnvVar, text: str, *, taken: str, kind: ValueProblem = "other value") -> Understood:
    """Return what a text without any digit at its beginning is taken for: `taken`."""
    word = text.strip().lower()
    counts = "it counts as 0" if taken == "0" else f"{taken} stays"
    problem = f"{var.owner} reads a number here, and {text[:40]!r} begins with none: {counts}"
    if word in ON_WORDS and var.kind != "size":
        return Understood(value=taken, problem=problem, kind=kind, instead="1")
    if word in OFF_WORDS and var.kind != "size":
        odd: ValueProblem = "odd" if taken == "0" else kind
        return Understood(value=taken, problem=problem, kind=odd, instead="0")
    return Understood(value=taken, problem=problem, kind=kind)


def judged_number(var: EnvVar, text: str, number: Numeral) -> Understood:
    """Return the number that `text` begins with, and what is wrong with how it is written or how large it is."""
    if number.value is None:
        problem = f"{number.digits[:24]}... does not fit into 64 bits: the default stays"
        return Understood(value=default_of(var), problem=problem, kind="ignored")
    value = str(number.value)
    rest = number.rest.strip()
    if number.base == 8 and (int(number.digits) != number.value or rest[:1].isdigit()):
        meant = text.strip().lstrip("0")
        return Understood(
            value=value,
            problem=f"{var.owner} reads {value}: a leading 0 makes the number octal",
            kind="other value",
            instead=meant if meant.isdigit() else None,
        )
    if rest:
        return _with_rest(var, text, number.value, rest)
    return in_bounds(var, number.value)


def _with_rest(var: EnvVar, text: str, value: int, rest: str) -> Understood:
    meant = meant_bytes(text)
    if meant is None:
        problem = f"{var.owner} reads {value}: only the number at the beginning counts"
        return Understood(value=str(value), problem=problem, kind="other value")
    shown = format_size(meant) if var.kind == "size" else str(meant)
    return Understood(
        value=str(value),
        problem=f"{var.owner} reads {value}, not {shown}: {rest[:20]!r} is not looked at",
        kind="other value",
        instead=str(meant),
    )


def in_bounds(var: EnvVar, value: int) -> Understood:
    """Return `value`, with a problem where it is none that the variable is for."""
    shown = str(value)
    if shown in (var.default, *var.defaults.values()) or value in _UNSAID:
        return Understood(value=shown)
    if var.choices and all(_is_integer(choice) for choice in var.choices) and shown not in var.choices:
        known = ", ".join(var.choices)
        return Understood(value=shown, problem=f"{shown} is none of {known}", kind="out of range")
    if var.kind == "bool" and value not in (0, 1):
        return Understood(value=shown, problem=f"{shown} is neither 0 nor 1", kind="odd")
    if var.least is not None and value < var.least:
        return Understood(value=shown, problem=f"{shown} is less than {var.least}", kind="out of range")
    if var.most is not None and value > var.most:
        return Understood(value=shown, problem=f"{shown} is more than {var.most}", kind="out of range")
    return Understood(value=shown)


def _is_integer(text: str) -> bool:
    return text.lstrip("-").isdecimal()


def default_of(var: EnvVar) -> str:
    """Return the default of `var` as words for a reader of the result."""
    return var.default if var.default is not None else "the default"
