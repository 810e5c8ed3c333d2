"""How often `busbw compare` claims what is not there, and how often it finds what is, under eight kinds of noise.

    .venv/bin/python benchmarks/comparing/false_claims.py [--tables 1000] [--workers 2]

Simulated are the times of launches; their order is drawn by the planner of `busbw compare`, and what is claimed is what
its judge says of them. A table has one point, or as many as a suite of six collectives in three sizes. Printed are

- false claims: tables, in percent, with a wrong "faster" or "slower". Any is wrong where the sides do not differ, and
  where the other side is faster by exactly 1 %, which is not more than the least difference that counts;
- found: points, in percent, with the right claim, where the other side is faster by 2, 3 and 5 %;
- the first of these for stored comparisons, whose order was drawn in mirrored pairs;
- claims of stored results, one side after the other: none, and what they would be if these were judged as launches in
  random order.

Exit code 1: more than 5 % of the tables of some kind have a false claim. About two minutes on two cores.
"""

import argparse
import math
import os
import platform
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

from busbw.api.interleave import order_of
from busbw.judge.comparing.comparison import compare
from busbw.judge.comparing.launch import Launch, PointKey, TimedPoint
from busbw.judge.comparing.versus import FALSE_CLAIMS, LEAST_DIFFERENCE, least_blocks
from busbw.model.comparison import Comparison, Design, Side

BLOCKS = (6, 12, 30)
POINTS = (1, 18)
NOT_MORE = (1.0, 1 + LEAST_DIFFERENCE)
EFFECTS = (1.02, 1.03, 1.05)
# Of a table of many points fewer are simulated, and fewer for what is found: each of their points counts.
_FEWER = 5
_TIME_S = 1e-5
# What each point adds to the noise that all points of a launch share.
_OWN = 0.003

# Logarithms of what so many launches take longer than usual, in the order of their starts.
Noise = Callable[[random.Random, int], list[float]]


def independent(lot: random.Random, launches: int) -> list[float]:
    """Launches differ by 1.5 % (standard deviation), each by itself."""
    return [lot.gauss(0, 0.015) for _launch in range(launches)]


def heavy_tails(lot: random.Random, launches: int) -> list[float]:
    """Student's t with two degrees of freedom: most differ by 1 %, and some by very much more."""
    return [0.01 * lot.gauss(0, 1) / math.sqrt(lot.gammavariate(1, 1)) for _launch in range(launches)]


def drift(lot: random.Random, launches: int) -> list[float]:
    """Every launch takes up to 2 % longer, or less, than the one before."""
    slope = lot.uniform(-0.02, 0.02)
    return [slope * launch + lot.gauss(0, 0.005) for launch in range(launches)]


def random_walk(lot: random.Random, launches: int) -> list[float]:
    """Every launch differs by 1.5 % from the one before."""
    at, found = 0.0, []
    for _launch in range(launches):
        at += lot.gauss(0, 0.015)
        found.append(at)
    return found


