"""Reads what images are built from: Dockerfiles, and definition files of Apptainer and Singularity."""

import json
import re
from collections.abc import Iterator

import msgspec

from busbw.env.reading import commands
from busbw.env.reading.context import NAME, Context, Known, Scope
from busbw.env.reading.shell_commands import read_written
from busbw.env.reading.shell_expansion import Expander, Word, assignment_of
from busbw.env.reading.shell_words import Words
from busbw.env.reading.spelled import FILLED, Field, Spelled, joined

_DIRECTIVE = re.compile(r"#\s*escape\s*=\s*([\\`])\s*$", re.IGNORECASE)
_INSTRUCTION = re.compile(r"\s*(?:ONBUILD\s+)?([A-Za-z]+)(?:[ \t]+|$)", re.IGNORECASE)
_FLAG = re.compile(r"--[a-z]+(?:=\S+)?\s+")
_HERE = re.compile(r"<<-?([\"']?)(\w+)\1")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
# A RUN of nothing but exports changes no image.
_ONLY_EXPORTS = re.compile(r"\s*export\b[^;&|\n]*(?:(?:;|&&)\s*export\b[^;&|\n]*)*;?\s*")
_EXPORTED = re.compile(r"\bexport\s+([A-Za-z_]\w*)", re.ASCII)
_COMMANDS = {"RUN", "CMD", "ENTRYPOINT", "HEALTHCHECK"}


class _Instruction(msgspec.Struct, frozen=True):
    name: str
    rest: Spelled
    bodies: tuple[tuple[Spelled, bool], ...] = ()


def read_dockerfile(piece: Spelled, context: Context) -> None:
    """Take down what each instruction sets."""
    before_first = Scope()
    context.scope = before_first
    for instruction in _instructions(piece):
        if instruction.name == "FROM":
            # Each stage begins with the environment of its image, which is not known here.
            context.scope = Scope()
        elif instruction.name == "ENV":
            _env(instruction.rest, context)
        elif instruction.name == "ARG":
            _arg(instruction.rest, context)
        elif instruction.name in _COMMANDS:
            _command(instruction, context)
        elif instruction.name in {"COPY", "ADD"}:
            _copy(instruction, context)


def _instructions(piece: Spelled) -> Iterator[_Instruction]:
    lines = piece.text.split("\n")
    escape = "\\"
    if lines and (found := _DIRECTIVE.match(lines[0].rstrip())):
        escape = found[1]
    parts: list[Spelled] = []
    at = number = 0
    while number < len(lines):
        line = lines[number].removesuffix("\r")
        start, at = at, at + len(lines[number]) + 1
        number += 1
        # Comments and empty lines may stand within an instruction.
        if line.lstrip().startswith("#") or (parts and not line.strip()):
            continue
        stripped = line.rstrip()
        goes_on = stripped.endswith(escape)
        parts.append(piece.part(start, start + len(stripped) - goes_on))
        if goes_on and number < len(lines):
            continue
        whole = joined(parts, at=piece.origin(start))
        parts = []
        found = _INSTRUCTION.match(whole.text)
        if found is None:
            continue
        bodies: list[tuple[Spelled, bool]] = []
        name = found[1].upper()
        if name in {"RUN", "COPY", "ADD"}:
            for here in _HERE.finditer(whole.text):
                start, end, number = _body(lines, number, at, here[2])
                bodies.append((piece.part(start, end), bool(here[1])))
                at = min(len(piece.text), end + len(lines[number - 1]) + 1)
        yield _Instruction(name, whole.part(found.end()), tuple(bodies))


def _body(lines: list[str], number: int, at: int, delimiter: str) -> tuple[int, int, int]:
    """Return where a here-document begins and ends, and the number of the line behind it."""
    start = at
    while number < len(lines):
        if lines[number].strip() == delimiter:
            return start, at, number + 1
        at += len(lines[number]) + 1
        number += 1
    return start, max(start, at - 1), number


def _env(rest: Spelled, context: Context) -> None:
    first = rest.text.split(None, 1)[0] if rest.text.strip() else ""
    if "=" in first:
        for word, value in _words(rest, context):
            _put(word, value, context, "dockerfile")
        return
    # The old form: a name, and all the rest is its value.
    found = re.match(r"(\s*)(\S+)[ \t]+", rest.text)
    if found is None or not NAME.fullmatch(found[2]):
        return
    raw = rest.part(found.end(), len(rest.text.rstrip()))
    value = Expander(context.scope, context.ledger).document(raw)
    written = (raw.origin(0), raw.end())
    context.put(found[2], value, "dockerfile", at=rest.origin(found.start(2)), written=written)
    context.scope.set(found[2], (Known((value,)),))


