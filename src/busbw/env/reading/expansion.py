"""What a word of a script becomes when the shell expands it, as far as the script itself tells."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from busbw.env.reading.ledger import Ledger
from busbw.env.reading.quoting import Inside
from busbw.env.reading.scope import LONGEST_VALUE, MOST_POSSIBLE, Known, Scope
from busbw.env.reading.shell_tokens import Segment, Word
from busbw.env.reading.spelled import FILLED, HOLE, Spelled, joined

_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\[[^\]]*\])?(?P<operator>\+?=)")
_SPACE = re.compile(r"[ \t\n]+")
_HOME = re.compile(r"~[\w.-]*(?=/|$|:)")
_DEEPEST = 4
_MOST_FIELDS = 10_000


class Field(msgspec.Struct, frozen=True):
    """One argument. Offsets are in the file: where it is written, the second behind its last character."""

    spelled: Spelled
    start: int
    end: int
    # Whether some of it was quoted, and whether it is a whole word of the script and no part of a variable's value.
    is_quoted: bool = False
    is_whole: bool = False

    @property
    def text(self) -> str:
        """The argument; HOLE and FILLED stand for what is not known."""
        return self.spelled.text

    @property
    def is_open(self) -> bool:
        """Whether it stands for any number of arguments that are not known."""
        return self.text == HOLE

    def behind(self, length: int) -> "Field":
        """Return what follows the first characters, such as the value behind `--env=`."""
        spelled = self.spelled.part(length)
        return Field(spelled, spelled.origin(0), self.end, self.is_quoted, self.is_whole)


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
        # "${NONE[@]}" is no argument at all, where "$NONE" is an empty one.
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


_IN_DOCUMENT = re.compile(r"\\[$`\\\n]|[$`]")
_SPECIAL = re.compile(r"[\\'\"$`]")


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
