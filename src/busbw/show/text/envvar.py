"""A variable as text for a terminal: what it does, who reads it, what is published, what is in force."""

import textwrap
from collections.abc import Iterable, Iterator

from rich.text import Text

from busbw.base.text import printable
from busbw.base.units import format_size
from busbw.model.envvar import EnvVar, Explanation, InForce, Misspelling, PublishedValue
from busbw.model.settings import PluginExport, Setting
from busbw.show.text.terminal import console

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


def facts(explanation: Explanation, var: EnvVar) -> Iterator[tuple[str, str]]:
    """Yield what is known of a variable, as a title and words."""
    yield "default", _default(explanation, var)
    if accepted := _accepted(var):
        yield "takes", accepted
    yield "read by", _readers(explanation, var)
    if var.same_as is not None:
        yield "same as", var.same_as
    if var.replaced_by is not None:
        yield "instead", var.replaced_by
    if var.agreement is not None:
        yield "ranks", _AGREEMENT[var.agreement]
    if var.documented is False:
        yield "documented", "no: it may change or go without notice"
    yield "source", f"{var.source}{_CHECKED.get(var.checked or '', '')}"


def unknown(explanation: Explanation) -> str:
    """Return what to say of a name that is not a variable and no known mistake."""
    if explanation.read.verdict == "open":
        return explanation.read.note or "not known here, and programs and sites make up names like it: cannot tell"
    meant = f"; maybe: {', '.join(explanation.read.meant)}" if explanation.read.meant else ""
    note = f". {explanation.read.note}" if explanation.read.note is not None else ""
    return f"nothing that busbw knows reads it{meant}{note}"


def _default(explanation: Explanation, var: EnvVar) -> str:
    here = _value(var, explanation.default)
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


def _readers(explanation: Explanation, var: EnvVar) -> str:
    since = f" from {var.since}{' on' if var.until is None else ''}" if var.since is not None else ""
    until = f" to before {var.until}" if var.until is not None else ""
    every = ", every version that was looked at" if explanation.version is not None and not since and not until else ""
    old = f"; to be replaced since {var.deprecated}" if var.deprecated is not None else ""
    here = {"not yet": f"; not yet by {explanation.version}", "removed": f"; no longer by {explanation.version}"}
    return f"{var.owner}{since}{until}{every}{old}{here.get(explanation.standing or 'yes', '')}"


_LAYERS = {
    "recommended": "set by busbw run",
    "default": "default",
    "platform": "platform",
    "topology": "topology",
    "site": "plug-in",
    "etc_conf": "settings file of the host",
    "conf": "own settings file",
    "tuned": "tuned",
    "shell": "environment",
    "command_line": "command line",
}
_MISTAKES = {
    "misspelling": "nothing reads it",
    "stale": "nothing reads it any more",
    "non-existent": "nothing reads it",
    "framework": "not a variable of NCCL",
    "vendor": "not a variable of NCCL itself",
}
_COLUMN = 12
_LONGEST_VALUE = 200


def explanation_text(explanation: Explanation) -> None:
    """Print what is known of a name, and its value in force where that was asked for."""
    if explanation.variable is not None:
        _variable(explanation, explanation.variable)
    elif explanation.mistaken is None:
        _line(f"{explanation.name}: {unknown(explanation)}", style="bold")
    if explanation.mistaken is not None:
        _mistaken(explanation.name, explanation.mistaken)
    if explanation.in_force is not None:
        _in_force(explanation.name, explanation.in_force)
    _block("what plug-ins set it to by themselves", [_export(each) for each in explanation.exports])
    _block("what is published", [line for each in explanation.recipes for line in _recipe(each)])
    seen = ", ".join(each.seen for each in explanation.misspellings)
    _block("names that are mistaken for it", [seen] if seen else [])


