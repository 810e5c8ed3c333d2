"""What the program that measures noise prints, for a host that was thought up."""

from busbw.model import codec
from busbw.model.machine import NoiseOfCpu, NoiseTest


def one(cpu: int = 0, *, lost: float = 0.01, period_s: float | None = 0.004, **other: float) -> NoiseOfCpu:
    """Return the noise of one CPU with a tick of the kernel."""
    values = {
        "repeats": 99_000,
        "total_s": 10.0,
        "least_s": 1e-4,
        "median_s": 1.002e-4,
        "p99_s": 1.05e-4,
        "p999_s": 1.2e-4,
        "most_s": 2.5e-3,
        "limit_s": 1.02e-4,
        "detours": 2500,
        "detoured": 0.005,
        "regularity": 0.8 if period_s is not None else 0.0,
        "preempted": 3,
    } | other
    return NoiseOfCpu(cpu=cpu, lost=lost, period_s=period_s, excess=(0,) * 10 + (99_000,), **values)  # type: ignore[arg-type]


def noise_test(cpus: int = 2, duration_s: float = 10.0, **other: float) -> NoiseTest:
    """Return a test in which each CPU lost more than the one before."""
    found = tuple(one(cpu, lost=0.01 * (cpu + 1), **other) for cpu in range(cpus))
    return NoiseTest(duration_s=duration_s, quantum_s=1e-4, cpus=found)


def noise_answer(cpus: int = 2, **other: float) -> str:
    """Return the same as it is printed."""
    return codec.encode(noise_test(cpus, **other)).decode() + "\n"
