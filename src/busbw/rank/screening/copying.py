"""Measures how fast this host copies memory, and prints it: `python -P -m busbw.rank.screening.copying SECONDS BYTES`.

One process for each core copies from a buffer of its own into another, all at once; BYTES is for all of them together.
Alone because nothing else may work meanwhile: it is a program of its own, without MPI.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from busbw import _core

# Of one buffer: well beyond a core's share of the last cache. Below it a copy would be one of caches.
_LARGEST_BYTES = 64 * 2**20
_SMALLEST_BYTES = 2 * 2**20
_WINDOWS = 5
# What it takes to tell every process when to begin.
_TOLD_NS = 50_000_000
_CPUS = Path("/sys/devices/system/cpu")


def copies(seconds: float, most_bytes: int) -> list[float]:
    """Return the bytes per second that all cores copied together, in each of five windows of the time."""
    cpus = _one_of_each_core(sorted(os.sched_getaffinity(0)))
    size_bytes = min(_LARGEST_BYTES, most_bytes // (2 * len(cpus)))
    if size_bytes < _SMALLEST_BYTES:
        raise MemoryError(f"{most_bytes} bytes are not enough for two buffers of 2 MiB on each of {len(cpus)} cores")
    workers: list[socket.socket] = []
    children: list[int] = []
    try:
        for cpu in cpus:
            ours, theirs = socket.socketpair()
            child = os.fork()
            if child == 0:
                _work(cpu, size_bytes, seconds, theirs)
            theirs.close()
            children.append(child)
            workers.append(ours)
        for each in workers:
            _answer(each)
        begins_ns = time.monotonic_ns() + _TOLD_NS
        for each in workers:
            each.sendall(f"{begins_ns}\n".encode())
        counts = [[float(word) for word in _answer(each)] for each in workers]
    finally:
        for each in workers:
            each.close()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if not all(map(sum, counts)):
        raise RuntimeError(f"a core had no time for one copy within {seconds:g} s: something else keeps it busy")
    window_s = seconds / _WINDOWS
    return [size_bytes * sum(count[at] for count in counts) / window_s for at in range(_WINDOWS)]


def _work(cpu: int, size_bytes: int, seconds: float, parent: socket.socket) -> None:
    """Copy from when the parent says for so long, in a process of its own; say how many copies fell into each window.

    It ends there.
    """
    code = 1
    with contextlib.suppress(Exception):
        os.sched_setaffinity(0, {cpu})
        source, target = _core.Buffer(size_bytes), _core.Buffer(size_bytes)
        source.touch(size_bytes)
        target.touch(size_bytes)
        parent.sendall(b"ready\n")
        begins_ns = int(_answer(parent)[0])
        while time.monotonic_ns() < begins_ns:
            time.sleep(0.001)
        counts = _counts(source, target, size_bytes, begins_ns, round(seconds * 1e9))
        parent.sendall(f"{' '.join(map(str, counts))}\n".encode())
        code = 0
    os._exit(code)


def _counts(source: _core.Buffer, target: _core.Buffer, size_bytes: int, begins_ns: int, whole_ns: int) -> list[float]:
    """Return how many copies fell into each window; one across its end counts by its parts."""
    counts = [0.0] * _WINDOWS
    window_ns = whole_ns / _WINDOWS
    before = max(time.monotonic_ns(), begins_ns) - begins_ns
    while before < whole_ns:
        _core.copy_with_memcpy(source, target, size_bytes=size_bytes)
        after = time.monotonic_ns() - begins_ns
        for at in range(int(before // window_ns), min(int(after // window_ns), _WINDOWS - 1) + 1):
            inside = min(after, (at + 1) * window_ns) - max(before, at * window_ns)
            counts[at] += max(inside, 0.0) / max(after - before, 1)
        before = after
    return counts


def _answer(other: socket.socket) -> list[str]:
    """Return the words of the line that the other process says next. Raises RuntimeError where it ends instead."""
    said = b""
    while not said.endswith(b"\n"):
        more = other.recv(4096)
        if not more:
            raise RuntimeError("a process that copies ended early; was there memory for it?")
        said += more
    return said.decode().split()


def _one_of_each_core(cpus: Sequence[int]) -> list[int]:
    """Return the first thread of each core, of the CPUs that this process may use."""
    seen: set[str] = set()
    chosen = []
    for cpu in cpus:
        try:
            core = (_CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text(encoding="ascii").strip()
        except OSError:
            core = str(cpu)
        if core not in seen:
            seen.add(core)
            chosen.append(cpu)
    return chosen


def main(arguments: Sequence[str]) -> int:
    """Print the rates as one line of JSON; 1 with the cause where they cannot be measured."""
    try:
        found = copies(float(arguments[0]), int(arguments[1]))
    except (RuntimeError, ValueError, OSError, MemoryError) as error:
        sys.stderr.write(f"cannot measure: {error}\n")
        return 1
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
