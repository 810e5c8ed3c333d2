"""A shell script taken apart into tokens, without running anything and past what is wrong with it."""

import re
from collections.abc import Iterator
from typing import TypeGuard

import msgspec

from busbw.env.reading.context import Ledger
from busbw.env.reading.shell_brackets import HereDocument, here_document
from busbw.env.reading.shell_expansion import Inside, Segment, Word
from busbw.env.reading.spelled import Spelled


class Operator(msgspec.Struct, frozen=True):
    """What ends a command, or groups some: a line end, `;`, `&&`, `(`."""

    text: str
    at: int


class Redirect(msgspec.Struct):
    """Where a command reads or writes. The body of a here-document comes later, at the end of the line."""

    operator: str
    at: int
    word: Word | None = None
    # The text of a here-document, and whether $NAME in it stays as it is.
    body: Spelled | None = None
    is_literal: bool = False


class Directive(msgspec.Struct, frozen=True):
    """A comment that a batch system reads: #SBATCH, #PBS."""

    system: str
    options: Spelled


Token = Word | Operator | Redirect | Directive


_BLANK = re.compile(r"[ \t\r\f\v]+")
_PLAIN = re.compile(r"[^\s'\"\\$`;&|<>()]+|[\u0085\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\x1c-\x1f]+")
# A whole word in which nothing is quoted or expanded, and the blanks before it: most words are such.
_WHOLE = re.compile(r"[ \t]*+(?!#|\[\[)([^\s'\"\\$`;&|<>()]++)(?=[ \t\n\r;|&)]|\Z)")
_BLANKS = frozenset(" \t\r\f\v")
_OPERATOR = re.compile(r"\n|;;&|;;|;&|;|&&|\|\||\|&|\||&(?!>)|[()]")
_REDIRECT = re.compile(r"&>>?|<<<|<<-|<<|<>|<&|>&|>>|>\||<|>")
_DIRECTIVE = re.compile(r"#(SBATCH|PBS|BSUB|FLUX:|flux:)[ \t]+([^\n]*)")
# A value to be filled in, such as <topo-file.xml>; the shell takes it for two redirections.
_TO_FILL_IN = re.compile(r"<[A-Za-z](?:[\w ./:|-]{0,80}[\w.])?>(?=[\s\"'/:,;)]|$)")
_CONTINUATION = re.compile(r"\\\r?\n")
_LOST_LINE_END = re.compile(r"\\[ \t]+(?:\r?\n)?")
_LIST = re.compile(r"[A-Za-z_]\w*\+?=$")
_TEST_END = re.compile(r"\]\](?=[\s;&|)]|$)")
# Not the rights of a file, as `ls -l` prints them.
_OPTION = re.compile(r"(?!-(?:[r-][w-][xsStT-]){3}[.+@]?(?:\s|$))--?[A-Za-z]")
# Characters that a word processor puts in place of " ' - and a space.
_TYPOGRAPHIC = re.compile("[\u201c\u201d\u201e\u2018\u2019\u201a\u2010-\u2015\u2212\u00a0\u202f\u200b]")
# More ends that are missing than this, and the text is not a script.
_MOST_UNCLOSED = 100
# The ends of more subshells right within others than this are not looked for to tell them from arithmetic.
_MOST_SUBSHELLS = 100
_LONGEST_TEST = 4_000
_MOST_ITEMS = 10_000
_DEEPEST_LISTS = 4


