"""Reads the logs of one job: blocks of bytes in, what they say out. One pass; memory does not grow with the lines."""

import re
from collections.abc import Mapping

from busbw._core import LogSieve
from busbw.formats.lines.prefix import as_written, uncoloured
from busbw.logs.boxes import BoxedMessage, Boxes
from busbw.logs.lines import AnyEffect, CommunicatorStart, Effect, Trace, WholeLine, effect_of, named, whole_line
from busbw.logs.ras import RasReports
from busbw.logs.state import Process, State
from busbw.logs.troubles import TroubleEvent, Troubles

_STARTS = re.compile(rb"\s*(?:\{|\[\s*(?:\{|\n|\r))")
_UNDECIDED = re.compile(rb"\s*\[?[ \t]*")
_MOST_PENDING = 2**20


class CollectedLines:
    """Gives back each block of a source as the program wrote it; a source that holds no JSON unchanged."""

    def __init__(self) -> None:
        # None: nothing but white space has come yet.
        self._is_json: bool | None = None
        self._pending = b""

    def feed(self, block: bytes) -> bytes:
        """Return what can be said of a block so far; line numbers stay as they are."""
        if self._is_json is None:
            block, self._pending = self._pending + block, b""
            if _UNDECIDED.fullmatch(block) and len(block) < _MOST_PENDING:
                self._pending = block
                return b""
            self._is_json = _STARTS.match(block) is not None
        if not self._is_json:
            return block
        *lines, self._pending = (self._pending + block).split(b"\n")
        if len(self._pending) > _MOST_PENDING:
            lines.append(self._pending)
            self._pending = b""
            return b"\n".join(map(as_written, lines))
        return b"".join(as_written(line) + b"\n" for line in lines)

    def end(self) -> bytes:
        """Return what is left, and be ready for another source."""
        left = as_written(self._pending) if self._is_json else self._pending
        self._is_json, self._pending = None, b""
        return left


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