def _arg(rest: Spelled, context: Context) -> None:
    for word, value in _words(rest, context):
        # Seen by RUN only, and another value may be given on the command line.
        _put(word, value, context, "shell")


def _words(rest: Spelled, context: Context) -> Iterator[tuple[Word, Spelled]]:
    expander = Expander(context.scope, context.ledger)
    for token in Words(rest, context.ledger).tokens():
        if isinstance(token, Word) and assignment_of(token) is not None:
            yield token, expander.value(token, 0)


def _put(word: Word, value: Spelled, context: Context, form: str) -> None:
    found = assignment_of(word)
    if found is None:
        return
    name = found[0]
    written = (word.start + len(name) + 1, word.end)
    if form == "shell":
        context.put(name, value, "shell", at=word.start, written=written)
    else:
        context.put(name, value, "dockerfile", at=word.start, written=written)
    context.scope.set(name, (None if value.text == FILLED else Known((value,)),))


def _command(instruction: _Instruction, context: Context) -> None:
    rest = instruction.rest
    while found := _FLAG.match(rest.text):
        rest = rest.part(found.end())
    fields = _exec_form(rest)
    number: int | None = None
    if instruction.name == "RUN" and rest.text.strip():
        place = Field(rest, rest.origin(0), rest.end())
        number = commands.other(fields or [place], context, family="RUN")
    inner = context.inner(launch=number)
    if fields:
        commands.run(fields, inner)
    elif instruction.bodies:
        for body, _ in instruction.bodies:
            context.read("shell", body, inner)
    else:
        context.read("shell", rest, inner)
    if instruction.name == "RUN" and _ONLY_EXPORTS.fullmatch(rest.text):
        exported = _EXPORTED.search(rest.text)
        name = exported[1] if exported is not None else None
        context.ledger.slip("not_shown", rest.origin(0), rest.text.strip(), name=name)


def _exec_form(rest: Spelled) -> list[Field]:
    """Return the arguments of `["program", "argument"]`, [] for any other form."""
    text = rest.text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return []
    fields: list[Field] = []
    for found in _STRING.finditer(rest.text):
        try:
            value = json.loads(found.group(), strict=False)
        except ValueError:
            return []
        inner = rest.part(found.start() + 1, found.end() - 1)
        spelled = inner if inner.text == value else Spelled(str(value), ((0, inner.origin(0)),))
        fields.append(Field(spelled, rest.origin(found.start()), rest.origin(found.end() - 1) + 1, is_quoted=True))
    return fields


def _copy(instruction: _Instruction, context: Context) -> None:
    """Read what `COPY <<EOF /etc/nccl.conf` writes."""
    target = instruction.rest.text.split()[-1:] or [""]
    expander = Expander(context.scope, context.ledger)
    for body, is_literal in instruction.bodies:
        read_written(target[0], body if is_literal else expander.document(body), context)


# Definition files of Apptainer and Singularity.
_SECTION = re.compile(r"^[ \t]*%([A-Za-z]+)[^\n]*$", re.MULTILINE)
_RUN_WITH_ENVIRONMENT = {"runscript", "startscript", "test", "apprun", "apptest", "appstart"}
_BUILD = {"post", "setup", "pre", "appinstall"}
_ENVIRONMENT = {"environment", "appenv"}


def read_apptainer(piece: Spelled, context: Context) -> None:
    """Take down what the sections set. What %post exports is seen while building only."""
    found = list(_SECTION.finditer(piece.text))
    ends = [*(following.start() for following in found[1:]), len(piece.text)]
    # A text without sections has an end all the same.
    for section, end in zip(found, ends, strict=False):
        name = section[1].lower()
        body = piece.part(min(section.end() + 1, end), end)
        if name in _ENVIRONMENT:
            context.read("shell", body, context.inner(exported_as="apptainer"))
        elif name in _RUN_WITH_ENVIRONMENT:
            context.read("shell", body, context.inner())
        elif name in _BUILD and body.text.strip():
            title = piece.part(section.start(), section.end())
            field = Field(title, title.origin(0), title.end(), is_whole=True)
            number = commands.other([field], context, family=f"%{name}")
            context.read("shell", body, context.inner(launch=number))
