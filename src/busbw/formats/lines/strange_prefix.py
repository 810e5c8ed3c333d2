"""Prefixes of lines that no launcher here is known to write, told from what stands before the beginning of a table.

Loggers, Ray, Ansible, journald, a CI system: each puts words of its own in front. They are the same in every line of a
table but for the time, so the first line of a table shows them, and another line that begins alike confirms it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from busbw.formats.form import TextFormat
from busbw.formats.lines.prefix import split

# Words of lines that begin with a comment sign, whatever stands before it.
_AFTER_A_SIGN = (
    "ccl-tests version ", "Collective test starting", "Using ", "in-place", "Writing JSON output",
    "NCCL Tests compiled", "MPI Benchmark", " Benchmarking", "#bytes", "Send Buffer on ",
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
    return "#" in line and any(word in line for word in _AFTER_A_SIGN)


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


class Held(NamedTuple):
    """The line that seems to begin a table after a prefix: nothing is done with it until another confirms it."""

    number: int
    text: str
    strange: Strange
    patience: int


@dataclass(slots=True)
class Prefixes:
    """What stands before the lines of one source."""

    readers: Sequence[TextFormat]
    _held: list[Held] = field(default_factory=list)
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
            self._held.append(Held(number, text, strange, _PATIENCE))
        return strange is not None

    def release(self, text: str) -> list[Held]:
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

    def give_up(self) -> list[Held]:
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
