"""DuckDB as the history and exports use it: in memory, over files, without the network. Loaded here alone."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import inspect

from busbw.base.errors import RunError
from busbw.base.value import Value

if TYPE_CHECKING:
    import duckdb

# More threads than this gain nothing here, and a login node is shared.
_THREADS = 4
_TYPES: dict[type, str] = {
    inspect.BoolType: "BOOLEAN",
    inspect.FloatType: "DOUBLE",
    inspect.IntType: "BIGINT",
    inspect.LiteralType: "VARCHAR",
    inspect.StrType: "VARCHAR",
}


def connect() -> "duckdb.DuckDBPyConnection":
    """Return a connection to nothing but memory; it looks for no extension and writes nowhere unless it is told."""
    import duckdb  # noqa: PLC0415 - 60 MB that the other verbs do not need

    return duckdb.connect(
        config={
            "threads": _THREADS,
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )


def error() -> type[Exception]:
    """Return what DuckDB raises for whatever it cannot do."""
    import duckdb  # noqa: PLC0415 - as above

    return duckdb.Error


def columns(kind: type[Value]) -> dict[str, str]:
    """Return the name of each field of a value, and DuckDB's name of its type."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType), "a value is a struct"
    return {field.name: _type(field.type) for field in info.fields}


def lines(path: Path, types: Mapping[str, str]) -> str:
    """Return the query for a file of JSON values, one a line, with their columns and types."""
    declared = ", ".join(f"{quoted(name)}: {literal(kind)}" for name, kind in types.items())
    return f"read_json({literal(path)}, format = 'newline_delimited', columns = {{{declared}}})"


def literal(text: object) -> str:
    """Return a text as SQL spells it."""
    return "'" + str(text).replace("'", "''") + "'"


def parquet(kind: type[Value], rows: Sequence[Value], *, metadata: Mapping[str, str]) -> bytes:
    """Return values of a kind as a Parquet file, each field with its type even where all of it is unknown.

    Raises RunError when DuckDB, or the disk on which it writes, refuses.
    """
    encoder = msgspec.json.Encoder()
    said = ", ".join(f"{quoted(name)}: {literal(value)}" for name, value in metadata.items())
    beside = f", KV_METADATA {{{said}}}" if said else ""
    try:
        with tempfile.TemporaryDirectory(prefix="busbw-") as folder, connect() as connection:
            source, made = Path(folder, "rows.jsonl"), Path(folder, "rows.parquet")
            with source.open("wb") as file:
                file.writelines(encoder.encode(row) + b"\n" for row in rows)
            connection.execute(
                f"COPY (SELECT * FROM {lines(source, columns(kind))}) TO {literal(made)} "  # noqa: S608 - our own names
                f"(FORMAT parquet{beside})"
            )
            return made.read_bytes()
    except (OSError, error()) as refused:
        raise RunError(f"cannot write Parquet: {str(refused).splitlines()[0]}") from refused


def quoted(name: str) -> str:
    """Return a column's name as SQL spells it."""
    return '"' + name.replace('"', '""') + '"'


def _type(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.UnionType):
        kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    if isinstance(kind, inspect.VarTupleType):
        return f"{_type(kind.item_type)}[]"
    return _TYPES[type(kind)]
