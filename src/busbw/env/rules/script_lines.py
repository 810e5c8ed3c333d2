"""What the lines of a script do to each other: variables that nothing uses, here-documents, words of another shell."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from busbw.env.misspelled import letters_off
from busbw.env.rules.subject import SettingsSubject, report, shown
from busbw.model.finding import FilePlace, Finding
from busbw.model.settings import SettingsReading

_SHELLS = {"shell", "slurm"}
_SET = re.compile(
    r"\s*(?:[^\s()]+\)\s*)?(?:(?:local|declare|readonly|typeset)\s+(?:-\w+\s+)?)?(?P<name>[A-Za-z_]\w*)\+?=(?P<value>.*)"
)
# A value of options or of a command that starts ranks.
_WORTH = re.compile(r"[\"']?\s*(?:--?[A-Za-z][\w-]*[ =]|(?:\S*/)?(?:srun|mpirun|mpiexec|torchrun)\s+-)")
_USED = re.compile(r"\$\{?[#!]?([A-Za-z_]\w*)|\b(?:export|unset|printenv|-v)\s+([A-Za-z_]\w*)\b|envsubst|\bsource\b")
_WRITTEN = re.compile(r"(?:\bcat\b|\btee\b).*<<-?\s*[\"'\\]?(?P<end>[A-Za-z_]\w*)")
_MOST_LINES = 4_000


class _ScriptVariable(NamedTuple):
    name: str
    line: int
    column: int
    value: str


def unused(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield options and commands that are put into a variable which nothing uses, beside one of a similar name.

    A file that the script writes is looked at by itself.
    """
    reading = subject.reading
    if reading.language not in _SHELLS or not reading.launches or len(reading.lines) > _MOST_LINES:
        return
    written = tuple(_written(reading.lines))
    own = {number for first, end in written for number in range(first, end)}
    everything = range(len(reading.lines))
    yield from _unused(reading, [number for number in everything if number not in own], everything)
    for first, end in written:
        yield from _unused(reading, range(first, end), range(first, end))


def _unused(reading: SettingsReading, own: Iterable[int], using: Iterable[int]) -> Iterator[Finding]:
    held = tuple(_held(reading, own))
    used = {
        name for number in using for found in _USED.finditer(reading.lines[number]) for name in found.groups() if name
    }
    is_set = {each.name for each in held}
    reported: set[str] = set()
    for each in held:
        if each.name in used or each.name in reported or _WORTH.match(each.value) is None:
            continue
        others = (other for other in sorted(used) if _is_near(each.name, other, is_set=other in is_set))
        meant = next((other for other in others if _holds_alike(other, held)), None)
        if meant is not None:
            reported.add(each.name)
            yield report(
                "ENV115",
                at=FilePlace(file=reading.file, line=each.line, column=each.column),
                evidence=f"{each.name} = {shown(each.value.strip())}",
                confidence="likely",
                effect=f"the commands of this script use {meant} instead",
                fix=f"{meant}=...",
                name=each.name,
                meant=meant,
            )


def _held(reading: SettingsReading, numbers: Iterable[int]) -> Iterator[_ScriptVariable]:
    for number in numbers:
        found = _SET.match(reading.lines[number])
        if found is not None:
            yield _ScriptVariable(found["name"], number + 1, found.start("name") + 1, found["value"])


