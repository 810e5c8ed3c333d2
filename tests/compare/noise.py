"""Launches that differ as real ones do.

`tests/stats/samples/launches.json` holds samples of launches of one program, in the order they were taken, on a
machine that others used too: they drift, jump and have spikes. `docs/measurements/2026-11-21-side-by-side.json` holds
medians of two launches of each point on four H200.
"""

import json
import math
import random
from functools import cache
from pathlib import Path

from busbw.api.interleave import order_of

ROOT = Path(__file__).parents[2]
_RESAMPLED = 40
# Samples are drawn in runs of so many, as they depend on their neighbours.
_RUN = 8


@cache
def launches() -> list[list[list[float]]]:
    """Return logarithms of medians that each point might have had in each real launch: [launch][point][draw]."""
    stored = json.loads((ROOT / "tests/stats/samples/launches.json").read_text())["launches_ns"]
    lot = random.Random(7)
    return [[[_median(samples, lot) for _draw in range(_RESAMPLED)] for samples in launch] for launch in stored]


def _median(samples_ns: list[int], lot: random.Random) -> float:
    drawn = []
    while len(drawn) < len(samples_ns):
        start = lot.randrange(len(samples_ns) - _RUN + 1)
        drawn += samples_ns[start : start + _RUN]
    return math.log(sorted(drawn)[len(drawn) // 2])


def busy_machine(lot: random.Random, blocks: int, points: int) -> list[list[float]]:
    """Return log ratios of two sides that are the same program, a list for each point, on a machine others use.

    Launches follow each other as the stored ones did, from a random one on.
    """
    stored = launches()
    order = order_of(2, blocks, lot.randrange(2**32))
    first = lot.randrange(len(stored))
    step = lot.choice((-1, 1))
    medians: dict[tuple[int, int], list[float]] = {}
    for place, (block, side) in enumerate(order):
        launch = stored[(first + step * place) % len(stored)]
        medians[block, side] = [launch[point % len(launch)][int(lot.random() * _RESAMPLED)] for point in range(points)]
    return [[medians[block, 0][point] - medians[block, 1][point] for block in range(blocks)] for point in range(points)]


@cache
def pairs_on_gpus(least_bytes: int, below_bytes: int) -> list[float]:
    """Return the log ratios of two launches of the same on four H200, one for each point of these sizes."""
    stored = json.loads((ROOT / "docs/measurements/2026-11-21-side-by-side.json").read_text())
    return [
        math.log(row["busbw_all_us"][1] / row["busbw_all_us"][0])
        for row in stored
        if least_bytes <= row["size_bytes"] < below_bytes
    ]


def gpus(lot: random.Random, blocks: int, pool: list[float], *, drift: float) -> list[float]:
    """Return log ratios of two sides that are the same on four H200, which get slower by `drift` in all."""
    order = order_of(2, blocks, lot.randrange(2**32))
    at = {key: place / len(order) * drift for place, key in enumerate(order)}
    return [lot.choice(pool) * lot.choice((-1, 1)) + at[block, 0] - at[block, 1] for block in range(blocks)]
