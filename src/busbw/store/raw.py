"""The ranks' records as they lie on disk: complete lines are read, a torn or damaged one is named, none is lost."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.model.record import AnyRecord

_NAME = re.compile(r"rank-(\d{5})\.(\d{1,6})\.jsonl")
_LONGEST_LINE_BYTES = 64 * 2**20

Records = dict[int, list[tuple[str, AnyRecord]]]


def read_records(directory: Path) -> tuple[Records, tuple[str, ...]]:
    """Return each rank's records with their place (`raw/FILE:LINE`), attempts in order; and what was unreadable."""
    raw = directory / layout.RAW_DIRECTORY
    records: Records = {}
    unreadable: list[str] = []
    decoder = msgspec.json.Decoder(AnyRecord)
    for rank, path in _files(raw):
        for number, line in enumerate(_lines(path), start=1):
            place = f"{layout.RAW_DIRECTORY}/{path.name}:{number}"
            try:
                if not line.endswith(b"\n"):
                    raise msgspec.DecodeError("the line was cut off while it was written")
                records.setdefault(rank, []).append((place, decoder.decode(line)))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                unreadable.append(f"{place}: {error}")
    return records, tuple(unreadable)


def attempts(directory: Path) -> int:
    """Return how often the run was started."""
    return 1 + max((attempt for _rank, attempt, _path in _named(directory / layout.RAW_DIRECTORY)), default=-1)


def _files(raw: Path) -> list[tuple[int, Path]]:
    return [(rank, path) for rank, _attempt, path in sorted(_named(raw))]


def _named(raw: Path) -> Iterator[tuple[int, int, Path]]:
    try:
        entries = sorted(raw.iterdir())
    except OSError as error:
        raise InputError(f"cannot read the records: {error.strerror or error}", where=str(raw)) from error
    for path in entries:
        match = _NAME.fullmatch(path.name)
        if match is not None:
            yield int(match[1]), int(match[2]), path


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE_BYTES):
                yield line
    except OSError as error:
        raise InputError(f"cannot read {path.name}: {error.strerror or error}", where=str(path)) from error
