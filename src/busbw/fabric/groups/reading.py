"""The number in what a program printed, and the words of its command."""

import math
import re
from collections.abc import Mapping, Sequence

from busbw.base.errors import InputError
from busbw.fabric.groups.isolation import ReadRule
from busbw.fabric.groups.judging import GroupResult

# Not behind a letter, a digit, a dot or a hyphen: `step3`, `n-17` and the rest of a date are no numbers.
_NUMBER = re.compile(r"(?<![\w.-])[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_PLAIN = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")
_LONGEST_PATTERN = 1000
# A longer line is no line of results.
_LONGEST_LINE = 10_000
_SHOWN = 60
PLACEHOLDERS = ("hosts", "hostfile", "nodes", "group", "folder")
# One of them says where the group runs.
_NAMING = ("hosts", "hostfile")
_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")


def read_rule(text: str, *, higher_is_better: bool | None) -> ReadRule:
    """Return what `--read` asks for: `exit-code`, `last-number`, or a regular expression with one group.

    Raises InputError for an expression that is none, and where it is not said which values are better.
    """
    if text == "exit-code":
        return ReadRule(kind="exit-code", higher_is_better=True)
    if higher_is_better is None:
        raise InputError(
            "it is not known which numbers are better",
            where=f"--read {text[:_SHOWN]}",
            hint="--higher-is-better for a bandwidth, --lower-is-better for a time",
        )
    if text == "last-number":
        return ReadRule(kind="last-number", higher_is_better=higher_is_better)
    _compiled(text)
    return ReadRule(kind="pattern", pattern=text, higher_is_better=higher_is_better)


def _compiled(pattern: str) -> re.Pattern[str]:
    where = f"--read {pattern[:_SHOWN]}"
    if len(pattern) > _LONGEST_PATTERN:
        raise InputError(f"an expression of over {_LONGEST_PATTERN} characters", where=where)
    try:
        found = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(f"not a regular expression: {error}", where=where) from error
    if found.groups != 1:
        raise InputError(
            f"this expression has {found.groups} groups, and one must hold the number",
            where=where,
            hint="--read 'bandwidth: ([0-9.]+)', --read last-number, or --read exit-code",
        )
    return found


def read_result(rule: ReadRule, printed: str) -> GroupResult:
    """Return the value in what a program printed that ended well, or why there is none. Raises InputError."""
    if rule.kind == "exit-code":
        return GroupResult(value=1.0)
    text = _matched(_compiled(rule.pattern or ""), printed) if rule.kind == "pattern" else _last_number(printed)
    if text is None:
        what = f"nothing that {rule.pattern!r} matches" if rule.kind == "pattern" else "no number"
        return GroupResult(failure=f"its output has {what}")
    value = float(text) if _PLAIN.fullmatch(text.strip()) else math.nan
    if not math.isfinite(value) or value <= 0:
        return GroupResult(failure=f"{text[:_SHOWN]!r} in its output is not a number above zero")
    return GroupResult(value=value)


def _matched(pattern: re.Pattern[str], printed: str) -> str | None:
    """Return the group of the last match in the last line that has one."""
    for line in reversed(printed.splitlines()):
        found = [each[1] for each in pattern.finditer(line[:_LONGEST_LINE]) if each[1] is not None]
        if found:
            return found[-1]
    return None


def _last_number(printed: str) -> str | None:
    for line in reversed(printed.splitlines()):
        if found := _NUMBER.findall(line[:_LONGEST_LINE]):
            return str(found[-1])
    return None


def check_command(command: Sequence[str]) -> None:
    """Raise InputError for a command that would run on the same hosts whatever the group."""
    if not command:
        raise InputError("no command is named", hint="busbw isolate --hosts F -- mpirun --host {hosts} PROGRAM")
    if not any(f"{{{name}}}" in word for word in command for name in _NAMING):
        raise InputError(
            "nothing in this command says which hosts a group has: every group would be the same",
            where=" ".join(command)[:200],
            hint="write {hosts} (n0,n1) or {hostfile} (one host a line), such as: mpirun --host {hosts} PROGRAM",
        )
    if any("\0" in word for word in command):
        raise InputError("a command line cannot contain NUL", where=" ".join(command)[:200].replace("\0", " "))


def command_of_group(command: Sequence[str], places: Mapping[str, str]) -> tuple[str, ...]:
    """Return a command with each placeholder replaced, word by word: no shell sees it, and no word becomes two."""
    return tuple(_PLACEHOLDER.sub(lambda found: places[found[1]], word) for word in command)
