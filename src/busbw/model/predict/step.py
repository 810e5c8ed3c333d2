"""What the communication of a training step is predicted to take."""

from busbw.base.value import Integer, Value
from busbw.model.predict.prediction import PredictedCall


class TimeSpan(Value, frozen=True, kw_only=True):
    """A time in seconds with the ends of its 90 % interval."""

    time_s: float
    low_s: float
    high_s: float


class PredictedTerm(Value, frozen=True, kw_only=True):
    """One kind of call that a rank makes in a step: what all of its calls take, and what of that is waited for."""

    name: str
    collective: str
    # TP, DP, ...: as `train plan` names the groups.
    group: str
    ranks: Integer
    nodes: Integer
    size_bytes: Integer
    calls: Integer
    # What may run meanwhile; None: nothing, it is waited for.
    overlaps: str | None = None
    call: PredictedCall | None = None
    total: TimeSpan | None = None
    exposed: TimeSpan | None = None
    cannot: str | None = None


class PredictedStep(Value, frozen=True, kw_only=True):
    """The communication of a step, from predictions alone; terms that cannot be told are in no sum."""

    schema: Integer = 1
    workload: str
    platform: str
    gpus: Integer
    # The share of what may overlap that is taken to be hidden.
    overlap: float
    terms: tuple[PredictedTerm, ...]
    total: TimeSpan
    # Of it what may overlap with something, and what is waited for.
    overlappable_s: float
    exposed: TimeSpan
    # Terms whose errors are the same, as they rest on the same constant: their intervals are added.
    classes: tuple[str, ...]
    untold: tuple[str, ...]
