"""`busbw topo show`: a node as a picture, a matrix, SVG or JSON."""

import sys
from pathlib import Path

import click

from busbw.machine.named import node_view
from busbw.model import codec
from busbw.topo.paths.view import path_matrix


def show_topology(source: str | None, *, here: bool, matrix: bool, svg: Path | None, as_json: bool) -> None:
    """Show a node in the form that is asked for; what its source leaves open goes to stderr."""
    view = node_view(source, here=here)
    for note in view.notes:
        _say(f"note: {note}")
    if svg is not None:
        from busbw.show.page.pictures import topology_svg
        from busbw.store.files import write_whole

        write_whole(svg, topology_svg(view).encode())
        _say(f"wrote {svg}")
    if as_json:
        value = path_matrix(view.topology) if matrix else view
        sys.stdout.write(codec.encode_pretty(value).decode())
    elif matrix:
        from busbw.show.text.topology import matrix_text

        matrix_text(path_matrix(view.topology))
    elif svg is None:
        from busbw.show.text.topology import topology_text

        topology_text(view)
    sys.stdout.flush()


def _say(line: str) -> None:
    from busbw.show.plain import printable

    click.echo(printable(line), err=True)