def _variable(explanation: Explanation, var: EnvVar) -> None:
    _line(f"{var.name}: {var.owner}, {KINDS[var.kind]}", style="bold")
    _line(var.meaning)
    _line("")
    for title, words in facts(explanation, var):
        _line(f"{title:<{_COLUMN}}{words}", hang=_COLUMN)
    if explanation.version_note is not None:
        _line(f"{'':<{_COLUMN}}{explanation.version_note}", style="yellow", hang=_COLUMN)
    _block("good to know", var.notes)
    if explanation.mistaken is not None:
        _line("")


def _mistaken(name: str, mistaken: Misspelling) -> None:
    _line(f"{name}: {_MISTAKES[mistaken.kind]}", style="bold")
    if mistaken.intended and mistaken.intended != (name,):
        opposite = ", which says the opposite: 1 becomes 0" if mistaken.inverted else ""
        _line(f"{'meant':<{_COLUMN}}{' or '.join(mistaken.intended)}{opposite}", hang=_COLUMN)
    if mistaken.instead is not None:
        _line(f"{'write':<{_COLUMN}}{mistaken.instead}", hang=_COLUMN)
    if mistaken.note is not None:
        _line(f"{'because':<{_COLUMN}}{mistaken.note}", hang=_COLUMN)
    _line(f"{'source':<{_COLUMN}}{mistaken.source}", hang=_COLUMN)


def _in_force(name: str, found: InForce) -> None:
    lines = [
        f"{'in force' if place == 0 else 'lost':<{_COLUMN - 2}}{_choice(name, choice)}"
        for place, choice in enumerate(found.choices)
    ]
    read = found.understood
    if read is not None:
        value = f'"{_short(read.value)}"' if read.value is not None else "what, is not known here"
        lines.append(f"{'read as':<{_COLUMN - 2}}{value}{f': {read.problem}' if read.problem is not None else ''}")
        if read.instead is not None:
            lines.append(f'{"write":<{_COLUMN - 2}}{name} = "{_short(read.instead)}"')
    lines += [f"{'not seen':<{_COLUMN - 2}}{each}" for each in found.unseen]
    _block(found.where, lines if found.choices else ["not set", *lines], hang=_COLUMN)


def _choice(name: str, choice: Setting) -> str:
    value = f'{name} = "{_short(choice.value)}"' if choice.value is not None else f"{name} unset"
    conditions = f", {choice.conditions}" if choice.conditions is not None else ""
    where = f": {choice.source}" if choice.layer != "shell" else ""
    return f"{value}  {_LAYERS[choice.layer]}{where}{conditions}"


def _export(export: PluginExport) -> str:
    value = f'"{_short(export.value)}"' if export.value is not None else "a value of its own"
    where = f" on {', '.join(export.platforms)}" if export.platforms else ""
    conditions = f" {export.conditions}" if export.conditions is not None else ""
    before = f" with NCCL before {export.before}" if export.before is not None else ""
    reason = f": {export.reason}" if export.reason is not None else "."
    return f"{export.by}: {value}{where}{conditions}{before}{reason}"


def _recipe(recipe: PublishedValue) -> list[str]:
    value = f'"{_short(recipe.value)}"' if recipe.value is not None else "unset"
    goal = f" for {recipe.goal}" if recipe.goal is not None else ""
    reason = f": {recipe.reason}" if recipe.reason is not None else ": no reason is given."
    return [
        f"{value}{goal} on {', '.join(recipe.platforms)}{reason}",
        *(f"  source: {each}" for each in recipe.source),
    ]


def _short(value: str) -> str:
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."


def _block(title: str, lines: Iterable[str], hang: int = 4) -> None:
    for place, line in enumerate(lines):
        if place == 0:
            _line("")
            _line(title, style="bold")
        _line(f"  {line}", hang=hang)


def _line(text: str, *, style: str = "", hang: int = 0) -> None:
    """Print one paragraph, on a terminal with what follows its first line set under column `hang`."""
    out = console()
    # A value may hold a line end; it must not look like a line of busbw's own.
    words = printable(text).replace("\n", "\\n")
    if out.is_terminal and text:
        words = textwrap.fill(
            words, out.width, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False
        )
    out.print(Text(words, style=style), soft_wrap=True)
