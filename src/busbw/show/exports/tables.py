"""All rows as comma-separated values (RFC 4180): a header whose names carry the units, one line a row, CRLF."""

import csv
import io
from collections.abc import Iterable, Sequence

import msgspec

from busbw.model.point_row import PointRow
from busbw.show.exports.plain import shown
from busbw.show.exports.rows import Export

COLUMNS = tuple(field.name for field in msgspec.structs.fields(PointRow))
# A spreadsheet takes text that begins with one of these for a formula, and runs it; some take the wide forms too.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_text(export: Export) -> str:
    """Return the rows of an export; what is unknown is empty, and text that could be a formula gets a leading `'`."""
    return csv_lines(COLUMNS, [[getattr(row, name) for name in COLUMNS] for row in export.rows])


def csv_lines(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a header and lines; None is an empty cell, and text that could be a formula gets a leading `'`."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in line] for line in lines)
    return file.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = "\n".join(map(shown, value.split("\n")))
        return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
    return repr(value)
