"""Isolated samples of ranks that do one collective together, with delays planted by kind. Seconds."""

from dataclasses import dataclass, field
from random import Random

BASE_S = 20e-6
NOISE_S = 0.4e-6


@dataclass
class Crowd:
    """Row per rank, column per sample; `values` is the maximum over ranks."""

    values: list[float] = field(default_factory=list)
    durations: list[list[float]] = field(default_factory=list)
    latenesses: list[list[float]] = field(default_factory=list)
    off_processor: list[list[float]] = field(default_factory=list)


def take(draw: Random, ranks: int, samples: int, delayed) -> Crowd:
    """Take samples; `delayed(draw)` returns (kind, rank, seconds) for each delay of one sample.

    Kinds: "finish": only that rank returns late. "start": it starts late, and all return late. "off": it is taken off
    its processor, and all return late. "hidden": all return late, and nothing tells why. Delays of one sample overlap.
    """
    crowd = Crowd(
        durations=[[] for _ in range(ranks)],
        latenesses=[[] for _ in range(ranks)],
        off_processor=[[] for _ in range(ranks)],
    )
    for _ in range(samples):
        level_s = BASE_S + abs(draw.gauss(0, NOISE_S))
        late = [abs(draw.gauss(0, 0.1e-6)) for _ in range(ranks)]
        finish = [level_s + abs(draw.gauss(0, NOISE_S)) for _ in range(ranks)]
        off = [abs(draw.gauss(0.5e-6, 0.2e-6)) for _ in range(ranks)]
        delays = delayed(draw)
        shared_s = max((delay_s for kind, _rank, delay_s in delays if kind != "finish"), default=0.0)
        finish = [time_s + shared_s for time_s in finish]
        for kind, rank, delay_s in delays:
            row = {"finish": finish, "start": late, "off": off}.get(kind)
            if row is not None:
                row[rank] += delay_s
        for rank in range(ranks):
            crowd.durations[rank].append(finish[rank])
            crowd.latenesses[rank].append(late[rank])
            crowd.off_processor[rank].append(off[rank])
        crowd.values.append(max(finish))
    return crowd
