"""All rows as one JSON document."""

from busbw.base.value import Integer, Value
from busbw.model import codec
from busbw.model.point_row import PointRow
from busbw.show.exports.rows import ROW_SCHEMA, Export


class Document(Value, kw_only=True, frozen=True):
    """Rows and the number of their schema."""

    schema: Integer = ROW_SCHEMA
    rows: tuple[PointRow, ...]


def json_bytes(export: Export) -> bytes:
    """Return the rows of an export as indented JSON."""
    return codec.encode_pretty(Document(rows=export.rows))
