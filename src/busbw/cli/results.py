"""The verbs that look at runs: `show`, `runs`, `load`, `report`."""

import sys
from pathlib import Path

import msgspec

from busbw.api.listing import listing
from busbw.api.loading import load, read
from busbw.cli.present import present_run
from busbw.report.listing import listing_text
from busbw.report.plain import printable
from busbw.store import directory as directories
from busbw.store.files import write_whole


def show_run(name: str, *, as_json: bool) -> None:
    """Print a stored result."""
    where = directories.find(name, directories.root())
    present_run(read(where), where, as_json=as_json)


def load_run(name: str, *, as_json: bool) -> None:
    """Rebuild a result from raw records and print it."""
    where = directories.find(name, directories.root())
    present_run(load(where), where, as_json=as_json)


def list_runs(*, as_json: bool) -> None:
    """Print one line a run."""
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

    where = directories.find(name, directories.root())
    run = read(where)
    write_whole(output.absolute(), report_html(run).encode())
    print(f"wrote {printable(str(output))}", file=sys.stderr)
