"""What kind of file somebody names where a node is asked for."""

from pathlib import Path
from typing import Literal

from busbw.store.files import STANDARD_INPUT, read_bounded
from busbw.store.snapshots import is_snapshot
from busbw.topo.file.reader import MOST_BYTES

SourceKind = Literal["absent", "snapshot", "topology"]
_BEGINNING_BYTES = 512


def source_kind(name: str) -> SourceKind:
    """Return what a name stands for on disk, by content; standard input, and what cannot be read, count as topologies.

    Whoever reads it then says exactly what is wrong with it.
    """
    if name == STANDARD_INPUT:
        return "topology"
    path = Path(name)
    try:
        if not path.exists():
            return "absent"
        if not path.is_file():
            return "topology"
        with path.open("rb") as file:
            return "snapshot" if is_snapshot(file.read(_BEGINNING_BYTES)) else "topology"
    except ValueError:
        # A name with a null byte in it.
        return "absent"
    except OSError:
        return "topology"


def read_topology_file(path: Path) -> bytes:
    """Return the bytes of a file, or of standard input where it is named `-`.

    Raises InputError when it is missing, is no regular file, cannot be read, or is over 8 MiB.
    """
    return read_bounded(path, most_bytes=MOST_BYTES, kind="topology file")
