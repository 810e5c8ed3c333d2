"""Reads modulefiles, which set an environment, without running them: in Lua and in Tcl."""

import re
from collections.abc import Iterator

import msgspec

from busbw.env.reading.context import LONGEST_VALUE, NAME, Context
from busbw.env.reading.spelled import FILLED, Spelled, joined

# Modulefiles: setenv, pushenv, unsetenv. In Lua for Lmod, in Tcl for others.

_LUA = re.compile(
    r"--\[\[.*?(?:\]\]|\Z)|--[^\n]*"
    r"|(?P<long>\[\[.*?(?:\]\]|\Z))"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<name>[A-Za-z_][\w.:]*)|(?P<join>\.\.)|(?P<number>\d+(?:\.\d+)?)|(?P<mark>[^\s\w])",
    re.DOTALL,
)
_LUA_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LUA_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}
_SETTING = {"setenv", "pushenv"}
_TCL_WORD = re.compile(r"[^\s\"{}\[\];\\$]+")
_TCL_NAME = re.compile(r"\$(?:\{(\w+)\}|(\w+)|env\((\w+)\))")
_TCL_SPECIAL = re.compile(r"[$\[\\]")
_TCL_CONTINUATION = re.compile(r"\\\r?\n[ \t]*")


class _Argument(msgspec.Struct, frozen=True):
    value: Spelled
    # From where to where it is written, with its quotes.
    start: int
    end: int


def read_modulefile(piece: Spelled, context: Context) -> None:
    """Take down what a modulefile sets, in whichever of the two languages it is written."""
    if re.match(r"\s*#%Module", piece.text) or not re.search(r"\b(?:set|push|unset)env\s*[({]", piece.text):
        _read_tcl(piece, context)
    else:
        _read_lua(piece, context)


def _read_lua(piece: Spelled, context: Context) -> None:
    tokens = [found for found in _LUA.finditer(piece.text) if found.lastgroup is not None]
    known: dict[str, Spelled] = {}
    at = 0
    while at < len(tokens):
        word, following = tokens[at].group(), tokens[at + 1].group() if at + 1 < len(tokens) else ""
        if word in {*_SETTING, "unsetenv"} and following in {"(", "{"}:
            arguments, at = _lua_arguments(piece, tokens, at + 2, known)
            _put(word, arguments, context)
        elif following == "=" and tokens[at].lastgroup == "name":
            value, at = _lua_value(piece, tokens, at + 2, known)
            if value is not None and _is_short(value):
                known[word] = value
            else:
                known.pop(word, None)
        else:
            at += 1


def _is_short(value: Spelled) -> bool:
    """Whether a value is known and may go into others."""
    return value.is_known and len(value.text) <= LONGEST_VALUE


def _lua_arguments(
    piece: Spelled, tokens: list[re.Match[str]], at: int, known: dict[str, Spelled]
) -> tuple[list[_Argument], int]:
    arguments: list[_Argument] = []
    while at < len(tokens) and tokens[at].group() not in {")", "}"}:
        start = tokens[at].start()
        value, at = _lua_value(piece, tokens, at, known)
        if value is not None:
            end = tokens[min(at, len(tokens)) - 1].end()
            arguments.append(_Argument(value, piece.origin(start), piece.origin(end - 1) + 1))
        if at < len(tokens) and tokens[at].group() == ",":
            at += 1
    return arguments, at + 1


def _lua_value(
    piece: Spelled, tokens: list[re.Match[str]], at: int, known: dict[str, Spelled]
) -> tuple[Spelled | None, int]:
    """Return the value of texts and names joined by `..`; what else stands there makes it unknown."""
    parts: list[Spelled] = []
    start = at
    brackets = 0
    while at < len(tokens):
        token, kind = tokens[at], tokens[at].lastgroup
        text = token.group()
        if brackets == 0 and (text in {",", ")", "}", ";"} or (at > start and _begins(piece, tokens, at))):
            break
        brackets += (text in {"(", "{"}) - (text in {")", "}"})
        if kind == "string":
            parts.append(_lua_string(piece, token))
        elif kind == "long":
            parts.append(piece.part(token.start() + 2, token.end() - 2))
        elif kind == "number":
            parts.append(piece.part(token.start(), token.end()))
        elif kind == "name" and text in known:
            parts.append(known[text])
        elif kind != "join":
            parts.append(Spelled(FILLED, ((0, piece.origin(token.start())),)))
        at += 1
    if at == start:
        return None, at + 1
    return joined(parts, at=piece.origin(tokens[start].start())), at


def _begins(piece: Spelled, tokens: list[re.Match[str]], at: int) -> bool:
    """Whether a statement begins: a name on another line than what is before it, and not after `..`."""
    between = piece.text[tokens[at - 1].end() : tokens[at].start()]
    return tokens[at].lastgroup == "name" and "\n" in between and tokens[at - 1].lastgroup != "join"


