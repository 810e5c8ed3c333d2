"""How a run ended, beside its plan: the one thing the raw files cannot tell."""

import shlex
from pathlib import Path

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.model import codec
from busbw.model.run import RUN_SCHEMA, Outcome, Run
from busbw.store.files import read_whole, write_new, write_whole

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


_RUNS_MAX_BYTES = 2**30


def write_run(directory: Path, run: Run) -> None:
    """Store the result; readers see the old or the new one, whole."""
    write_whole(directory / layout.RUN_FILE, codec.encode_pretty(run))


def add_run(directory: Path, run: Run) -> bool:
    """Store the result where there is none yet, and say whether it was: that of the launching side stays."""
    return write_new(directory / layout.RUN_FILE, codec.encode_pretty(run))


def read_run(directory: Path) -> Run | None:
    """Return the stored result; None when there is none yet. Raises InputError when it is damaged or too new."""
    path = directory / layout.RUN_FILE
    if not path.is_file():
        return None
    content = read_whole(path, _RUNS_MAX_BYTES)
    codec.check_schema(content, RUN_SCHEMA, where=str(path))
    try:
        return codec.decode(content, Run, where=str(path))
    except InputError as error:
        hint = f"rebuild it from the raw records: busbw load {shlex.quote(str(directory))}"
        raise InputError(error.cause, where=error.where, hint=hint) from error