# A line that is not NCCL's is looked at when it holds one of these.
_NEEDLES = (
    "NCCL",
    "RCCL",
    "nccl",
    # Words of failure, in the spellings that programs have for them.
    "rror",
    "RROR",
    "ailed",
    "AILED",
    "failure",
    "annot",
    "an't",
    "able to",
    "not found",
    "not available",
    "xception",
    "arning:",
    "WARN",
    "FATAL",
    "fatal",
    "Fatal",
    "efused",
    "enied",
    "oes not match",
    "not permitted",
    "issing",
    "ismatch",
    "undefined symbol",
    "initialized",
    "timed out",
    "imeout",
    "ost communication",
    "ssertion",
    "signal",
    "Signal",
    "SIGNAL",
    "*** SIG",
    "received by PID",
    "ut of memory",
    "ut Of Memory",
    "oom",
    "OOM",
    "low on memory",
    "memory pressure",
    "No space left",
    "nough",
    "resolve",
    "CUDA_ERROR",
    "cudaError",
    "hipError",
    "too long",
    "TMPDIR",
    "temporary directory",
    "peer_mem",
    "peermem",
    "..: ",
    "ould not",
    "ncompatible",
    "maximal number",
    "fork()",
    "not accessible",
    "No such",
    "bad values",
    "busy",
    "nauthorized",
    "ssh",
    "nreachable",
    "Unable",
    "nvalid",
    "odule named",
    "import name",
    "ANCELED",
    "ermission",
    "xit code",
    "xitcode",
    "EXIT STRING",
    "return code",
    "slurmstepd",
    "CANCELLED",
    "DUE TO TIME LIMIT",
    "NVRM:",
    "Xid",
    "mlx5_core",
    "AER:",
    "DMAR",
    "AMD-Vi",
    "lockup",
    "No CUDA GPUs",
    "NVIDIA driver",
    "no GPUs",
    "driver version is insufficient",
    "driver on your system is too old",
    "ink down",
    "Link Down",
    "went down",
    " GPU node-",
    "group",
    "(local_rank: ",
    " host      : ",
    " RUNNING AT ",
    "t join collective #",
    "lagging ranks",
    # Slurm, containers, Kubernetes.
    "srun: ",
    "sbatch: ",
    "pyxis: ",
    "[ERROR]",
    "unrecognized",
    "Insufficient",
    "insufficient",
    "victed",
    "Error response",
    "was low on resource",
    "SIGHUP",
    # Frames of a stack.
    "libuc",
    " uct_",
    " ucp_",
    "hcoll",
    "hmca_",
    "libpsm",
    "psm3_",
    "libfabric.so",
    "mca_",
    "libnccl.so",
    "pmix_",
    "libpmix",
    "hwloc_",
    "libxpmem",
    "libmlx5.so",
    # Hydra; Open MPI and NICs.
    "mpiexec@",
    "will now abort",
    "no port available",
    "called before",
    "selected pml",
    "t match with",
    "NVSwitch",
    "hostfile",
    "libmpi",
    "called after",
    "retry count",
    "enumerated",
    "unplugged",
    "Temperature",
    "not responding",
    "blocked for more",
    "syndrome",
    'Returned "',
    # Reports of ncclras.
    "Communicators... (",
    "MISMATCH",
    "INCOMPLETE",
    "DEAD",
    "TIMEOUT",
    "operation counts",
    " launched ",
    " managed by process ",
    " managing GPU",
    "The missing rank",
    "] NVIDIA ",
    "] AMD ",
    "c10d",
    "Rendezvous",
    "libfabric:",
    # What frameworks repeat of NCCL's words where NCCL itself does not log.
    "NVLink SHARP",
    "NET/",
    "Duplicate GPU",
    "RETRY EXCEEDED",
    "socketProgress",
    "socketStartConnect",
    # MPI, UCX, libfabric and NVSHMEM.
    "UCX",
    "OFI ",
    "MPI_",
    "PMI",
    "MPI process",
    "MPI runtime init",
    "direct launched",
    "run as root",
    "temporarily disabled",
    "queue (CQ)",
    "slots available",
    "more processes than",
    "to more cpus",
    "daemon",
    "_exchange_identification",
    "verification",
    "specified executable",
    "specified application",
    "process_vm_",
    "errno",
    "unexpected process identifier",
    "IP address that is unexpected",
    "truncated",
    "(the shared-memory",
    "help file",
    "set to a path",
    "hfi",
    "GTL",
    "RLIMIT",
    "DeepEP",
    "nvshmem",
    "NVSHMEM",
    "Address family not supported",
    "collective",
    "hipErrorNoBinaryForGpu",
    "0 of 1",
    "0 out of 1",
    "MPI routine",
    "marked dead",
    "tensors were submitted",
)
_MOST_REMEMBERED = 2**15
_LAST_ERROR_WITHIN = 3
_LONGEST_REST = 2**20
_LEVELS_OF_TROUBLE = frozenset({"WARN", "ATTN", "DIAG"})
_ESCAPE = "\x1b"
_OF_LAUNCHER = "Message of the launcher: "
# nccl-tests: `#  Rank  0 Group  0 Pid   5950 on node66 device  0 [0x34] NVIDIA H800`
_LISTED_GPU = re.compile(r"\bdevice +\d{1,3} \[[0-9a-fx:.]{2,16}\] ((?:NVIDIA|AMD) [\w .-]{1,60}?)\s*$", re.ASCII)
# PyTorch's mark of what ended a rank stays on the line: launchers put others before any line.
_UNCAUGHT = re.compile(r"\[rank\d{1,7}\]: (?=[\w.]{1,80}(?:Error|Exception)(?::|$))", re.ASCII)
# Programs that people try MPI with: `Hello world from n1 running process 0 of 1`.
# The line itself says that the program goes on.
_HARMLESS = re.compile(
    r"\bignored\b|\b[Nn]on-fatal\b|warning only|gds_ds12_lock|could not remove|will retry|"
    r"retrying in|going to \S+ instead"
)
# A level of UCX below a warning.
_FOR_INFORMATION = "UCX  DIAG"
_ALONE = re.compile(
    r"(?i)\bhello\b.{0,80}\b(?:rank|process|processor|worker|task|node|PE)\b.{0,60}?\b0 (?:of|out of) 1\b"
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
        self.sieve = LogSieve(list(_NEEDLES))
        self.state = State()
        self.troubles = Troubles()
        self.ras = RasReports()
        self.sources = 0
        self.counted_twice = 0
        # Lines of each source that has ended.
        self.lengths: list[int] = []
        # Where a framework last passed on an error: source and line.
        self._passed_on = (-1, 0)
        self._notice = LauncherNotice()
        self._collected = CollectedLines()
        self._boxes = Boxes()
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
        self.sources += 1
        self.lengths.append(self.sieve.lines - sum(self.lengths))

    @property
    def nccl_lines(self) -> int:
        """How many lines are of NCCL."""
        return self.sieve.nccl_lines - self.counted_twice

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
        self._take(self.sieve.feed(block))
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
            if speaker >= 0:
                self._info(number, speaker, shape, text)
            elif _ESCAPE in text:
                self._take(self.sieve.again(uncoloured(text).replace(_ESCAPE, "?"), number))
            else:
                self._whole(number, shape, text)

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
        self.troubles.add(
            TroubleEvent(
                pattern, groups, line.message, process.name, line.host, line.device, line.rank, line.time,
                self.sources, number, file=line.file,
            )
        )  # fmt: skip

    def _foreign(self, number: int, shape: int, line: WholeLine, text: str) -> None:
        """Read a line of a launcher or a framework, and NCCL's version, which is printed without a head."""
        effect = self._effect(line.message) if "CCL version" in line.message else None
        if effect is not None and not isinstance(effect, Trace) and getattr(effect, "name", "") == "version":
            self.state.bare_version = self.state.bare_version or effect.value  # type: ignore[union-attr]
        listed = _LISTED_GPU.search(line.message)
        if listed is not None:
            self.state.see_gpu(listed[1])
            return
        if self._notice.read(line.message, self.sources, number) or self.ras.read(line.message, self.sources, number):
            return
        if _ALONE.search(line.message) is not None:
            self.state.greeted_alone += 1
        uncaught = _UNCAUGHT.search(text)
        message = text[uncaught.start() :] if uncaught is not None else line.message
        matched = self.troubles.matched(message, shape)
        if matched is None:
            self.sieve.ignore(shape)
            return
        pattern, groups = matched
        if (pattern.role == "origin" and _HARMLESS.search(message) is not None) or _FOR_INFORMATION in message:
            self.sieve.ignore(shape)
            return
        if pattern.role == "death":
            groups = {**self._notice.about(self.sources, number), **groups}
        said = groups.get("rank") or groups.get("ranks", "")
        rank = int(said) if said.isdecimal() else line.rank
        # Below an error frameworks repeat what NCCL said last: the reason, even where NCCL itself can go on after it.
        is_last_error = (self.sources, number) <= (self._passed_on[0], self._passed_on[1] + _LAST_ERROR_WITHIN)
        if pattern.id == "framework-error":
            self._passed_on = (self.sources, number)
        self.troubles.add(
            TroubleEvent(
                pattern, groups, message, None, groups.get("host"), None, rank, line.time, self.sources, number,
                fatal=is_last_error,
            )
        )  # fmt: skip
