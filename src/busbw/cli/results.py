"""The verbs that look at runs: `show`, `runs`, `load`, `report`."""

import shlex
import sys
from pathlib import Path

import msgspec

from busbw import layout
from busbw.api.listing import listing
from busbw.api.loading import load, read
from busbw.api.locating import find, is_import
from busbw.cli.present import present_run
from busbw.errors import InputError
from busbw.report.listing import listing_text
from busbw.report.plain import printable
from busbw.store import directory as directories
from busbw.store.files import write_whole


def show_run(name: str, *, as_json: bool) -> None:
    """Print a stored result, or an import."""
    where = find(name)
    if is_import(where):
        from busbw.cli.importing import show_import

        show_import(where, as_json=as_json)
    present_run(read(where), where, as_json=as_json)


def load_run(name: str, *, as_json: bool) -> None:
    """Rebuild a result from raw records and print it."""
    where = find(name)
    if is_import(where):
        copies = shlex.quote(str(where / layout.RAW_DIRECTORY))
        raise InputError(
            "this is an import: it stays as it was read, and is not rebuilt",
            where=str(where),
            hint=f"read its copies into a new one: busbw import {copies}",
        )
    present_run(load(where), where, as_json=as_json)


def list_runs(*, as_json: bool) -> None:
    """Print one line a run or import."""
    base = directories.root()
    rows = listing(base)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(rows), indent=1).decode() + "\n")
    elif rows:
        listing_text(rows)
    else:
        print(f"no runs in {printable(str(base))}; make one with: busbw run", file=sys.stderr)


def write_report(name: str, output: Path) -> None:
    """Write the HTML report of a run."""
    from busbw.report.html import report_html

    where = find(name)
    if is_import(where):
        raise InputError(
            "this is an import: there is no page about one",
            where=str(where),
            hint=f"busbw show {shlex.quote(where.name)}, or busbw export --format csv {shlex.quote(where.name)}",
        )
    run = read(where)
    write_whole(output.absolute(), report_html(run).encode())
    print(f"wrote {printable(str(output))}", file=sys.stderr)
