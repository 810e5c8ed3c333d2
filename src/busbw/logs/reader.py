"""Reads the logs of one job: blocks of bytes in, what they say out. One pass; memory does not grow with the lines."""

import re

from busbw._core import LogSieve
from busbw.facts.logs import LogPattern
from busbw.formats.lines.prefix import CollectedLines, uncoloured
from busbw.logs.boxes import BoxedMessage, Boxes, LauncherNotice
from busbw.logs.excerpts import Excerpts
from busbw.logs.lines import AnyEffect, CommunicatorStart, Effect, Trace, WholeLine, effect_of, named, whole_line
from busbw.logs.needles import NEEDLES
from busbw.logs.ras import RasReports, is_of_report
from busbw.logs.repeats import Repeat, Repeats
from busbw.logs.state import Process, State
from busbw.logs.troubles import TroubleEvent, Troubles

_MOST_REMEMBERED = 2**15
_LAST_ERROR_WITHIN = 3
_LONGEST_REST = 2**20
_PART_BYTES = 2**15
_LEVELS_OF_TROUBLE = frozenset({"WARN", "ATTN", "DIAG"})
_ESCAPE = "\x1b"
# Of the sieve, in place of a speaker: the line was learned; tokens go down from here.
_FIRST_LEARNED = -2
_OF_LAUNCHER = "Message of the launcher: "
# nccl-tests: `#  Rank  0 Group  0 Pid   5950 on node66 device  0 [0x34] NVIDIA H800`
_LISTED_GPU = re.compile(r"\bdevice +\d{1,3} \[[0-9a-fx:.]{2,16}\] ((?:NVIDIA|AMD) [\w .-]{1,60}?)\s*$", re.ASCII)
# And the first of its ranks; of the groups that it can split them into, the first has one, too.
_LISTED_FIRST = re.compile(
    r"^\W{0,4}Rank +0 (?:Group +0 )?Pid +(\d{1,10}) on +(\S{1,255}) +device +\d{1,3} \[", re.ASCII
)
# With this its results end.
_LISTED_END = "Avg bus bandwidth"
# PyTorch's mark of what ended a rank stays on the line: launchers put others before any line.
_UNCAUGHT = re.compile(r"\[rank\d{1,7}\]: (?=[\w.]{1,80}(?:Error|Exception)(?::|$))", re.ASCII)
# Programs that people try MPI with: `Hello world from n1 running process 0 of 1`.
# The line itself says that the program goes on.
HARMLESS = re.compile(
    r"^INFO: |\bignor(?:ed|ing)\b|at some point|\b(?:xcgroup_\w{1,30}|(?:task|jobacct_gather)/cgroup):|"
    r"\b[Nn]on-fatal\b|warning only|gds_ds12_lock|could not remove|will retry|"
    r"retrying in|going to \S+ instead"
)
# A level of UCX below a warning.
_FOR_INFORMATION = "UCX  DIAG"
_ALONE = re.compile(
    r"(?i)\bhello\b.{0,80}\b(?:rank|process|processor|worker|task|node|PE)\b.{0,60}?\b0 (?:of|out of) 1\b"
    # And those that say nothing else.
    r"|^\W{0,4}\b(?:my )?rank\W{1,4}0\b\W{1,6}"
    r"(?:(?:of|out of|from)\b|(?:world )?size\W{1,4}|n?procs\W{1,4})\W{0,3}1\W{0,3}$"
    r"|^\W{0,4}(?:number of processes|size|nprocs|world size)\W{1,6}1\b\W{1,6}(?:my |process )?rank\W{1,6}0\W{0,3}$"
    r"|^\W{0,4}process 0 of 1\b.{0,40}$"
    # Intel MPI Benchmarks.
    r"|\bBenchmark \S{1,40} invalid for 1 processes",
    re.ASCII,
)
# RCCL's own words, and the folder that its sources are compiled in.
_OF_RCCL = ("RCCL version", "/hipify/")
# Ray says so behind the one line that it keeps.
_LEFT_OUT = "x across cluster]"


