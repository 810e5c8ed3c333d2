"""The lines of a log, found by the texts that matter, in blocks of bytes.

A log of a training job is mostly text that says nothing of steps. So no line is looked at by itself: a block is
searched for the marks of the known lines, and only those are cut out. Progress bars return the carriage instead of
ending the line; each state of a bar is a line here, and counts to the line of the file it stands on.
"""

import re
from collections.abc import Iterator

from busbw._core import without_escapes

# So much of a line is looked at on either side of its mark: patterns look for their end from many places.
LONGEST_LINE_BYTES = 4096
# Stands for a carriage return within a line: the end of one state of a progress bar.
RETURN = b"\x1e"
# What launchers write in front: [rank0]: and [default0]: of torchrun, [0]: of MPICH, [1,0]<stdout>: of Open MPI, and
# 0: of srun.
_RANK = re.compile(rb"[ \t]{0,6}(?:\[(?:rank|default)?(\d{1,7})\]:|\[\d{1,9},(\d{1,7})\]<std(?:out|err)>:|(\d{1,7}): )")


class LineBlocks:
    """Blocks of a file made into blocks of whole lines, without colours; it counts lines and what was too long."""

    def __init__(self) -> None:
        self.lines = 0
        self.bytes = 0
        # Lines over the limit, of which the beginning alone was looked at.
        self.cut = 0
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        self._is_skipping = False

    def feed(self, block: bytes) -> bytes:
        """Return the whole lines that end in this block, b"" for none."""
        self.bytes += len(block)
        end = block.rfind(b"\n") + 1
        if end == 0:
            self._keep(block)
            return b""
        whole = b"".join((*self._rest, block[:end])) if self._rest else block[:end]
        self._rest, self._rest_bytes, self._is_skipping = [], 0, False
        self._keep(block[end:])
        return _plain(whole)

    def finish(self) -> bytes:
        """Return the last line, where it has no end."""
        whole = b"".join(self._rest)
        self._rest, self._rest_bytes = [], 0
        return _plain(whole + b"\n") if whole else b""

    def _keep(self, part: bytes) -> None:
        """Keep the beginning of a line that goes on; a bar's states end at its carriage returns."""
        if not part or self._is_skipping:
            return
        self._rest.append(part)
        self._rest_bytes += len(part)
        # A bar may run for hours without a line end: that is a line of many states, and bounded all the same.
        if self._rest_bytes > 64 * 2**20:
            self._is_skipping = True
            self.cut += 1


def _plain(block: bytes) -> bytes:
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", RETURN)
    return without_escapes(block) if b"\x1b" in block else block


def marked(block: bytes, mark: bytes, *, most: int = LONGEST_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """Yield each line of a block that holds `mark`, with the place where it begins; long ones are cut around it."""
    has_returns = RETURN in block
    at = block.find(mark)
    while at >= 0:
        start = block.rfind(b"\n", 0, at) + 1
        end = block.find(b"\n", at)
        end = len(block) if end < 0 else end
        if has_returns:
            start = max(start, block.rfind(RETURN, start, at) + 1)
            back = block.find(RETURN, at, end)
            end = back if back >= 0 else end
        start = max(start, at - most)
        yield start, block[start : min(end, at + most)]
        at = block.find(mark, end)


def rank_of(line: bytes) -> int | None:
    """Return the rank that a launcher wrote in front of a line; None: it did not."""
    span = rank_span(line)
    return None if span is None else int(line[slice(*span)])


def rank_span(line: bytes) -> tuple[int, int] | None:
    """Return where in a line the rank stands; None: nowhere."""
    found = _RANK.match(line)
    return None if found is None else found.span(found.lastindex or 0)
