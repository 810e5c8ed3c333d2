"""NCCL topology files on disk, read in bounded memory whatever they turn out to be."""

from pathlib import Path

from busbw.store.bounded import read_bounded
from busbw.topo.file.refusals import MOST_BYTES


def read_topology_file(path: Path) -> bytes:
    """Return the bytes of a file, or of standard input where it is named `-`.

    Raises InputError when it is missing, is no regular file, cannot be read, or is over 8 MiB.
    """
    return read_bounded(path, most_bytes=MOST_BYTES, kind="topology file")
