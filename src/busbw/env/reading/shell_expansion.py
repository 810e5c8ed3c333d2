"""Words of a shell: their quotes and expansions taken apart, and what they become, as far as the script tells."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from busbw.env.reading.context import LONGEST_VALUE, MOST_POSSIBLE, Known, Ledger, Scope
from busbw.env.reading.shell_brackets import Opened, backtick, braces, closing, here_document, quote_of_c
from busbw.env.reading.spelled import FILLED, HOLE, Field, Spelled, joined

# text: as it stands; name: a variable; document: a here-document to be expanded; unknown: the result of a command or of
# arithmetic.
SegmentKind = Literal["text", "name", "document", "unknown"]


class Segment(msgspec.Struct, frozen=True, gc=False):
    """One stretch of a word that is quoted, expanded or taken as it stands alike."""

    kind: SegmentKind
    spelled: Spelled
    is_quoted: bool = False
    # For a name: what stands in for it, and by which operator (`:-`, `-`, `:=`, `=`, `:+`, `+`); `@` or `*` of a list.
    default: Spelled | None = None
    operator: str = ""
    index: str = ""


class Word(msgspec.Struct, frozen=True, gc=False):
    """One word as written; offsets are in the file, the second behind its last character."""

    segments: tuple[Segment, ...]
    start: int
    end: int
    # The words of NAME=(...), which is the rest of this one.
    items: "tuple[Word, ...] | None" = None
    # The text of a word that nothing in it is quoted or expanded in; "" for any other.
    plain: str = ""


# How far a bracket is looked for once one has been found to have no end.
_NEAR = 2_000
_PARAMETER = re.compile(r"(?P<length>#?)!?(?P<name>[A-Za-z_]\w*|\d+|[@*#?$!-])(?:\[(?P<index>[^\]]*)\])?")
# `# a remark` in the middle of a command, and $(cat <<EOF ...), whose output is the here-document.
_REMARK = re.compile(r"`[ \t]*#[^`\n]*`|\$\(:[^()$`\n]*\)")
_CAT = re.compile(r"\$\([ \t]*cat[ \t]*(<<-?)")
_LINE_END = re.compile(r"[ \t\r]*\n")
_OPERATOR = re.compile(r":?[-=+?]")
_SIMPLE = re.compile(r"[A-Za-z_]\w*|\d|[@*#?$!-]")
_ANSI_C = re.compile(r"\\(?:x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|c.|.)", re.DOTALL)
_ANSI_C_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_IN_QUOTES = re.compile(r'[^"\\$`]+')


class Inside:
    """Reads the quoted and expanded parts of one text. Positions are indices in that text."""

    def __init__(self, piece: Spelled) -> None:
        self.piece = piece
        self.text = piece.text
        # Places of brackets and quotes that have no end.
        self.unclosed: list[int] = []

    def closing(self, start: int, opened: Opened) -> int | None:
        """Return where what was opened right before `start` is closed, None where it never is."""
        return closing(self.text, start, opened, self._limit(start))

    def _limit(self, start: int) -> int:
        """Return how far an end is looked for: not far once one was not found, for the text is not a proper script."""
        return min(len(self.text), start + _NEAR) if self.unclosed else len(self.text)

    def single(self, at: int) -> tuple[Segment, int] | None:
        """Return the '...' that begins at `at` and where it ends; None where it does not."""
        end = self.text.find("'", at + 1, self._limit(at))
        if end < 0:
            return None
        return Segment("text", self.piece.part(at + 1, end), is_quoted=True), end + 1

    def ansi_c(self, at: int) -> tuple[Segment, int] | None:
        """Return the $'...' that begins at `at` and where it ends; None where it does not."""
        end = quote_of_c(self.text, at + 2, self._limit(at))
        if end is None:
            return None
        parts: list[Spelled] = []
        done = at + 2
        for found in _ANSI_C.finditer(self.text, at + 2, end):
            parts.append(self.piece.part(done, found.start()))
            parts.append(Spelled(_letter(found.group()), ((0, self.piece.origin(found.start())),)))
            done = found.end()
        parts.append(self.piece.part(done, end))
        spelled = joined(parts, at=self.piece.origin(at))
        return Segment("text", spelled, is_quoted=True), end + 1

    def double(self, at: int) -> tuple[list[Segment], int] | None:
        """Return the segments of the "..." that begins at `at` and where it ends; None where it does not."""
        segments: list[Segment] = []
        literal: list[Spelled] = []
        index, limit = at + 1, self._limit(at)
        while index < limit:
            character = self.text[index]
            if character == '"':
                if literal or not segments:
                    segments.append(Segment("text", joined(literal, at=self.piece.origin(index)), is_quoted=True))
                return segments, index + 1
            if plain := _IN_QUOTES.match(self.text, index):
                literal.append(self.piece.part(index, plain.end()))
                index = plain.end()
            elif character == "\\":
                kept = self.text[index + 1 : index + 2]
                if kept != "\n":
                    literal.append(self.piece.part(index + (kept in '$`"\\'), index + 2))
                index += 2
            else:
                expansion = self.expansion(index, is_quoted=True)
                if expansion is None:
                    return None
                segment, end = expansion
                if segment.kind == "text":
                    literal.append(segment.spelled)
                else:
                    if literal:
                        segments.append(Segment("text", joined(literal), is_quoted=True))
                        literal = []
                    segments.append(segment)
                index = end
        return None

    def expansion(self, at: int, *, is_quoted: bool) -> tuple[Segment, int] | None:
        """Return what the `$` or backtick at `at` begins and where that ends; None where it has no end."""
        if self.text[at] == "`":
            return self._unknown(at, backtick(self.text, at + 1, self._limit(at)), is_quoted=is_quoted)
        following = self.text[at + 1 : at + 2]
        if following == "(":
            opened: Opened = "((" if self.text[at + 2 : at + 3] == "(" else "$("
            return self._unknown(at, self.closing(at + 2, opened), is_quoted=is_quoted)
        if following == "{":
            return self._braced(at, is_quoted=is_quoted)
        if name := _SIMPLE.match(self.text, at + 1):
            return self._name(name.group(), at, name.end(), is_quoted=is_quoted)
        return Segment("text", self.piece.part(at, at + 1), is_quoted=is_quoted), at + 1

    def _name(self, name: str, at: int, end: int, *, is_quoted: bool) -> tuple[Segment, int]:
        index = name if name in "@*" else ""
        spelled = Spelled(name, ((0, self.piece.origin(at)),))
        return Segment("name", spelled, is_quoted=is_quoted, index=index), end

    def _unknown(self, at: int, end: int | None, *, is_quoted: bool) -> tuple[Segment, int] | None:
        if end is None:
            return None
        whole = self.piece.part(at, end + 1)
        if _REMARK.fullmatch(whole.text):
            # A remark between the lines of a command, which expands to nothing.
            return Segment("text", Spelled("", ((0, self.piece.origin(at)),)), is_quoted=is_quoted), end + 1
        return _document(whole, is_quoted=is_quoted) or Segment("unknown", whole, is_quoted=is_quoted), end + 1

    def _braced(self, at: int, *, is_quoted: bool) -> tuple[Segment, int] | None:
        end = self.closing(at + 2, braces(self.text, at + 2, is_quoted=is_quoted))
        if end is None:
            return None
        found = _PARAMETER.match(self.text, at + 2, end)
        unknown = Segment("unknown", self.piece.part(at, end + 1), is_quoted=is_quoted), end + 1
        if found is None or found["length"] or self.text[at + 2] == "!":
            return unknown
        spelled = Spelled(found["name"], ((0, self.piece.origin(at)),))
        index = found["index"] or (found["name"] if found["name"] in "@*" else "")
        if found.end() == end:
            return Segment("name", spelled, is_quoted=is_quoted, index=index), end + 1
        operator = _OPERATOR.match(self.text, found.end(), end)
        if operator is None or operator.group().endswith("?"):
            # ${NAME:?message} is NAME, or the end; all others cut or change the value.
            if operator is not None:
                return Segment("name", spelled, is_quoted=is_quoted, index=index), end + 1
            return unknown
        default = self.piece.part(operator.end(), end)
        segment = Segment("name", spelled, is_quoted=is_quoted, default=default, operator=operator.group(), index=index)
        return segment, end + 1


def _document(whole: Spelled, *, is_quoted: bool) -> Segment | None:
    """Return the text of $(cat <<END ...), None for another command."""
    found = _CAT.match(whole.text)
    head = None if found is None else here_document(whole.text, found.end(), found[1])
    if head is None or not (line_end := _LINE_END.match(whole.text, head[1])):
        return None
    ending = head[0].ending(whole.text, line_end.end(), len(whole.text), is_nested=True)
    if ending is None or whole.text[ending.end() :].strip() != ")":
        return None
    body = head[0].body(whole.part(line_end.end(), max(line_end.end(), ending.start() - 1)))
    return Segment("text" if head[0].is_literal else "document", body, is_quoted=is_quoted)


def _letter(escape: str) -> str:
    kind, digits = escape[1], escape[2:]
    if kind in _ANSI_C_LETTERS:
        return _ANSI_C_LETTERS[kind]
    if kind in "xuU" and digits:
        return _character(int(digits, 16))
    if kind in "01234567":
        return _character(int(escape[1:], 8) & 0xFF)
    return kind if kind in "\\'\"?" else escape


def _character(code: int) -> str:
    return (
        chr(code)
        if 0 < code < 0xD800 or 0xE000 <= code < 0xFFFE or 0xFFFF < code <= 0x10FFFF
        else "\N{REPLACEMENT CHARACTER}"
    )


_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\[[^\]]*\])?(?P<operator>\+?=)")
_SPACE = re.compile(r"[ \t\n]+")
_HOME = re.compile(r"~[\w.-]*(?=/|$|:)")
_IN_DOCUMENT = re.compile(r"\\[$`\\\n]|[$`]")
_SPECIAL = re.compile(r"[\\'\"$`]")
_DEEPEST = 4
_MOST_FIELDS = 10_000


def assignment_of(word: Word) -> tuple[str, str] | None:
    """Return name and operator (`=` or `+=`) of a word that the shell takes for an assignment, None for others."""
    if word.plain and "=" not in word.plain:
        return None
    first = word.segments[0] if word.segments else None
    if first is None or first.kind != "text" or first.is_quoted:
        return None
    found = _ASSIGNMENT.match(first.spelled.text)
    return None if found is None else (found["name"], found["operator"])


class Expander:
    """Expands words by what a scope holds. Where branches leave several values, `way` picks one for all variables."""

    def __init__(self, scope: Scope, ledger: Ledger) -> None:
        self._scope = scope
        self._ledger = ledger

    def ways(self, words: Iterable[Word]) -> int:
        """Return how many ways there are to expand these words."""
        most = 1
        for word in words:
            if word.plain and word.items is None:
                continue
            for segment in word.segments:
                if segment.kind == "name":
                    most = max(most, len(self._scope.get(segment.spelled.text)))
            if word.items:
                most = max(most, self.ways(word.items))
        return min(most, MOST_POSSIBLE)

    def fields(self, word: Word, way: int) -> list[Field]:
        """Return the arguments that a word becomes."""
        if word.plain:
            return [Field(word.segments[0].spelled, word.start, word.end, is_whole=True)]
        pieces: list[list[Spelled]] = [[]]
        quoted = [False]
        for segment in word.segments:
            if segment.kind == "text":
                pieces[-1].append(segment.spelled)
                quoted[-1] = quoted[-1] or segment.is_quoted
                continue
            self._add(list(self._split(segment, way)), pieces, quoted, is_quoted=segment.is_quoted)
        return [
            _field(joined(parts, at=word.start), word, is_quoted=is_quoted, is_whole=len(pieces) == 1)
            for parts, is_quoted in zip(pieces, quoted, strict=True)
            if is_quoted or any(part.text for part in parts)
        ]

    def _add(
        self, found: list[Spelled | None], pieces: list[list[Spelled]], quoted: list[bool], *, is_quoted: bool
    ) -> None:
        """Add an expansion to the arguments so far; None in it ends one argument and begins the next."""
        was_list = is_quoted and None in found
        for part in found:
            if part is not None:
                pieces[-1].append(part)
                quoted[-1] = quoted[-1] or was_list
            elif len(pieces) < _MOST_FIELDS:
                pieces.append([])
                quoted.append(was_list)
        # "${NONE[@]}" is not an argument at all, where "$NONE" is an empty one.
        if is_quoted and found:
            quoted[-1] = True

    def _split(self, segment: Segment, way: int) -> Iterator[Spelled | None]:
        known = self._value(segment, way, 0)
        at = segment.spelled.origin(0)
        if known is None:
            many = not segment.is_quoted or (segment.index == "@" and segment.kind == "name")
            yield Spelled(HOLE if many else FILLED, ((0, at),))
            return
        if segment.is_quoted:
            if segment.index == "@":
                for number, field in enumerate(known.fields):
                    if number:
                        yield None
                    yield field
            else:
                yield _as_one(known, at)
            return
        for number, field in enumerate(known.fields):
            if number:
                yield None
            # Unquoted, what is not known in it may be any number of words.
            yield from _in_words(Spelled(field.text.replace(FILLED, HOLE), field.runs))

    def one(self, segments: Iterable[Segment], way: int, *, at: int, depth: int = 0) -> Spelled:
        """Return what stands behind the `=` of an assignment: one text, never split."""
        parts: list[Spelled] = []
        for segment in segments:
            if segment.kind == "text":
                parts.append(_without_home(segment) if not parts else segment.spelled)
                continue
            known = self._value(segment, way, depth)
            at_segment = segment.spelled.origin(0)
            parts.append(Spelled(FILLED, ((0, at_segment),)) if known is None else _as_one(known, at_segment))
        whole = joined(parts, at=at)
        if len(whole.text) > LONGEST_VALUE:
            return Spelled(FILLED, ((0, at),))
        return whole

    def value(self, word: Word, way: int) -> Spelled:
        """Return the value of a word that is an assignment."""
        first = word.segments[0]
        found = _ASSIGNMENT.match(first.spelled.text)
        length = found.end() if found is not None else 0
        rest = Segment("text", first.spelled.part(length))
        return self.one((rest, *word.segments[1:]), way, at=first.spelled.origin(0) + length)

    def _value(self, segment: Segment, way: int, depth: int) -> Known | None:
        """Return what an expansion gives; None where that is not known."""
        if segment.kind == "unknown":
            return None
        if segment.kind == "document":
            is_short = depth < _DEEPEST and self._ledger.may_nest(len(segment.spelled.text))
            return Known((self.document(segment.spelled, way, depth + 1),)) if is_short else None
        possible = self._scope.get(segment.spelled.text)
        known = possible[min(way, len(possible) - 1)]
        if segment.index and segment.index not in "@*":
            known = _item(known, segment.index)
        if segment.default is not None:
            known = self._or_default(known, segment, way, depth)
        if known is not None and not self._ledger.may_resolve(sum(len(field.text) for field in known.fields)):
            return None
        return known

    def _or_default(self, known: Known | None, segment: Segment, way: int, depth: int) -> Known | None:
        operator = segment.operator
        if operator.endswith("+"):
            return None if known is None else self._default(segment, way, depth)
        is_empty = known is not None and not any(field.text for field in known.fields)
        if known is None or (is_empty and operator.startswith(":")):
            return self._default(segment, way, depth)
        return known

    def _default(self, segment: Segment, way: int, depth: int) -> Known | None:
        if depth >= _DEEPEST or segment.default is None:
            return None
        return Known((self.text(segment.default, way, depth + 1),))

    def document(self, piece: Spelled, way: int = 0, depth: int = 0) -> Spelled:
        """Return a here-document's text with its variables expanded; quotes mean nothing there."""
        inside = Inside(piece)
        parts: list[Spelled] = []
        done = 0
        at = 0
        while (found := _IN_DOCUMENT.search(piece.text, at)) is not None:
            at = found.start()
            parts.append(piece.part(done, at))
            if piece.text[at] == "\\":
                # A line that goes on loses both characters, an escaped one the backslash.
                done = at + (2 if found.group() == "\\\n" else 1)
                at = found.end()
                continue
            read = inside.expansion(at, is_quoted=True)
            if read is None:
                inside.unclosed.append(at)
                done, at = at, at + 1
                continue
            parts.append(self.one((read[0],), way, at=piece.origin(at), depth=depth))
            at = done = read[1]
        parts.append(piece.part(done))
        return joined(parts, at=piece.origin(0))

    def text(self, piece: Spelled, way: int, depth: int = 0) -> Spelled:
        """Return a text with its quotes taken off and its variables expanded, as behind `${NAME:-`."""
        inside = Inside(piece)
        segments: list[Segment] = []
        at = done = 0
        while (found := _SPECIAL.search(piece.text, at)) is not None:
            at = found.start()
            segments.append(Segment("text", piece.part(done, at)))
            read = _quoted(inside, at)
            if read is None:
                return Spelled(FILLED, ((0, piece.origin(0)),))
            segments.extend(read[0])
            at = done = read[1]
        segments.append(Segment("text", piece.part(done)))
        return self.one(segments, way, at=piece.origin(0), depth=depth)


