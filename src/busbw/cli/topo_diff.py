"""`busbw topo diff`: two topologies by meaning."""

import sys

import click

from busbw import codec
from busbw.api.topology_files import compared
from busbw.errors import ExitCode


def diff_topologies(first: str, second: str, *, as_json: bool) -> None:
    """Print what NCCL would see differently; exit with 1 where there is something."""
    comparison = compared(first, second)
    if as_json:
        sys.stdout.write(codec.encode_pretty(comparison).decode())
    else:
        from busbw.report.difference_text import difference_text
        from busbw.report.plain import printable

        for note in comparison.notes:
            click.echo(f"note: {printable(note)}", err=True)
        difference_text(comparison)
    sys.stdout.flush()
    if comparison.differences:
        sys.exit(ExitCode.FINDINGS)
