"""CSV, JSON and Parquet hold the same rows, and read back as them."""

import csv
import io
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.base.errors import RunError
from busbw.model.gates import PointRow
from busbw.show.exports.rows import ROW_SCHEMA, Export, export_of_run
from busbw.show.exports.tables import COLUMNS, RowsDocument, csv_text, json_bytes
from busbw.store import duck

from .factories import HOSTILE, make_run


def export(**changes: object) -> Export:
    return export_of_run(make_run(**changes))


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def spelled(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_csv_reads_back_as_the_rows():
    exported = export(tag="plain")

    read = read_csv(csv_text(exported))

    assert [[row[name] for name in COLUMNS] for row in read] == [
        [spelled(getattr(row, name)) for name in COLUMNS] for row in exported.rows
    ]


def test_csv_has_one_header_lines_end_in_crlf_and_times_and_rates_name_their_unit():
    text = csv_text(export())

    assert text.count("\r\n") == text.count("\n") == 10
    assert text.endswith("\r\n")
    header = text.split("\r\n", 1)[0].split(",")
    assert {"size_bytes", "median_s", "p99_s", "busbw_Bps"} <= set(header)
    assert not {"size", "time", "median", "busbw", "algbw"} & set(header)


def test_csv_keeps_quotes_commas_and_line_ends_and_defuses_formulas():
    (tag,) = {row["tag"] for row in read_csv(csv_text(export(tag=HOSTILE)))}

    assert tag == "'" + HOSTILE.replace("\t", "\\t").replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")


@pytest.mark.parametrize("tag", ["=1+1", "+1", "-1", "@SUM(A1)", " =1+1", "\n=1", "\uff1d1", "=1,2"])
def test_csv_text_that_a_spreadsheet_would_run_gets_an_apostrophe(tag: str):
    assert read_csv(csv_text(export(tag=tag)))[0]["tag"] == "'" + tag


def test_csv_numbers_get_no_apostrophe():
    text = csv_text(export())

    assert not re.search(r"'-?\d", text)


@given(st.text(st.characters(exclude_categories=("C", "Zl", "Zp"))))
def test_csv_gives_back_every_tag_that_can_be_shown(tag: str):
    assert read_csv(csv_text(export(tag=tag)))[0]["tag"].removeprefix("'") == tag.removeprefix("'")


def test_json_is_one_document_with_the_number_of_its_schema():
    exported = export(tag=HOSTILE)

    raw = json_bytes(exported)

    assert json.loads(raw)["schema"] == ROW_SCHEMA
    assert msgspec.json.decode(raw, type=RowsDocument).rows == exported.rows


def test_json_says_null_for_what_is_unknown():
    rows = json.loads(json_bytes(export()))["rows"]

    assert rows[4]["median_s"] is None
    assert rows[7]["busbw_Bps"] is None
    assert set(rows[0]) == set(COLUMNS)


def read_parquet(content: bytes, folder: Path) -> tuple[list[dict[str, object]], dict[str, str], dict[bytes, bytes]]:
    """Return rows, the types of the columns, and what stands beside them."""
    file = folder / "rows.parquet"
    file.write_bytes(content)
    with duck.connect() as connection:
        found = connection.execute(f"SELECT * FROM read_parquet('{file}')")
        names = [column[0] for column in found.description]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        kinds = dict(
            connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM '{file}')").fetchall()
        )
        said = connection.execute(f"SELECT key, value FROM parquet_kv_metadata('{file}')").fetchall()
    return rows, kinds, dict(said)


def parquet(exported: Export) -> bytes:
    return duck.parquet(PointRow, exported.rows, metadata={"busbw.row_schema": str(ROW_SCHEMA)})


def test_parquet_reads_back_as_the_rows_with_their_types(tmp_path: Path):
    exported = export(tag=HOSTILE)

    rows, kinds, said = read_parquet(parquet(exported), tmp_path)

    assert rows == [msgspec.structs.asdict(row) for row in exported.rows]
    assert tuple(kinds) == COLUMNS
    assert (kinds["size_bytes"], kinds["median_s"], kinds["verified"], kinds["tag"]) == (
        "BIGINT",
        "DOUBLE",
        "BOOLEAN",
        "VARCHAR",
    )
    # A column without any value keeps its type, so that files of many runs fit together.
    assert kinds["messages_per_s"] == "DOUBLE"
    assert said[b"busbw.row_schema"] == str(ROW_SCHEMA).encode()


@pytest.mark.parametrize("tag", ["", "it's", 'a "b"', "a\\b", "a\nb", "a\tb", "\u00e9\u4e2d\U0001f600", "NULL", "{}"])
def test_parquet_gives_back_any_text(tag: str, tmp_path: Path):
    rows, _, _ = read_parquet(parquet(export(tag=tag)), tmp_path)

    assert {row["tag"] for row in rows} == {tag}


def test_parquet_of_nothing_has_its_columns(tmp_path: Path):
    rows, kinds, _ = read_parquet(duck.parquet(PointRow, (), metadata={}), tmp_path)

    assert (rows, tuple(kinds)) == ([], COLUMNS)


def test_parquet_on_a_disk_that_refuses_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))

    with pytest.raises(RunError, match="cannot write Parquet"):
        parquet(export())


def test_duckdb_is_not_loaded_until_parquet_is_written():
    code = "import sys, busbw.cli.results, busbw.api.reports; sys.exit(bool({'duckdb', 'pyarrow'} & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
