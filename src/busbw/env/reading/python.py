"""Reads Python programs that set an environment or start ranks, without running them."""

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

from busbw.env.reading.context import NAME, Context
from busbw.env.reading.python_texts import Deed, PythonTexts
from busbw.env.reading.spelled import FILLED, Spelled

# Python, divided into tokens; nothing is compiled.
_BETWEEN = {tokenize.NL, tokenize.COMMENT}
_BREAKS = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
# What an environment is mostly called: `os.environ`, `env`, `child_env`, `environment`.
_ENVIRONMENT = re.compile(r"(?:\w*_)?env(?:iron|ironment|s)?(?:_\w+)?", re.ASCII | re.IGNORECASE)
# A literal that holds just what it shows.
_PLAIN = re.compile(r"(?:'[^'\\\n]*'|\"[^\"\\\n]*\")")
_LONGEST_LITERAL = 100_000
_OF_TESTS = re.compile(r"(?:^|/)(?:test_[\w-]+|[\w-]+_test|conftest)\.py$")
_TEST = re.compile(r"^[ \t]*(?:async )?def test_\w+\(", re.MULTILINE)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


def read_python(piece: Spelled, context: Context) -> None:
    """Take down what a program puts into `os.environ` and other dictionaries whose names say that they are one.

    That is items, `setdefault`, `update`, `|=`, `putenv`, `pop`, `del`, and `set` of Spack, and dictionaries under a
    key of such a name; and, of what it puts together from constants, the values, the commands and the settings.
    """
    _Program(piece, context).read()


