"""A line as it stands in a log, taken apart: what a launcher wrote before it, when, and who says what."""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from busbw.formats.lines import prefix

_HEAD = re.compile(
    # Only DIAG prints no thread; `file.cc:12 NCCL WARN` is no host.
    r"(?P<host>[\w.-]{1,253}):(?P<pid>\d{1,10})(?::\d{1,10}|(?= NCCL DIAG )) "
    r"(?:\[(?P<device>-?\d{1,6})\] )?"
    # `file.cc:12`, `file.cc:12 (function)`; plug-ins in C++ print a function with its types.
    r"(?:(?P<file>\S{1,200}|[\w:*&<>~ ]{1,200}\([^\n]{0,300}?\)(?: const)?(?: \[with [^\]\n]{0,200}\])?)"
    r":\d{1,6} (?:\([^)\n]{0,200}\) )?)?"
    r"NCCL (?P<level>INFO|WARN|ATTN|TRACE|CALL|DIAG)(?: (?P<message>.*))?$",
    re.ASCII,
)
# A line of NCCL whose host, or host and process, somebody took off, or put a mark of his own in its place.
_NAMELESS = re.compile(
    r"(?P<when>\[?\d{4}-\d\d-\d\d[T ][\d:.,]{8,18}Z?\]? {1,2})?"
    r"(?:(?:<[^<>\s]{1,80}>|\[[^][\s]{1,80}\]|\*{1,80})(?=:)|[\w.-]{1,80}(?::[Xx*]{1,20}){0,2} (?=\[\d))?"
    r"(?::(?P<pid>\d{1,10}):\d{1,10} )?"
    r"(?:\[(?P<device>\d{1,3})\] )?"
    r"(?P<rest>(?:[\w./-]{1,120}:\d{1,6} (?:\([^)\n]{0,200}\) )?)?NCCL (?:INFO|WARN|ATTN) .*)",
    re.ASCII | re.DOTALL,
)
NAMELESS_HOST = "unnamed"
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?|(?<!\d)\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?!\d)", re.ASCII
)
# The best first: a bare number may be anything.
_TAG_RANKS = tuple(
    re.compile(regex, re.ASCII)
    for regex in (r"\[rank(\d{1,7})\]", r"\[\d{1,7},(\d{1,7})\]", r"^(\d{1,7}):", r"^\[(\d{1,7})\]:?$")
)
SAYS_RANK = re.compile(r"\[?[Rr]ank ?(\d{1,7})\]", re.ASCII)
# Where a time may stand before the text.
_FRONT = 200


class WholeLine(NamedTuple):
    """Who says what. Without a head of NCCL `host` is None and `message` the line without its prefixes."""

    host: str | None
    pid: str | None
    device: str | None
    level: str | None
    # NCCL's source file that says it; None: it is not printed.
    file: str | None
    message: str
    # As written; two of them compare as text when both have a date.
    time: str | None
    rank: int | None


def whole_line(text: str) -> WholeLine:
    """Return the parts of a line."""
    tag, rest = prefix.split(text)
    front = text[: min(len(text) - len(rest), _FRONT)]
    head = _HEAD.search(rest)
    if head is not None:
        front += rest[: min(head.start(), _FRONT)]
        message = head["message"] or ""
        return WholeLine(
            head["host"], head["pid"], head["device"], head["level"], head["file"], message, _time(front), _rank(tag)
        )
    # Frameworks write the time into the line, after a mark of their own.
    return WholeLine(None, None, None, None, None, rest, _time(text[:_FRONT]), _rank(tag) if tag else _said_rank(rest))


def named(text: str) -> str | None:
    """Return a line of NCCL that has lost its host and process with a name in their place; None: it is no such line."""
    match = _NAMELESS.fullmatch(text.strip())
    if match is None:
        return None
    process = match["pid"] or "0"
    return f"{match['when'] or ''}{NAMELESS_HOST}:{process}:{process} [{match['device'] or '-1'}] {match['rest']}"


def _time(text: str) -> str | None:
    match = _TIME.search(text)
    return match[0].replace("T", " ").replace(",", ".") if match is not None else None


def _rank(tag: str) -> int | None:
    matches = (regex.search(tag) for regex in _TAG_RANKS)
    return next((int(match[1]) for match in matches if match is not None), None)


def _said_rank(text: str) -> int | None:
    match = SAYS_RANK.search(text)
    return int(match[1]) if match is not None else None


