"""What launch_modes.py prints of its starts: correlations, modes, conditions, cores."""

import random
import statistics
from collections.abc import Sequence
from itertools import pairwise

_TRIALS = 5000
# Two groups of starts count as modes when nothing lies in a gap this wide between them.
_GAP = 0.15
_COMPARED = (
    "launch_at_start", "launch_joined", "launch_after", "launch_after_device", "issued_ns", "isolated_ns", "graph_ns",
    "stream_again_ns", "loop_ns", "loop_after_ns", "clock_ns", "opened_s", "steal_s", "number",
)  # fmt: skip


def row_text(row: dict) -> str:
    """Return the line of one start."""
    us = {name: row[name] / 1e3 for name in (*_COMPARED, "stream_ns")}
    return (
        f"{row['number']:3} {row['at_s']:6.1f} s  {row['condition']:32} launch {us['launch_at_start']:5.2f} "
        f"{us['launch_joined']:5.2f} {us['launch_after']:5.2f}  message {us['stream_ns']:5.2f} "
        f"(issued {us['issued_ns']:5.2f}, again {us['stream_again_ns']:5.2f})  alone {us['isolated_ns']:5.2f}  "
        f"graph {us['graph_ns']:5.2f} us"
    )


def ranks_of(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, ties in the middle."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation; 0 where one of them does not vary."""
    left, right = ranks_of(first), ranks_of(second)
    if len(set(left)) < 2 or len(set(right)) < 2:
        return 0.0
    return statistics.correlation(left, right)


def chance(values: Sequence[float], chosen: Sequence[bool], seed: int = 1) -> float:
    """Return how often a random choice of as many starts has medians as far apart as the chosen and the others."""
    draw = random.Random(seed)  # noqa: S311 - the same answer each time

    def apart(flags: Sequence[bool]) -> float:
        inside = [value for value, flag in zip(values, flags, strict=True) if flag]
        outside = [value for value, flag in zip(values, flags, strict=True) if not flag]
        return abs(statistics.median(inside) - statistics.median(outside))

    seen, flags, more = apart(chosen), list(chosen), 0
    for _trial in range(_TRIALS):
        draw.shuffle(flags)
        more += apart(flags) >= seen
    return (more + 1) / (_TRIALS + 1)


def gap(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the widest gap in the values, as (below, above); None when it is too narrow to speak of two modes."""
    ordered = sorted(values)
    pairs = [(low, high) for low, high in pairwise(ordered) if high / low - 1 >= _GAP]
    return max(pairs, key=lambda pair: pair[1] / pair[0], default=None)


def report(rows: list[dict]) -> None:
    """Print correlations, modes, conditions and cores."""
    two = [row for row in rows if row["condition"] != "one process"]
    usual = [row for row in rows if row["condition"] == "default"]
    print("\nSpearman's rank correlation with the time of a message: all starts of two processes; those by default")
    for name in _COMPARED:
        found = [spearman([row[name] for row in of], [row["stream_ns"] for row in of]) for of in (two, usual)]
        print(f"  {name:22} {found[0]:6.2f} of {len(two):3}   {found[1]:6.2f} of {len(usual):3}")
    message = sorted(row["stream_ns"] for row in two)
    between = gap(message)
    if between is None:
        print(f"\nno two modes: {len(two)} starts from {message[0]:.0f} to {message[-1]:.0f} ns, no gap of {_GAP:.0%}")
    else:
        print(f"\ntwo modes: nothing between {between[0]:.0f} and {between[1]:.0f} ns")
    _by_condition(rows, between)
    _by_core(rows)


def _by_condition(rows: list[dict], between: tuple[float, float] | None) -> None:
    print(
        f"\n{'condition':32} {'starts':>6} {'message us':>20} {'launch us':>20} {'graph us':>8} {'slow':>4} "
        f"{'chance':>7}"
    )
    for name in dict.fromkeys(row["condition"] for row in rows):
        own = [row for row in rows if row["condition"] == name]
        pool = [row for row in rows if row["condition"] in (name, "default")]
        is_own = [row["condition"] == name for row in pool]
        p = chance([row["stream_ns"] for row in pool], is_own) if not all(is_own) else 1.0
        slow = sum(between is not None and row["stream_ns"] >= between[1] for row in own)
        print(
            f"{name:32} {len(own):6} {_range(own, 'stream_ns'):>20} {_range(own, 'launch_after'):>20} "
            f"{statistics.median(row['graph_ns'] for row in own) / 1e3:8.2f} {slow:4} {p:7.3f}"
        )
    print("chance: the share of random choices of starts whose median differs as much from the default's")


def _range(rows: list[dict], name: str) -> str:
    values = sorted(row[name] / 1e3 for row in rows)
    return f"{statistics.median(values):.2f} ({values[0]:.2f}-{values[-1]:.2f})"


def _by_core(rows: list[dict]) -> None:
    """Print how launches differ between cores of one process, and between processes on one core."""
    sweeps = [
        {core: statistics.mean(gpus) / 1e3 for core, gpus in of.items()}
        for row in rows
        for of in row["launch_by_core"]
        if of
    ]
    if not sweeps:
        return
    within = statistics.median(max(of.values()) / min(of.values()) for of in sweeps)
    print(f"\nlaunch from the slowest core over that from the fastest, within a process: median {within:.2f}")
    for core in sorted(sweeps[0], key=int):
        values = sorted(of[core] for of in sweeps if core in of)
        print(
            f"  core {core:>3}: {statistics.median(values):.2f} us, {values[0]:.2f} to {values[-1]:.2f} "
            f"in {len(values)} processes"
        )
