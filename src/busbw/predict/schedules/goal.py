"""Schedules as LogGOPSim's text has them (GOAL): ranks that send, receive and calculate, and what each act requires.

    num_ranks 2
    rank 0 {
    l1: send 8b to 1 tag 0
    l2: calc 1000
    l2 requires l1
    }

Bytes are as written, what is calculated takes nanoseconds. `requires` waits for the end of an act, `irequires` for what
that one waits for. Which CPU or NIC of a node an act takes (`cpu 0 nic 0`) is read and not used. Source of the form:
txt2bin.re of github.com/spcl/LogGOPSim.
"""

import re
from collections.abc import Iterator

from busbw.base.errors import InputError
from busbw.predict.schedules.programs import MOST_ACTS, MOST_RANKS, Act, WrittenSchedule

MOST_BYTES = 64 * 2**20
_MOST_WAITS = 4 * MOST_ACTS
_LONGEST = 1000
_MOST_OF_AN_ACT = 2**50
_HINT = "a form that is read: l1: send 8b to 1 tag 0; l2: recv 8b from 1 tag 0; l3: calc 100; l2 requires l1"
_RANKS = re.compile(r"num_ranks\s+([0-9]{1,9})", re.ASCII)
_RANK = re.compile(r"rank\s+([0-9]{1,9})\s*\{", re.ASCII)
_LABEL = r"(?:([a-zA-Z][a-zA-Z0-9_]*)\s*:\s*)?"
_PLACE = r"(?:\s+cpu\s+[0-9]{1,6})?(?:\s+nic\s+[0-9]{1,6})?"
_MESSAGE = re.compile(
    _LABEL + r"(?:send\s+([0-9]{1,18})b\s+to|recv\s+([0-9]{1,18})b\s+from)\s+([0-9]{1,9})"
    r"(?:\s+tag\s+([0-9]{1,10}))?" + _PLACE,
    re.ASCII,
)
_CALC = re.compile(_LABEL + r"calc\s+([0-9]{1,18})" + _PLACE, re.ASCII)
_WAIT = re.compile(r"([a-zA-Z][a-zA-Z0-9_]*)\s+(i?)requires\s+([a-zA-Z][a-zA-Z0-9_]*)", re.ASCII)
_ANY = re.compile(r"(?:from|tag)\s+-1\b", re.ASCII)


def goal_text(program: WrittenSchedule, words: str) -> str:
    """Return a program of one round as text; `words` stand above it as comments."""
    lines = [*(f"// {line}" for line in words.splitlines()), f"num_ranks {len(program.acts)}"]
    for rank, acts in enumerate(program.acts):
        lines += ["", f"rank {rank} {{"]
        for number, act in enumerate(acts, 1):
            lines.append(f"l{number}: {_act_text(act)}")
            lines += [f"l{number} requires l{at + 1}" for at in dict.fromkeys(at for at, _ in act.after)]
        lines.append("}")
    return "\n".join(lines) + "\n"


def _act_text(act: Act) -> str:
    if act.what == "calc":
        return f"calc {act.amount}"
    towards = "to" if act.what == "send" else "from"
    return f"{act.what} {act.amount}b {towards} {act.peer} tag {act.tag}"


def program_of_goal(raw: bytes, where: str) -> WrittenSchedule:
    """Return the program of a text; `where` names it. Raises InputError for what is none, and for too much of it."""
    if len(raw) > MOST_BYTES:
        raise InputError(f"{where} is over {MOST_BYTES >> 20} MiB: no schedule that is read is", where=where)
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError as error:
        place = f"{where}:{raw[: error.start].count(10) + 1}"
        raise InputError(f"{where} is not plain ASCII", where=place, hint=_HINT) from error
    reading = _GoalReading(where)
    for number, line in _lines(text, where):
        reading.line(line, number)
    return reading.program()


def _lines(text: str, where: str) -> Iterator[tuple[int, str]]:
    """Return each line that says something with its number, without comments."""
    is_comment = False
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > _LONGEST:
            raise InputError(f"a line of more than {_LONGEST} characters", where=f"{where}:{number}", hint=_HINT)
        left, kept = line, ""
        while left:
            if is_comment:
                _, closed, left = left.partition("*/")
                is_comment = not closed
                continue
            kept += left[: min(at for at in (left.find("/*"), left.find("//"), len(left)) if at >= 0)]
            opened = left.find("/*")
            one_line = left.find("//")
            if opened < 0 or 0 <= one_line < opened:
                break
            is_comment, left = True, left[opened + 2 :]
        if kept.strip():
            yield number, kept.strip()


