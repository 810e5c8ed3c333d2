"""The processes of a run on this host, as the kernel shows them."""

import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from busbw.base import layout
from busbw.rank.journal import STACK_SIGNAL

T = TypeVar("T")


def within(limit_s: float, call: Callable[[], T]) -> T | None:
    """Return what `call` returns; None when it raises OSError or takes longer. Its thread is then left behind."""
    answers: list[T] = []

    def run() -> None:
        try:
            answers.append(call())
        except OSError:
            return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit_s)
    return answers[0] if answers else None


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


_ANSWER_S = 1.0
_DEBUGGER_S = 4.0
_MOST_DEBUGGED = 2
_MOST_LINES = 30
_STACKS_MOST_BYTES = 2**16
_FRAME = re.compile(r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<function>.*)')
_NATIVE = re.compile(r"#(\d+)\s+(?:0x[0-9a-f]+\s+(?:in\s+)?)?(\S.*)")


def ask(folder: Path, ranks: Mapping[int, int]) -> dict[int, tuple[str, ...]]:
    """Return the Python stack of each process by its id. `ranks`: the first rank of each process.

    A process that is stopped, or has not come to its beginning, does not answer and is left out.
    """
    before = {}
    for process_id, rank in ranks.items():
        seen = stat(process_id)
        if seen is not None and seen.state not in "TtZX" and catches(process_id, STACK_SIGNAL):
            before[process_id] = _size(folder / layout.stack_name(rank))
            os.kill(process_id, STACK_SIGNAL)
    ends_s = time.monotonic() + _ANSWER_S
    while time.monotonic() < ends_s and any(
        _size(folder / layout.stack_name(ranks[process_id])) == size for process_id, size in before.items()
    ):
        time.sleep(0.05)
    # The last lines of an answer may still be on their way.
    time.sleep(0.05)
    return {
        process_id: frames
        for process_id, size in before.items()
        if (frames := parse(_from(folder / layout.stack_name(ranks[process_id]), size)))
    }


def parse(text: str) -> tuple[str, ...]:
    """Return the stack of the main thread of what faulthandler wrote, innermost call first.

    It writes the main thread last.
    """
    thread = text.rpartition("thread 0x")[2]
    frames = (_FRAME.fullmatch(line) for line in thread.splitlines())
    return tuple(
        f"{match['function']} ({_short(match['file'])}:{match['line']})" for match in frames if match is not None
    )[:_MOST_LINES]


def native(process_ids: tuple[int, ...]) -> dict[int, tuple[str, ...]]:
    """Return the native stacks of the first few processes by gdb or eu-stack, where one is installed."""
    found = {}
    for process_id in process_ids[:_MOST_DEBUGGED]:
        command = _command(process_id)
        if command is None:
            break
        try:
            answer = subprocess.run(
                command,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_DEBUGGER_S,
                check=False,
                env={**os.environ, "DEBUGINFOD_URLS": ""},
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        lines = answer.stdout.decode("utf-8", errors="replace").splitlines()
        frames = tuple(match[2].strip()[:200] for line in lines if (match := _NATIVE.match(line)) is not None)
        if frames:
            found[process_id] = frames[:_MOST_LINES]
    return found


def _command(process_id: int) -> list[str] | None:
    if (program := shutil.which("eu-stack")) is not None:
        return [program, "-1", "-p", str(process_id)]
    if (program := shutil.which("gdb")) is not None:
        return [program, "-nx", "-batch", "-p", str(process_id), "-ex", "bt 30"]
    return None


def _short(path: str) -> str:
    return path[path.rindex("/busbw/") + 1 :] if "/busbw/" in path else path.rpartition("/")[2]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _from(path: Path, offset: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(_STACKS_MOST_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


# Where NCCL listens unless told otherwise by NCCL_RAS_ADDR (its documentation, "RAS").
_HOST, _PORT = "localhost", 28028
_QUESTION = b"verbose status\n"
_TIMEOUT_S = 8.0
_MOST_RAS_BYTES = 1 << 20


def ras_status() -> bytes:
    """Return the service's answer; empty where there is none: an older NCCL, or it was turned off."""
    host, _, port = os.environ.get("NCCL_RAS_ADDR", f"{_HOST}:{_PORT}").rpartition(":")
    answer = bytearray()
    try:
        with socket.create_connection((host or _HOST, int(port)), timeout=_TIMEOUT_S) as connection:
            connection.sendall(_QUESTION)
            while len(answer) < _MOST_RAS_BYTES and (part := connection.recv(65536)):
                answer += part
    except (OSError, ValueError):
        return bytes(answer)
    return bytes(answer)
