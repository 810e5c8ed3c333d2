"""The matrix of a node as nvidia-smi topo -m prints it."""

from rich.text import Text

from busbw.base.cpus import format_cpu_list
from busbw.model.paths import MatrixRow, PathMatrix
from busbw.show.plain import printable
from busbw.show.text.terminal import console
from busbw.topo.paths.matrix import meanings

_AFFINITIES = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_NOT_KNOWN = "N/A"


def matrix_text(matrix: PathMatrix) -> None:
    """Print the matrix with its legend. Lines are as wide as they are: scripts read them by column."""
    out = console()
    names = [row.name for row in matrix.rows]
    header = ["", *names, *_AFFINITIES]
    rows = [[row.name, *row.cells, *_affinity(row)] for row in matrix.rows]
    widths = [max(len(line[place]) for line in (header, *rows)) for place in range(len(header))]
    for line in (header, *rows):
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        out.print(Text(printable("  ".join(cells).rstrip())), soft_wrap=True)
    out.print()
    for name, meaning in meanings(matrix):
        out.print(Text(f"{name:<5} {meaning}"), soft_wrap=True)
    if matrix.legend:
        out.print()
    for name, device in matrix.legend:
        out.print(Text(printable(f"{name}: {device}")), soft_wrap=True)


def _affinity(row: MatrixRow) -> tuple[str, str, str]:
    if not row.name.startswith("GPU"):
        return "", "", ""
    cpus = format_cpu_list(row.cpus) if row.cpus else _NOT_KNOWN
    # A GPU's memory is a NUMA node of its own on Grace only, and no topology says which.
    return cpus, str(row.numa) if row.numa is not None else _NOT_KNOWN, _NOT_KNOWN
