"""What `busbw scaling` is given, read into observations: runs, folders of runs, imports, tables, logs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from busbw.api.loading import read
from busbw.api.locating import find, import_directories, is_import
from busbw.base import layout
from busbw.base.errors import InputError
from busbw.facts.applications import Application
from busbw.formats.application_log import LogLines, read_log
from busbw.formats.lines.driver import Reader
from busbw.formats.log_template import Template, match, template
from busbw.formats.registry import FORMATS
from busbw.formats.scaling_columns import count
from busbw.formats.scaling_table import MOST_BYTES, is_table, read_table
from busbw.formats.starccm import read_starccm
from busbw.judge.scaling.observing import of_import, of_readings, of_run
from busbw.model.imported import Reading, Table
from busbw.model.scaling import Observation
from busbw.store import directory as directories
from busbw.store import imports, sources

_HEAD_BYTES = 65_536
_LONGEST_LINE_BYTES = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class LogReading:
    """How the logs of applications are read."""

    # None: with the templates of the user alone, and without any the file is no such log.
    application: Application | None
    templates: tuple[Template, ...]
    # Of the file's name: `run-{nodes}n`.
    name: Template | None
    # Only so many of the last results of a file and place.
    last: int | None

    @classmethod
    def of(
        cls, application: Application | None, patterns: Sequence[str], *, name: str | None, last: int | None
    ) -> Self:
        """Return it from templates as they are written. Raises InputError for one that cannot be matched."""
        if last is not None and last < 1:
            raise InputError(f"the last {last} results", hint="one or more")
        own = application.templates if application is not None else ()
        return cls(
            application=application,
            templates=tuple(template(text) for text in (*patterns, *own)),
            name=template(name) if name is not None else None,
            last=last,
        )

    def read(self, lines: Iterator[str], source: str) -> tuple[Observation, ...]:
        """Return what a log holds. Raises InputError."""
        known = self.counts_of(source)
        if not self.templates:
            return read_starccm(lines, source, known=known, last=self.last)
        wanted = LogLines(
            templates=self.templates,
            known=tuple(known.items()),
            last=self.last,
            best=self.application is not None and self.application.best,
            void=self.application.void if self.application is not None else None,
        )
        return read_log(lines, source, wanted)

    def counts_of(self, source: str) -> dict[str, int]:
        """Return what a file's name says of the machine. Raises InputError where it does not fit its template."""
        if self.name is None:
            return {}
        found = match(self.name, Path(source).name)
        if found is None:
            raise InputError(f"its name does not fit {self.name.text!r}", where=source)
        return {field.axis: count(text, source) for field, text in found if field.axis is not None}


def observations_of(source: str, logs: LogReading, *, wanted: str | None) -> tuple[Observation, ...]:
    """Return what a source holds. `wanted`: the column of a table with the result.

    Raises InputError for what is not there, cannot be read, or holds no result.
    """
    path = Path(source)
    if source != sources.STDIN and not path.is_file():
        found = [each for where in _stored(path, source) for each in _of_stored(where)]
    elif path.name in (layout.PLAN_FILE, layout.RUN_FILE, imports.IMPORT_FILE) and path.is_file():
        found = list(_of_stored(path.parent))
    else:
        found = list(_of_file(source, logs, wanted))
    if not found:
        raise InputError(
            "no result of a collective in it",
            where=source,
            hint="of an application's log say where the numbers are: --pattern 'wall time: {time_s} s'",
        )
    return tuple(found)


def _stored(path: Path, name: str) -> list[Path]:
    """Return the runs and imports that a name means: one, or those in a folder of them."""
    if path.is_dir() and not is_import(path) and not (path / layout.PLAN_FILE).exists():
        return [*directories.directories(path), *import_directories(path)]
    if not path.exists() and (path.suffix or len(path.parts) > 1):
        raise InputError(f"there is no {name}", where=name)
    return [find(name)]


def _of_stored(where: Path) -> tuple[Observation, ...]:
    if is_import(where):
        return of_import(imports.read(where), imports.readings(where))
    return of_run(read(where))


def _of_file(source: str, logs: LogReading, wanted: str | None) -> tuple[Observation, ...]:
    path = Path(source)
    with sources.opened(source) as file:
        blocks = file.blocks()
        first = next(blocks, b"")
        if logs.templates or logs.application is not None:
            found = logs.read(_lines(first, blocks), source)
        elif is_table(first[:_HEAD_BYTES].decode("utf-8", "replace")):
            rows = read_table(_whole(first, blocks, source), source, wanted=wanted)
            # Tables that meet at one size of the machine are two lines, and this is what tells them apart.
            found = tuple(replace(row, settings=(*row.settings, ("table", path.stem))) for row in rows)
        else:
            found = _of_log(file, first, blocks, logs.counts_of(source))
        if file.problem is not None:
            raise InputError(file.problem, where=source)
    return found


def _of_log(
    file: sources.OpenSource, first: bytes, blocks: Iterator[bytes], known: dict[str, int]
) -> tuple[Observation, ...]:
    """Return the rows of other tools' tables in a log. `known`: what the file's name says of the machine."""
    reader = Reader(FORMATS, source=0, first_table=0)
    events = reader.feed(first)
    for block in blocks:
        events += reader.feed(block)
    events += reader.finish()
    tables = {event.number: event for event in events if isinstance(event, Table)}
    rows = [event for event in events if isinstance(event, Reading)]
    where = file.source(reader.lines)
    found = of_readings((where,), tables, None, rows, known)
    if rows and not found:
        raise InputError(
            "over how many ranks this was measured is not told, or it is no collective with a bus bandwidth",
            where=where.name,
            hint="take the ranks from the file's name: --name 'osu-{ranks}'",
        )
    return found


def _whole(first: bytes, blocks: Iterator[bytes], where: str) -> str:
    content = first
    for block in blocks:
        content += block
        if len(content) > MOST_BYTES:
            raise InputError(f"a table of more than {MOST_BYTES // 2**20} MiB", where=where)
    return content.decode("utf-8", "replace")


def _lines(first: bytes, blocks: Iterator[bytes]) -> Iterator[str]:
    """Yield the lines of a file; of one that is too long only its end."""
    rest = b""
    for block in chain((first,), blocks):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
        rest = rest[-_LONGEST_LINE_BYTES:]
    if rest:
        yield rest.decode("utf-8", "replace")
