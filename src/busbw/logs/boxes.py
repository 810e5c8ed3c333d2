"""Messages that launchers print over several lines: between two lines of dashes, and notices of who failed."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from busbw.formats.lines.prefix import split

# Open MPI, PRRTE and PMIx draw 60 to 76.
_DASHES = b"-" * 58
_LONGEST_RULE = 80
_LONGEST = 8192
_MOST_LINES = 40
_FEWEST_WORDS = 5
_FAILS = re.compile(
    r"(?i)\b(?:cannot|can.t|unable|could not|not (?:found|supported|available|recogni\w+|valid|allowed|enough|exist)|"
    r"fail\w*|error|invalid|abort\w*|unknown|illegal|conflict\w*|missing|must|exceed\w*|too (?:long|many|few)|"
    r"unrecogni[sz]ed|does not|doesn.t|did not|didn.t|refus\w+|unexpected(?:ly)?|dropped|disconnected|only one|"
    r"more than one)\b"
)
# What goes on as before, and what only says that a process ended.
_GOES_ON = re.compile(
    r"(?i)\bwarning\b|deprecat|will (?:be ignored|continue|be used instead|attempt)|going to continue|performance|"
    r"no impact|help message|more processes? ha(?:s|ve) sent|^(?:failures|root cause|fatal errors)\b|"
    r"job +terminated normally|"
    r"exited on signal|non-zero (?:exit )?(?:status|code)|MPI_ABORT was|clean(?:ly)? terminat|exiting improperly|"
    r"was killed|[^\n]*\bFAILED$"
)


# What says so of an option and ends all the same.
_ENDS = re.compile(
    r"(?i)please (?:correct|fix) (?:the|this|your)|cannot continue|(?:job|process) will (?:now )?(?:abort|be aborted)"
)


class BoxedMessage(NamedTuple):
    """One message. `lines`: those between the dashes."""

    lines: range
    text: str


class Boxes:
    """Give it the blocks of one source, each ending with a line."""

    def __init__(self) -> None:
        self._line = 1
        # What came since the dashes above, and the line on which that begins; None: there were none.
        self._open: tuple[int, bytes] | None = None

    def feed(self, block: bytes) -> list[BoxedMessage]:
        """Return the messages that end in a block and tell of a failure."""
        found: list[BoxedMessage] = []
        done = 0
        at = block.find(_DASHES)
        while at >= 0:
            start = block.rfind(b"\n", 0, at) + 1
            end = block.find(b"\n", at) + 1 or len(block)
            if _is_rule(block[start:end]):
                found += self._rule(self._line + block.count(b"\n", done, start), block[done:start])
                self._line += block.count(b"\n", done, end)
                done = end
            at = block.find(_DASHES, end)
        if self._open is not None:
            line, held = self._open
            held += block[done:]
            self._open = (line, held) if len(held) <= _LONGEST else None
        self._line += block.count(b"\n", done)
        return found

    def _rule(self, line: int, before: bytes) -> list[BoxedMessage]:
        box = None
        if self._open is not None:
            first, held = self._open
            box = _box(first, line, held + before)
        self._open = None if box is not None else (line + 1, b"")
        return [box] if box is not None and _tells(box.text) else []


def _is_rule(line: bytes) -> bool:
    text = split(line.decode(errors="replace"))[1].strip()
    return set(text) == {"-"} and len(text) <= _LONGEST_RULE


def _box(first: int, end: int, held: bytes) -> BoxedMessage | None:
    if not first < end <= first + _MOST_LINES or len(held) > _LONGEST:
        return None
    lines = (split(line)[1].strip() for line in held.decode(errors="replace").split("\n"))
    text = " ".join(line for line in lines if line)
    return BoxedMessage(range(first, end), text) if text else None


def _tells(text: str) -> bool:
    if len(text.split()) < _FEWEST_WORDS or _FAILS.search(text) is None:
        return False
    return _GOES_ON.search(text) is None or _ENDS.search(text) is not None


# torchrun's table of failures, and the frame that Hydra (MPICH, Intel MPI) prints.
_PARTS = tuple(
    re.compile(regex, re.ASCII)
    for regex in (
        r"^\s*host +: (?P<host>[\w.-]{1,253})\s*$",
        r"^\s*rank +: (?P<rank>\d{1,7}) \(local_rank: \d+\)",
        r"^= +(?:RANK (?P<rank>\d{1,7}) )?PID (?P<pid>\d{1,10}) RUNNING AT (?P<host>[\w.-]{1,253})",
    )
)
# The lines of a notice stand together.
_WITHIN = 10


class LauncherNotice:
    """The parts of the latest notice."""

    def __init__(self) -> None:
        self._groups: dict[str, str] = {}
        self._place = (-1, 0)

    def read(self, text: str, source: int, line: int) -> bool:
        """Keep what a line says, and say whether it is a part of a notice."""
        match = next((match for regex in _PARTS if (match := regex.match(text)) is not None), None)
        if match is None:
            return False
        if not self._is_near(source, line):
            self._groups = {}
        self._groups |= {name: said for name, said in match.groupdict().items() if said}
        self._place = (source, line)
        return True

    def about(self, source: int, line: int) -> Mapping[str, str]:
        """Return host, rank and process id of whom a line is about that follows the parts."""
        return self._groups if self._is_near(source, line) else {}

    def _is_near(self, source: int, line: int) -> bool:
        return self._place[0] == source and 0 <= line - self._place[1] <= _WITHIN
