"""Where the quotes, brackets and here-documents of a shell end, whatever they hold."""

import re
from typing import Literal

import msgspec

from busbw.env.reading.spelled import Spelled, joined

# What is open: $(...) or a list, a subshell, arithmetic, "...", ${...}, ${...} with ' as a letter, case ... esac.
Opened = Literal["$(", "(", "((", '"', "${", '"${', "case"]

_CLOSERS: dict[Opened, str] = {"$(": ")", "(": ")", "((": ")", '"': '"', "${": "}", '"${': "}", "case": "esac"}
_COMMANDS: frozenset[Opened] = frozenset(("$(", "(", "case"))
_IN_QUOTES: frozenset[Opened] = frozenset(('"', '"${'))
# Where something begins or ends that may hold others. A remark hides what stands in it.
_MARKS = r"[\\'\"`()}]|\$\{|<<[<-]?|(?<=[\s;&|()])#|(?<![^\s;&|(`])(?:case(?=\s)|esac(?![^\s;&|)`<>]))"
_MARK = re.compile(_MARKS)
_MARK_OR_LINE_END = re.compile(_MARKS + r"|\n")
# What stands before `case` and `esac` where they are words of the shell and no arguments.
_BEFORE_CASE = re.compile(r"(?:[\n;&|({`!)]|\b(?:then|do|else|elif|if|while|until|time))\s*\Z")
_BEFORE_ESAC = re.compile(r"(?:[\n;&)}]|\b(?:in|fi|done|esac))\s*\Z")
_WIDEST_GAP = 80
# Up to the backtick that ends a command; one with a backslash belongs to a command within it.
_TO_BACKTICK = re.compile(r"(?:[^`\\]++|\\.)*+`", re.DOTALL)
_TO_QUOTE_OF_C = re.compile(r"(?:[^'\\]++|\\.)*+'", re.DOTALL)
# ${NAME:-text}: within double quotes, ' is a letter of the text.
_DEFAULT = re.compile(r"!?(?:\w+|[@*#?$!-])(?:\[[^\]]*\])?:?[-=+?]")
_DELIMITER = re.compile(r"(?:[ \t]|\\\r?\n)*((?:'[^'\n]*'|\"(?:[^\"\\\n]|\\.)*\"|\\.|`[^`\n]*`|[^\s'\"\\;&|<>()`])+)")
_QUOTED = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\\(.)")
_TABS = re.compile(r"^\t+", re.MULTILINE)


class HereDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a here-document: `<<-'END'`."""

    delimiter: str
    # Whether $NAME in its text stays as it is, and whether tabs before its lines are not part of them.
    is_literal: bool
    strips_tabs: bool

    def ending(self, text: str, at: int, limit: int, *, is_nested: bool = False) -> re.Match[str] | None:
        """Return the line that ends the text which begins at `at`; `is_nested`: the `)` of a command may follow.

        None where there is none before `limit`.
        """
        tabs = r"\t*" if self.strips_tabs else ""
        behind = r"(?:\r?$|(?=[^\n]*\)))" if is_nested else r"\r?$"
        return re.compile(rf"^{tabs}{re.escape(self.delimiter)}{behind}", re.MULTILINE).search(text, at, limit)

    def body(self, piece: Spelled) -> Spelled:
        """Return the text as the command is given it."""
        if not self.strips_tabs:
            return piece
        parts: list[Spelled] = []
        done = 0
        for tabs in _TABS.finditer(piece.text):
            parts.append(piece.part(done, tabs.start()))
            done = tabs.end()
        return joined([*parts, piece.part(done)], at=piece.origin(0))


def here_document(text: str, at: int, operator: str) -> tuple[HereDocument, int] | None:
    """Return the head of a here-document, whose operator ends at `at`, and where it ends; None without a delimiter."""
    found = _DELIMITER.match(text, at)
    if found is None:
        return None
    delimiter, quotes = _QUOTED.subn(lambda quoted: quoted[1] or quoted[2] or quoted[3] or "", found[1])
    return HereDocument(delimiter=delimiter, is_literal=quotes > 0, strips_tabs=operator == "<<-"), found.end()


def closing(text: str, start: int, opened: Opened, limit: int) -> int | None:
    """Return where what is opened right before `start` is closed; None where it is not closed before `limit`."""
    return _Brackets(text, limit, opened).closing(start)


def backtick(text: str, start: int, limit: int) -> int | None:
    """Return where the `...` that is opened right before `start` is closed; None where it is not before `limit`."""
    found = _TO_BACKTICK.match(text, start, limit)
    return None if found is None else found.end() - 1


def quote_of_c(text: str, start: int, limit: int) -> int | None:
    """Return where the $'...' that is opened right before `start` is closed; None where it is not before `limit`."""
    found = _TO_QUOTE_OF_C.match(text, start, limit)
    return None if found is None else found.end() - 1


def braces(text: str, start: int, *, is_quoted: bool) -> Opened:
    """Return what kind of ${...} is opened right before `start`."""
    return '"${' if is_quoted and _DEFAULT.match(text, start) else "${"


class _Brackets:
    """What is open at a place of the text, the innermost last, and the here-documents that follow the line."""

    def __init__(self, text: str, limit: int, opened: Opened) -> None:
        self._text = text
        self._limit = limit
        self._open: list[Opened] = [opened]
        self._documents: list[HereDocument] = []
        # Where a remark may follow a bracket: behind a subshell or a pattern, and not within a word.
        self._behind_bracket = -1

    def closing(self, at: int) -> int | None:
        """Return where the outermost is closed."""
        mark = _MARK
        while at >= 0 and (found := mark.search(self._text, at, self._limit)) is not None:
            if found.group() == _CLOSERS[self._open[-1]] and self._closes(found):
                opened = self._open.pop()
                if not self._open:
                    return found.start()
                at = found.end()
                self._behind_bracket = at if opened == "(" else -1
            else:
                at = self._behind(found.group(), found.start(), found.end())
            mark = _MARK_OR_LINE_END if self._documents else _MARK
        return None

    def _closes(self, found: re.Match[str]) -> bool:
        return found.group() != "esac" or self._follows(_BEFORE_ESAC, found.start())

    def _follows(self, before: re.Pattern[str], start: int) -> bool:
        return before.search(self._text[max(0, start - _WIDEST_GAP) : start]) is not None

    def _behind(self, mark: str, start: int, end: int) -> int:
        """Open what a mark opens; return where to go on, -1 where it has no end."""
        top = self._open[-1]
        if mark == "\\":
            return end + 1
        if mark == "`":
            return _after(backtick(self._text, end, self._limit))
        if mark == '"':
            self._open.append('"')
        elif mark == "${":
            self._open.append(braces(self._text, end, is_quoted=top in _IN_QUOTES))
        elif mark == "(":
            self._bracket(start)
        elif mark == "'":
            return self._behind_quote(start, end)
        elif top in _COMMANDS:
            return self._behind_command(mark, start, end)
        return end

    def _bracket(self, at: int) -> None:
        """Open a bracket. In quotes it is one behind a dollar only."""
        is_expansion = self._text[at - 1 : at] == "$"
        if not is_expansion and self._open[-1] not in {*_COMMANDS, "(("}:
            return
        is_arithmetic = self._text[at + 1 : at + 2] == "(" or (self._open[-1] == "((" and not is_expansion)
        self._open.append("((" if is_arithmetic else "$(" if is_expansion else "(")

    def _behind_quote(self, start: int, end: int) -> int:
        if self._open[-1] in _IN_QUOTES:
            return end
        if self._text[start - 1 : start] == "$":
            return _after(quote_of_c(self._text, end, self._limit))
        return self._text.find("'", end, self._limit) + 1 or -1

    def _behind_command(self, mark: str, start: int, end: int) -> int:
        """Go on behind what means something between commands only: remarks, here-documents, case ... esac."""
        if mark == "#":
            is_remark = self._text[start - 1] != ")" or self._behind_bracket == start
            return self._text.find("\n", end, self._limit) if is_remark else end
        if mark == ")":
            self._behind_bracket = end
        if mark in {"<<", "<<-"} and (head := here_document(self._text, end, mark)) is not None:
            self._documents.append(head[0])
            return head[1]
        if mark == "case" and self._follows(_BEFORE_CASE, start):
            self._open.append("case")
        if mark == "\n":
            documents, self._documents = self._documents, []
            for document in documents:
                ending = document.ending(self._text, end, self._limit, is_nested=True)
                if ending is None:
                    return -1
                end = ending.end()
        return end


def _after(end: int | None) -> int:
    return -1 if end is None else end + 1
