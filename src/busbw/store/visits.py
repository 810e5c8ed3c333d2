"""What hosts said when they were visited, as it lies in a run directory."""

import re
from pathlib import Path

import msgspec

from busbw.base import layout
from busbw.model.visit import VisitLine
from busbw.store.files import read_whole

_LAUNCHER = re.compile(r"launcher\.(\d{1,6})\.stdout")
_MAX_BYTES = 2**28


def read_visits(directory: Path) -> tuple[tuple[VisitLine, ...], tuple[str, ...]]:
    """Return what was said at the latest start of a run, and what was unreadable of it; nothing if nobody was asked.

    Raises InputError when the file cannot be read.
    """
    raw = directory / layout.RAW_DIRECTORY
    starts = [int(match[1]) for path in raw.iterdir() if (match := _LAUNCHER.fullmatch(path.name)) is not None]
    path = raw / layout.visit_name(max(starts, default=0))
    if not path.is_file():
        return (), ()
    lines: list[VisitLine] = []
    unreadable = []
    decoder = msgspec.json.Decoder(VisitLine)
    for number, line in enumerate(read_whole(path, _MAX_BYTES).splitlines(), start=1):
        try:
            lines.append(decoder.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            unreadable.append(f"{layout.RAW_DIRECTORY}/{path.name}:{number}: {error}")
    return tuple(lines), tuple(unreadable)
