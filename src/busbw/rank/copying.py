"""Measures how fast this host copies memory, and prints it: `python -P -m busbw.rank.copying SECONDS BYTES`.

One process for each core copies from a buffer of its own into another, all at once; BYTES is for all of them together.
Alone because nothing else may work meanwhile: it is a program of its own, without MPI.
"""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from busbw import _core

# Of one buffer: well beyond a core's share of the last cache. Below it a copy would be one of caches.
_LARGEST_BYTES = 64 * 2**20
_SMALLEST_BYTES = 2 * 2**20
_WINDOWS = 5
_CPUS = Path("/sys/devices/system/cpu")


def copies(seconds: float, most_bytes: int) -> list[float]:
    """Return the bytes per second that all cores copied together, in each of five windows of the time."""
    cpus = _one_of_each_core(sorted(os.sched_getaffinity(0)))
    size_bytes = min(_LARGEST_BYTES, most_bytes // (2 * len(cpus)))
    if size_bytes < _SMALLEST_BYTES:
        raise MemoryError(f"{most_bytes} bytes are not enough for two buffers of 2 MiB on each of {len(cpus)} cores")
    begins_ns = time.monotonic_ns() + 300_000_000 + 20_000_000 * len(cpus)
    pipes, children = [], []
    try:
        for cpu in cpus:
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                _work(cpu, size_bytes, begins_ns, seconds, writing)
            os.close(writing)
            children.append(child)
            pipes.append(reading)
        counts = [_answer(reading) for reading in pipes]
    finally:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    window_s = seconds / _WINDOWS
    return [size_bytes * sum(count[at] for count in counts) / window_s for at in range(_WINDOWS)]


def _work(cpu: int, size_bytes: int, begins_ns: int, seconds: float, answer: int) -> None:
    """Copy until the time is over, in a process of its own; write how many copies fell into each window, and end."""
    code = 1
    with contextlib.suppress(Exception):
        os.sched_setaffinity(0, {cpu})
        source, target = _core.Buffer(size_bytes), _core.Buffer(size_bytes)
        source.touch(size_bytes)
        target.touch(size_bytes)
        while time.monotonic_ns() < begins_ns:
            time.sleep(0.001)
        counts = _counts(source, target, size_bytes, begins_ns, round(seconds * 1e9))
        os.write(answer, json.dumps(counts).encode())
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


def _answer(reading: int) -> list[float]:
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    if not said:
        raise RuntimeError("a process that copied ended without an answer; was there memory for it?")
    found: list[float] = json.loads(said)
    return found


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