class _GoalReading:
    """The ranks that were read so far."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.acts: list[list[Act]] = []
        self.rank: int | None = None
        self.begun: set[int] = set()
        self.labels: dict[str, int] = {}
        self.count = 0
        self.waits = 0
        # Acts of the rank that wait for what others wait for.
        self.early: list[tuple[int, int]] = []

    def refused(self, words: str, number: int, hint: str = _HINT) -> InputError:
        return InputError(words, where=f"{self.where}:{number}", hint=hint)

    def line(self, line: str, number: int) -> None:
        if not self.acts:
            match = _RANKS.fullmatch(line)
            if match is None or not 1 <= int(match[1]) <= MOST_RANKS:
                words = f"it begins with num_ranks and 1 to {MOST_RANKS} of them"
                raise self.refused(f"{self.where} is no schedule in GOAL", number, words)
            self.acts = [[] for _ in range(int(match[1]))]
        elif self.rank is None:
            self._begin(line, number)
        elif line == "}":
            self._end()
        else:
            self._statement(line, number)

    def _begin(self, line: str, number: int) -> None:
        match = _RANK.fullmatch(line)
        if match is None:
            raise self.refused(f"{line[:40]!r} begins no rank", number, "rank 0 {")
        rank = int(match[1])
        if rank >= len(self.acts) or rank in self.begun:
            what = "stands there twice" if rank in self.begun else f"is not one of {len(self.acts)}"
            raise self.refused(f"rank {rank} {what}", number, "num_ranks N, then each of rank 0 to N-1 once")
        self.begun.add(rank)
        self.rank, self.labels = rank, {}

    def _end(self) -> None:
        own = self.acts[self.rank or 0]
        for at, other in self.early:
            own[at].after += own[other].after
            self.waits += len(own[other].after)
            if self.waits > _MOST_WAITS:
                raise InputError(f"{self.where} has more than {_MOST_WAITS} dependencies", where=self.where)
        self.early = []
        self.rank = None

    def _statement(self, line: str, number: int) -> None:
        own = self.acts[self.rank or 0]
        wait = _WAIT.fullmatch(line)
        if wait is not None:
            self._wait(wait[1], wait[3], number, early=bool(wait[2]))
            return
        message, calc = _MESSAGE.fullmatch(line), _CALC.fullmatch(line)
        if message is not None:
            label, sent, received, peer, tag = message.groups()
            amount = int(sent or received)
            act = Act("send" if sent else "recv", amount, int(peer), int(tag or 0), line=number)
        elif calc is not None:
            label, amount = calc[1], int(calc[2])
            act = Act("calc", amount, line=number)
        elif _ANY.search(line):
            raise self.refused("a receive from any rank, or of any tag", number, "name the sender and the tag")
        else:
            raise self.refused(f"{line[:60]!r} is no act", number)
        self.count += 1
        if self.count > MOST_ACTS:
            raise self.refused(f"more than {MOST_ACTS} acts", number, "a schedule of fewer ranks, or of larger chunks")
        if amount > _MOST_OF_AN_ACT:
            raise self.refused(f"{amount} bytes or nanoseconds in one act", number, f"at most {_MOST_OF_AN_ACT}")
        if label is not None:
            if label in self.labels:
                raise self.refused(f"a second act {label[:40]} of rank {self.rank}", number, "each label once a rank")
            self.labels[label] = len(own)
        own.append(act)

    def _wait(self, label: str, other: str, number: int, *, early: bool) -> None:
        for each in (label, other):
            if each not in self.labels:
                raise self.refused(f"rank {self.rank} has no act {each[:40]} above", number, "labels come first")
        self.waits += 1
        if self.waits > _MOST_WAITS:
            raise self.refused(f"more than {_MOST_WAITS} dependencies", number, "a schedule of fewer ranks")
        at, source = self.labels[label], self.labels[other]
        if early:
            self.early.append((at, source))
        else:
            self.acts[self.rank or 0][at].after.append((source, 0))

    def program(self) -> WrittenSchedule:
        if self.rank is not None or not self.count:
            words = "no rank does anything" if self.rank is None else f"rank {self.rank} has no end"
            raise InputError(f"{self.where}: {words}", where=self.where, hint=_HINT)
        return WrittenSchedule(acts=tuple(self.acts), where=self.where)
