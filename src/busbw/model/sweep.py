"""What is to be measured."""

from typing import Literal

from busbw.model.value import Integer, Value

Mode = Literal["stream", "isolated"]


class Sampling(Value, kw_only=True, frozen=True):
    """How many samples are taken of each point, and when it is enough."""

    mode: Mode
    min_samples: Integer = 30
    max_samples: Integer = 20_000
    # Stop when the confidence interval of the median reaches no further than this share of it to either side.
    half_width: float = 0.01
    confidence: float = 0.95
    # For all points of all sweeps together, start-up apart; each point gets its share of what is left.
    time_limit_s: float


class Sweep(Value, kw_only=True, frozen=True):
    """One collective over a list of sizes."""

    collective: str
    # Counted sizes (collectives.counted_size), ascending, without repetition.
    sizes_bytes: tuple[Integer, ...]
    dtype: str
    op: str
    root: Integer
    in_place: bool


class Point(Value, kw_only=True, frozen=True):
    """One size of one sweep: what one measurement is about."""

    sweep: Integer
    size_bytes: Integer


def points_of(sweeps: tuple[Sweep, ...]) -> tuple[Point, ...]:
    """Return every point in the order it is measured."""
    return tuple(
        Point(sweep=index, size_bytes=size_bytes)
        for index, sweep in enumerate(sweeps)
        for size_bytes in sweep.sizes_bytes
    )
