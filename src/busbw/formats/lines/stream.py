"""One stream of lines, as a launcher tagged it: the table open in it, a row torn apart, a document half there."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from msgspec import structs

from busbw.base.errors import InputError
from busbw.formats.form import DocumentFormat, HoldingTable, OpenTable, TextFormat, TextLine, Unreadable
from busbw.formats.lines.ledger import MOST_TABLES, SourceLedger, TableTally
from busbw.formats.lines.log_lines import is_known
from busbw.model.imported import Reading, Table

# A document is decoded whole; its values take several times its size.
MOST_BYTES = 32 * 2**20
# How a document's first line begins: no log line does.
# No document begins like the link of a page: `[](#name)`, `[[name]]`, `["words"](address)`.
_FIRST = re.compile(
    r'\s*(?:\{\s*(?:$|["}])|\[\s*(?:$|\{|\[\s*(?:$|[\[{"\]]|-?\d)|"(?![^"]*"\]\()|\]\s*(?:$|,)|-?\d[\d.]*\s*(?:,|\]\s*$)))'
)
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


_KEY = '"results"'
FAILURE = "its report has no end: possibly the program failed, or was ended"


class Salvaged(NamedTuple):
    """The document as far as it goes, and how many of its lines that takes."""

    document: object
    lines: int


def salvaged(lines: Sequence[tuple[int, str]]) -> Salvaged | None:
    """Return the document that `lines` begin, closed after its last whole result; None when it has no results."""
    if sum(len(content) for _, content in lines) > MOST_BYTES:
        return None
    text = "\n".join(content for _, content in lines)
    results = text.find(_KEY)
    end = _end_of_results(text, results) if results >= 0 else None
    if end is None:
        return None
    try:
        document: object = msgspec.json.decode(text[:end] + "]}")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return Salvaged(document, text.count("\n", 0, end) + 1)


def _end_of_results(text: str, results: int) -> int | None:
    """Return where the last whole element of the list ends that `results` is the name of."""
    opened: list[str] = []
    end = None
    for found in TOKEN.finditer(text):
        mark = found[0]
        if mark in "{[":
            opened.append(mark)
        elif mark in "}]":
            if not opened:
                return end
            opened.pop()
            if found.start() > results and len(opened) < 2:
                return end
            end = found.end() if found.start() > results and opened == ["{", "["] else end
        elif mark == '"':
            return end
    return end


UNKNOWN_LINE = "no reader knows this line"
UNKNOWN_DOCUMENT = "no reader knows this JSON document"
# Why lines are not read that belong to no table.
UNCLAIMED = frozenset({UNKNOWN_LINE, UNKNOWN_DOCUMENT})
TORN = "torn off by a log line, and its rest did not come"
_TOO_MANY = f"more than {MOST_TABLES} tables"
_MOST_PIECES = 6
_MOST_REPEATED = 100
# A row of size 0, or one that holds no number with decimals: a cell of a matrix may be as its neighbour.
_OF_NOTHING = re.compile(r"(?:#\s*)?0\s|[^.]*$", re.ASCII)
# Before a log line stands a piece of a table, or what a launcher wrote: more launchers are about than we know.
_PIECE_BEGINS = re.compile(r"\s*(?:[#\d.+-]|N/A)")
_ROW_BEGINS = re.compile(r"\s*(?:# |\d+ +\d+ +[a-z])", re.ASCII)
_LONGEST_PIECE = 4096
# A step of a list or a sentence that begins with a number; the second cell of a row is a number or one word.
_SENTENCE = re.compile(
    r"\s*\d{1,19}[.)]?\s+(?!(?:N/?A|nan|inf)\b)[a-z]\S*(?:\s+\S+){0,20}?(?:\s+[a-z]\S+){2}", re.IGNORECASE
)
# A document of which nothing but these came is a block of a program.
_BRACKETS = frozenset("{[ \t\n")
# A line that only divides stands before and after many tables, and a fence around those in a page.
_DIVIDER = re.compile(r"[\s#*=_.-]+|\s*(?:`{3,}|~{3,})[\w+-]{0,20}\s*")


@dataclass(frozen=True, slots=True)
class Formats:
    """The readers that lines and documents are offered to, in order."""

    text: tuple[TextFormat, ...]
    documents: tuple[DocumentFormat, ...]


@dataclass(slots=True)
class _Piece:
    """A line that is not a row by itself, and why; the lines after it may complete it."""

    line: TextLine
    why: str


@dataclass(slots=True)
class LineStream:
    """What is under way in one stream."""

    formats: Formats
    ledger: SourceLedger
    _table: OpenTable | None = None
    _passes_by: bool = False
    _tally: TableTally = field(default_factory=TableTally)
    _last_line: int = 0
    _pieces: list[_Piece] = field(default_factory=list)
    _document: Collected | None = None
    # The last row as it stands, and the rows of this table that repeat the one before.
    _row_text: str = ""
    _repeated: list[int] = field(default_factory=list)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, so that the stream can be forgotten."""
        return self._table is None and not self._pieces and self._document is None

    @property
    def is_collecting(self) -> bool:
        """Whether a document is under way, in which any line may stand."""
        return self._document is not None

    @property
    def is_calm(self) -> bool:
        """Whether a line that nobody reads changes nothing here."""
        return not self._pieces and self._document is None and (self._table is None or self._passes_by)

    def take(self, number: int, text: str) -> None:
        """Read a whole line."""
        if self._document is not None:
            self._continue_document(number, text)
        elif is_known(text):
            self.ledger.known()
        elif not self._claimed(TextLine(number, text)):
            self._unclaimed(TextLine(number, text))

    def take_torn(self, number: int, text: str) -> None:
        """Read what stands before a log line on one line: a row without its newline, or the beginning of one."""
        line = TextLine(number, text)
        if self._table is None or self._document is not None:
            if _ROW_BEGINS.match(text):
                self._hold(line, TORN)
            else:
                self.ledger.known()
            return
        taken = self._table.take(line)
        readings = _in(taken)
        if readings is not None:
            self._drop_pieces()
            self._readings(number, readings)
        elif taken == "held":
            self._drop_pieces()
            self.ledger.readings(())
        elif taken not in {"known", "ended"} and _PIECE_BEGINS.match(text):
            self._hold(line, TORN)
        else:
            self.ledger.known()

    def finish(self, last_line: int | None = None) -> None:
        """End what is under way; at the end of the source, or because too much is open."""
        if self._document is not None:
            self._give_up_document("a JSON document was cut off at the end")
        self._drop_pieces()
        self._close(last_line)

    def _claimed(self, line: TextLine) -> bool:
        """Whether the open table, or a reader that begins one, takes a line; it is accounted for then."""
        taken = self._table.take(line) if self._table is not None else "foreign"
        readings = _in(taken)
        if readings or taken == "held":
            self._note_row(line)
        if readings is not None:
            self._drop_pieces()
            self._readings(line.number, readings)
        elif taken == "held":
            self._drop_pieces()
            self.ledger.readings(())
            self._last_line = line.number
        elif taken in {"known", "ended"}:
            self._drop_pieces()
            self.ledger.known()
            self._last_line = line.number
            if taken == "ended":
                self._close(None)
        elif self._completes(line):
            pass
        elif isinstance(taken, Unreadable) and not _SENTENCE.match(line.text):
            self._hold(line, taken.why)
        else:
            return self._begins(line)
        return True

    def _completes(self, line: TextLine) -> bool:
        """Whether `line` is the rest of a row that held pieces begin; all of them are accounted for then."""
        if self._table is None:
            return False
        for start in range(len(self._pieces)):
            pieces = self._pieces[start:]
            whole = TextLine(pieces[0].line.number, "".join([*(piece.line.text for piece in pieces), line.text]))
            taken = self._table.take(whole)
            readings = _in(taken)
            if readings is not None or taken == "held":
                self._pieces = self._pieces[:start]
                self._drop_pieces()
                self.ledger.known(len(pieces))
                if readings is not None:
                    self._readings(line.number, readings)
                else:
                    self.ledger.readings(())
                    self._last_line = line.number
                return True
        return False

    def _hold(self, line: TextLine, why: str) -> None:
        if len(self._pieces) >= _MOST_PIECES or len(line.text) > _LONGEST_PIECE:
            self._drop_pieces()
        self._pieces.append(_Piece(TextLine(line.number, line.text[: _LONGEST_PIECE + 1]), why))

    def _drop_pieces(self) -> None:
        for piece in self._pieces:
            self.ledger.unread(piece.line.number, piece.line.text, piece.why)
        self._pieces.clear()

    def _readings(self, number: int, readings: Sequence[Reading]) -> None:
        if readings:
            self.ledger.readings(readings)
        else:
            self.ledger.known()
        self._tally.add(readings)
        self._last_line = number

    def _begins(self, line: TextLine) -> bool:
        """Whether a line begins a table, or may go on with a row; no row goes on after any other."""
        for reader in self.formats.text:
            if reader.starts.search(line.text):
                self._begin(reader, line)
                return True
        if self._pieces and _PIECE_BEGINS.match(line.text):
            self._hold(line, UNKNOWN_LINE)
            return True
        self._drop_pieces()
        return False

    def _unclaimed(self, line: TextLine) -> None:
        if _DIVIDER.fullmatch(line.text):
            self.ledger.known()
        elif may_begin(line.text):
            self._document = Collected()
            self._continue_document(line.number, line.text)
        else:
            self.ledger.unread(line.number, line.text, UNKNOWN_LINE)

    def _begin(self, reader: TextFormat, line: TextLine) -> None:
        self._drop_pieces()
        self._close(line.number - 1)
        number = self.ledger.number_table()
        if number is None:
            self.ledger.unread(line.number, line.text, _TOO_MANY)
            return
        self._table = reader.begin(line, number=number, source=self.ledger.source)
        self._passes_by = reader.passes_by
        self._tally = TableTally()
        self._last_line = line.number
        taken = self._table.take(line)
        if taken == "held" or _in(taken):
            self._note_row(line)
        else:
            self._row_text = ""
        if taken == "held":
            self.ledger.readings(())
        else:
            self._readings(line.number, _in(taken) or ())

    def _note_row(self, line: TextLine) -> None:
        """Note a row; rows of nothing may well be alike, times of others are not."""
        text = line.text.strip()
        if text == self._row_text and not _OF_NOTHING.match(text) and len(self._repeated) < _MOST_REPEATED:
            self._repeated.append(line.number)
        self._row_text = text

    def _close(self, last_line: int | None) -> None:
        if self._table is not None:
            table, self._table = self._table, None
            repeated, self._repeated = tuple(self._repeated), []
            if isinstance(table, HoldingTable):
                held = table.held()
                self.ledger.later(held)
                self._tally.add(held)
            finished = structs.replace(table.finish(last_line or self._last_line), repeated=repeated)
            self.ledger.table(finished, self._tally)

    def _continue_document(self, number: int, text: str) -> None:
        document = self._document
        if document is None:
            return
        try:
            value = document.decode() if document.add(number, text) else None
        except Broken as error:
            is_in_it = bool(document.lines) and document.lines[-1][0] == number
            self._give_up_document(str(error))
            if not is_in_it:
                self.take(number, text)
            return
        if value is not None:
            self._document = None
            why = self._read_document(value, document.lines, lines=len(document.lines))
            for line, content in document.lines if why is not None else ():
                self.ledger.unread(line, content, why or "")

    def _give_up_document(self, why: str) -> None:
        """Keep of what is not a whole document the results that are, and read the rest as text."""
        document, self._document = self._document, None
        lines = document.lines if document is not None else []
        if all(_BRACKETS.issuperset(text) for _, text in lines):
            why = UNKNOWN_LINE
        whole = salvaged(lines)
        if whole is not None and self._read_document(whole.document, lines, lines=whole.lines, failure=FAILURE) is None:
            lines = lines[whole.lines :]
        for number, text in lines:
            if is_known(text):
                self.ledger.known()
            elif not self._is_document(number, text) and not self._claimed(TextLine(number, text)):
                self.ledger.unread(number, text, why)

    def _is_document(self, number: int, text: str) -> bool:
        """Whether a line is a document by itself that somebody reads: after one that was cut off at its end."""
        alone = Collected()
        try:
            value = alone.decode() if may_begin(text) and alone.add(number, text) else None
        except Broken:
            return False
        return value is not None and self._read_document(value, alone.lines, lines=1) is None

    def _read_document(
        self, value: object, content: Sequence[tuple[int, str]], *, lines: int, failure: str | None = None
    ) -> str | None:
        """Keep what the first `lines` lines hold; return why nobody can read them, None when somebody did."""
        first = content[0][0]
        reader = next((reader for reader in self.formats.documents if reader.recognises(value)), None)
        if reader is None:
            return UNKNOWN_DOCUMENT
        try:
            found = list(reader.read(value, line=first, number=self.ledger.next_table, source=self.ledger.source))
        except InputError as error:
            return error.cause
        if failure is not None:
            found = [(_failed(table, failure), readings) for table, readings in found]
        every = self.ledger.records(found) if reader.is_record else self.ledger.tables(found)
        if every is None:
            return _TOO_MANY
        self.ledger.known(lines - 1)
        if every:
            self.ledger.readings(every)
        else:
            self.ledger.known()
        return None


def _failed(table: Table, failure: str) -> Table:
    return structs.replace(table, complete=False, failures=(*table.failures, (table.first_line, failure)))


def _in(taken: str | Sequence[Reading] | Unreadable) -> Sequence[Reading] | None:
    """Return the readings among what `take` may return."""
    return None if isinstance(taken, str | Unreadable) else taken
