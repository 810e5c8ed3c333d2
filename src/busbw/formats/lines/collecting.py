"""JSON documents in a stream of lines: collected until their brackets close, and given up where they cannot be JSON."""

import re
from dataclasses import dataclass, field

import msgspec

# A document is decoded whole; its values take several times its size.
MOST_BYTES = 32 * 2**20
# How a document's first line begins: no log line does.
_FIRST = re.compile(r'\s*(?:\{\s*(?:$|["}])|\[\s*(?:$|[\[{"\]]|-?\d[\d.]*\s*(?:,|\]\s*$)))')
# Strings, which may hold brackets; brackets; and a quotation mark that no other one answers.
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}"]')
_VALUES = frozenset('{["-0123456789tfn')


class Broken(Exception):  # noqa: N818 - it is no error of ours, and never leaves this package
    """The lines are no document; the text says why."""


@dataclass(slots=True)
class Collected:
    """The lines of one document so far, each with its number."""

    lines: list[tuple[int, str]] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _last: str = ""
    _size_bytes: int = 0

    def add(self, number: int, text: str) -> bool:
        """Take one line, and return whether the document is complete. Raises Broken when it cannot be one.

        The line is among `lines` then, unless it cannot follow them.
        """
        stripped = text.strip()
        if self.lines and stripped and not self._may_follow(stripped[0]):
            raise Broken("a JSON document was cut off here")
        self.lines.append((number, text))
        self._last = stripped[-1:] or self._last
        self._size_bytes += len(text)
        if self._size_bytes > MOST_BYTES:
            raise Broken(f"a JSON document of more than {MOST_BYTES // 2**20} MiB")
        for found in TOKEN.finditer(text):
            self._bracket(found[0])
            if not self._open and text[found.end() :].strip():
                raise Broken("not JSON: something follows the document")
        return not self._open

    def _bracket(self, mark: str) -> None:
        if mark in "{[":
            self._open.append(mark)
        elif mark == '"':
            raise Broken("not JSON: a string without an end")
        elif mark in "}]" and (not self._open or self._open.pop() != ("{" if mark == "}" else "[")):
            raise Broken("not JSON: a bracket is closed that was not opened")

    def _may_follow(self, first: str) -> bool:
        """Whether a line that begins with `first` may follow what the lines before it ended with."""
        in_object = self._open[-1:] == ["{"]
        if self._last == ":":
            return first in _VALUES
        if self._last in "{," and in_object:
            return first == '"' or (first == "}" and self._last == "{")
        if self._last in "[,":
            return first in _VALUES or (first == "]" and self._last == "[")
        return first in ",:]}"

    def decode(self) -> object:
        """Return the document. Raises Broken when it is not JSON."""
        try:
            return msgspec.json.decode("\n".join(text for _, text in self.lines))
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise Broken(f"not JSON: {error}") from error


def may_begin(text: str) -> bool:
    """Whether a document may begin with this line."""
    return _FIRST.match(text) is not None
