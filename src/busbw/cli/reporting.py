"""The verb `report`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from busbw.api.reporting import comparison, scaling, subjects
from busbw.report.html import report_html
from busbw.report.plain import printable
from busbw.store.files import write_whole
from busbw.units import format_size


def write_report(
    names: Sequence[str], output: Path, *, machine: str | None, compared: Path | None, scaled: Path | None
) -> None:
    """Write the HTML report of some runs, of a comparison, of scaling; of the last run where nothing is named."""
    wanted = names or (("last",) if compared is None and scaled is None else ())
    html = report_html(
        subjects(wanted, machine),
        comparison(compared) if compared is not None else None,
        scaling(scaled) if scaled is not None else (),
    ).encode()
    write_whole(output.absolute(), html)
    print(f"wrote {printable(str(output))}, {format_size(len(html))}", file=sys.stderr)