# Facts about single NICs are called so, with the name behind.
DIRECT = "GPUDirect RDMA of "
# What Ray puts behind a line that several processes wrote.
_REPEATED = re.compile(r" \[repeated \d+x across cluster\].*$", re.ASCII)
_COMMUNICATOR = re.compile(r"\bcommId (0x\w{1,16})\b", re.ASCII)
# Of a value that is kept; NCCL's own lines end at 1024.
_LONGEST_VALUE = 1024


class Effect(NamedTuple):
    """A fact about the process that logs, or about the seat: one GPU of one process. `setting`: a variable."""

    of: Literal["process", "seat", "setting"]
    name: str
    value: str


class CommunicatorStart(NamedTuple):
    """A rank begins to make a communicator, or has made it (`done`)."""

    communicator: str | None
    rank: int
    ranks: int
    done: bool


class Layout(NamedTuple):
    """How NCCL counts nodes."""

    ranks: int
    nodes: int


class Wait(NamedTuple):
    """How long a rank was in the bootstrap of a communicator, where it waits for all others to come."""

    ranks: int
    time_s: float


class Trace(NamedTuple):
    """NCCL hands an error up, function by function."""

    result: int


AnyEffect = Effect | CommunicatorStart | Layout | Wait | Trace
_Make = Callable[[re.Match[str]], AnyEffect | None]


def _process(name: str, value: str = r"\1") -> _Make:
    return lambda match: Effect("process", name, match.expand(value)[:_LONGEST_VALUE].strip())


def _seat(name: str, value: str = r"\1") -> _Make:
    return lambda match: Effect("seat", name, match.expand(value)[:_LONGEST_VALUE].strip())


def _start(match: re.Match[str]) -> CommunicatorStart:
    named = _COMMUNICATOR.search(match[3])
    communicator = f"{named[1]}:{match[2]}" if named is not None else None
    return CommunicatorStart(communicator, int(match[1]), int(match[2]), done=match[4] == "COMPLETE")


def _trace(match: re.Match[str]) -> Trace | None:
    # 7 is ncclInProgress: a communicator that does not block says it all the time.
    return Trace(int(match[1])) if match[1] not in {"0", "7"} else None


def _setting(match: re.Match[str]) -> Effect:
    return Effect("setting", match[1], match[2][:_LONGEST_VALUE])


def _direct(match: re.Match[str]) -> Effect:
    return Effect("process", f"{DIRECT}{match[2]}", match[1])


def _affinity(match: re.Match[str]) -> Effect:
    gpu, cpu = (match[3] or "").strip(), (match[4] or "").strip()
    word = match[2].strip(" .")
    state = f"empty: GPU {gpu or 'none'}, process {cpu or 'none'}" if "empty" in word else word
    return Effect("seat", "cpu affinity", state[:_LONGEST_VALUE])


