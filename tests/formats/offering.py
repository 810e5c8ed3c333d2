"""Lines and documents offered to one reader by the words of its protocol, and what became of each line."""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from busbw.base.errors import InputError
from busbw.formats.form import DocumentFormat, HoldingTable, OpenTable, TextFormat, TextLine, Unreadable
from busbw.model.imported import Reading, Table

# Lines that only divide stand before and after a tool's own; they are nobody's.
DIVIDER = re.compile(r"\s*[#*=-]*\s*")
SAMPLES = Path(__file__).parent / "samples"


@dataclass
class Account:
    """Every line of a text is in exactly one of the four."""

    tables: list[Table] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    read: set[int] = field(default_factory=set)
    known: set[int] = field(default_factory=set)
    unreadable: dict[int, str] = field(default_factory=dict)
    foreign: set[int] = field(default_factory=set)

    @property
    def lines(self) -> int:
        return len(self.read) + len(self.known) + len(self.unreadable) + len(self.foreign)


def sample(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def read_text(reader: TextFormat, text: str) -> Account:
    account = Account()
    table: OpenTable | None = None
    last = 0
    for number, content in enumerate(text.split("\n"), start=1):
        line = TextLine(number, content)
        taken = table.take(line) if table is not None else "foreign"
        if taken == "foreign" and reader.starts.search(content):
            if table is not None:
                account.readings.extend(_held(table))
                account.tables.append(table.finish(last))
            table = reader.begin(line, number=len(account.tables), source=0)
            taken = table.take(line)
        if table is not None and taken != "foreign":
            last = number
        table = _enter(account, table, line, taken)
    if table is not None:
        account.readings.extend(_held(table))
        account.tables.append(table.finish(last))
    return account


def _held(table: OpenTable) -> Sequence[Reading]:
    return table.held() if isinstance(table, HoldingTable) else ()


def _enter(account: Account, table: OpenTable | None, line: TextLine, taken: object) -> OpenTable | None:
    if taken == "foreign":
        account.foreign.add(line.number)
    elif isinstance(taken, Unreadable):
        assert taken.why
        account.unreadable[line.number] = taken.why
    elif taken in ("known", "ended"):
        account.known.add(line.number)
    elif taken == "held":
        account.read.add(line.number)
    else:
        readings = tuple(taken)
        assert all(reading.table == len(account.tables) for reading in readings)
        account.readings.extend(readings)
        account.read.add(line.number)
    if taken == "ended" and table is not None:
        account.readings.extend(_held(table))
        account.tables.append(table.finish(line.number))
        return None
    return table


def unclaimed(account: Account, text: str) -> list[str]:
    lines = text.split("\n")
    return [lines[number - 1] for number in sorted(account.foreign) if not DIVIDER.fullmatch(lines[number - 1])]


def read_document(reader: DocumentFormat, document: object, *, line: int = 1) -> list[tuple[Table, list[Reading]]]:
    assert reader.recognises(document)
    return [(table, list(readings)) for table, readings in reader.read(document, line=line, number=0, source=0)]


def read_or_refuse(reader: DocumentFormat, document: object) -> list[tuple[Table, list[Reading]]] | str:
    """Return what is read, or the cause of the InputError."""
    try:
        return read_document(reader, document)
    except InputError as error:
        return error.cause


def survives_document(reader: DocumentFormat, text: str) -> None:
    """Offer `text` as the driver would: what is not JSON is not offered, and what cannot be right is an InputError."""
    try:
        document = json.loads(text)
    except ValueError:
        return
    if reader.recognises(document):
        read_or_refuse(reader, document)


def cuts(text: str) -> Iterator[str]:
    """Yield the text cut off at every byte."""
    raw = text.encode()
    for end in range(len(raw)):
        yield raw[:end].decode("utf-8", "replace")


def garbled(text: str, *, times: int, seed: int) -> Iterator[str]:
    """Yield the text with one to twenty bytes replaced, the same ones for a seed."""
    chance = random.Random(seed)
    for _ in range(times):
        raw = bytearray(text.encode())
        for _ in range(chance.randint(1, 20)):
            raw[chance.randrange(len(raw))] = chance.choice((chance.randrange(256), *b'0123456789.- \n{}[]:",|'))
        yield bytes(raw).decode("utf-8", "replace")


def accounts_for_every_line(reader: TextFormat, text: str) -> Account:
    account = read_text(reader, text)
    assert account.lines == text.count("\n") + 1
    return account