class _Program:
    """One program's tokens, without comments and line breaks inside of brackets, and where each begins."""

    def __init__(self, piece: Spelled, context: Context) -> None:
        self.piece = piece
        self.context = context
        self.starts = [0, *accumulate(len(line) + 1 for line in piece.text.split("\n"))]
        self.tokens = tuple(self._tokens())
        self.closing = self._closing()
        self.texts = PythonTexts(piece, context)
        self.deeds: list[Deed] = []

    def _closing(self) -> dict[int, int]:
        """Return where each bracket that opens is closed; at the end, where it never is."""
        closing: dict[int, int] = {}
        opened: list[int] = []
        for at, token in enumerate(self.tokens):
            if token.string in _OPENING:
                opened.append(at)
            elif token.string in _CLOSING and opened:
                closing[opened.pop()] = at
        return closing | dict.fromkeys(opened, len(self.tokens))

    def _tokens(self) -> Iterator[tokenize.TokenInfo]:
        lines = io.StringIO(self.piece.text, newline="\n")
        try:
            for token in tokenize.generate_tokens(lines.readline):
                if token.type not in _BETWEEN:
                    yield token
        except (tokenize.TokenError, SyntaxError) as error:
            self.context.ledger.unread(self.piece.origin(0), f"not all of it is Python: {str(error.args[0])[:100]}")

    def read(self) -> None:
        if _OF_TESTS.search(self.context.ledger.file) or _TEST.search(self.piece.text):
            # What a test sets is made up for what it tests.
            self.context.ledger.spoken(self.piece.origin(0), self.piece.end())
        self._named_by_keys()
        deletes = False
        for at, token in enumerate(self.tokens):
            if token.type == tokenize.NEWLINE or token.string == ";":
                deletes = False
            if token.type != tokenize.NAME or keyword.iskeyword(token.string):
                deletes = deletes or token.string == "del"
            elif token.string == "putenv" or (token.string == "unsetenv" and self._is(at + 1, "(")):
                self._call(at, token.string)
            elif _ENVIRONMENT.fullmatch(token.string) is not None:
                self._changed(at, deletes=deletes)
        self._settle()

    def _changed(self, at: int, *, deletes: bool) -> None:
        """Read what is done to the environment whose name stands at `at`."""
        if self._is(at + 1, "["):
            self._item(at, deletes=deletes)
        elif self._is(at + 1, ".") and self._is(at + 3, "("):
            self._call(at + 2, self.tokens[at + 2].string)
        elif self._is(at + 1, "|="):
            self._pairs(at + 2)
        elif self._is(at + 1, "="):
            self._dictionary(at + 2)

    def _settle(self) -> None:
        """Take down what was found, in the order of the program."""
        if self.texts.refusal is not None and not self.context.ledger.has_unread:
            self.context.ledger.unread(self.texts.refused_at, self.texts.refusal)
        taken = {(deed.at, deed.name) for deed in self.deeds}
        others = [deed for deed in self.texts.deeds if deed.name is None or (deed.at, deed.name) not in taken]
        for deed in sorted([*self.deeds, *others], key=lambda each: each.at):
            if deed.spoken_to is not None:
                self.context.ledger.spoken(deed.at, deed.spoken_to)
            deed.do()

    def _named_by_keys(self) -> None:
        """Read dictionaries under a key that is called as an environment: Ray's `{"env_vars": {...}}`."""
        for at, token in enumerate(self.tokens):
            if token.type == tokenize.STRING and self._is(at + 1, ":") and self._is(at + 2, "{"):
                key, _after = self._literal(at)
                if key is not None and _ENVIRONMENT.fullmatch(key) is not None:
                    self._pairs(at + 2)

    def _is(self, at: int, text: str) -> bool:
        return at < len(self.tokens) and self.tokens[at].string == text

    def _item(self, at: int, *, deletes: bool) -> None:
        """Read `environ["NAME"] = value`, and the same behind `del`."""
        name, after = self._literal(at + 2)
        if name is None or not self._is(after, "]"):
            return
        if self._is(after + 1, "="):
            self._number(name, at, after + 2)
            self._put(name, at + 2, after + 2)
        elif deletes:
            self._unset(name, at + 2)

    def _number(self, name: str, at: int, value_at: int) -> None:
        """Take down a number where the environment takes texts alone, or where the same dictionary is given texts."""
        token = self.tokens[value_at] if value_at + 1 < len(self.tokens) else None
        if token is None or token.type != tokenize.NUMBER or self.tokens[value_at + 1].type not in _BREAKS:
            return
        own = self.tokens[at].string
        if own == "environ" or own in self.given_texts:
            offset = self._offset(value_at)
            self.context.ledger.slip("not_a_string", offset, token.string, name=name, meant=f'"{token.string}"')

    @cached_property
    def given_texts(self) -> frozenset[str]:
        """Return the names of dictionaries that are given a text under some key."""
        return frozenset(
            token.string
            for at, token in enumerate(self.tokens)
            if token.type == tokenize.NAME
            and self._is(at + 1, "[")
            and self._is(at + 3, "]")
            and self._is(at + 4, "=")
            and at + 5 < len(self.tokens)
            and self.tokens[at + 5].type == tokenize.STRING
        )

    def _call(self, at: int, method: str) -> None:
        """Read the call of a method whose name stands at `at`."""
        if not self._is(at + 1, "("):
            return
        if method in {"setdefault", "putenv", "set"}:
            name, after = self._literal(at + 2)
            if name is not None and self._is(after, ","):
                self._put(name, at + 2, after + 1)
        elif method in {"pop", "unsetenv"}:
            name, after = self._literal(at + 2)
            if name is not None and (self._is(after, ")") or self._is(after, ",")):
                self._unset(name, at + 2)
        elif method == "update":
            self._pairs(at + 2)
            self._named(at + 2)

    def _dictionary(self, at: int) -> None:
        """Read `env = {...}` and `env = dict(os.environ, NAME="value")`."""
        if self._is(at, "dict") and self._is(at + 1, "("):
            self._pairs(at + 2)
            self._named(at + 2)
        else:
            self._pairs(at)

    def _pairs(self, at: int) -> None:
        """Read the pairs of the dictionary that opens at `at`, if one does."""
        if not self._is(at, "{"):
            return
        for start in self._parts(at + 1):
            name, after = self._literal(start)
            if name is not None and self._is(after, ":"):
                self._put(name, start, after + 1)

    def _named(self, at: int) -> None:
        """Read the named arguments of the call whose arguments begin at `at`."""
        for start in self._parts(at):
            if self.tokens[start].type == tokenize.NAME and self._is(start + 1, "="):
                self._put(self.tokens[start].string, start, start + 2)

    def _parts(self, at: int) -> Iterator[int]:
        """Yield where each part between commas begins, up to the bracket that closes."""
        begins = True
        while at < len(self.tokens) and self.tokens[at].string not in _CLOSING:
            if begins:
                yield at
            begins = self.tokens[at].string == ","
            at = self.closing.get(at, at) + 1

    def _literal(self, at: int) -> tuple[str | None, int]:
        """Return the text of the string literals at `at`, None where it is not known, and the place behind them."""
        text: str | None = ""
        start = at
        while at < len(self.tokens) and self.tokens[at].type == tokenize.STRING:
            value = _value(self.tokens[at].string)
            text = None if text is None or value is None else text + value
            at += 1
        return (text if at > start else None), at

    def _put(self, name: str, at: int, value_at: int) -> None:
        """Take down that `name`, at one token, gets the value that begins at another."""
        if not NAME.fullmatch(name) or value_at >= len(self.tokens):
            return
        number = self._is(value_at, "str") and self._is(value_at + 1, "(") and self._is(value_at + 3, ")")
        if number and self.tokens[value_at + 2].type == tokenize.NUMBER:
            text: str | None = self.tokens[value_at + 2].string
            after = value_at + 4
        else:
            text, after = self._literal(value_at)
        ends = after >= len(self.tokens) or self.tokens[after].type in _BREAKS or self.tokens[after].string in ",;)}"
        start = self._offset(value_at)
        written = None
        if text is None or not ends:
            values = self._put_together(value_at)
        elif not number and after == value_at + 1 and _PLAIN.fullmatch(self.tokens[value_at].string) is not None:
            value = self.piece.part(self._place(value_at) + 1, self._place(value_at) + 1 + len(text))
            written = (value.origin(0), value.origin(0) + len(text))
            values = [value]
        else:
            values = [Spelled(text, ((0, start),))]
        offset = self._offset(at)
        for value in values:
            self.deeds.append(Deed(offset, self.context.putting(name, value, offset, written), name))

    def _put_together(self, at: int) -> list[Spelled]:
        """Return what is known of the value that begins at a token, one for each turn of a loop."""
        known = self.texts.values.get(self._place(at))
        while known is None and self._is(at, "(") and at + 1 < len(self.tokens):
            at += 1
            known = self.texts.values.get(self._place(at))
        unknown = Spelled(FILLED, ((0, self._offset(min(at, len(self.tokens) - 1))),))
        return [value or unknown for value in known or [None]]

    def _unset(self, name: str, at: int) -> None:
        if NAME.fullmatch(name):
            offset = self._offset(at)
            self.deeds.append(Deed(offset, self.context.putting(name, None, offset, None), name))

    def _place(self, at: int) -> int:
        line, column = self.tokens[at].start
        return self.starts[min(line, len(self.starts)) - 1] + column

    def _offset(self, at: int) -> int:
        return self.piece.origin(min(self._place(at), len(self.piece.text)))


def _value(literal: str) -> str | None:
    """Return the text of one literal; None for bytes, for one that is computed, and for a very long one."""
    if literal[:1] in "'\"" or literal[:1] in "rRuU":
        with_quotes = literal if len(literal) <= _LONGEST_LITERAL else ""
        try:
            found = ast.literal_eval(with_quotes)
        except (SyntaxError, ValueError):
            return None
        return found if isinstance(found, str) else None
    return None
