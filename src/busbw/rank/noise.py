"""Measures the noise of this host, and prints it: what `busbw probe --noise` starts. Argument: seconds.

Alone because nothing else may work meanwhile: it is a program of its own, without MPI.
"""

import os
import sys
from collections.abc import Sequence

from busbw import _core
from busbw.model import codec
from busbw.model.machine import NoiseOfCpu, NoiseTest

# Long beside the reading of the clock (some 20 ns), short beside the kernel's tick (1 to 10 ms).
QUANTUM_NS = 100_000
_NS = 1e-9


def noise(seconds: float) -> NoiseTest:
    """Return what fixed work takes on every CPU that this process may use, all at once."""
    cpus = sorted(os.sched_getaffinity(0))
    found = _core.noise_on(cpus, QUANTUM_NS, int(seconds * 1e9))
    return NoiseTest(duration_s=seconds, quantum_s=QUANTUM_NS * _NS, cpus=tuple(_of(each) for each in found))


def _of(each: _core.NoiseOfProcessor) -> NoiseOfCpu:
    total_ns = max(each.total_ns, 1)
    return NoiseOfCpu(
        cpu=each.cpu,
        repeats=each.repeats,
        total_s=each.total_ns * _NS,
        least_s=each.least_ns * _NS,
        median_s=each.median_ns * _NS,
        p99_s=each.p99_ns * _NS,
        p999_s=each.p999_ns * _NS,
        most_s=each.most_ns * _NS,
        lost=max(0.0, 1 - each.repeats * each.least_ns / total_ns),
        limit_s=each.limit_ns * _NS,
        detours=each.detours,
        detoured=each.detoured_ns / total_ns,
        period_s=each.period_ns * _NS if each.period_ns else None,
        regularity=each.regularity,
        preempted=each.preempted,
        excess=tuple(each.excess),
    )


def main(arguments: Sequence[str]) -> int:
    """Print the noise as one line of JSON; 1 with the cause where it cannot be measured."""
    try:
        found = noise(float(arguments[0]))
    except (RuntimeError, ValueError, OSError, MemoryError) as error:
        sys.stderr.write(f"cannot measure: {error}\n")
        return 1
    sys.stdout.write(codec.encode(found).decode() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
