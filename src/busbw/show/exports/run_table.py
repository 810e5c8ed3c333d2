"""Runs as comma-separated values (RFC 4180): a header, one line a run, CRLF."""

from collections.abc import Sequence

from busbw.model.listing import Row
from busbw.show.exports.tables import csv_lines

_COLUMNS = Row.__struct_fields__


def run_table_csv(rows: Sequence[Row]) -> str:
    """Return a line for each run; several names in one cell are separated by blanks, and what is unknown is empty."""
    return csv_lines(_COLUMNS, [[_flat(getattr(row, name)) for name in _COLUMNS] for row in rows])


def _flat(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, tuple) else value
