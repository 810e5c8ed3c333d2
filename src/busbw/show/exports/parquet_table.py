"""All rows as one Parquet file; pyarrow is loaded here and nowhere else."""

import io

import msgspec
from msgspec import inspect

from busbw.base.errors import InputError
from busbw.model.point_row import PointRow
from busbw.show.exports.rows import ROW_SCHEMA, Export

# Arrow's names of types, by msgspec's; literals are strings.
_ARROW = {
    inspect.BoolType: "bool",
    inspect.FloatType: "double",
    inspect.IntType: "int64",
    inspect.LiteralType: "string",
    inspect.StrType: "string",
}


def parquet_bytes(export: Export) -> bytes:
    """Return the rows of an export, each column with its type even where all of it is unknown.

    Raises InputError without pyarrow, which is an extra.
    """
    try:
        import pyarrow as arrow  # noqa: PLC0415, an extra that only this function needs
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise InputError(f"Parquet needs pyarrow: {error}", hint="pip install 'busbw[parquet]'") from error
    schema = arrow.schema(
        [(name, arrow.type_for_alias(kind)) for name, kind in columns()],
        metadata={"busbw.row_schema": str(ROW_SCHEMA)},
    )
    table = arrow.Table.from_pylist([msgspec.structs.asdict(row) for row in export.rows], schema=schema)
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


def columns() -> list[tuple[str, str]]:
    """Return each column's name and Arrow's name of its type."""
    info = inspect.type_info(PointRow)
    assert isinstance(info, inspect.StructType), "a row is a struct"
    return [(field.name, _ARROW[type(_present(field.type))]) for field in info.fields]


def _present(kind: inspect.Type) -> inspect.Type:
    """Return the type of a value that is there."""
    if not isinstance(kind, inspect.UnionType):
        return kind
    return next(each for each in kind.types if not isinstance(each, inspect.NoneType))
