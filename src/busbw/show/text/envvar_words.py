"""What is known of a variable, in words: its default, what it takes, who reads it."""

from collections.abc import Iterator

from busbw.base.units import format_size
from busbw.model.envvar import EnvVar
from busbw.model.explanation import Explanation

KINDS = {
    "bool": "0 or 1",
    "int": "a whole number",
    "size": "a number of bytes",
    "float": "a number",
    "enum": "a word",
    "list": "a list",
    "text": "a text",
    "path": "a path",
    "level": "a distance",
}
_AGREEMENT = {"same": "must be alike on all ranks", "any": "may differ between ranks"}
_CHECKED = {
    "binary": "; what it does is told from its name and messages",
    "manual": "; no library or source that was looked at has it",
    "recipe": "; in recipes only",
}
_DEFAULTS = {"auto": "decided at run time", "unset": "none", None: "not known", "": "empty"}
# Smaller numbers of bytes are read at a glance.
_SIZE_IN_WORDS = 4096


def facts(told: Explanation, var: EnvVar) -> Iterator[tuple[str, str]]:
    """Yield what is known of a variable, as a title and words."""
    yield "default", _default(told, var)
    if accepted := _accepted(var):
        yield "takes", accepted
    yield "read by", _readers(told, var)
    if var.same_as is not None:
        yield "same as", var.same_as
    if var.replaced_by is not None:
        yield "instead", var.replaced_by
    if var.agreement is not None:
        yield "ranks", _AGREEMENT[var.agreement]
    if var.documented is False:
        yield "documented", "no: it may change or go without notice"
    yield "source", f"{var.source}{_CHECKED.get(var.checked or '', '')}"


def unknown(told: Explanation) -> str:
    """Return what to say of a name that is no variable and no known mistake."""
    if told.read.verdict == "open":
        return told.read.note or "not known here, and programs and sites make up names like it: cannot tell"
    meant = f"; maybe: {', '.join(told.read.meant)}" if told.read.meant else ""
    note = f". {told.read.note}" if told.read.note is not None else ""
    return f"nothing that busbw knows reads it{meant}{note}"


def _default(told: Explanation, var: EnvVar) -> str:
    here = _value(var, told.default)
    if not var.defaults:
        return here
    return f"{here} ({', '.join(f'{_value(var, value)} since {since}' for since, value in var.defaults.items())})"


def _value(var: EnvVar, value: str | None) -> str:
    if value is None or value in _DEFAULTS:
        return _DEFAULTS[value]
    if var.kind == "size" and value.isdecimal() and _SIZE_IN_WORDS <= int(value) < 2**50:
        return f"{value} ({format_size(int(value))})"
    return value


def _accepted(var: EnvVar) -> str:
    choices = ", ".join(var.choices)
    if var.accepted is not None:
        return f"{var.accepted}; knows {choices}" if choices else var.accepted
    limits = {
        (True, True): f"{var.least} to {var.most}",
        (True, False): f"{var.least} or more",
        (False, True): f"{var.most} or less",
        (False, False): "",
    }
    return choices or limits[var.least is not None, var.most is not None]


def _readers(told: Explanation, var: EnvVar) -> str:
    since = f" from {var.since}{' on' if var.until is None else ''}" if var.since is not None else ""
    until = f" to before {var.until}" if var.until is not None else ""
    every = ", every version that was looked at" if told.version is not None and not since and not until else ""
    old = f"; to be replaced since {var.deprecated}" if var.deprecated is not None else ""
    here = {"not yet": f"; not yet by {told.version}", "removed": f"; no longer by {told.version}"}
    return f"{var.owner}{since}{until}{every}{old}{here.get(told.standing or 'yes', '')}"
