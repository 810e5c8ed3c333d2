"""The account of one source: every line is a reading's, known, or unread, and nothing else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec import structs

from busbw.formats.lines.prefix import scrub
from busbw.model.imported import ListedDevice, Reading, Table, UnreadLine


@dataclass(slots=True)
class TableTally:
    """Counts of one table."""

    readings: int = 0
    wrong: int = 0
    unchecked: int = 0

    def add(self, readings: Sequence[Reading]) -> None:
        """Count readings."""
        self.readings += len(readings)
        for reading in readings:
            if reading.wrong is None:
                self.unchecked += 1
            elif reading.wrong > 0:
                self.wrong += 1


@dataclass(slots=True)
class _OpenRecords:
    table: Table
    last_line: int
    tally: TableTally = field(default_factory=TableTally)


@dataclass(slots=True)
class Records:
    """The tables of one source that more records may belong to."""

    _open: dict[Table, _OpenRecords] = field(default_factory=dict)

    def has(self, table: Table) -> bool:
        """Whether there is a table that equals `table` but for number and lines."""
        return _key(table) in self._open

    def add(self, table: Table, readings: Sequence[Reading], *, next_table: int) -> int:
        """Count the readings of one record, and return the number of their table: `next_table` for a new one."""
        key = _key(table)
        found = self._open.get(key)
        if found is None:
            found = self._open[key] = _OpenRecords(structs.replace(table, number=next_table), table.last_line)
        found.last_line = table.last_line
        found.tally.add(readings)
        return found.table.number

    def take(self) -> Iterator[tuple[Table, TableTally]]:
        """Yield every table with its counts, and forget them."""
        for found in self._open.values():
            yield structs.replace(found.table, last_line=found.last_line), found.tally
        self._open.clear()


def _key(table: Table) -> Table:
    return structs.replace(table, number=0, first_line=0, last_line=0)


Event = Reading | UnreadLine | Table
# Tables with their readings.
Found = Sequence[tuple[Table, Sequence[Reading]]]

# Tables stay in memory until the end, with what they say of their devices.
MOST_TABLES = 20_000
_MOST_DEVICES = 200_000
_SHOWN = 200


@dataclass(slots=True)
class SourceLedger:
    """Counts of one source, and what was found in it since it was asked last."""

    source: int
    next_table: int
    known_lines: int = 0
    reading_lines: int = 0
    unread_lines: int = 0
    _events: list[Event] = field(default_factory=list)
    _devices: int = 0
    _records: Records = field(default_factory=Records)

    def known(self, lines: int = 1) -> None:
        """Account for lines without a result."""
        self.known_lines += lines

    def readings(self, readings: Sequence[Reading]) -> None:
        """Account for one line with results."""
        self.reading_lines += 1
        self._events.extend(readings)

    def later(self, readings: Sequence[Reading]) -> None:
        """Take readings of lines that are accounted for."""
        self._events.extend(readings)

    def unread(self, line: int, text: str, why: str) -> None:
        """Account for one line that could not be read."""
        self.unread_lines += 1
        # Cut first: of a line of many megabytes no more than the part that is shown has to be searched for secrets.
        shown = scrub(text[: 20 * _SHOWN])[:_SHOWN]
        self._events.append(UnreadLine(source=self.source, line=line, text=shown, why=why))

    def unread_text(self, first_line: int, texts: Sequence[str], why: str) -> None:
        """Account for lines, one after the other, that nobody reads and that hold no secret."""
        self.unread_lines += len(texts)
        self._events.extend(
            UnreadLine(source=self.source, line=line, text=text[:_SHOWN], why=why)
            for line, text in enumerate(texts, start=first_line)
        )

    def table(self, table: Table, tally: TableTally) -> None:
        """Keep a finished table, with its tallies."""
        devices: tuple[ListedDevice, ...] = table.devices if self._devices < _MOST_DEVICES else ()
        self._devices += len(devices)
        self._events.append(
            msgspec.structs.replace(
                table,
                devices=devices,
                arguments=tuple(scrub(argument) for argument in table.arguments),
                readings=tally.readings,
                wrong=tally.wrong,
                unchecked=tally.unchecked,
            )
        )

    def tables(self, found: Found) -> list[Reading] | None:
        """Keep the tables of a document, and return their readings; None when there are too many tables already."""
        if self.next_table + len(found) > MOST_TABLES:
            return None
        self.next_table += len(found)
        for table, readings in found:
            tally = TableTally()
            tally.add(readings)
            self.table(table, tally)
        return [reading for _, readings in found for reading in readings]

    def records(self, found: Found) -> list[Reading] | None:
        """Return readings with the number of the table they belong to; None when there are too many tables already.

        Records of equal tables are one table, which is kept when the source has ended.
        """
        every: list[Reading] = []
        for table, readings in found:
            if self.next_table >= MOST_TABLES and not self._records.has(table):
                return None
            number = self._records.add(table, readings, next_table=self.next_table)
            self.next_table = max(self.next_table, number + 1)
            every.extend(msgspec.structs.replace(reading, table=number) for reading in readings)
        return every

    def end_records(self) -> None:
        """Keep the tables of records."""
        for table, tally in self._records.take():
            self.table(table, tally)

    def number_table(self) -> int | None:
        """Return the number of the next table; None when there are too many already."""
        if self.next_table >= MOST_TABLES:
            return None
        self.next_table += 1
        return self.next_table - 1

    def take_events(self) -> list[Event]:
        """Return what was found since the last call."""
        events, self._events = self._events, []
        return events
