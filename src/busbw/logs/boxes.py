"""Messages that launchers print between two lines of dashes, joined to one text each."""

import re
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
    r"does not|doesn.t|did not|didn.t|refus\w+|unexpected(?:ly)?|dropped|disconnected|only one|more than one)\b"
)
# What goes on as before, and what only says that a process ended.
_GOES_ON = re.compile(
    r"(?i)\bwarning\b|deprecat|will (?:be ignored|continue|be used instead|attempt)|going to continue|performance|"
    r"no impact|help message|more processes? ha(?:s|ve) sent|^(?:failures|root cause|fatal errors)\b|"
    r"job +terminated normally|"
    r"exited on signal|non-zero (?:exit )?(?:status|code)|MPI_ABORT was|clean(?:ly)? terminat|exiting improperly|"
    r"was killed|[^\n]*\bFAILED$"
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
    return len(text.split()) >= _FEWEST_WORDS and _FAILS.search(text) is not None and _GOES_ON.search(text) is None
