"""What foreign programs printed, as it lies in raw/, and the reports they wrote, without what is nobody's business."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.formats.lines.environment import scrub
from busbw.measure.backends.foreign import Printed
from busbw.model.variables import kept
from busbw.store.files import read_whole, write_whole

_NAME = re.compile(r"launcher\.(\d{1,6})\.(\d{1,6})\.stdout")
_REPORT = re.compile(r"step-(\d{1,6})\.json(?:\.\d{1,6})?")
_WROTE = re.compile(rb"# Writing JSON output to [^\r\n]*?(?P<name>step-\d{1,6}\.json(?:\.\d{1,6})?)\s*$", re.MULTILINE)
_MOST_BYTES = 256 * 2**20


def read_printed(directory: Path) -> list[Printed]:
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
            Printed(
                attempt=attempt,
                step=step,
                name=f"{layout.RAW_DIRECTORY}/{path.name}",
                text=text,
                report_name=f"{layout.RAW_DIRECTORY}/{report.name}" if report is not None and is_there else None,
                report=read_whole(report, _MOST_BYTES) if report is not None and is_there else None,
            )
        )
    return found


def attempts(directory: Path) -> int:
    """Return how often a run of foreign programs was started."""
    return 1 + max((attempt for attempt, _step, _path in _outputs(directory / layout.RAW_DIRECTORY)), default=-1)


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
        match = _NAME.fullmatch(path.name)
        if match is not None:
            yield int(match[1]), int(match[2]), path


def _entries(raw: Path) -> list[Path]:
    try:
        return sorted(raw.iterdir())
    except OSError as error:
        raise InputError(f"cannot read the records: {error.strerror or error}", where=str(raw)) from error