def _written(lines: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield the first line of each here-document that is written to a file, and the line that ends it."""
    number = 0
    while number < len(lines):
        found = _WRITTEN.search(lines[number])
        number += 1
        if found is not None:
            end = next((at for at in range(number, len(lines)) if lines[at].strip() == found["end"]), len(lines))
            yield number, end
            number = end + 1


_DIGITS = re.compile(r"\d+", re.ASCII)


def _is_near(name: str, other: str, *, is_set: bool) -> bool:
    """Whether one may be meant by the other: a letter or an ending off, or of one last word and not set."""
    if _DIGITS.sub("", name) == _DIGITS.sub("", other):
        # Numbered ones to choose from.
        return False
    if letters_off(name, other, 1) <= 1 and min(len(name), len(other)) > 1:
        return True
    if name.startswith(f"{other}_") or other.startswith(f"{name}_"):
        return True
    last = name.rpartition("_")
    return not is_set and bool(last[0]) and other.endswith(f"_{last[2]}") and other.isupper()


def _holds_alike(name: str, held: tuple[_ScriptVariable, ...]) -> bool:
    """Whether a variable holds options or a command as well, or is not set at all."""
    values = [each.value for each in held if each.name == name]
    return not values or any(_WORTH.match(value) for value in values)


_DOCUMENT = re.compile(r"(?:\bcat\b|\btee\b).*<<-?\s*(?P<end>[A-Za-z_]\w*)\b")
_REPLACED = re.compile(r"(?<!\\)\$(?:\{(\w+)\}|([A-Za-z_]\w*))")
# What the shell that writes the file has as well.
_EVERYWHERE = re.compile(r".*PATH|HOME|USER|PWD|SHELL|LANG|TERM|HOSTNAME|TMPDIR|IFS", re.ASCII)


def documents(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield variables that a here-document sets for later and that are replaced already when it is written."""
    lines = subject.reading.lines
    if subject.reading.language not in _SHELLS or len(lines) > _MOST_LINES:
        return
    number = 0
    outside: set[str] = set()
    while number < len(lines):
        found = _DOCUMENT.search(lines[number])
        before = _SET.match(lines[number].replace("export ", "", 1))
        if before is not None:
            outside.add(before["name"])
        outside |= set(re.findall(r"\b(?:for|read|local|export)\s+(?:-\w+\s+)*([A-Za-z_]\w*)", lines[number]))
        number += 1
        if found is None:
            continue
        end = next((at for at in range(number, len(lines)) if lines[at].strip() == found["end"]), len(lines))
        yield from _document(subject.reading, number, end, outside)
        number = end + 1


def _document(reading: SettingsReading, first: int, end: int, outside: set[str]) -> Iterator[Finding]:
    inside: set[str] = set()
    for number in range(first, end):
        line = reading.lines[number]
        # What a remark of the written file says is nobody's loss.
        for found in _REPLACED.finditer(line) if not line.lstrip().startswith("#") else ():
            name = found[1] or found[2]
            if name in inside - outside and _EVERYWHERE.fullmatch(name) is None:
                yield report(
                    "ENV116",
                    at=FilePlace(file=reading.file, line=number + 1, column=found.start() + 1),
                    evidence=line.strip()[:80],
                    effect="the written file has nothing in its place",
                    fix=f"\\${name}, or quotes around the word behind <<",
                    name=name,
                )
                return
        held = _SET.match(line.replace("export ", "", 1))
        if held is not None and re.search(rf"(?<!\\)\$\{{?{held['name']}\b", held["value"]):
            # `NAME="${NAME}"` gives the file what the script that writes it has.
            outside.add(held["name"])
        elif held is not None:
            inside.add(held["name"])


_SETENV = re.compile(r"\s*(?P<word>setenv)\s+(?P<name>[A-Za-z_]\w*)(?:\s+(?P<value>\S.*))?$")
_OF_POSIX = re.compile(r"\s*(?:fi|done|then|esac)\s*(?:#.*)?$|\s*export\s+\w+=|#!.*\b(?:ba|da|k|z)?sh\b")
_ENV_EXPORT = re.compile(r"\s*ENV\s+(?P<word>export|set|setenv)\s+(?P<name>[A-Za-z_]\w*)[= ]", re.IGNORECASE)


def other_words(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield `setenv` in a script of bash, and `export` in an ENV of a Dockerfile."""
    reading = subject.reading
    if reading.language == "dockerfile":
        for number, line in enumerate(reading.lines, start=1):
            found = _ENV_EXPORT.match(line)
            if found is not None:
                effect = f"the variable is called {found['word']}, and {found['name']} is not set"
                yield _nothing(reading, number, found, effect, "ENV {0}=...")
    elif reading.language in _SHELLS and any(_OF_POSIX.match(line) for line in reading.lines):
        if any(re.search(r"\bsetenv\s*\(\)|\bfunction\s+setenv|\balias\s+setenv|<<", line) for line in reading.lines):
            return
        for number, line in enumerate(reading.lines, start=1):
            found = _SETENV.match(line)
            if found is not None:
                effect = f"bash knows no setenv; {found['name']} is not set"
                yield _nothing(reading, number, found, effect, "export {0}=...")
                return


def _nothing(reading: SettingsReading, number: int, found: re.Match[str], effect: str, fix: str) -> Finding:
    return report(
        "ENV118",
        at=FilePlace(file=reading.file, line=number, column=found.start("word") + 1),
        evidence=found.string.strip()[:80],
        effect=effect,
        fix=fix.format(found["name"]),
        word=found["word"],
    )
