"""The verb `report`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from busbw.api.reporting import subjects
from busbw.report.html import report_html
from busbw.report.plain import printable
from busbw.store.files import write_whole
from busbw.units import format_size


def write_report(names: Sequence[str], output: Path, machine: str | None) -> None:
    """Write the HTML report of some runs."""
    html = report_html(subjects(names, machine)).encode()
    write_whole(output.absolute(), html)
    print(f"wrote {printable(str(output))}, {format_size(len(html))}", file=sys.stderr)
