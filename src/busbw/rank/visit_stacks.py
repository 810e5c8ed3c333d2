"""Where the processes of a run are in their programs: in Python through faulthandler, in native code by a debugger."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from busbw.base import layout
from busbw.rank import visit_processes
from busbw.rank.presence import STACK_SIGNAL

_ANSWER_S = 1.0
_DEBUGGER_S = 4.0
_MOST_DEBUGGED = 2
_MOST_LINES = 30
_MOST_BYTES = 2**16
_FRAME = re.compile(r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<function>.*)')
_NATIVE = re.compile(r"#(\d+)\s+(?:0x[0-9a-f]+\s+(?:in\s+)?)?(\S.*)")


def ask(folder: Path, ranks: Mapping[int, int]) -> dict[int, tuple[str, ...]]:
    """Return the Python stack of each process by its id. `ranks`: the first rank of each process.

    A process that is stopped, or has not come to its beginning, does not answer and is left out.
    """
    before = {}
    for process_id, rank in ranks.items():
        seen = visit_processes.stat(process_id)
        if seen is not None and seen.state not in "TtZX" and visit_processes.catches(process_id, STACK_SIGNAL):
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
            return file.read(_MOST_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
