"""The speeds of a channel that NCCL tries, the highest first, as src/graph/search.cc of each release has them."""

from busbw.topo.paths.graph import Nccl

HOPPER = 90
BLACKWELL = 100
# GB/s of one channel within a node: by compute capability, the newest first.
_WITHIN = (
    (BLACKWELL, (90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18)),
    (HOPPER, (60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3)),
    (0, (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3)),
)
# Of those of 10.0, speeds that came later.
_LATER = {18: (2, 27, 3), 45: (2, 29, 2)}
# GB/s of one channel of several nodes.
_SLOW = (3, 2.4, 1.2, 0.24, 0.12)
_MIDDLE = (42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6)
_BETWEEN = (
    (HOPPER, (48, 45, *_MIDDLE, *_SLOW)),
    (0, (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, *_SLOW)),
)
# What those of 10.0 begin with, by release, the newest first.
_BLACKWELL_FIRST: tuple[tuple[Nccl, tuple[float, ...]], ...] = (
    ((2, 30, 3), (96, 86, 80, 48, 45.1)),
    ((2, 29, 7), (96, 80, 48, 45.1)),
    ((2, 27, 6), (96, 48, 45.1)),
    ((2, 27, 5), (48, 45.1)),
    ((2, 27, 3), (47.9, 45)),
    ((0, 0, 0), (48, 45)),
)


def speeds_within_MBps(sm: int, nccl: Nccl) -> tuple[int, ...]:
    """Return the speeds of a channel of one node alone; `sm` is the compute capability times ten."""
    all_of = next(speeds for first, speeds in _WITHIN if sm >= first)
    return tuple(1000 * speed for speed in all_of if sm < BLACKWELL or nccl >= _LATER.get(speed, nccl))


def speeds_between_MBps(sm: int, nccl: Nccl) -> tuple[int, ...]:
    """Return the speeds of a channel of several nodes; `sm` is the compute capability times ten."""
    if sm >= BLACKWELL:
        speeds = (*next(first for since, first in _BLACKWELL_FIRST if nccl >= since), *_MIDDLE, *_SLOW)
    else:
        speeds = next(of_generation for first, of_generation in _BETWEEN if sm >= first)
    return tuple(round(1000 * speed) for speed in speeds)
