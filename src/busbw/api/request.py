"""What a user asks to be measured, before it is checked against the machine."""

from busbw.model.sweep import Mode
from busbw.model.value import Value


class Request(Value, kw_only=True, frozen=True):
    """A measurement as asked for. None: busbw chooses, and the plan says what."""

    collectives: tuple[str, ...] = ()
    suite: str | None = None
    ranks: int | None = None
    smallest_bytes: int | None = None
    largest_bytes: int | None = None
    # Sizes grow by this factor, or by this many bytes; one of the two.
    factor: int | None = None
    step_bytes: int | None = None
    dtype: str = "float32"
    op: str = "sum"
    root: int = 0
    # "out", "in" or "both".
    placement: str = "out"
    mode: Mode = "isolated"
    time_limit_s: float = 50.0
    stall_s: float = 60.0
    min_samples: int = 30
    mpirun: str | None = None
    tag: str | None = None
