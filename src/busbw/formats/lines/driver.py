"""One source as a stream of bytes, through every reader: lines split, streams told apart, log lines passed by.

Memory stays bounded whatever comes: a table's readings are handed out with the block they were in, and a line, a
document and the number of things that are open have limits.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from busbw.formats.form import TextFormat
from busbw.formats.lines import log_lines
from busbw.formats.lines.ledger import Event, SourceLedger
from busbw.formats.lines.prefix import PREFIXES, as_written, scrub, split
from busbw.formats.lines.stream import UNKNOWN_LINE, Formats, LineStream

# How a line begins that a reader, or a library's log, may begin with; longer than needed does no harm.
_BEGINNINGS = (
    "OSU |nThread|rccl|RCCL|NCCL|HIP|ROCm|USAGE|libfabric|MPI|srun|slurmstepd|[Ss]ize|bytes|Avg|Overall|Bandwidth|MB/s|"
    "Send|RDMA|Atomic|COMMS|Rank|The |Out of|GPU memory|Blocking|Parallel|Swap|Per-Iteration|Reducing|Testing|Errors|"
    "nvbandwidth|Running |mem|shmem_|nprocs|This is a test|"
    r"skipping|out-of-place|in-place|Option|test_info|results|Test |Invalid|Cuda|\(B\)|"
    "Network ?(?:Load|Tests)|iterations,|Runtime options|mype:|Rocm|Unidirectional|Bidirectional|Host to|Device to|"
    r"bandwidthTest|\[CUDA Bandwidth|\[PE "
)
# A word, a path, a dictionary of Python, a date or a name in brackets, a level after a dash: no table's row, no
# comment, no JSON.
_WORD = r"[A-Za-z(/<]|\{'|\[(?:\d{4}-\d|[A-Za-z])|- [A-Z]"
_UNREAD_TEXT = re.compile(rf"(?!    )(?>{PREFIXES})(?P<line>[ \t]*+(?!{_BEGINNINGS})(?:{_WORD}).*)", re.ASCII)


def unread_text(text: str) -> str | None:
    """Return a line without its prefixes when it is certain that nobody reads it; None when readers must be asked."""
    match = _UNREAD_TEXT.match(text)
    if match is None:
        return None
    # A log line of NCCL, a colour, a failure of nccl-tests. One by one: a loop over them takes three times as long.
    if "NCCL " in text or "\x1b" in text or "failure " in text:
        return None
    return None if "Test timeout (" in text or "Invalid number of GPUs" in text else match["line"]


# Words of lines that begin with a comment sign, whatever stands before it.
_AFTER_A_SIGN = (
    "ccl-tests version ", "Collective test starting", "Using ", "in-place", "Writing JSON output",
    "NCCL Tests compiled", "MPI Benchmark", " Benchmarking", "#bytes", "Send Buffer on ",
    "shmem_", "_on_stream", "_device", "#device_",
)  # fmt: skip
_LONGEST = 200
_LONGEST_LINE = 4096
_MOST = 64
# Lines that may come before one that confirms: other ranks write too.
_PATIENCE = 16
# What changes from line to line: a date, a time of day, seconds since 1970.
_MOMENT = re.compile(r"\d{4}[-/.]\d\d[-/.]\d\d|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?|\d{10,}(?:\.\d{1,9})?", re.ASCII)
_ANY_MOMENT = r"[\d:.,/-]{8,30}"
# pdsh, whose names `split` knows where a line of a table follows, and nowhere else.
_NAMED_TAG = re.compile(r"[A-Za-z][\w.-]{0,80}:")
_NAMED = re.compile(r"([A-Za-z][\w.-]{0,80}:) ?", re.ASCII)
_MOST_NAMES = 65_536
# A line that begins no table begins none with other numbers in it: logs have few forms of lines, and many of each.
_OTHER_DIGITS = str.maketrans("123456789", "000000000")
_MOST_FORMS = 4096
# A line within quotation marks, as a list of JSON or of Python has it.
_QUOTES = ('"', "'")
_QUOTED_END = re.compile(r"(?:\\[nr])*[\"'],?\s*$")


def may_teach(line: str) -> bool:
    """Whether a table may begin in a line: each that begins one, but a row without a header, has one of these words.

    Every line of a log is asked; a loop over the words takes three times as long.
    """
    if "nThread " in line or "busbw" in line or "OSU " in line or " BW Test" in line or "Latency Test" in line:
        return True
    if "COMMS-RES" in line or "Rank:" in line or "nvbandwidth " in line or "(column)" in line:
        return True
    if "Waiting for client" in line or "rccl-tests: " in line or "Running " in line:
        return True
    if "Tests v" in line or "(usec) " in line or "size(B)" in line or "mype: " in line or "&&&& PERF " in line:
        return True
    return _may_teach_of_copies(line) or ("#" in line and any(word in line for word in _AFTER_A_SIGN))


def _may_teach_of_copies(line: str) -> bool:
    if "andwidth Test" in line or "andwidthTest" in line or " Bandwidth, " in line or "| Test: " in line:
        return True
    return "iterations,5" in line or "Runtime options" in line


class Strange(NamedTuple):
    """A prefix: what it is the same in, and the form of it."""

    tag: str
    form: re.Pattern[str]
    is_quotation: bool

    def rest(self, line: str) -> str | None:
        """Return what follows the prefix in `line`; None when it does not begin with it."""
        match = self.form.match(line)
        if match is None:
            return None
        rest = line[match.end() :]
        return _QUOTED_END.sub("", rest) if self.is_quotation else rest


class HeldLine(NamedTuple):
    """The line that seems to begin a table after a prefix: nothing is done with it until another confirms it."""

    number: int
    text: str
    strange: Strange
    patience: int


@dataclass(slots=True)
class Prefixes:
    """What stands before the lines of one source."""

    readers: Sequence[TextFormat]
    _held: list[HeldLine] = field(default_factory=list)
    _learnt: list[Strange] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)
    _no_tables: set[str] = field(default_factory=set)

    @property
    def is_busy(self) -> bool:
        """Whether every line has to be looked at: prefixes have been learnt, or one may be."""
        return bool(self._learnt or self._names or self._held)

    def split(self, text: str) -> tuple[str, str]:
        """Return the tag in front of a line, and the line without tag, dates and colour."""
        tag, line = split(text)
        if _NAMED_TAG.fullmatch(tag) and len(self._names) < _MOST_NAMES:
            self._names.add(tag)
        elif self._names and (match := _NAMED.match(line)) and match[1] in self._names:
            return tag + match[1], line[match.end() :]
        for strange in self._learnt:
            rest = strange.rest(line)
            if rest is not None:
                inner, rest = split(rest)
                return tag + strange.tag + inner, rest
        return tag, line

    def may_learn(self, text: str) -> bool:
        """Whether a table may begin in a line, and began in none that differs from it in its numbers alone."""
        return may_teach(text) and text.translate(_OTHER_DIGITS) not in self._no_tables

    def hold(self, number: int, text: str, line: str) -> bool:
        """Whether a line seems to begin a table after a prefix; it is held then. `line` is what `split` left of it."""
        if len(self._held) + len(self._learnt) >= _MOST or len(line) > _LONGEST_LINE:
            return False
        # Records of JSON have such words in their names, and what collectors wrap has been taken out of them.
        if line.startswith("{") or not may_teach(line) or not self.may_learn(text):
            return False
        strange = self._before_a_table(line)
        if strange is None:
            if len(self._no_tables) >= _MOST_FORMS:
                self._no_tables.clear()
            self._no_tables.add(text.translate(_OTHER_DIGITS))
        else:
            self._held.append(HeldLine(number, text, strange, _PATIENCE))
        return strange is not None

    def release(self, text: str) -> list[HeldLine]:
        """Return the held lines whose prefix `text` confirms, which is learnt then, or that have waited too long."""
        if not self._held:
            return []
        _, line = split(text)
        confirmed = [held for held in self._held if held.strange.rest(line) is not None]
        self._learnt += [held.strange for held in confirmed]
        waiting = [
            held._replace(patience=held.patience - bool(line.strip())) for held in self._held if held not in confirmed
        ]
        self._held = [held for held in waiting if held.patience > 0]
        return confirmed + [held for held in waiting if held.patience <= 0]

    def give_up(self) -> list[HeldLine]:
        """Return the lines that are held: no other is to come."""
        held, self._held = self._held, []
        return held

    def _before_a_table(self, line: str) -> Strange | None:
        quoted_end = _QUOTED_END.search(line)
        for at in range(min(len(line), _LONGEST)):
            if at and (line[at - 1].isalnum() or line[at].isspace()):
                continue
            prefix = line[:at].rstrip()
            stop = quoted_end.start() if quoted_end is not None and prefix.endswith(_QUOTES) else len(line)
            rest = line[at : max(at, stop)]
            if any(reader.starts.match(rest) for reader in self.readers):
                return _strange(prefix)
        return None


def _strange(prefix: str) -> Strange | None:
    # A comment sign, or what only divides, is part of many lines.
    if not prefix.strip(" #*=_-"):
        return None
    still = _MOMENT.split(prefix)
    form = _ANY_MOMENT.join(re.escape(part) for part in still)
    return Strange("".join(still), re.compile(form, re.ASCII), prefix.endswith(_QUOTES))


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
        self._streams: dict[str, LineStream] = {}
        self._hosts: dict[str, None] = {}
        self._prefixes = Prefixes(formats.text)
        self._rest = b""
        # Of a line that is too long: its beginning, and that the rest of it is thrown away.
        self._head: bytes | None = None
        # Whether a line that nobody reads changes nothing; found out again after every other one.
        self._is_calm = True
        self.ledger = SourceLedger(source=source, next_table=first_table)
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
            line = unread_text(text)
            if line is None or self._prefixes.may_learn(text) or scrub(text) != text:
                break
            passed.append(line)
            position = newline + 1
        self.ledger.unread_text(self.lines + 1, passed, UNKNOWN_LINE)
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
            stream = self._streams[tag] = LineStream(self._formats, self.ledger)
        self._offer(stream, number, line)
        if stream.is_idle:
            del self._streams[tag]
        elif len(self._streams) > _MOST_OPEN:
            self._streams.pop(next(iter(self._streams))).finish()

    def _offer(self, stream: LineStream, number: int, line: str) -> None:
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
