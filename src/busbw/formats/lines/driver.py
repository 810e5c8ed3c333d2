"""One source as a stream of bytes, through every reader: lines split, streams told apart, log lines passed by.

Memory stays bounded whatever comes: a table's readings are handed out with the block they were in, and a line, a
document and the number of things that are open have limits.
"""

from collections.abc import Callable

from busbw.formats.lines import log_lines
from busbw.formats.lines.collector_line import as_written
from busbw.formats.lines.environment import scrub
from busbw.formats.lines.ledger import Event, Ledger
from busbw.formats.lines.passing import nobodys
from busbw.formats.lines.strange_prefix import Prefixes
from busbw.formats.lines.stream import NOBODYS, Formats, Stream

# A line may be a whole JSON document.
LONGEST_LINE_BYTES = 32 * 2**20
_MOST_OPEN = 4096
_MOST_HOSTS = 4096
# With more streams finding out whether they are calm takes longer than asking one of them.
_MOST_CALM = 64
# A log line that begins here is of NCCL when its name stands no farther away.
_NEAR_BYTES = 2048
# A file may be full of them, and they are told in bulk as log lines are.
_BLANK = (b"\n", b"\r\n")
# What is kept of a line that is too long, to list it.
_HEAD_BYTES = 4096

Copy = Callable[[bytes], object]


