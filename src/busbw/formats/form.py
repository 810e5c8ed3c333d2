"""What a reader of one tool's format offers, and the cells of text tables: strict numbers, columns by their header."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from busbw.base.errors import InputError
from busbw.formats.arithmetic import in_unit
from busbw.model.imported import Reading, Table

# "known": a line of this tool that holds no reading; "ended": the same, and the table ends with it; "held": a row
# whose readings come later, when more is known of the table; "foreign": not a line of this table (it goes on looking
# for its own).
Taken = Literal["known", "ended", "held", "foreign"]


class TextLine(NamedTuple):
    """One line, launcher's prefix and newline removed."""

    number: int
    text: str


class Unreadable(NamedTuple):
    """Why a line of a table cannot be read, in one sentence."""

    why: str


class OpenTable(Protocol):
    """A table that is being read. Lines of log files never come here, and rows they tore apart come whole."""

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        """Return the readings of a line, what else it is, or why a line of this table cannot be read."""

    def finish(self, last_line: int) -> Table:
        """Return the table as it stands; it may have been cut off. Its tallies are counted by whoever drives it."""


@runtime_checkable
class HoldingTable(OpenTable, Protocol):
    """A table that holds rows back; before `finish` it is asked for those whose readings did not come yet."""

    def held(self) -> Sequence[Reading]:
        """Return the readings of the rows that are still held, and hold none."""


class TextFormat(Protocol):
    """A tool whose output is lines."""

    @property
    def tool(self) -> str:
        """The name of the tool."""

    @property
    def passes_by(self) -> bool:
        """Whether its tables take no line that `driver.unread_text` tells."""

    @property
    def starts(self) -> re.Pattern[str]:
        """Searched in a line; where it matches a table of this tool begins."""

    def begin(self, line: TextLine, *, number: int, source: int) -> OpenTable:
        """Return the table that `line` begins. Its `take` is then given the same line, for what is in it."""


class TableOpener(Protocol):
    """What makes a table that is read from its first line on."""

    def __call__(self, *, number: int, source: int, first_line: int) -> OpenTable:
        """Return a table that holds nothing yet."""


class TableFormat(NamedTuple):
    """A tool whose table needs no more of its first line than where it stands: that line is taken as the others are."""

    tool: str
    starts: re.Pattern[str]
    table: TableOpener
    passes_by: bool = False

    def begin(self, line: TextLine, *, number: int, source: int) -> OpenTable:
        """Return the table that `line` begins."""
        return self.table(number=number, source=source, first_line=line.number)


class DocumentFormat(Protocol):
    """A tool whose output is JSON documents, one or more in a file, or one a line."""

    tool: str
    # Whether a document is one record of many: those whose tables are equal, but for number and lines, are one table.
    is_record: bool

    def recognises(self, document: object) -> bool:
        """Whether a decoded document is one of this tool."""

    def read(
        self, document: object, *, line: int, number: int, source: int
    ) -> Iterable[tuple[Table, Sequence[Reading]]]:
        """Return its tables, numbered from `number`, with their readings. Raises InputError for what is not right."""


# What tools print where a number was not measured or came out as none.
_ABSENT = frozenset({"n/a", "na", "nan", "-nan", "inf", "-inf", "+inf", "-"})
_DECIMAL = re.compile(r"[+-]?\d{1,40}(?:\.\d{0,40})?(?:e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"\d{1,19}", re.ASCII)
# No row of a table is as long; a longer line is not taken apart, whatever it costs to list its words.
LONGEST_ROW = 4096
# In any unit that a tool prints; so that its conversion stays finite.
LARGEST_NUMBER = 1e30
LARGEST_INTEGER = 2**63 - 1


class CellError(ValueError):
    """A cell, or a row of them, that is not what its header says; the text is one sentence."""


def number(text: str) -> float | None:
    """Return the number that `text` spells, None for `nan`, `inf` and `N/A`. Raises CellError for anything else."""
    if text.lower() in _ABSENT:
        return None
    if _DECIMAL.fullmatch(text) is None:
        raise CellError(f"{_shown(text)} is not a number")
    value = float(text)
    if abs(value) > LARGEST_NUMBER:
        raise CellError(f"{_shown(text)} is too large for any time or rate")
    return value


def quantity(text: str) -> float | None:
    """Return what `number` does. Raises CellError for negative numbers too: no time, size or rate is below zero."""
    value = number(text)
    if value is not None and value < 0:
        raise CellError(f"{_shown(text)} is below zero")
    return value


def whole(text: str) -> int:
    """Return the natural number of at most 63 bits that `text` spells. Raises CellError for anything else."""
    if _WHOLE.fullmatch(text) and int(text) <= LARGEST_INTEGER:
        return int(text)
    raise CellError(f"{_shown(text)} is not a whole number of at most 63 bits")


def named(columns: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Return `cells` by the names of their columns. Raises CellError when there are more or fewer than columns."""
    if not columns:
        raise CellError("no header line names the columns of this row")
    if len(cells) != len(columns):
        raise CellError(f"{len(cells)} cells under a header of {len(columns)} columns")
    return dict(zip(columns, cells, strict=True))


def scaled(value: float | None, factor: float) -> float | None:
    """Return `value` in another unit, None for None."""
    return None if value is None else in_unit(value, factor)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


T = TypeVar("T")
# A count, a size or an index: 63 bits and never below zero.
Natural = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


def shaped(document: object, kind: type[T], *, tool: str, line: int) -> T:
    """Return `document` as a value of `kind`. Raises InputError with the path of the first field that differs."""
    try:
        return msgspec.convert(document, kind, strict=True)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"not a document of {tool}: {error}", where=f"line {line}") from error


def amount(value: float | None, *, path: str, tool: str, line: int) -> float | None:
    """Return `value`, None for NaN and infinity. Raises InputError when it is below zero or too large for any rate."""
    if value is None or not math.isfinite(value):
        return None
    if not 0 <= value <= LARGEST_NUMBER:
        wrong = "is below zero" if value < 0 else "is too large"
        raise InputError(f"not a document of {tool}: {value:g} {wrong} - at `{path}`", where=f"line {line}")
    return float(value)