_FORMS: tuple[tuple[str, _Make], ...] = (
    (
        r"comm 0x\w{1,16} rank (\d{1,9}) nranks (\d{1,9}) (.{0,400})- Init (START|COMPLETE)",
        _start,
    ),
    (r"rank \d+ nRanks (\d{1,9}) nNodes (\d{1,9}) ", lambda match: Layout(int(match[1]), int(match[2]))),
    (r"^\S{1,200}:\d+ -> (\d{1,3})\b", _trace),
    (r"^((?:\w*NCCL|MSCCL)_\w{1,80}) set (?:by environment )?to (.*?)\.?$", _setting),
    (
        r"^(NET|TUNER|PROFILER)/Plugin ?: ?Plugin name set by env to (\S+)",
        lambda match: Effect("setting", f"NCCL_{match[1]}_PLUGIN", match[2][:_LONGEST_VALUE]),
    ),
    (r"[NR]CCL version ?:? (\d\S*)", _process("version")),
    (r"cudaDriverVersion (\d+)", _process("CUDA driver")),
    (r"^Bootstrap ?: Using ?(?:\[0\])?(\S+?)(?:<\d+>.*)?$", _process("bootstrap")),
    (r"NET/Plugin ?: ?Could not find: ?(.+?)\.?(?: Using .*)?$", _process("net plugin missing")),
    (r"NET/Plugin ?: ?No plugin found(?: \((\S+?)\))?", _process("net plugin missing", "libnccl-net.so")),
    (r"NET/Plugin ?: ?Plugin load \((\S+?)\) returned", _process("net plugin missing")),
    (r"External network plugin (\S+) is unsupported", _process("net plugin unusable")),
    (r"(?:NET/Plugin: Loaded net plugin|Loaded net plugin) (.+?) \(v\d+\)", _process("net plugin")),
    (r"Successfully loaded external network plugin (\S+)", _process("net plugin file")),
    (r"^Failed to initialize NET plugin (\S.*)", _process("network failed")),
    (r"^Using network (.+)$", _seat("network")),
    (r"NET/IB ?: No device found", _process("InfiniBand", "none")),
    (r"NET/IB ?: Using ((?:\[\d+\]\S+ ?)+)", _process("NICs")),
    (r"(?:Failed to (?:open|load)|Could not open) (?:library )?(libibverbs\S*)", _process("library missing")),
    (
        r"Selected [Pp]rovider is (\S{1,60}?),? .{0,200}?\(found (\d+) nics\)",
        _process("libfabric provider", r"\1, \2 NICs"),
    ),
    (r"NET/Socket ?: Using ((?:\[\d+\]\S+ ?)+)", _process("interfaces")),
    (r"NET/(?!Socket)\S+ ?: GPU Direct RDMA (Enabled|Disabled) for HCA \d+ '([^']{1,80})'", _direct),
    (r"GPU Direct RDMA (Enabled|Disabled) for GPU \S+ / HCA (\S+)", _seat(r"GPUDirect RDMA with a NIC", r"\1")),
    (r"DMA-BUF is available on GPU device", _seat("dma-buf", "available")),
    (r"^(?:Loading|Loaded) topology (?:file )?(/\S+)", _process("topology file")),
    (r"Could not open XML topology file (\S+) ?: ?(.+)", _process("topology file missing", r"\1 (\2)")),
    (r"Setting affinity for GPU \d+ to ([\w,-]+)", _seat("cpu affinity")),
    (
        r"Affinity for GPU (\d+) is ([^(]{1,400}) \(GPU affinity = ([^;)]{0,400})(?:; CPU affinity = ([^)]{0,400}))?\)",
        _affinity,
    ),
    (
        r"^(\d+) coll channels, (?:\d+ collnet channels, )?(\d+) nvls channels, (\d+) p2p channels",
        _seat("channels", r"\1 collective, \2 NVLS, \3 p2p"),
    ),
    (r"NVLS multicast support is not available", _seat("NVLS", "not available")),
    (r"NVLS multicast support is available", _seat("NVLS", "available")),
    (r"^Connected NVLS tree", _seat("NVLS tree", "connected")),
    (r"^(?:TUNER/Plugin|Tuner) ?: Using (?!internal)(?:tuner plugin )?(.+?)(?: \(v\d+\))?$", _process("tuner")),
    (r"TUNER/Plugin: (?:Could not find|Failed to load):? ?(\S.*?)\.?(?: Using .*)?$", _process("tuner missing")),
    (r"External tuner plugin (\S+) is unsupported", _process("tuner unusable")),
    (r"Successfully loaded external tuner plugin (\S+)", _process("tuner")),
    (r"PROFILER/Plugin: [Ll]oaded |Successfully loaded external profiler plugin", _process("profiler", "loaded")),
    (r"^Connected (\d+) MSCCL algorithms", _process("MSCCL", r"algorithms read: \1")),
    (r"^Using MSCCL (?:Algo )?files from (\S+)", _process("MSCCL", r"algorithms of \1")),
    (r"^MSCCL\+\+: Enabled! Msg size threshold=(\d+)", _process("MSCCL++", r"up to \1 bytes")),
    (r"^ *\+ NVL\[", _process("NVLink", "seen")),
    (r"P2P not supported between|isAllDirectP2p 0", _process("P2P", "not everywhere")),
    (r"- Abort (?:START|COMPLETE)", _seat("communicator", "aborted")),
    (
        r"^Init timings\b.* nranks (\d{1,9}) .*\bbootstrap (\d{1,7}\.\d+)",
        lambda match: Wait(int(match[1]), float(match[2])),
    ),
    (r"- Destroy COMPLETE", _seat("communicator", "destroyed")),
)  # fmt: skip
_COMPILED = tuple((re.compile(regex, re.ASCII), make) for regex, make in _FORMS)


def effect_of(message: str) -> AnyEffect | None:
    """Return what a message tells; None when it is of no interest."""
    message = _REPEATED.sub("", message).rstrip()
    for regex, make in _COMPILED:
        match = regex.search(message)
        if match is not None:
            return make(match)
    return None
