"""Import what other tools wrote: every source through every reader, into a directory beside the runs."""

import datetime as dt
import re
import secrets
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from busbw import __version__
from busbw.api.stored import is_import
from busbw.base.collectives import COLLECTIVES, not_a_collective
from busbw.base.errors import InputError
from busbw.formats.lines.driver import Reader
from busbw.formats.lines.ledger import Event
from busbw.formats.lines.stream import UNCLAIMED
from busbw.formats.registry import formats_stating
from busbw.judge.imported import judge_import
from busbw.machine.named import platform
from busbw.model.imported import Imported, Reading, Source, StatedFigures, Table, UnreadLine
from busbw.show.text.imported import Digest, Listing
from busbw.store import imports, sources

_FIRST_SHOWN = 5
MOST_RANKS = 2**24
_MOST_REASONS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """A finished import, where it is, and what a summary shows of the readings and lines that lie in its files."""

    imported: Imported
    where: Path
    digests: dict[int, Digest]
    unread: Listing


@dataclass(slots=True)
class ImportSummary:
    """What readings and unread lines come to as they go by."""

    digests: dict[int, Digest] = field(default_factory=dict)
    readings: int = 0
    unread: int = 0
    # Why lines were not read, those of the most reasons that are kept; the rest as one.
    reasons: Counter[str] = field(default_factory=Counter)
    first: list[UnreadLine] = field(default_factory=list)

    def take(self, readings: Iterable[Reading], unread: Iterable[UnreadLine]) -> None:
        """Count them."""
        for reading in readings:
            self.readings += 1
            self.digests.setdefault(reading.table, Digest()).add(reading)
        lines = iter(unread)
        first = list(islice(lines, _FIRST_SHOWN - len(self.first)))
        self.first += first
        for why, number in Counter(line.why for line in chain(first, lines)).items():
            self.unread += number
            known = why in self.reasons or len(self.reasons) < _MOST_REASONS
            self.reasons[why if known else "other reasons"] += number

    def of(self, imported: Imported, where: Path) -> Import:
        """Return the import with what was counted."""
        unread = Listing(reasons=dict(self.reasons), first=tuple(self.first))
        return Import(imported=imported, where=where, digests=self.digests, unread=unread)


def load_import(directory: Path) -> Import:
    """Return a stored import. Raises InputError when it is damaged or too new."""
    imported = imports.read(directory)
    summary = ImportSummary()
    summary.take(imports.readings(directory), imports.unread(directory))
    return summary.of(imported, directory)


class ImportProgress(NamedTuple):
    """How far an import is: which of how many files, how much of it was read, how many readings there are in all."""

    file: str
    number: int
    files: int
    read_bytes: int
    readings: int


# Is told after every block that was read.
ImportListener = Callable[[ImportProgress], None]

# Of an import's name, which a line of a list has to hold.
_LONGEST_STEM = 16
_WORD = re.compile(r"[^\w-]+", re.ASCII)


@dataclass(slots=True)
class _Tally:
    """What is counted while events go by on their way to the disk."""

    draft: imports.Draft
    stated: StatedFigures = field(default_factory=StatedFigures)
    tables: list[Table] = field(default_factory=list)
    summary: ImportSummary = field(default_factory=ImportSummary)
    unclaimed: int = 0

    def take(self, events: Sequence[Event]) -> None:
        self.tables += [self._with_stated(event) for event in events if isinstance(event, Table)]
        readings = [event for event in events if isinstance(event, Reading)]
        if self.stated.ranks is not None:
            readings = [
                msgspec.structs.replace(reading, ranks=self.stated.ranks) if reading.ranks is None else reading
                for reading in readings
            ]
        unread = [event for event in events if isinstance(event, UnreadLine)]
        self.summary.take(readings, unread)
        self.unclaimed += sum(line.why in UNCLAIMED for line in unread)
        self.draft.keep(readings, unread)

    def _with_stated(self, table: Table) -> Table:
        """Return a table with what was stated of what it does not say itself."""
        stated, hosts = self.stated, {device.host for device in table.devices} - {None}
        found = list(table.stated)
        if stated.ranks is not None and table.ranks is None:
            found.append(("ranks", str(stated.ranks)))
            table = msgspec.structs.replace(table, ranks=stated.ranks)
        if stated.nodes is not None and (not hosts or len(table.devices) < (table.ranks or 0)):
            found.append(("nodes", str(stated.nodes)))
        if stated.platform is not None:
            found.append(("platform", stated.platform))
        return msgspec.structs.replace(table, stated=tuple(found)) if found else table