class LogReader:
    """Give it the blocks of one source after the other; `end_source` ends each."""

    def __init__(self) -> None:
        self.sieve = LogSieve(list(NEEDLES))
        self.state = State()
        self.troubles = Troubles()
        self._repeats = Repeats(self.sieve)
        self.ras = RasReports()
        self.excerpts = Excerpts()
        self.sources = 0
        self.counted_twice = 0
        # Lines of each source that has ended.
        self.lengths: list[int] = []
        # Where a framework last passed on an error: source and line.
        self._passed_on = (-1, 0)
        self._notice = LauncherNotice()
        self._collected = CollectedLines()
        self._boxes = Boxes()
        # Of each process of nccl-tests that began since the last result: its number and host.
        self._begun: set[tuple[str, str]] = set()
        # What came after the last end of a line.
        self._rest = b""
        self._speakers: list[tuple[str, str, str]] = []
        self._remembered: dict[str, AnyEffect | None] = {}

    def feed(self, block: bytes) -> None:
        """Read one block."""
        block = self._rest + self._collected.feed(block)
        end = len(block) if len(block) - block.rfind(b"\n") > _LONGEST_REST else block.rfind(b"\n") + 1
        self._rest = block[end:]
        self._take_block(block[:end])

    def end_source(self) -> None:
        """End one source; what comes next is the first line of another."""
        rest = self._rest + self._collected.end()
        self._rest = b""
        # A last line without its end may be cut off, so that `via NET/IB/0/GDRDMA` reads `via NET/IB/0`.
        if b"NCCL INFO" in rest and not rest.rstrip().endswith(b"- Init COMPLETE"):
            rest = b"\n"
        self._take_block(rest)
        self._take(self.sieve.finish())
        self._boxes = Boxes()
        self._begun.clear()
        self.excerpts.end_source()
        self.sources += 1
        self.lengths.append(self.sieve.lines - sum(self.lengths))

    @property
    def nccl_lines(self) -> int:
        """How many lines are of NCCL."""
        return self.sieve.nccl_lines - self.counted_twice

    @property
    def knows_something(self) -> bool:
        """Whether a line is of NCCL, of its monitor, or one that is known."""
        return bool(
            self.nccl_lines
            or self.troubles.events
            or self.ras.latest
            or self.state.bare_version
            or self.state.greeted_alone > 1
            or self.state.listed_alone > 1
        )

    def meet_all(self) -> None:
        """Make processes of those, too, who only told of connections."""
        for number in range(len(self.sieve.speakers())):
            host, pid, _device = self.speaker(number)
            self.state.process(host, pid)

    def speaker(self, number: int) -> tuple[str, str, str]:
        """Return host, process id and device of one who logs."""
        if number >= len(self._speakers):
            for name in self.sieve.speakers()[len(self._speakers) :]:
                host, pid, device = name.rsplit(":", 2)
                self._speakers.append((host, pid, device))
        return self._speakers[number]

    def _take_block(self, block: bytes) -> None:
        first = self.sieve.lines - sum(self.lengths) + 1
        news = []
        # What one part teaches the sieve helps it with the next.
        for start in range(0, len(block), _PART_BYTES):
            known = len(self.troubles.events)
            self._take(self.sieve.feed(block[start : start + _PART_BYTES]))
            news += [start] if len(self.troubles.events) > known else []
        self.excerpts.feed(block, first, self.sieve.lines - sum(self.lengths) + 1, news)
        for box in self._boxes.feed(block):
            if not self.troubles.holds(self.sources, box.lines):
                self._message(box)

    def _message(self, box: BoxedMessage) -> None:
        """Keep a message of a launcher of which no line is known by itself."""
        found = self.troubles.matched_once(box.text) or self.troubles.matched_once(f"{_OF_LAUNCHER}{box.text}")
        if found is not None:
            pattern, groups = found
            self.troubles.add(
                TroubleEvent(
                    pattern, groups, box.text, None, groups.get("host"), None, None, None, self.sources, box.lines.stop
                )
            )

    def _take(self, lines: list[tuple[int, int, int, str]]) -> None:
        for number, speaker, shape, text in lines:
            repeat = self._repeats.of(_FIRST_LEARNED - speaker) if speaker <= _FIRST_LEARNED else None
            if repeat is not None:
                self._again(number, repeat)
            elif speaker >= 0:
                self._info(number, speaker, shape, text)
            elif _ESCAPE in text:
                self._take(self.sieve.again(uncoloured(text).replace(_ESCAPE, "?"), number))
            else:
                self._whole(number, shape, text)

    def _again(self, number: int, repeat: Repeat) -> None:
        event, process, rank = repeat
        self.troubles.repeated(event, self.sources, number)
        if process is not None and rank is not None:
            process.tagged_rank = rank
        self._note_passed_on(event.pattern, number)

    def _note_passed_on(self, pattern: LogPattern | None, number: int) -> None:
        if pattern is not None and pattern.id == "framework-error":
            self._passed_on = (self.sources, number)

    def _info(self, number: int, speaker: int, shape: int, message: str) -> None:
        host, pid, device = self.speaker(speaker)
        effect = self._effect(message)
        if _LEFT_OUT in message:
            self.state.leaves_out = True
        self._note_library(message)
        process = self.state.process(host, pid)
        if process is None:
            return
        if effect is not None:
            self._keep(process, device, effect, number)
            return
        process.first = process.first or number
        matched = self.troubles.matched_quiet(message, shape)
        if matched is None:
            self.sieve.ignore(shape)
            return
        pattern, groups = matched
        self.troubles.add(
            TroubleEvent(
                pattern, groups, message, process.name, host, device, None, None, self.sources, number, quiet=True
            )
        )

    def _note_library(self, text: str) -> None:
        self.state.is_amd = self.state.is_amd or any(sign in text for sign in _OF_RCCL)

    def _keep(self, process: Process, device: str, effect: AnyEffect, number: int) -> None:
        # NCCL says this once in a process.
        if process.made and isinstance(effect, Effect) and effect.name == "bootstrap":
            process = self.state.renewed(process)
            self._repeats.forget()
        process.first = process.first or number
        if isinstance(effect, CommunicatorStart):
            process.made = number
        self.state.take(process, device, effect)
        if isinstance(effect, Trace):
            self.troubles.traced(process.name)

    def _effect(self, message: str) -> AnyEffect | None:
        try:
            return self._remembered[message]
        except KeyError:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            effect = self._remembered[message] = effect_of(message)
            return effect

    def _whole(self, number: int, shape: int, text: str) -> None:
        self._note_library(text)
        line = whole_line(text)
        if line.host is None or line.pid is None:
            with_name = named(text)
            if with_name is not None:
                # The sieve has counted it already, but where the mark stands first.
                self.counted_twice += not text.lstrip().startswith("NCCL ")
                self._take(self.sieve.again(with_name, number))
            else:
                self._foreign(number, shape, line, text)
            return
        process = self.state.process(line.host, line.pid)
        if process is None:
            return
        if line.rank is not None:
            process.tagged_rank = line.rank
        effect = self._effect(line.message)
        # Of what is no INFO line only the way that an error takes up is of interest.
        if effect is not None and (line.level == "INFO" or isinstance(effect, Trace)):
            self._keep(process, line.device or "-1", effect, number)
            return
        # A warning before 2.17.
        if isinstance(effect, Effect) and effect.name == "library missing":
            self._keep(process, line.device or "-1", effect, number)
        is_info = line.level == "INFO"
        matched = (self.troubles.matched_quiet if is_info else self.troubles.matched)(line.message, shape)
        if matched is None and line.level not in _LEVELS_OF_TROUBLE:
            return
        pattern, groups = matched if matched is not None else (None, {})
        kept = self.troubles.add(
            TroubleEvent(
                pattern, groups, line.message, process.name, line.host, line.device, line.rank, line.time,
                self.sources, number, file=line.file,
            )
        )  # fmt: skip
        if kept is not None:
            self._repeats.learn(text, line.message, line, Repeat(kept, process, line.rank))

    def _is_of_test(self, message: str) -> bool:
        """Whether a line is one in which nccl-tests lists its ranks, or ends its results; keep what it tells."""
        if _LISTED_END in message:
            self._begun.clear()
            return True
        first = _LISTED_FIRST.search(message)
        if first is not None:
            self._begun.add((first[1], first[2]))
            self.state.listed_alone = max(self.state.listed_alone, len(self._begun))
        listed = _LISTED_GPU.search(message)
        if listed is not None:
            self.state.see_gpu(listed[1])
        return first is not None or listed is not None

    def _foreign(self, number: int, shape: int, line: WholeLine, text: str) -> None:
        """Read a line of a launcher or a framework, and NCCL's version, which is printed without a head."""
        effect = self._effect(line.message) if "CCL version" in line.message else None
        if effect is not None and not isinstance(effect, Trace) and getattr(effect, "name", "") == "version":
            self.state.bare_version = self.state.bare_version or effect.value  # type: ignore[union-attr]
        if self._is_of_test(line.message):
            return
        if self._notice.read(line.message, self.sources, number) or self.ras.read(line.message, self.sources, number):
            return
        is_alone = _ALONE.search(line.message) is not None
        self.state.greeted_alone += is_alone
        uncaught = _UNCAUGHT.search(text)
        message = text[uncaught.start() :] if uncaught is not None else line.message
        matched = self.troubles.matched(message, shape)
        if matched is None:
            self.sieve.ignore(shape)
            return
        pattern, groups = matched
        if (pattern.role == "origin" and HARMLESS.search(message) is not None) or _FOR_INFORMATION in message:
            self.sieve.ignore(shape)
            return
        if pattern.role in {"origin", "death"}:
            self._begun.clear()
        if pattern.role == "death":
            groups = {**self._notice.about(self.sources, number), **groups}
        said = groups.get("rank") or groups.get("ranks", "")
        rank = int(said) if said.isdecimal() else line.rank
        # Below an error frameworks repeat what NCCL said last: the reason, even where NCCL itself can go on after it.
        is_last_error = (self.sources, number) <= (self._passed_on[0], self._passed_on[1] + _LAST_ERROR_WITHIN)
        self._note_passed_on(pattern, number)
        kept = self.troubles.add(
            TroubleEvent(
                pattern, groups, message, None, groups.get("host"), None, rank, line.time, self.sources, number,
                fatal=is_last_error,
            )
        )  # fmt: skip
        if kept is not None and not is_alone and not is_of_report(line.message):
            self._repeats.learn(text, message, line, Repeat(kept, None, None))
