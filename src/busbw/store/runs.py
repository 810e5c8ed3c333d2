"""The result of a run as one file."""

from pathlib import Path

from busbw import codec, layout
from busbw.model.run import Run
from busbw.store.files import read_whole, write_whole

_MAX_BYTES = 2**30


def write(directory: Path, run: Run) -> None:
    """Store the result; readers see the old or the new one, whole."""
    write_whole(directory / layout.RUN_FILE, codec.encode_pretty(run))


def read(directory: Path) -> Run | None:
    """Return the stored result; None when there is none yet."""
    path = directory / layout.RUN_FILE
    if not path.is_file():
        return None
    return codec.decode(read_whole(path, _MAX_BYTES), Run, where=str(path))
