"""The processes of a run on this host, as the kernel shows them."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from busbw.base import layout
from busbw.rank.patience import within

# Reading of one process; one that the kernel holds may block its reader.
_READ_S = 1.0
_MOST_BYTES = 2**20
_MOST_STACK_LINES = 30
_OFFSET = re.compile(r"\+0x[0-9a-f]+/0x[0-9a-f]+$")
_RANK_MODULE = b"busbw.rank"


@dataclass(frozen=True, slots=True)
class Stat:
    """The line /proc/PID/stat, as far as it is used."""

    name: str
    state: str
    parent: int
    # Processor time: all of it, and what of it the kernel spent for the process.
    busy_s: float
    system_s: float
    # Ticks after the boot.
    started: int


def of_run(directory: str, tag: str) -> tuple[int, ...]:
    """Return the processes of this user that carry the run's mark, or are ranks of its directory; not this one."""
    mark = f"{layout.RUN_VARIABLE}={tag}".encode()
    attempt = tag.rpartition(".")[2].encode()
    rank = (_RANK_MODULE, directory.encode(), attempt)
    return tuple(process_id for process_id in sorted(_own()) if _belongs(process_id, mark, rank))


def _own() -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            owner = entry.stat().st_uid
        except OSError:
            continue
        if owner == os.geteuid() or os.geteuid() == 0:
            found.append(int(entry.name))
    return found


def _belongs(process_id: int, mark: bytes, rank: tuple[bytes, bytes, bytes]) -> bool:
    seen = stat(process_id)
    if seen is None or seen.state in "ZX":
        return False
    folder = Path(f"/proc/{process_id}")
    words = (within(_READ_S, (folder / "cmdline").read_bytes) or b"").split(b"\0")
    # An environment may be cleaned on the way; the command line of a rank names its run.
    if rank[0] in words and words[words.index(rank[0]) + 1 :][:2] == [rank[1], rank[2]]:
        return True
    return mark in (within(_READ_S, (folder / "environ").read_bytes) or b"").split(b"\0")


def stat(process_id: int) -> Stat | None:
    """Return what the kernel says of a process; None when it is gone."""
    try:
        line = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold anything; the fields, from the third on, begin behind its last parenthesis.
    fields = line.rpartition(")")[2].split()
    return Stat(
        name=line[line.index("(") + 1 : line.rindex(")")],
        state=fields[0],
        parent=int(fields[1]),
        busy_s=(int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        system_s=int(fields[12]) / os.sysconf("SC_CLK_TCK"),
        started=int(fields[19]),
    )


def wchan(process_id: int) -> str | None:
    """Return the kernel's function a process waits in; None when it does not wait, or this user may not know."""
    text = _text(process_id, "wchan")
    return text if text not in ("", "0") else None


def kernel_stack(process_id: int) -> tuple[str, ...]:
    """Return the kernel's functions a process is in, innermost first; () where only root may know."""
    lines = _text(process_id, "stack").splitlines()[:_MOST_STACK_LINES]
    return tuple(_OFFSET.sub("", line.partition("] ")[2] or line) for line in lines)


def catches(process_id: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal; without one the signal would end it."""
    for line in _text(process_id, "status").splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def mapped(process_id: int, text: str) -> bool:
    """Whether a process has a file mapped whose path contains `text`."""
    return text in _text(process_id, "maps")


def _text(process_id: int, name: str) -> str:
    def read() -> bytes:
        with Path(f"/proc/{process_id}/{name}").open("rb") as file:
            return file.read(_MOST_BYTES)

    return (within(_READ_S, read) or b"").decode("utf-8", errors="replace").strip()
