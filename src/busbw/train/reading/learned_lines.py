"""Lines that repeat: what the first of a kind says is learned, and the core reads those that differ in digits alone.

Each reader says where in a line its numbers stand. None of them tells one digit from another, nor do the texts that
they look for have digits, so a line with other digits in the same places says the same of other numbers.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from busbw._core import KnownLines
from busbw.train.reading.lines import LONGEST_LINE_BYTES
from busbw.train.reading.rows import Cell

# To learn a line takes as long as to read some: so many are tried, and one more for so many lines of the log.
_FIRST_TRIES = 4096
_LINES_FOR_A_TRY = 16
_LINE = re.compile(rb"[^\n\x1e]+")


@dataclass(frozen=True, kw_only=True)
class LearnedTable:
    """What one reader finds in lines."""

    # Texts of which one stands in each of its lines.
    marks: tuple[bytes, ...]
    # Kind of a cell in the core and what fills an empty one.
    columns: Sequence[tuple[str, float]]
    # The cells of each row that a line has, [] for no row; None: the line has to be looked at by itself.
    rows: Callable[[bytes], list[list[Cell]] | None]
    # Takes the number of each line and the columns as bytes, 8 a cell.
    take: Callable[[list[bytes]], None]


class LearnedLines:
    """The lines of a log that are known, and the tables they are read into."""

    def __init__(
        self,
        tables: Iterable[LearnedTable],
        json_mark: bytes,
        others: tuple[bytes, ...],
        is_other: Callable[[bytes], bool],
    ) -> None:
        """`others`: marks of lines that are not learned where `is_other` says so; numbers of JSON follow its mark."""
        self._tables = tuple(tables)
        self._others = others
        self._is_other = is_other
        self._json_mark = json_mark
        marks = dict.fromkeys([*others, *(mark for table in self._tables for mark in table.marks)])
        self._lines = KnownLines([mark.decode() for mark in marks])
        for table in self._tables:
            self._lines.add_table(table.columns)
        self._tries = 0
        self._drained = 0

    @property
    def taken(self) -> int:
        """Lines that were read as known ones."""
        return self._lines.taken

    def left(self, block: bytes, at: int, number: int) -> tuple[int, int, int]:
        """Take known lines from `at` on, and return where those begin and end that are left next, and their number."""
        left = self._lines.read(block, at, number)
        if self._lines.taken != self._drained:
            self._drained = self._lines.taken
            for place, table in enumerate(self._tables):
                columns = self._lines.drain(place)
                if columns[0]:
                    table.take(columns)
        return left

    def learn(self, lines: bytes, number: int) -> None:
        """Learn what lines say that were looked at by themselves; `number` is that of the first."""
        for found in _LINE.finditer(lines):
            if self._tries > _FIRST_TRIES + (number + self._lines.taken) // _LINES_FOR_A_TRY:
                return
            line = found[0]
            if len(line) <= LONGEST_LINE_BYTES and not self._lines.knows(line):
                self._tries += 1
                self._learn(line)

    def _learn(self, line: bytes) -> None:
        rows: list[tuple[int, list[Cell]]] = []
        for place, table in enumerate(self._tables):
            found = table.rows(line) if any(mark in line for mark in table.marks) else []
            if found is None:
                return
            rows.extend((place, cells) for cells in found)
        if any(mark in line for mark in self._others) and self._is_other(line):
            return
        self._lines.learn(line, rows, self._json_mark in line)
