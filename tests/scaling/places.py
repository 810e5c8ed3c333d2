"""Places of a line with known scatter."""

import math
import random
from collections.abc import Callable, Sequence

from busbw.judge.scaling.places import LinePlace
from busbw.model.scaling import ScalingEstimate

Law = Callable[[int], float]


def noisy(
    law: Law, at: Sequence[int], *, scatter: float, launches: int, source: random.Random, interval: float | None = None
) -> list[LinePlace]:
    """Return what `launches` runs at each place give, off by a normal share; `interval`: what each says of itself."""
    found = []
    for place in at:
        values = tuple(law(place) * math.exp(source.gauss(0.0, scatter)) for _ in range(launches))
        centre = sorted(values)[launches // 2]
        ends = (centre * (1 - interval), centre * (1 + interval)) if interval is not None else (None, None)
        found.append(
            LinePlace(at=place, values=values, estimate=ScalingEstimate(value=centre, low=ends[0], high=ends[1]))
        )
    return found
