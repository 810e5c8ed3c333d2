"""The result of a run as one file."""

import shlex
from pathlib import Path

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.model import codec
from busbw.model.run import RUN_SCHEMA, Run
from busbw.store.files import read_whole, write_whole

_MAX_BYTES = 2**30


def write(directory: Path, run: Run) -> None:
    """Store the result; readers see the old or the new one, whole."""
    write_whole(directory / layout.RUN_FILE, codec.encode_pretty(run))


def read(directory: Path) -> Run | None:
    """Return the stored result; None when there is none yet. Raises InputError when it is damaged or too new."""
    path = directory / layout.RUN_FILE
    if not path.is_file():
        return None
    content = read_whole(path, _MAX_BYTES)
    codec.check_schema(content, RUN_SCHEMA, where=str(path))
    try:
        return codec.decode(content, Run, where=str(path))
    except InputError as error:
        hint = f"rebuild it from the raw records: busbw load {shlex.quote(str(directory))}"
        raise InputError(error.cause, where=error.where, hint=hint) from error
