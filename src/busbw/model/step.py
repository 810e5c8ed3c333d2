"""What a rank is doing, in words, the same whether it says so itself or is watched."""

from busbw.base.collectives import COLLECTIVES
from busbw.base.units import format_size
from busbw.model.sweep import Sweep, points_of

# The states in which a rank is at a point of the plan; the others come before the first point or after the last.
_AT_A_POINT = ("verifying", "warming up", "sampling", "writing", "attributing")


def step_words(state: str, number: int, samples: int, sweeps: tuple[Sweep, ...]) -> str:
    """Return a state of layout.HEARTBEAT_STATES at point `number`: `sampling all_reduce 4 KiB, sample 17`."""
    points = points_of(sweeps)
    if state not in _AT_A_POINT or number >= len(points):
        return state
    point = points[number]
    collective = COLLECTIVES[sweeps[point.sweep].collective].name
    sample = f", sample {samples}" if state == "sampling" else ""
    return f"{state} {collective} {format_size(point.size_bytes)}{sample}"
