"""What a summary of an import shows of the readings and lines that lie in its files, and a stored import with it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from busbw.model.imported import Imported, Reading, Unread
from busbw.show.text.import_digest import Digest, Listing
from busbw.store import imports

_FIRST_SHOWN = 5
_MOST_REASONS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """A finished import, where it is, and what a summary shows of the readings and lines that lie in its files."""

    imported: Imported
    where: Path
    digests: dict[int, Digest]
    unread: Listing


@dataclass(slots=True)
class Summary:
    """What readings and unread lines come to as they go by."""

    digests: dict[int, Digest] = field(default_factory=dict)
    readings: int = 0
    unread: int = 0
    # Why lines were not read, those of the most reasons that are kept; the rest as one.
    reasons: Counter[str] = field(default_factory=Counter)
    first: list[Unread] = field(default_factory=list)

    def take(self, readings: Iterable[Reading], unread: Iterable[Unread]) -> None:
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
    summary = Summary()
    summary.take(imports.readings(directory), imports.unread(directory))
    return summary.of(imported, directory)