def _lua_string(piece: Spelled, token: re.Match[str]) -> Spelled:
    inner = piece.part(token.start() + 1, token.end() - 1)
    if "\\" not in inner.text:
        return inner
    text = _LUA_ESCAPE.sub(lambda found: _LUA_LETTERS.get(found[1], found[1]), inner.text)
    return Spelled(text, ((0, inner.origin(0)),))


def _put(command: str, arguments: list[_Argument], context: Context) -> None:
    if not arguments or not NAME.fullmatch(arguments[0].value.text):
        return
    name = arguments[0].value
    if command == "unsetenv":
        context.put(name.text, None, "modulefile", at=name.origin(0))
        return
    value = arguments[1] if len(arguments) > 1 else _Argument(Spelled("", ((0, name.end()),)), name.end(), name.end())
    written = (value.start, value.end)
    context.put(name.text, value.value, "modulefile", at=name.origin(0), written=written)


def _read_tcl(piece: Spelled, context: Context) -> None:
    known: dict[str, Spelled] = {}
    for words in _tcl_commands(piece, known):
        if not words:
            continue
        command = words[0].value.text
        if command in {*_SETTING, "unsetenv"}:
            _put(command, words[1:], context)
        elif command == "set" and len(words) == 3 and _is_short(words[2].value):
            known[words[1].value.text] = words[2].value
        elif command == "set" and len(words) == 3:
            known.pop(words[1].value.text, None)


def _tcl_commands(piece: Spelled, known: dict[str, Spelled]) -> Iterator[list[_Argument]]:
    """Yield the words of each command; the bodies of `if` and the like are read as commands of their own."""
    text = piece.text
    words: list[_Argument] = []
    parts: list[Spelled] | None = None
    at = start = 0
    while at <= len(text):
        character = text[at : at + 1]
        if not words and parts is None and character == "#":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        before = at
        if found := _TCL_CONTINUATION.match(text, at):
            character, at = " ", found.end() - 1
        # Braces that do not begin a word with a value hold a body, which is read on as if they were not there.
        is_body = character in {"{", "}"} and not (words and words[0].value.text in {*_SETTING, "set"})
        if character in {"", "\n", ";", " ", "\t", "\r"} or is_body:
            if parts is not None:
                begin = piece.origin(start)
                words.append(_Argument(joined(parts, at=begin), begin, piece.origin(max(before - 1, start)) + 1))
                parts = None
            if character in {"", "\n", ";"} or is_body:
                yield words
                words = []
            at += 1
            continue
        part, at = _tcl_part(piece, at, known, is_first=parts is None)
        if parts is None:
            parts, start = [], before
        parts += part


def _tcl_part(piece: Spelled, at: int, known: dict[str, Spelled], *, is_first: bool) -> tuple[list[Spelled], int]:
    text = piece.text
    character = text[at]
    if character == '"' and is_first:
        end = at + 1
        while end < len(text) and text[end] != '"':
            end += 2 if text[end] == "\\" else 1
        return _tcl_expanded(piece, at + 1, min(end, len(text)), known), end + 1
    if character == "{" and is_first:
        end, depth = at + 1, 1
        while end < len(text) and depth:
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        return [piece.part(at + 1, end - 1 if depth == 0 else end)], end
    if character == "[":
        end = text.find("]", at)
        end = len(text) if end < 0 else end + 1
        return [Spelled(FILLED, ((0, piece.origin(at)),))], end
    if found := _TCL_NAME.match(text, at):
        return [_tcl_variable(piece, found, known)], found.end()
    if character == "\\" and at + 1 < len(text):
        return [piece.part(at + 1, at + 2)], at + 2
    found = _TCL_WORD.match(text, at)
    end = found.end() if found is not None else at + 1
    return [piece.part(at, end)], end


def _tcl_variable(piece: Spelled, found: re.Match[str], known: dict[str, Spelled]) -> Spelled:
    name = found[1] or found[2] or ""
    if name in known and found[3] is None and not piece.text.startswith("(", found.end()):
        return known[name]
    return Spelled(FILLED, ((0, piece.origin(found.start())),))


def _tcl_expanded(piece: Spelled, start: int, end: int, known: dict[str, Spelled]) -> list[Spelled]:
    parts: list[Spelled] = [Spelled("", ((0, piece.origin(start)),))]
    at = start
    while at < end:
        if piece.text[at] in "$[\\":
            part, at = _tcl_part(piece, at, known, is_first=False)
            parts += part
            continue
        special = _TCL_SPECIAL.search(piece.text, at, end)
        stop = end if special is None else special.start()
        parts.append(piece.part(at, stop))
        at = stop
    return parts
