"""A text or document given to every reader at once, as an import does it, and what became of each line."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from busbw.formats.lines.driver import Reader
from busbw.formats.registry import FORMATS
from busbw.model.imported import Reading, Table, UnreadLine

SAMPLES = Path(__file__).parent / "samples"
# Outputs of real runs on four H200, kept beside the repository: too large and too detailed to be part of it.
SHARED = Path(__file__).parents[3] / "shared" / "facts" / "samples"


@dataclass(frozen=True)
class Read:
    """Everything that one source held."""

    tables: tuple[Table, ...]
    readings: tuple[Reading, ...]
    unread: tuple[UnreadLine, ...]
    lines: int
    reading_lines: int
    known_lines: int
    copy: bytes

    @property
    def table(self) -> Table:
        (table,) = self.tables
        return table

    @property
    def adds_up(self) -> bool:
        """Whether every line is a reading's, known, or listed as unread, and no reading or table got lost."""
        return (
            self.lines == self.reading_lines + self.known_lines + len(self.unread)
            and sum(table.readings for table in self.tables) == len(self.readings)
            and len({line.line for line in self.unread}) == len(self.unread)
        )


def read(content: bytes | str, *, block_bytes: int = 2**20) -> Read:
    """Read a source in blocks of the given size."""
    raw = content.encode() if isinstance(content, str) else content
    copied: list[bytes] = []
    reader = Reader(FORMATS, source=0, first_table=0, copy=copied.append)
    events = [event for at in range(0, len(raw), block_bytes) for event in reader.feed(raw[at : at + block_bytes])]
    events += reader.finish()
    return Read(
        tables=tuple(event for event in events if isinstance(event, Table)),
        readings=tuple(event for event in events if isinstance(event, Reading)),
        unread=tuple(event for event in events if isinstance(event, UnreadLine)),
        lines=reader.lines,
        reading_lines=reader.ledger.reading_lines,
        known_lines=reader.ledger.known_lines,
        copy=b"".join(copied),
    )


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def shared(name: str) -> bytes:
    """Return a large real output; without it the test is skipped and says what was not looked at."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"the real output {name} is not on this machine: its reading is not tested here")
    return path.read_bytes()
