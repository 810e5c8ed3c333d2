"""The verb `report`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from busbw.api.report import comparison, page_of, scaling
from busbw.base.errors import InputError
from busbw.base.units import format_size
from busbw.show.page.html import report_html
from busbw.show.plain import printable
from busbw.store.files import write_whole


def write_report(
    names: Sequence[str], output: Path, *, machine: str | None, compared: Path | None, scaled: Path | None
) -> None:
    """Write the HTML report of what is named, of a comparison and of scaling; of the last run without any of them."""
    wanted = names or (("last",) if compared is None and scaled is None else ())
    page = page_of(wanted, machine)
    if compared is not None and page.comparison is not None:
        raise InputError("one page holds one comparison, and two are named", where=f"--comparison {compared}")
    html = report_html(
        page.subjects,
        comparison(compared) if compared is not None else page.comparison,
        scaling(scaled) if scaled is not None else None,
        page.imports,
        page.bisection,
    ).encode()
    write_whole(output.absolute(), html)
    for note in page.notes:
        print(f"note: {printable(note)}", file=sys.stderr)
    print(f"wrote {printable(str(output))}, {format_size(len(html))}", file=sys.stderr)
