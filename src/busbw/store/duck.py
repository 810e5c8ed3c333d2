"""DuckDB as the history uses it: in memory, over files, without the network. Loaded here and nowhere else."""

from typing import TYPE_CHECKING

from msgspec import inspect

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


def quoted(name: str) -> str:
    """Return a column's name as SQL spells it."""
    return '"' + name.replace('"', '""') + '"'


def _type(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.UnionType):
        kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    if isinstance(kind, inspect.VarTupleType):
        return f"{_type(kind.item_type)}[]"
    return _TYPES[type(kind)]
