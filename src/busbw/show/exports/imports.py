"""The rows of an import: what another tool measured, in the same form as a run of busbw."""

from collections.abc import Iterable

from busbw.base.errors import InputError
from busbw.model.gates import PointRow
from busbw.model.imported import Imported, Reading, Table
from busbw.show.exports.rows import Export, RowGroup, with_repeats

# About a gigabyte of rows; a log of one job has some hundred.
MOST_ROWS = 1_000_000


def export_of_import(imported: Imported, readings: Iterable[Reading]) -> Export:
    """Return the readings of an import as rows. Numbers that a row has no field for are left out.

    Raises InputError for readings of tables that are not there, and for more than can be held at once.
    """
    tables = {table.number: table for table in imported.tables}
    rows: list[PointRow] = []
    for reading in readings:
        if reading.table not in tables or len(rows) == MOST_ROWS:
            cause = "damaged" if len(rows) < MOST_ROWS else f"more than {MOST_ROWS} readings"
            raise InputError(f"cannot export this import: {cause}", where=imported.import_id)
        rows.append(_row(imported, tables[reading.table], reading))
    return Export(
        run_id=imported.import_id,
        created=imported.created,
        busbw_version=imported.busbw_version,
        tag=imported.tag,
        verdict=None,
        because=(),
        groups=tuple(
            RowGroup(
                table=table.number,
                devices=table.devices,
                parameters=table.parameters,
                complete=table.complete and not table.failures,
            )
            for table in imported.tables
        ),
        rows=with_repeats(rows),
    )


def _row(imported: Imported, table: Table, reading: Reading) -> PointRow:
    # A tool gives wrong results a time; here they have none.
    wrong = reading.wrong is not None and reading.wrong > 0
    more = {} if wrong else dict(reading.more)
    return PointRow(
        run_id=imported.import_id,
        kind="import",
        created=imported.created,
        busbw_version=imported.busbw_version,
        tag=imported.tag,
        verdict=None,
        hosts=",".join(dict.fromkeys(device.host for device in table.devices if device.host)),
        backend=table.tool,
        libraries=", ".join(f"{name} {version}" for name, version in table.versions),
        read_from=place_of(imported, table, reading.line),
        table=table.number,
        collective=reading.what,
        size_bytes=reading.size_bytes,
        count=reading.count,
        dtype=reading.dtype,
        op=reading.op if reading.op != "none" else None,
        root=reading.root if reading.root is not None and reading.root >= 0 else None,
        in_place=reading.in_place,
        # What the rates say goes before what was declared: a list of devices may be cut, and programs that were not
        # joined declare too many.
        ranks=next(
            (ranks for ranks in (table.ranks_from_rates, reading.ranks, table.ranks) if ranks is not None), None
        ),
        source=reading.source,
        target=reading.target,
        samples=len(reading.samples_s) or None,
        statistic=table.statistic,
        time_s=reading.time_s if not wrong else None,
        median_s=more.get("median_s"),
        min_s=more.get("min_s"),
        max_s=more.get("max_s"),
        mean_s=more.get("mean_s"),
        p50_s=more.get("p50_s"),
        p95_s=more.get("p95_s"),
        p99_s=more.get("p99_s"),
        algbw_Bps=reading.algbw_Bps if not wrong else None,
        busbw_Bps=reading.busbw_Bps if not wrong else None,
        bandwidth_Bps=reading.bandwidth_Bps if not wrong else None,
        messages_per_s=reading.messages_per_s if not wrong else None,
        wrong=reading.wrong,
        verified=reading.wrong is not None,
        ended=None,
    )


def place_of(imported: Imported, table: Table, line: int) -> str:
    """Return the file and line that a row of a table was read from, as a row says it."""
    name = imported.sources[table.source].name if 0 <= table.source < len(imported.sources) else "?"
    return f"{name}:{line}"
