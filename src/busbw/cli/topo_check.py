"""The verb `topo check`."""

import sys
from pathlib import Path

from busbw.api.topology import check_topology
from busbw.base.errors import ExitCode
from busbw.model import codec


def check_file(file: str, *, platform: str | None, host: Path | None, here: bool, as_json: bool) -> None:
    """Print what is wrong with a topology file, and exit with 1 where something is."""
    checked = check_topology(file, platform=platform, host=host, here=here)
    if as_json:
        sys.stdout.write(codec.encode_pretty(checked).decode())
    else:
        from busbw.show.text.findings import check_text

        check_text(checked)
        sys.stdout.flush()
        if checked.remedy is not None:
            print(f"hint: for a right file: {checked.remedy}", file=sys.stderr)
    sys.exit(ExitCode.FINDINGS if checked.errors or checked.warnings else ExitCode.OK)
