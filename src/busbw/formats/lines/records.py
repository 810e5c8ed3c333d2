"""Tables whose rows come as documents of their own, as NCCL Inspector writes them: equal ones are one table.

Records of several communicators and ranks alternate, so all of them stay open until the source ends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from busbw.formats.lines.tally import Tally
from busbw.model.imported import Reading, Table


@dataclass(slots=True)
class _Open:
    table: Table
    last_line: int
    tally: Tally = field(default_factory=Tally)


@dataclass(slots=True)
class Records:
    """The tables of one source that more records may belong to."""

    _open: dict[Table, _Open] = field(default_factory=dict)

    def has(self, table: Table) -> bool:
        """Whether there is a table that equals `table` but for number and lines."""
        return _key(table) in self._open

    def add(self, table: Table, readings: Sequence[Reading], *, next_table: int) -> int:
        """Count the readings of one record, and return the number of their table: `next_table` for a new one."""
        key = _key(table)
        found = self._open.get(key)
        if found is None:
            found = self._open[key] = _Open(structs.replace(table, number=next_table), table.last_line)
        found.last_line = table.last_line
        found.tally.add(readings)
        return found.table.number

    def take(self) -> Iterator[tuple[Table, Tally]]:
        """Yield every table with its counts, and forget them."""
        for found in self._open.values():
            yield structs.replace(found.table, last_line=found.last_line), found.tally
        self._open.clear()


def _key(table: Table) -> Table:
    return structs.replace(table, number=0, first_line=0, last_line=0)
