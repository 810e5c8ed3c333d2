"""The ranks' records as they lie on disk: complete lines are read, a torn or damaged one is named, none is lost."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.formats.lines.prefix import scrub
from busbw.measure.backends.backend import PrintedStart
from busbw.model.record import AnyRecord
from busbw.model.settings import kept
from busbw.model.visit import VisitLine
from busbw.store.files import read_whole, write_whole

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
    """Return how often the run was started, with ranks of ours or with programs of the user."""
    raw = directory / layout.RAW_DIRECTORY
    recorded = (attempt for _rank, attempt, _path in _named(raw))
    return 1 + max((*recorded, *(attempt for attempt, _step, _path in _outputs(raw))), default=-1)


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


_PRINTED_NAME = re.compile(r"launcher\.(\d{1,6})\.(\d{1,6})\.stdout")
_REPORT = re.compile(r"step-(\d{1,6})\.json(?:\.\d{1,6})?")
_WROTE = re.compile(rb"# Writing JSON output to [^\r\n]*?(?P<name>step-\d{1,6}\.json(?:\.\d{1,6})?)\s*$", re.MULTILINE)
_MOST_BYTES = 256 * 2**20


def read_printed(directory: Path) -> list[PrintedStart]:
    """Return what each start of each step printed, in order; with its report where it names one that is there.

    Raises InputError for what cannot be read.
    """
    raw = directory / layout.RAW_DIRECTORY
    found = []
    for attempt, step, path in sorted(_outputs(raw)):
        text = read_whole(path, _MOST_BYTES)
        wrote = _WROTE.search(text)
        report = raw / wrote["name"].decode() if wrote is not None else None
        is_there = report is not None and report.is_file()
        found.append(
            PrintedStart(
                attempt=attempt,
                step=step,
                name=f"{layout.RAW_DIRECTORY}/{path.name}",
                text=text,
                report_name=f"{layout.RAW_DIRECTORY}/{report.name}" if report is not None and is_there else None,
                report=read_whole(report, _MOST_BYTES) if report is not None and is_there else None,
            )
        )
    return found


def withhold(directory: Path) -> None:
    """Take out of every report what must not be kept: nccl-tests writes its whole environment, tokens and all, into it.

    Raises InputError or RunError when a report can neither be read nor written.
    """
    for path in _entries(directory / layout.RAW_DIRECTORY):
        if _REPORT.fullmatch(path.name) is not None:
            write_whole(path, _without_secrets(read_whole(path, _MOST_BYTES)))


def _without_secrets(content: bytes) -> bytes:
    try:
        document = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        lines = content.decode("utf-8", errors="replace").split("\n")
        return "\n".join(scrub(line) for line in lines).encode()
    if not isinstance(document, dict) or not isinstance(document.get("env"), list):
        return content
    allowed, _withheld = kept(entry for entry in document["env"] if isinstance(entry, str))
    document["env"] = [f"{name}={value}" for name, value in allowed]
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def _outputs(raw: Path) -> Iterator[tuple[int, int, Path]]:
    for path in _entries(raw):
        match = _PRINTED_NAME.fullmatch(path.name)
        if match is not None:
            yield int(match[1]), int(match[2]), path


def _entries(raw: Path) -> list[Path]:
    try:
        return sorted(raw.iterdir())
    except OSError as error:
        raise InputError(f"cannot read the records: {error.strerror or error}", where=str(raw)) from error


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
