"""`busbw topo diff`: two topologies by meaning."""

import sys

import click

from busbw.api.topology import compared
from busbw.base.errors import ExitCode
from busbw.model import codec


def diff_topologies(first: str, second: str, *, as_json: bool) -> None:
    """Print what NCCL would see differently; exit with 1 where there is something."""
    comparison = compared(first, second)
    if as_json:
        sys.stdout.write(codec.encode_pretty(comparison).decode())
    else:
        from busbw.show.plain import printable
        from busbw.show.text.topology import difference_text

        for note in comparison.notes:
            click.echo(f"note: {printable(note)}", err=True)
        difference_text(comparison)
    sys.stdout.flush()
    if comparison.differences:
        sys.exit(ExitCode.FINDINGS)
