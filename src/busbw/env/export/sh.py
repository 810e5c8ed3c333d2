"""A file for a shell to source."""

from busbw.env.export.page import Page, Written, head_lines, tail_lines
from busbw.env.export.shell import export_lines

_USE = "Use: source this file where ranks are started; mpirun passes nothing of it to other nodes, --format mpirun does"


def write(page: Page) -> Written:
    """Return `export` and `unset` lines."""
    lines = [*head_lines(page, _USE), *export_lines(page.entries), *tail_lines(page)]
    return Written(text="\n".join(lines) + "\n")