def _quoted(inside: Inside, at: int) -> tuple[list[Segment], int] | None:
    character = inside.text[at]
    if character == "\\":
        return [Segment("text", inside.piece.part(at + 1, at + 2), is_quoted=True)], min(at + 2, len(inside.text))
    if character == '"':
        return inside.double(at)
    one = inside.single(at) if character == "'" else inside.expansion(at, is_quoted=True)
    return None if one is None else ([one[0]], one[1])


def _field(spelled: Spelled, word: Word, *, is_quoted: bool, is_whole: bool) -> Field:
    if is_whole and not _reaches_elsewhere(spelled, word):
        return Field(spelled, word.start, word.end, is_quoted, is_whole=True)
    return Field(spelled, spelled.origin(0), spelled.end(), is_quoted)


def _reaches_elsewhere(spelled: Spelled, word: Word) -> bool:
    """Whether the beginning of a field is written in another place, where its variable is set."""
    return not word.start <= spelled.origin(0) < max(word.end, word.start + 1)


def _as_one(known: Known, at: int) -> Spelled:
    if len(known.fields) == 1:
        return known.fields[0]
    space = Spelled(" ", ((0, at),))
    parts = [part for field in known.fields for part in (space, field)]
    return joined(parts[1:], at=at)


def _item(known: Known | None, index: str) -> Known | None:
    if known is None or not index.isdecimal() or len(index) > 6 or int(index) >= len(known.fields):
        return None
    return Known((known.fields[int(index)],))


def _in_words(field: Spelled) -> Iterator[Spelled | None]:
    """Yield the words of an unquoted value, None between two."""
    at = 0
    for found in _SPACE.finditer(field.text):
        if found.start() > at:
            yield field.part(at, found.start())
        yield None
        at = found.end()
    if at < len(field.text):
        yield field.part(at)


def _without_home(segment: Segment) -> Spelled:
    """Return a value's beginning with an unquoted ~ as unknown: only the machine knows it."""
    found = None if segment.is_quoted else _HOME.match(segment.spelled.text)
    if found is None:
        return segment.spelled
    filled = Spelled(FILLED, ((0, segment.spelled.origin(0)),))
    return joined((filled, segment.spelled.part(found.end())))
