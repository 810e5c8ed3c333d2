"""Lines that libraries and launchers log: known, without a result, and most of a large log. They are told in bulk."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from busbw.formats.lines.prefix import PREFIXES

# host:pid:tid [device] (file:line (function)) NCCL LEVEL; RCCL logs the same.
_AFTER_HOST = (
    r":\d{1,10}+:\d{1,10}+ (?:\[-?\d{1,6}+\] )?+(?:\S{1,200}:\d{1,6}+ (?:\([^)\n]{0,200}+\) )?+)??"
    r"NCCL (?:INFO|WARN|ATTN|TRACE|CALL|DIAG)\b"
)
_NCCL = rf"[\w.-]{{1,253}}+{_AFTER_HOST}"
_OTHER_LOGS = (
    r"(?:N|R)CCL version [:\d]|HIP version|ROCm version|"
    r"\[\d+\.\d+\] +\[[^\]\s]{1,255} *:\d+ *:\d+\] +\S+:\d+ +UCX +[A-Z]+|"
    # The usage text of nccl-tests.
    r"USAGE: \S|\[-\w,--[\w ]|libfabric:\d+|MPI startup\(\)|srun: |slurmstepd: |\[-?\d+\] \d+ \S+:\d+ NCCL TRACE"
)
# The tags of mpirun and srun are tried first: with every prefix there is, a line takes three times as long.
_USUAL_TAG = r"(?:\[\d{1,7}+,\d{1,7}+\]<std(?:out|err)>:|\d{1,7}+: )?+"
_BULK = re.compile(
    rf"(?>(?:{_USUAL_TAG}{_NCCL}[^\n]*+|(?>{PREFIXES})(?:{_NCCL}[^\n]*+|[ \t]*+\r?))\n)++".encode(), re.ASCII
)
_KNOWN = re.compile(rf"\s*(?:$|{_OTHER_LOGS})", re.ASCII)
_TORN = re.compile(rf"(?P<host>[^\s:]{{1,300}}){_AFTER_HOST}", re.ASCII)
_HOST = re.compile(rf"(?>{PREFIXES})([\w.-]{{1,253}}):\d".encode(), re.ASCII)
# What of a table can hang at the end of a log line that lost its newline.
_TYPES = "float|half|double|bfloat16|u?int(?:8|32|64)|f8e\\dm\\d|fp8_e\\dm\\d"
_CARGO_TEXT = rf"[ \t]*\b\d{{1,20}} +\d{{1,20}} +(?:{_TYPES}) |# (?:Avg bus|Out of bounds|Collective test )"
_CARGO = re.compile(_CARGO_TEXT, re.ASCII)
_CARGO_IN_BULK = re.compile(_CARGO_TEXT.encode(), re.ASCII)
# Every such line has one of each; they are found at the speed of memory, and few log lines have both.
_CARGO_SPACES = (b"    ", b"# ")
_CARGO_WORDS = (
    b"float",
    b"half ",
    b"double ",
    b"int8 ",
    b"int32 ",
    b"int64 ",
    b"e4m3 ",
    b"e5m2 ",
    b"# Av",
    b"# Out",
    b"# Coll",
)
# What a column may end in, before the name of a host that follows without a space.
_LAST_CELL = re.compile(r"(?:-?\d+(?:\.\d+)?(?:e[+-]?\d\d)?\*?|N/A|none|sum|prod|max|min|avg|mulsum)(?=[A-Za-z])")


class Torn(NamedTuple):
    """A line that a log line was written into: what stands before it, and what hangs after it."""

    before: str
    after: str


def bulk(block: bytes, start: int, end: int) -> int:
    """Return where the run of whole log lines and blank lines ends that begins at `start`; `start` when none does."""
    match = _BULK.match(block, start, end)
    if match is None:
        return start
    stop = match.end()
    return start if _carries(block, start, stop) else stop


def host_of(block: bytes, start: int) -> str | None:
    """Return the host that the log line at `start` comes from."""
    match = _HOST.match(block, start)
    return match[1].decode("ascii", "replace") if match is not None else None


def is_known(text: str) -> bool:
    """Whether a line, prefix removed, is blank or another library's or launcher's log line."""
    return _KNOWN.match(text) is not None


def torn(text: str, hosts: Iterable[str]) -> Torn | None:
    """Return what stands around the NCCL log line in `text`; None when there is none in it.

    The log line begins with the name of a host, which may follow a cell without a space; `hosts` have been seen.
    """
    if "NCCL " not in text:
        return None
    match = _TORN.search(text)
    if match is None:
        return None
    word = match["host"]
    cell = _cell_before_host(word, hosts)
    after = _CARGO.search(text, match.end())
    return Torn(text[: match.start()] + word[:cell], text[after.start() :] if after is not None else "")


def _cell_before_host(word: str, hosts: Iterable[str]) -> int:
    """Return how many characters of `word` belong to a cell that the host's name was written after."""
    known = [host for host in hosts if word.endswith(host)]
    if known:
        return len(word) - len(max(known, key=len))
    match = _LAST_CELL.match(word)
    return match.end() if match is not None else 0


def _carries(block: bytes, start: int, stop: int) -> bool:
    """Whether a line of a table may hang at the end of a log line between `start` and `stop`."""
    return (
        any(block.find(mark, start, stop) >= 0 for mark in _CARGO_SPACES)
        and any(block.find(mark, start, stop) >= 0 for mark in _CARGO_WORDS)
        and _CARGO_IN_BULK.search(block, start, stop) is not None
    )
