"""Pieces of a log that are kept as they are, to be read again where no known line tells why the job failed.

Kept of each source: its beginning, what stands around lines of trouble that are new in kind, and its end.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_HEAD = 2**16
_TAIL = 2**17
_BEFORE = 2**14
_AFTER = 2**14
_MOST_WINDOWS = 4
# Of all sources together.
_MOST_BYTES = 2**23


class Excerpt(NamedTuple):
    """Whole lines of a source. `line`: the number of the first."""

    source: int
    line: int
    text: bytes

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines with their numbers."""
        for number, line in enumerate(self.text.split(b"\n"), self.line):
            yield number, line.decode(errors="replace")


@dataclass(slots=True)
class Excerpts:
    """Give it the blocks of one source after the other, each of whole lines; `end_source` ends each."""

    kept: list[Excerpt] = field(default_factory=list)
    _bytes: int = 0
    _source: int = 0
    _head: list[Excerpt] = field(default_factory=list)
    _head_bytes: int = 0
    _windows: list[Excerpt] = field(default_factory=list)
    _tail: deque[Excerpt] = field(default_factory=deque)
    _tail_bytes: int = 0

    def feed(self, block: bytes, line: int, following: int, news: list[int]) -> None:
        """Keep what is wanted of a block.

        `line`: the number of its first line, `following`: of the line after it; `news`: where in it lines of
        trouble are that are new in kind.
        """
        if not block or self._bytes >= _MOST_BYTES:
            return
        if self._head_bytes < _HEAD:
            self._head.append(self._cut(block, line, 0, _HEAD - self._head_bytes))
            self._head_bytes += len(self._head[-1].text)
        for at in news[: _MOST_WINDOWS - len(self._windows)]:
            self._windows.append(self._cut(block, line, at - _BEFORE, at + _AFTER))
        start = block.rfind(b"\n", 0, len(block) - _TAIL) + 1 if len(block) > _TAIL else 0
        end = block[start:]
        self._tail.append(Excerpt(self._source, following - end.count(b"\n") if start else line, end))
        self._tail_bytes += len(self._tail[-1].text)
        while self._tail_bytes - len(self._tail[0].text) >= _TAIL:
            self._tail_bytes -= len(self._tail.popleft().text)

    def end_source(self) -> None:
        """End one source; what comes next is of another."""
        pieces = sorted({*self._head, *self._windows, *self._tail}, key=lambda each: each.line)
        self.kept += pieces
        self._bytes += sum(len(each.text) for each in pieces)
        self._source += 1
        self._head, self._windows, self._head_bytes = [], [], 0
        self._tail.clear()
        self._tail_bytes = 0

    def _cut(self, block: bytes, line: int, start: int, end: int) -> Excerpt:
        """Return the whole lines of a block between two places."""
        first = block.rfind(b"\n", 0, start) + 1 if start > 0 else 0
        last = len(block) if end >= len(block) else block.find(b"\n", end)
        return Excerpt(self._source, line + block.count(b"\n", 0, first), block[first : last if last >= 0 else None])


def lines_of(excerpts: tuple[Excerpt, ...]) -> Iterator[tuple[int, int, str]]:
    """Yield source, number and text of each line of some excerpts, each line once."""
    seen: tuple[int, int] = (-1, 0)
    for excerpt in excerpts:
        for number, text in excerpt.lines():
            if (excerpt.source, number) > seen and text:
                seen = (excerpt.source, number)
                yield excerpt.source, number, text


def without_lines(excerpts: tuple[Excerpt, ...], gone: frozenset[tuple[int, int]]) -> tuple[Excerpt, ...]:
    """Return excerpts with some of their lines (source, number) empty."""
    if not gone:
        return excerpts
    return tuple(
        each._replace(
            text=b"\n".join(
                b"" if (each.source, number) in gone else line
                for number, line in enumerate(each.text.split(b"\n"), each.line)
            )
        )
        for each in excerpts
    )
