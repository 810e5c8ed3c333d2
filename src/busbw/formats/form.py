"""What a reader of one tool's format offers. Text is read line by line, JSON document by document."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

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

    tool: str
    # Whether its tables take no line that `driver.unread_text` tells.
    passes_by: bool
    # Searched in a line; where it matches a table of this tool begins.
    starts: re.Pattern[str]

    def begin(self, line: TextLine, *, number: int, source: int) -> OpenTable:
        """Return the table that `line` begins. Its `take` is then given the same line, for what is in it."""


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
