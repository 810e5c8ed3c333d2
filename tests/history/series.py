"""Series of runs for simulations: noise as it is between real launches, and noise that is worse."""

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median

# Twenty launches of nccl-tests one after the other on four H200, for each of six collectives and many sizes.
LAUNCHES = Path(__file__).resolve().parents[2] / "docs/measurements/2026-11-21-side-by-side.json"
# Neighbouring launches that stay together when real ones are drawn: what they have in common is kept.
BLOCK = 5

Noise = Callable[[random.Random, int], list[float]]


@cache
def launches() -> tuple[tuple[float, ...], ...]:
    """Return the times of each point's launches in their order, over their median."""
    points = json.loads(LAUNCHES.read_text(encoding="utf-8"))
    return tuple(
        tuple(time / median(point["nccl_tests_all_us"]) for time in point["nccl_tests_all_us"])
        for point in points
        if len(point["nccl_tests_all_us"]) >= 4 * BLOCK
    )


def real(rng: random.Random, count: int) -> list[float]:
    """Return launches of one real point, drawn in blocks: with their spikes and their likeness to neighbours."""
    times = rng.choice(launches())
    drawn: list[float] = []
    while len(drawn) < count:
        first = rng.randrange(len(times) - BLOCK + 1)
        drawn += times[first : first + BLOCK]
    return drawn[:count]


def normal(rng: random.Random, count: int) -> list[float]:
    """Return independent values around 1 with a deviation of 1 %."""
    return [1 + rng.gauss(0, 0.01) for _ in range(count)]


def spiky(rng: random.Random, count: int) -> list[float]:
    """Return values of which one in ten is up to half as long again."""
    return [value * (1 + (rng.random() < 0.1) * rng.uniform(0, 0.5)) for value in normal(rng, count)]


def drifting(correlation: float) -> Noise:
    """Return what makes values that follow their neighbours (AR(1)), with spikes among them."""

    def made(rng: random.Random, count: int) -> list[float]:
        level, values = rng.gauss(0, 1), []
        for _ in range(count):
            level = correlation * level + (1 - correlation**2) ** 0.5 * rng.gauss(0, 1)
            values.append((1 + 0.01 * level) * (1 + (rng.random() < 0.05) * rng.uniform(0, 0.3)))
        return values

    return made


def stepped(values: list[float], place: int, share: float) -> list[float]:
    """Return the values, longer by `share` from `place` on."""
    return [value * (1 + share) if number >= place else value for number, value in enumerate(values)]