def stated_figures(
    *, collective: str | None, ranks: int | None, nodes: int | None, platform_name: str | None
) -> StatedFigures:
    """Return what somebody states of a log. Raises InputError for a platform or a collective that is not known."""
    for name, number in (("--ranks", ranks), ("--nodes", nodes)):
        if number is not None and not 1 <= number <= MOST_RANKS:
            raise InputError(f"{name} is {number}", hint=f"1 to {MOST_RANKS}")
    if ranks is not None and nodes is not None and nodes > ranks:
        raise InputError(f"{nodes} nodes have {ranks} ranks", hint="each node has one rank at least")
    if collective is not None and collective not in COLLECTIVES:
        raise not_a_collective(collective)
    return StatedFigures(
        collective=collective,
        ranks=ranks,
        nodes=nodes,
        platform=platform(platform_name).platform.id if platform_name is not None else None,
    )


def import_files(
    paths: Sequence[str],
    directory: Path | None,
    base: Path,
    *,
    tag: str | None = None,
    with_copies: bool = True,
    stated: StatedFigures | None = None,
    told: ImportListener | None = None,
) -> Import:
    """Read files, folders and standard input ("-"), and store what they hold in `directory`, or a new one under `base`.

    `stated`: what the tables do not say themselves. Raises InputError when there is nothing to read or nothing in it
    that a reader knows, RunError when the disk refuses.
    """
    files = sources.found(tuple(paths))
    _check_new(files)
    created = dt.datetime.now(dt.UTC)
    stem = (
        _WORD.sub("-", Path(files[0]).name.split(".")[0] if files[0] != sources.STDIN else "stdin")
        .strip("-")[:_LONGEST_STEM]
        .strip("-")
    )
    import_id = f"{created:%Y%m%dT%H%M%S}-import-{stem or 'files'}-{secrets.token_hex(2)}"
    where = (directory if directory is not None else base / import_id).absolute()
    with imports.draft(where) as draft:
        tally = _Tally(draft, stated or StatedFigures())
        read, account, incomplete = _read_all(files, tally, with_copies=with_copies, told=told)
        tables = tuple(sorted(tally.tables, key=lambda table: table.number))
        if not tally.summary.readings and not any(table.failures for table in tables):
            raise _nothing(files, tally.summary)
        imported = Imported(
            import_id=import_id,
            created=f"{created:%Y-%m-%dT%H:%M:%SZ}",
            busbw_version=__version__,
            tag=tag,
            sources=read,
            tables=tables,
            readings=tally.summary.readings,
            unread=tally.summary.unread,
            reading_lines=account["reading"],
            known_lines=account["known"],
            stated=tally.stated,
        )
        findings = judge_import(imported, unclaimed=tally.unclaimed, incomplete=incomplete)
        imported = msgspec.structs.replace(imported, findings=findings)
        draft.finish(imported)
    return tally.summary.of(imported, where)


def _read_all(
    files: Sequence[str], tally: _Tally, *, with_copies: bool, told: ImportListener | None
) -> tuple[tuple[Source, ...], Counter[str], list[str]]:
    """Return the sources, how many lines hold readings and how many are known, and what could not be read whole."""
    read: list[Source] = []
    account: Counter[str] = Counter()
    incomplete: list[str] = []
    next_table = 0
    formats = formats_stating(tally.stated.collective)
    for index, path in enumerate(files):
        with sources.opened(path) as source:
            copy = tally.draft.copy_of(index, path, compressed=source.compressed) if with_copies else None
            reader = Reader(formats, source=index, first_table=next_table, copy=copy)
            for block in source.blocks():
                tally.take(reader.feed(block))
                if told is not None:
                    told(ImportProgress(path, index + 1, len(files), source.read_bytes, tally.summary.readings))
            if source.problem is None:
                tally.take(reader.finish())
            else:
                tally.take(reader.give_up(source.problem))
                incomplete.append(f"{path}: {source.problem}")
            read.append(source.source(reader.lines))
        next_table = reader.ledger.next_table
        account["reading"] += reader.ledger.reading_lines
        account["known"] += reader.ledger.known_lines
    return tuple(read), account, incomplete


def _check_new(files: Sequence[str]) -> None:
    """Raise InputError when one of the files is what an import keeps; the copies in it can be imported again."""
    for path in map(Path, files):
        if path.name == imports.IMPORT_FILE and is_import(path.parent):
            raise InputError(
                f"{path.parent} is an import already",
                hint=f"look at it with: busbw show {shlex.quote(str(path.parent))}",
            )


def _nothing(files: Sequence[str], tally: ImportSummary) -> InputError:
    name = "standard input" if files[0] == sources.STDIN else files[0]
    named = name if len(files) == 1 else f"{len(files)} files"
    if not tally.first:
        return InputError("there is no result of any tool in it", where=named)
    first = tally.first[0]
    return InputError(
        f"nothing in it is readable: of {tally.unread} lines the first is {first.text[:80]!r} ({first.why})",
        where=f"{files[first.source]}:{first.line}",
        hint="see what busbw reads in docs/import.md",
    )
