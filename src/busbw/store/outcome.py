"""How a run ended, beside its plan: the one thing the raw files cannot tell."""

from pathlib import Path

from busbw.base import layout
from busbw.model import codec
from busbw.model.run import Outcome
from busbw.store.files import read_whole, write_whole

_MAX_BYTES = 2**20


def write(directory: Path, outcome: Outcome) -> None:
    """Store how the run ended."""
    write_whole(directory / layout.OUTCOME_FILE, codec.encode_pretty(outcome))


def read(directory: Path) -> Outcome | None:
    """Return how the run ended; None when it was cut off before it could be told."""
    path = directory / layout.OUTCOME_FILE
    if not path.is_file():
        return None
    return codec.decode(read_whole(path, _MAX_BYTES), Outcome, where=str(path))
