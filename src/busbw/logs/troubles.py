"""Lines that tell of problems: recognised, counted, and the first of each kind from each process kept."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from busbw.facts.logs import LogCode, LogPattern, LogStage, log_codes, log_patterns, log_regex, log_stages
from busbw.logs.pattern_index import possible_patterns

_MOST_KEPT = 2**16
_MOST_SHAPES = 2**16
_LONGEST_TEXT = 400
_LONGEST_KIND = 60
# HIP says it of itself where no line of RCCL does.
_UNSAID = "?"
_OF_AMD = re.compile(r"\bhip[A-Z]\w|\bHIP\b", re.ASCII)
# Warnings that nobody knows, told apart by their words.
_VARIES = re.compile(r"(?<=nccl-)\w+|\b(?=[0-9a-f]*\d)(?:0x)?[0-9a-f]+\b|\d+")


@dataclass(slots=True)
class TroubleEvent:
    """The first line of one kind from one process, and how many came."""

    pattern: LogPattern | None
    groups: dict[str, str]
    text: str
    process: str | None
    host: str | None
    device: str | None
    rank: int | None
    time: str | None
    source: int
    line: int
    # The last line of its kind in that source; 0: it is the only one.
    last: int = 0
    count: int = 1
    # NCCL's source file that warns.
    file: str | None = None
    # Said at level INFO, which NCCL uses for what it gets over.
    quiet: bool = False
    # NCCL handed an error up right after it.
    fatal: bool = False

    @property
    def kind(self) -> str:
        """What it has in common with others: its pattern, else its words without numbers, addresses and file names."""
        return self.pattern.id if self.pattern is not None else _VARIES.sub("#", self.text)

    @property
    def what(self) -> str:
        """What it tells, in words; the line itself, where nobody knows it."""
        if self.pattern is None:
            return self.text
        what = self._said(self.pattern).removesuffix(f": {_UNSAID}")
        return f"{what}, while {self.stage.what}" if self.stage is not None else what

    @property
    def lacks_words(self) -> bool:
        """Whether the line lacks what others of its kind say behind a colon."""
        return self.pattern is not None and f": {_UNSAID}" in self._said(self.pattern)

    def _said(self, pattern: LogPattern) -> str:
        code = self.code
        return (pattern.what if code is None else code.what).format_map(self._words())

    @property
    def stage(self) -> LogStage | None:
        """What NCCL was about, where the text does not tell."""
        if self.file is None or (self.pattern is not None and not self.pattern.needs_stage):
            return None
        return log_stages().get(self.file.rsplit("/", 1)[-1])

    @property
    def code(self) -> LogCode | None:
        """What the number in it means, where it holds one that is known."""
        known = (log_codes().get((of, self.groups[of])) for of in ("signal", "xid", "errno") if of in self.groups)
        return next((code for code in known if code is not None), None)

    @property
    def cause(self) -> str:
        """Why that happens."""
        code = self.code
        return code.cause if code is not None else self.pattern.cause if self.pattern is not None else ""

    def fix(self, *, is_amd: bool) -> str | None:
        """Return what to do about it."""
        if self.pattern is None:
            return None
        if self.code is not None:
            return self.code.fix
        is_amd = is_amd or _OF_AMD.search(self.text) is not None
        other = self.pattern.fix_amd if is_amd else self.stage.fix if self.stage is not None else None
        return other or self.pattern.fix.format_map(self._words())

    def _words(self) -> Mapping[str, str]:
        number = next((self.groups[of] for of in ("signal", "xid", "errno") if of in self.groups), _UNSAID)
        return defaultdict(lambda: _UNSAID, {"number": number, **self.groups})

    @property
    def role(self) -> str:
        """What it can tell about the end of a job."""
        return self.pattern.role if self.pattern is not None else "unknown"


@dataclass(slots=True)
class Troubles:
    """All events so far."""

    events: dict[tuple[str, str], TroubleEvent] = field(default_factory=dict)
    _known: dict[int, int] = field(default_factory=dict)
    _last: dict[str, TroubleEvent] = field(default_factory=dict)

    def matched(self, message: str, shape: int) -> tuple[LogPattern, dict[str, str]] | None:
        """Return the pattern that a message matches, and its groups. Messages of one shape match the same."""
        return self._match(message, shape, range(len(log_patterns())))

    def matched_quiet(self, message: str, shape: int) -> tuple[LogPattern, dict[str, str]] | None:
        """Return the same for a message of level INFO, most of which only tell what NCCL does."""
        return self._match(message, shape, _quiet_ones())

    @staticmethod
    def matched_once(message: str) -> tuple[LogPattern, dict[str, str]] | None:
        """Return the same for a text that has no shape."""
        every = log_patterns()
        for number in possible_patterns(message, range(len(every))):
            match = log_regex(every[number].regex).search(message)
            if match is not None:
                return every[number], _named_groups(match)
        return None

    def holds(self, source: int, lines: range) -> bool:
        """Whether one of these lines of a source is known."""
        return any(
            event.source == source and event.line in lines and event.pattern is not None
            for event in self.events.values()
        )

    def _match(self, message: str, shape: int, among: Sequence[int]) -> tuple[LogPattern, dict[str, str]] | None:
        known = self._known.get(shape)
        if known is not None and known < 0:
            return None
        every = log_patterns()
        if known is not None and (match := log_regex(every[known].regex).search(message)) is not None:
            return every[known], _named_groups(match)
        # A pattern may ask for a number, which a shape does not have.
        for number in possible_patterns(message, among):
            match = log_regex(every[number].regex).search(message)
            if match is not None:
                self._remember(shape, number)
                return every[number], _named_groups(match)
        if known is None:
            self._remember(shape, -1)
        return None

    def add(self, event: TroubleEvent) -> TroubleEvent | None:
        """Keep an event, or count it where one of its kind from its process is kept; return the kept one."""
        kind = event.kind
        if event.pattern is not None:
            groups = event.groups
            kind += "".join(groups.get(name, "")[:_LONGEST_KIND] for name in kind_groups(event.pattern))
        key = (kind, event.process or f"rank {event.rank}")
        kept = self.events.get(key)
        if kept is not None:
            kept.count += 1
            if event.source == kept.source:
                kept.last = event.line
            if event.pattern is not None and event.pattern.deepest:
                kept.text, kept.groups, kept.line = event.text.strip()[:_LONGEST_TEXT], event.groups, event.line
        elif len(self.events) < _MOST_KEPT:
            event.text = event.text.strip()[:_LONGEST_TEXT]
            kept = self.events[key] = event
        if event.process is not None and kept is not None:
            self._last[event.process] = kept
        return kept

    def repeated(self, kept: TroubleEvent, source: int, line: int) -> None:
        """Count one more of a kept event."""
        kept.count += 1
        if source == kept.source:
            kept.last = line
        if kept.process is not None:
            self._last[kept.process] = kept

    def traced(self, process: str) -> None:
        """Note that a process hands up an error: its last warning was the reason."""
        last = self._last.get(process)
        if last is not None and (last.pattern is None or not last.pattern.goes_on):
            last.fatal = True

    def settle(self) -> None:
        """Note what kept MPI, or a library of it, from starting, where that says that it could not."""
        if any(event.pattern is not None and event.pattern.outcome == "start" for event in self.events.values()):
            for event in self.events.values():
                event.fatal = event.fatal or (event.pattern is not None and event.pattern.at_start)

    def _remember(self, shape: int, number: int) -> None:
        if len(self._known) < _MOST_SHAPES:
            self._known[shape] = number


def kind_groups(pattern: LogPattern) -> tuple[str, ...]:
    """Return the groups by whose text events of one pattern are told apart.

    Messages differ by their words, timeouts by call, faults of GPUs by number, deaths by process, frames of stacks by
    library.
    """
    of_any = ("sequence", "xid", "pid", "library")
    return ("text", *of_any) if pattern.id == "launcher-says" else of_any


def _named_groups(match: re.Match[str]) -> dict[str, str]:
    return {name.rstrip("123456789"): text for name, text in match.groupdict().items() if text}


@cache
def _quiet_ones() -> tuple[int, ...]:
    return tuple(number for number, pattern in enumerate(log_patterns()) if pattern.quiet)