class Words:
    """The tokens of one script, in order."""

    def __init__(self, piece: Spelled, ledger: Ledger, *, lists: int = 0, is_whole: bool = False) -> None:
        """Divide a text; `is_whole`: it is all that a shell gets, and what is never closed keeps it from running."""
        self._piece = piece
        self._text = piece.text
        self._ledger = ledger
        self._inside = Inside(piece)
        # Where all of the text begins in the file; None where it is put together from several places.
        self._offset = piece.runs[0][1] if len(piece.runs) == 1 else None
        self._at = 0
        self._pending: list[tuple[Redirect, HereDocument]] = []
        self._lists = lists
        self._is_whole = is_whole
        self._ends_with_word = False
        # How often (( was no arithmetic.
        self._subshells = 0

    def tokens(self) -> Iterator[Token]:
        """Yield the tokens. A here-document's body is filled in before the end of its line is yielded."""
        line_end: Operator | None = None
        while (token := self._next()) is not None:
            if line_end is None and isinstance(token, Word):
                # A pattern may follow the head of a case.
                self._ends_with_word = token.plain != "in"
                yield token
                continue
            if isinstance(token, Operator) and token.text == "\n":
                line_end = line_end or token
                continue
            if line_end is not None:
                if self._goes_on(token):
                    # No command begins with an option: the line before was meant to go on.
                    self._ledger.slip("lost_line_end", token.start, token.plain)
                else:
                    yield line_end
                line_end = None
            self._ends_with_word = isinstance(token, Word) and token.plain != "in"
            yield token
        yield line_end or Operator("\n", self._piece.end())

    def _goes_on(self, token: Token) -> TypeGuard[Word]:
        """Whether a line begins with an option behind a command; in a list, words may stand on lines of their own."""
        is_option = isinstance(token, Word) and _OPTION.match(token.plain) is not None
        return is_option and self._ends_with_word and not self._lists

    def _next(self) -> Token | None:
        if len(self._inside.unclosed) > _MOST_UNCLOSED and self._at < len(self._text):
            reason = f"more than {_MOST_UNCLOSED} quotes and brackets are never closed; the rest is not read"
            self._ledger.unread(self._piece.origin(self._at), reason)
            self._at = len(self._text)
        if whole := _WHOLE.match(self._text, self._at):
            return self._plain_word(whole[1], whole.start(1))
        self._skip_blanks()
        text, at = self._text, self._at
        if at >= len(text):
            self._here_documents()
            return None
        if text[at] == "#":
            return self._comment()
        if operator := _OPERATOR.match(text, at):
            return self._operator(operator.group())
        if (redirect := _REDIRECT.match(text, at)) and not self._is_word(at):
            return self._redirect(redirect.group())
        return self._word()

    def _is_word(self, at: int) -> bool:
        return _TO_FILL_IN.match(self._text, at) is not None or self._text[at : at + 2] in {"<(", ">("}

    def _skip_blanks(self) -> None:
        text = self._text
        while True:
            character = text[self._at : self._at + 1]
            if character in _BLANKS:
                found = _BLANK.match(text, self._at)
            elif character == "\\":
                found = _CONTINUATION.match(text, self._at)
            else:
                return
            if found is not None:
                self._at = found.end()
                continue
            found = _LOST_LINE_END.match(text, self._at)
            if found is None or not (found.group().endswith("\n") or text[self._at - 1 : self._at] in {" ", "\t"}):
                return
            self._ledger.slip("lost_line_end", self._piece.origin(self._at), "\\ ")
            self._at = found.end()

    def _comment(self) -> Token | None:
        at = self._at
        end = self._text.find("\n", at)
        self._at = len(self._text) if end < 0 else end
        if (at == 0 or self._text[at - 1] == "\n") and (found := _DIRECTIVE.match(self._text, at)):
            return Directive(found[1], self._piece.part(found.start(2), found.end(2)))
        return self._next_after_comment()

    def _next_after_comment(self) -> Token | None:
        # A comment ends at a line end or at the end of the text, so that this does not go deep.
        if self._at >= len(self._text):
            self._here_documents()
            return None
        return self._operator("\n")

    def _operator(self, text: str) -> Token:
        at = self._at
        if text == "(" and self._subshells < _MOST_SUBSHELLS and self._text.startswith("((", at):
            end = self._inside.closing(at + 2, "((")
            if end is None:
                self._inside.unclosed.append(at)
            elif self._text[end + 1 : end + 2] == ")":
                return self._arithmetic(at, end + 1)
            else:
                self._subshells += 1
        self._at += len(text)
        if text == "\n":
            self._here_documents()
        return Operator(text, self._piece.origin(at))

    def _arithmetic(self, at: int, end: int) -> Word:
        self._at = end + 1
        segment = Segment("unknown", self._piece.part(at, end + 1))
        return Word((segment,), self._piece.origin(at), self._piece.origin(end) + 1)

    def _redirect(self, operator: str) -> Redirect:
        redirect = Redirect(operator=operator, at=self._piece.origin(self._at))
        self._at += len(operator)
        if operator in {"<<", "<<-"}:
            self._here_document(redirect)
            return redirect
        self._skip_blanks()
        if self._at < len(self._text) and not _OPERATOR.match(self._text, self._at):
            redirect.word = self._word()
        return redirect

    def _here_document(self, redirect: Redirect) -> None:
        head = here_document(self._text, self._at, redirect.operator)
        if head is not None:
            redirect.is_literal = head[0].is_literal
            self._pending.append((redirect, head[0]))
            self._at = head[1]

    def _here_documents(self) -> None:
        """Take the bodies that follow the line that has just ended."""
        pending, self._pending = self._pending, []
        for redirect, document in pending:
            found = document.ending(self._text, self._at, len(self._text))
            end = len(self._text) if found is None else found.start()
            if found is None:
                reason = f"no line ends the here-document: {document.delimiter[:40]} is missing"
                self._ledger.unread(redirect.at, reason)
            redirect.body = document.body(self._piece.part(self._at, end))
            self._at = end if found is None else min(len(self._text), found.end() + 1)

    def _word(self) -> Word:
        start = self._at
        segments: list[Segment] = []
        items: tuple[Word, ...] | None = None
        while self._at < len(self._text):
            character = self._text[self._at]
            if plain := _PLAIN.match(self._text, self._at):
                self._at = plain.end()
                self._text_segment(segments, plain.start(), plain.end())
                if plain.group() == "[[" and plain.start() == start:
                    self._test(segments)
            elif character == "(" and segments and _LIST.match(segments[0].spelled.text) and len(segments) == 1:
                items = self._items()
                break
            elif not self._special(segments, character):
                break
        if self._at == start:
            # Nothing reads this character; it is a word of its own, so that reading goes on.
            self._at += 1
            self._text_segment(segments, start, self._at)
        self._note_typographic(start)
        is_plain = len(segments) == 1 and segments[0].kind == "text" and not segments[0].is_quoted
        return Word(
            tuple(segments),
            self._piece.origin(start),
            self._piece.origin(self._at - 1) + 1,
            items,
            plain=segments[0].spelled.text if is_plain else "",
        )

    def _plain_word(self, text: str, at: int) -> Word:
        self._at = at + len(text)
        if not text.isascii():
            self._note_typographic(at)
        if self._offset is not None:
            start = self._offset + at
            segment = Segment("text", Spelled(text, ((0, start),)))
            return Word((segment,), start, start + len(text), plain=text)
        spelled = self._piece.part(at, self._at)
        return Word((Segment("text", spelled),), spelled.origin(0), spelled.end(), plain=text)

    def _note_typographic(self, start: int) -> None:
        """Note what a word processor put into the word that begins at `start` and has just been read."""
        if found := _TYPOGRAPHIC.search(self._text, start, self._at):
            self._ledger.slip("typographic", self._piece.origin(found.start()), found.group())

    def _text_segment(self, segments: list[Segment], start: int, end: int, *, is_quoted: bool = False) -> None:
        segments.append(Segment("text", self._piece.part(start, end), is_quoted=is_quoted))

    def _special(self, segments: list[Segment], character: str) -> bool:
        """Read what begins with a special character; False where the word ends before it."""
        at, text = self._at, self._text
        if character == "\\":
            return self._escape(segments)
        if character in "<>":
            return self._angle(segments)
        if character not in "'\"$`":
            return False
        quoted: tuple[list[Segment], int] | None
        following = text[at + 1 : at + 2]
        if character == "'" or (character == "$" and following == "'"):
            one = self._inside.single(at) if character == "'" else self._inside.ansi_c(at)
            quoted = None if one is None else ([one[0]], one[1])
        elif character == '"' or (character == "$" and following == '"'):
            quoted = self._inside.double(at + (character == "$"))
        else:
            expansion = self._inside.expansion(at, is_quoted=False)
            quoted = None if expansion is None else ([expansion[0]], expansion[1])
        if quoted is None:
            self._unclosed(segments)
            return True
        segments.extend(quoted[0])
        self._at = quoted[1]
        return True

    def _unclosed(self, segments: list[Segment]) -> None:
        """Say what has no end, and go on with the next line."""
        at = self._at
        end = self._text.find("\n", at)
        self._at = len(self._text) if end < 0 else end
        mark = self._text[at : at + 1 + (self._text[at] == "$")]
        if not self._inside.unclosed:
            if self._is_whole and self._ledger.is_script:
                self._ledger.rejected(self._piece.origin(at), f"{mark} is never closed; an earlier one may be too many")
            else:
                reason = "is never closed; the rest of its line is not read (an earlier one may be one too many)"
                self._ledger.unread(self._piece.origin(at), f"{mark} {reason}")
        self._inside.unclosed.append(at)
        segments.append(Segment("unknown", self._piece.part(at, self._at), is_quoted=True))

    def _escape(self, segments: list[Segment]) -> bool:
        if found := _CONTINUATION.match(self._text, self._at):
            self._at = found.end()
            return True
        if (found := _LOST_LINE_END.match(self._text, self._at)) and found.group().endswith("\n"):
            return False
        end = min(len(self._text), self._at + 2)
        self._text_segment(segments, min(self._at + 1, end - 1), end, is_quoted=True)
        self._at = end
        return True

    def _angle(self, segments: list[Segment]) -> bool:
        found = _TO_FILL_IN.match(self._text, self._at)
        if found is not None:
            if self._is_whole and self._ledger.is_script:
                self._ledger.rejected(self._piece.origin(self._at), f"{found.group()} is to be replaced")
            segments.append(Segment("unknown", self._piece.part(self._at, found.end()), is_quoted=True))
            self._at = found.end()
            return True
        if self._text[self._at + 1 : self._at + 2] != "(" or segments:
            return self._descriptor(segments)
        end = self._inside.closing(self._at + 2, "$(")
        if end is None:
            self._unclosed(segments)
            return True
        segments.append(Segment("unknown", self._piece.part(self._at, end + 1), is_quoted=True))
        self._at = end + 1
        return True

    def _descriptor(self, segments: list[Segment]) -> bool:
        """Drop the number before a redirection, which is not a word; the word ends here in any case."""
        if len(segments) == 1 and segments[0].spelled.text.isdecimal():
            segments[0] = Segment("text", Spelled("", segments[0].spelled.runs))
        return False

    def _test(self, segments: list[Segment]) -> None:
        """Take all of [[ ... ]] as one word: its operators are none of the shell's."""
        end = _TEST_END.search(self._text, self._at, self._at + _LONGEST_TEST)
        if end is not None:
            segments.append(Segment("unknown", self._piece.part(self._at, end.end())))
            self._at = end.end()

    def _items(self) -> tuple[Word, ...]:
        """Return the words of the list that begins here."""
        start = self._at + 1
        end = self._inside.closing(start, "$(") if self._lists < _DEEPEST_LISTS else None
        if end is None:
            self._unclosed([])
            return ()
        self._at = end + 1
        if not self._ledger.may_nest(end - start):
            return ()
        inner = Words(self._piece.part(start, end), self._ledger, lists=self._lists + 1)
        words = (token for token in inner.tokens() if isinstance(token, Word))
        return tuple(word for word, _ in zip(words, range(_MOST_ITEMS), strict=False))