def step(lot: random.Random, launches: int) -> list[float]:
    """The machine gets 10 % slower somewhere in the middle third."""
    where = lot.randint(launches // 3, 2 * launches // 3)
    return [0.1 * (launch >= where) + lot.gauss(0, 0.005) for launch in range(launches)]


def periodic(lot: random.Random, launches: int) -> list[float]:
    """10 % in the pattern 1, 0, 0, 1, from any place in it on."""
    first = lot.randrange(4)
    return [0.1 * (1, 0, 0, 1)[(first + launch) % 4] + lot.gauss(0, 0.002) for launch in range(launches)]


def bursts(lot: random.Random, launches: int) -> list[float]:
    """Neighbours correlate by 0.9 (3 %), and one launch in twenty takes 30 % longer."""
    at, found = lot.gauss(0, 0.03), []
    for _launch in range(launches):
        at = 0.9 * at + lot.gauss(0, 0.03 * math.sqrt(1 - 0.9**2))
        found.append(at + 0.3 * (lot.random() < 0.05))
    return found


def start_modes(lot: random.Random, launches: int) -> list[float]:
    """A launch takes 6.5 or 10.5 us, and nine in ten what the one before took."""
    slow, found = lot.random() < 0.5, []
    for _launch in range(launches):
        slow ^= lot.random() < 0.1
        found.append(math.log(10.5 / 6.5) * slow + lot.gauss(0, 0.02))
    return found


KINDS: dict[str, Noise] = {
    "independent": independent, "heavy tails": heavy_tails, "drift": drift, "random walk": random_walk, "step": step,
    "periodic 1,0,0,1": periodic, "bursts, AR(1)": bursts, "start modes": start_modes,
}  # fmt: skip
_OF_EACH_POINT = (independent, heavy_tails)
SIDES = tuple(Side(letter=letter, name=letter, kind="settings", launches=()) for letter in "AB")

# (block, side) of each launch: two sides, so many blocks, a seed.
Order = Callable[[int, int, int], tuple[tuple[int, int], ...]]


def mirrored(sides: int, blocks: int, seed: int) -> tuple[tuple[int, int], ...]:
    """Return the order of plans of schema 1: every second block is the mirror of the one before."""
    drawn = order_of(sides, blocks, seed)
    of_block = [[side for block, side in drawn if block == number] for number in range(blocks)]
    return tuple(
        (block, side)
        for block in range(blocks)
        for side in (of_block[block - 1][::-1] if block % 2 else of_block[block])
    )


def one_after_the_other(sides: int, blocks: int, _seed: int) -> tuple[tuple[int, int], ...]:
    """Return the order of stored results: all launches of a side, then all of the next."""
    return tuple((block, side) for side in range(sides) for block in range(blocks))


ORDERS: dict[Design, Order] = {
    "random_order": order_of, "mirrored_pairs": mirrored, "descriptive": one_after_the_other,
}  # fmt: skip


def compared(
    lot: random.Random,
    noise: Noise,
    blocks: int,
    points: int,
    *,
    effect: float = 1.0,
    design: Design = "random_order",
    judged_as: Design | None = None,
) -> Comparison:
    """Return what the judge says of two sides, of which the other one is faster by `effect`.

    They are measured in the order of `design`, and judged as of that, or as of another one.
    """
    order = ORDERS[design](2, blocks, lot.randrange(2**32))
    shared = None if noise in _OF_EACH_POINT else noise(lot, len(order))
    columns = [shared or noise(lot, len(order)) for _point in range(points)]
    launches = [
        Launch(
            side=side,
            block=block,
            name=f"launch-{place}",
            points=tuple(
                _timed(point, math.exp(column[place] + lot.gauss(0, _OWN)) * _TIME_S / (effect if side else 1.0))
                for point, column in enumerate(columns)
            ),
        )
        for place, (block, side) in enumerate(order)
    ]
    return compare(SIDES, launches, [{}, {}], design=judged_as or design)


def _timed(point: int, time_s: float) -> TimedPoint:
    key = PointKey(collective="all_reduce", size_bytes=8 * 2**point, dtype="float32", op="sum", root=0, in_place=False)
    return TimedPoint(key=key, time_s=time_s, busbw_Bps=key.size_bytes / time_s, ranks=2, wrong=False)


def claims(found: Comparison) -> list[str]:
    """Return what is claimed of each point."""
    return [point.estimate.claim for point in found.versus[0].points]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """What is simulated for one number; the other side is faster by `effect`."""

    kind: str
    blocks: int
    points: int
    effect: float = 1.0
    design: Design = "random_order"
    judged_as: Design | None = None


def share(cell: Cell, tables: int, seed: int = 1) -> float:
    """Return the share of tables with a false claim; where there is something to find, of points with the right one."""
    lot = random.Random(f"{seed} {cell}")  # noqa: S311 - a simulation
    given = {"effect": cell.effect, "design": cell.design, "judged_as": cell.judged_as}
    found = [claims(compared(lot, KINDS[cell.kind], cell.blocks, cell.points, **given)) for _table in range(tables)]
    if cell.effect in NOT_MORE:
        return sum(bool({"faster", "slower"} & set(each)) for each in found) / tables
    return sum(each.count("faster") for each in found) / (tables * cell.points)


def _simulated(task: tuple[Cell, int]) -> float:
    return share(*task)


def cells(tables: int) -> Iterator[tuple[Cell, int]]:
    for kind, blocks in product(KINDS, BLOCKS):
        for points in POINTS:
            if blocks < least_blocks(points):
                continue
            many = tables if points == 1 else tables // _FEWER
            for effect in (*NOT_MORE, *EFFECTS):
                enough = many if effect in NOT_MORE else max(many // _FEWER, 1)
                yield Cell(kind=kind, blocks=blocks, points=points, effect=effect), enough
        yield Cell(kind=kind, blocks=blocks, points=1, design="mirrored_pairs"), tables
        yield Cell(kind=kind, blocks=blocks, points=1, design="descriptive"), max(tables // _FEWER, 1)
        yield _as_if_in_turn(kind, blocks), max(tables // _FEWER, 1)


def _as_if_in_turn(kind: str, blocks: int) -> Cell:
    return Cell(kind=kind, blocks=blocks, points=1, design="descriptive", judged_as="random_order")


def print_table(heading: str, columns: dict[str, list[Cell | None]], found: dict[Cell, float]) -> None:
    print(f"\n{heading}")
    print(f"{'':18}" + "".join(f"{name:>16}" for name in columns))
    for row, kind in enumerate(KINDS):
        shown = ("n/a" if (cell := cells[row]) is None else f"{100 * found[cell]:.1f}" for cells in columns.values())
        print(f"{kind:18}" + "".join(f"{each:>16}" for each in shown))


def print_tables(found: dict[Cell, float]) -> None:
    def of(blocks: int, points: int, effect: float = 1.0, design: Design = "random_order") -> list[Cell | None]:
        own = [Cell(kind=kind, blocks=blocks, points=points, effect=effect, design=design) for kind in KINDS]
        return [cell if cell in found else None for cell in own]

    sizes = {f"{blocks} x {points} pt": (blocks, points) for points in POINTS for blocks in BLOCKS}
    for effect in (*NOT_MORE, *EFFECTS):
        much = f"the other side is faster by {100 * (effect - 1):.0f} %"
        what = f"false claims, {much}, % of tables" if effect in NOT_MORE else f"found, {much}, % of points"
        print_table(f"{what} (blocks x points)", {name: of(*size, effect) for name, size in sizes.items()}, found)
    pairs = {f"{blocks} blocks": of(blocks, 1, design="mirrored_pairs") for blocks in BLOCKS}
    print_table("false claims, stored comparisons in mirrored pairs, % of tables of one point", pairs, found)
    after = {f"{blocks} launches": of(blocks, 1, design="descriptive") for blocks in BLOCKS}
    after |= {f"{blocks}, as in turn": [_as_if_in_turn(kind, blocks) for kind in KINDS] for blocks in BLOCKS}
    print_table("claims, stored results, one side after the other, % of tables of one point", after, found)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--tables", type=int, default=1000, help="tables of one point, for each rate of false claims"
    )
    arguments.add_argument("--workers", type=int, default=os.cpu_count())
    chosen = arguments.parse_args()
    began_s = time.monotonic()
    tasks = list(cells(max(chosen.tables, _FEWER)))
    with ProcessPoolExecutor(chosen.workers) as pool:
        found = dict(zip((cell for cell, _tables in tasks), pool.map(_simulated, tasks, chunksize=4), strict=True))
    print(
        f"{chosen.tables} tables of one point, {chosen.tables // _FEWER} of {POINTS[1]}; what is found: a fifth of each"
    )
    taken_s = time.monotonic() - began_s
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {chosen.workers} workers, {taken_s:.0f} s")

    print_tables(found)
    held = {cell: rate for cell, rate in found.items() if cell.effect in NOT_MORE and cell.judged_as is None}
    wrong = {cell: rate for cell, rate in held.items() if rate > FALSE_CLAIMS}
    for cell, rate in wrong.items():
        print(f"more than {100 * FALSE_CLAIMS:g} %: {100 * rate:.1f} % of {cell}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