class Reader:
    """Reads one source. Give it blocks of any size, then call `finish`; both return what was found meanwhile.

    `copy` is given the source again, line by line, with what must not be kept withheld.
    """

    def __init__(self, formats: Formats, *, source: int, first_table: int, copy: Copy | None = None) -> None:
        self._formats = formats
        self._copy = copy
        self._streams: dict[str, Stream] = {}
        self._hosts: dict[str, None] = {}
        self._prefixes = Prefixes(formats.text)
        self._rest = b""
        # Of a line that is too long: its beginning, and that the rest of it is thrown away.
        self._head: bytes | None = None
        # Whether a line that nobody reads changes nothing; found out again after every other one.
        self._is_calm = True
        self.ledger = Ledger(source=source, next_table=first_table)
        self.lines = 0

    def feed(self, block: bytes) -> list[Event]:
        """Read one block."""
        if self._head is not None:
            block = self._skip(block)
        data = self._rest + block if self._rest else block
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        self._lines(data, end)
        if len(self._rest) > LONGEST_LINE_BYTES:
            self._head, self._rest = self._rest[:_HEAD_BYTES], b""
        return self.ledger.take_events()

    def finish(self) -> list[Event]:
        """Read what is left, and end every table."""
        if self._head is not None:
            self._too_long(self._head)
        elif self._rest:
            scrubbed = self._line(self._rest)
            if self._copy is not None:
                self._copy(self._rest if scrubbed is None else scrubbed)
        for held in self._prefixes.give_up():
            self._take(held.number, *self._prefixes.split(held.text))
        for stream in list(self._streams.values()):
            stream.finish()
        self._streams.clear()
        self.ledger.end_records()
        return self.ledger.take_events()

    def give_up(self, why: str) -> list[Event]:
        """Account for what of the source cannot be had, as one more line, and end."""
        events = self.finish()
        self.lines += 1
        self.ledger.unread(self.lines, "", why)
        return [*events, *self.ledger.take_events()]

    def _skip(self, block: bytes) -> bytes:
        """Return what follows the line that is too long; nothing while it goes on."""
        newline = block.find(b"\n")
        if newline < 0:
            return b""
        self._too_long(self._head or b"")
        self._head = None
        return block[newline + 1 :]

    def _too_long(self, head: bytes) -> None:
        self.lines += 1
        text = head.decode("utf-8", "replace")
        self.ledger.unread(self.lines, text, f"a line of more than {LONGEST_LINE_BYTES // 2**20} MiB")
        if self._copy is not None:
            self._copy(scrub(text).encode() + b"\n")

    def _lines(self, data: bytes, end: int) -> None:
        position = copied = 0
        next_log = data.find(b"NCCL ", 0, end)
        while position < end:
            if 0 <= next_log < position:
                next_log = data.find(b"NCCL ", position, end)
            if 0 <= next_log < position + _NEAR_BYTES or data.startswith(_BLANK, position, end):
                stop = log_lines.bulk(data, position, end)
            else:
                stop = self._pass_by(data, position, end) if self._is_calm else position
                if stop > position:
                    position = stop
                    continue
            if stop == position:
                stop = data.index(b"\n", position) + 1
                scrubbed = self._line(data[position:stop])
                if scrubbed is not None and self._copy is not None:
                    self._copy(data[copied:position])
                    self._copy(scrubbed)
                    copied = stop
            else:
                self._log_lines(data, position, stop)
            position = stop
        if self._copy is not None and copied < end:
            self._copy(data[copied:end])

    def _pass_by(self, data: bytes, start: int, end: int) -> int:
        """List the lines from `start` on that nobody reads and that hold no secret; return where another begins."""
        position = start
        passed: list[str] = []
        while position < end:
            newline = data.index(b"\n", position)
            text = data[position:newline].rstrip(b"\r").decode("utf-8", "replace")
            line = nobodys(text)
            if line is None or self._prefixes.may_learn(text) or scrub(text) != text:
                break
            passed.append(line)
            position = newline + 1
        self.ledger.nobodys(self.lines + 1, passed, NOBODYS)
        self.lines += len(passed)
        return position

    def _log_lines(self, data: bytes, start: int, stop: int) -> None:
        lines = data.count(b"\n", start, stop)
        self.lines += lines
        self.ledger.known(lines)
        host = log_lines.host_of(data, start)
        if host is not None and len(self._hosts) < _MOST_HOSTS:
            self._hosts[host] = None

    def _line(self, raw: bytes) -> bytes | None:
        """Read one line; return it for the copy when something in it must be withheld."""
        self.lines += 1
        text = raw.rstrip(b"\r\n").decode("utf-8", "replace")
        self._read(text)
        self._is_calm = (
            not self._prefixes.is_busy
            and len(self._streams) <= _MOST_CALM
            and all(stream.is_calm for stream in self._streams.values())
        )
        scrubbed = scrub(text) if self._copy is not None else text
        return scrubbed.encode() + b"\n" if scrubbed != text else None

    def _read(self, text: str) -> None:
        open_stream = self._streams.get("")
        if text.startswith("{") and text.endswith("}") and not (open_stream is not None and open_stream.is_collecting):
            text = as_written(text.encode()).decode("utf-8", "replace")
        for held in self._prefixes.release(text):
            self._take(held.number, *self._prefixes.split(held.text))
        tag, line = self._prefixes.split(text)
        stream = self._streams.get(tag)
        if (stream is None or not stream.is_collecting) and self._prefixes.hold(self.lines, text, line):
            return
        self._take(self.lines, tag, line)

    def _take(self, number: int, tag: str, line: str) -> None:
        stream = self._streams.get(tag)
        if stream is None:
            stream = self._streams[tag] = Stream(self._formats, self.ledger)
        self._offer(stream, number, line)
        if stream.is_idle:
            del self._streams[tag]
        elif len(self._streams) > _MOST_OPEN:
            self._streams.pop(next(iter(self._streams))).finish()

    def _offer(self, stream: Stream, number: int, line: str) -> None:
        torn = log_lines.torn(line, self._hosts)
        if torn is None:
            stream.take(number, line)
        elif torn.before.strip() and torn.after.strip():
            self.ledger.unread(number, line, "a log line stands in the middle of it")
        elif torn.before.strip():
            stream.take_torn(number, torn.before)
        elif torn.after.strip():
            stream.take(number, torn.after)
        else:
            self.ledger.known()
