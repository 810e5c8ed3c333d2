"""`busbw topo make`: a topology file for NCCL."""

import sys
from pathlib import Path

import click

from busbw.api.topology import made_file
from busbw.show.plain import printable


def make_file(source: str | None, *, here: bool, output: Path | None) -> None:
    """Write the file, or print it where no name is given; how to use it goes to stderr."""
    made = made_file(source, here=here)
    for note in made.notes:
        click.echo(f"note: {printable(note)}", err=True)
    if output is None:
        sys.stdout.write(made.text)
        sys.stdout.flush()
        return
    from busbw.store.files import write_whole

    write_whole(output, made.text.encode())
    click.echo(printable(f"wrote {output}; use it with NCCL_TOPO_FILE={output.absolute()}"), err=True)
