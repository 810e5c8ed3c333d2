"""The inside of a shell word: where quotes and expansions end, and what they say."""

import re

from busbw.env.reading.shell_tokens import Segment, SegmentKind
from busbw.env.reading.spelled import Spelled, joined

# Where something begins or ends that may hold others: quotes, substitutions. A remark hides what stands in it.
_NESTING = re.compile(r"[\\'\"`(){}]|\$\{|(?<=[\s;])#")
_CLOSERS = {"${": "}", '"': '"', "`": "`"}
# Up to the backtick that ends a command; one with a backslash belongs to a command within it.
_TO_BACKTICK = re.compile(r"(?:[^`\\]++|\\.)*+`", re.DOTALL)
# How far a bracket is looked for once one has been found to have no end.
_NEAR = 2_000
_PARAMETER = re.compile(r"(?P<length>#?)!?(?P<name>[A-Za-z_]\w*|\d+|[@*#?$!-])(?:\[(?P<index>[^\]]*)\])?")
# `# a remark` in the middle of a command, and $(cat <<EOF ...), whose output is the here-document.
_REMARK = re.compile(r"`[ \t]*#[^`\n]*`|\$\(:[^()$`\n]*\)")
_DOCUMENT = re.compile(
    r"\$\([ \t]*cat[ \t]*<<-?[ \t]*(?P<quote>['\"\\]?)(?P<end>\w+)['\"]?[ \t]*\n(?P<body>.*?)\n?[ \t]*(?P=end)\s*\)",
    re.DOTALL,
)
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

    def closing(self, start: int, closer: str) -> int | None:
        """Return where the bracket or quote opened before `start` is closed, None where it never is."""
        limit = self._limit(start)
        stack = [closer]
        at = start
        while found := _NESTING.search(self.text, at, limit):
            at, mark = found.end(), found.group()
            if mark == "\\":
                at += 1
            elif mark == stack[-1]:
                stack.pop()
                if not stack:
                    return found.start()
            elif mark == "#" or (mark == "'" and stack[-1] != '"'):
                at = self._behind(mark, at, limit, stack[-1])
                if at < 0:
                    break
            elif mark == "(" and (stack[-1] != '"' or self.text[found.start() - 1] == "$"):
                stack.append(")")
            elif mark in _CLOSERS:
                stack.append(_CLOSERS[mark])
        return None

    def _behind(self, mark: str, at: int, limit: int, inside: str) -> int:
        """Return where the '...' or the remark that begins right before `at` ends; -1: nowhere."""
        if mark == "#":
            # In quotes and in ${...} it is no remark.
            return self.text.find("\n", at, limit) if inside == ")" else at
        return self.text.find("'", at, limit) + 1 or -1

    def _limit(self, start: int) -> int:
        """Return how far an end is looked for: not far once one was not found, for the text is no proper script."""
        return min(len(self.text), start + _NEAR) if self.unclosed else len(self.text)

    def single(self, at: int) -> tuple[Segment, int] | None:
        """Return the '...' that begins at `at` and where it ends; None where it does not."""
        end = self.text.find("'", at + 1, self._limit(at))
        if end < 0:
            return None
        return Segment("text", self.piece.part(at + 1, end), is_quoted=True), end + 1

    def ansi_c(self, at: int) -> tuple[Segment, int] | None:
        """Return the $'...' that begins at `at` and where it ends; None where it does not."""
        end, limit = at + 2, self._limit(at)
        while end < limit and self.text[end] != "'":
            end += 2 if self.text[end] == "\\" else 1
        if end >= limit:
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
            return self._unknown(at, at + 1, "`", is_quoted=is_quoted)
        following = self.text[at + 1 : at + 2]
        if following == "(":
            return self._unknown(at, at + 2, ")", is_quoted=is_quoted)
        if following == "{":
            return self._braced(at, is_quoted=is_quoted)
        if name := _SIMPLE.match(self.text, at + 1):
            return self._name(name.group(), at, name.end(), is_quoted=is_quoted)
        return Segment("text", self.piece.part(at, at + 1), is_quoted=is_quoted), at + 1

    def _name(self, name: str, at: int, end: int, *, is_quoted: bool) -> tuple[Segment, int]:
        index = name if name in "@*" else ""
        spelled = Spelled(name, ((0, self.piece.origin(at)),))
        return Segment("name", spelled, is_quoted=is_quoted, index=index), end

    def _unknown(self, at: int, start: int, closer: str, *, is_quoted: bool) -> tuple[Segment, int] | None:
        end = self._backtick(start) if closer == "`" else self.closing(start, closer)
        if end is None:
            return None
        whole = self.piece.part(at, end + 1)
        if _REMARK.fullmatch(whole.text):
            # A remark between the lines of a command, which expands to nothing.
            return Segment("text", Spelled("", ((0, self.piece.origin(at)),)), is_quoted=is_quoted), end + 1
        if (found := _DOCUMENT.fullmatch(whole.text)) is not None:
            kind: SegmentKind = "text" if found["quote"] else "document"
            return Segment(kind, whole.part(found.start("body"), found.end("body")), is_quoted=is_quoted), end + 1
        return Segment("unknown", whole, is_quoted=is_quoted), end + 1

    def _backtick(self, start: int) -> int | None:
        found = _TO_BACKTICK.match(self.text, start, self._limit(start))
        return None if found is None else found.end() - 1

    def _braced(self, at: int, *, is_quoted: bool) -> tuple[Segment, int] | None:
        end = self.closing(at + 2, "}")
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
