"""What a collective is predicted to take, with its interval and what that rests on."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.predict.nccl_choice import PredictedChoice

# in family: another document has the same GPUs, the same kind of network and the same algorithm; across: none has;
# calibrated: a cell of this very machine was given.
Kinship = Literal["in family", "across", "calibrated"]
# carried: the collective was left out too, of every document, so that constants were of other collectives.
HeldKinship = Literal[Kinship, "carried"]
# Sends and receives, and all other collectives.
Exchange = Literal["sends", "collective"]
# By size: from 1 GiB on, from 1 MiB on, and below.
Band = Literal["large", "middle", "small"]
# Whether NICs take part.
Scope = Literal["one node", "several nodes"]


class LinkShare(Value, frozen=True, kw_only=True):
    """How much of a part's line rate collectives reach, fitted to documents."""

    part: str
    algorithm: str
    # None: whatever they are.
    generation: str | None = None
    fabric: str | None = None
    share: float
    # The typical distance of one document, as a share; None: there is one document.
    spread: float | None = None
    documents: tuple[str, ...]


class RiseCurve(Value, frozen=True, kw_only=True):
    """How a call within a node rises with its size: T = latency + w + F, w = f S/B, 1/F = 1/full + 1/(slope w).

    Large messages take `full` to fill the pipeline; small ones `slope` times their bytes, as no stage overlaps another.
    """

    algorithm: str
    # None: whatever they are.
    generation: str | None = None
    # 0: that of NCCL's protocols, of which only Simple fills.
    latency_s: float
    full_s: float
    slope: float
    documents: tuple[str, ...]


class NetworkHop(Value, frozen=True, kw_only=True):
    """What one hop over a network takes beside what NCCL's cost model counts for it."""

    # None: whatever they are.
    generation: str | None = None
    fabric: str | None = None
    extra_s: float
    # None: it was not fitted.
    documents: tuple[str, ...]


class ChunkCost(Value, frozen=True, kw_only=True):
    """How much each stage of a tree over nodes holds while it fills, of what its channels' chunks are together."""

    chunks: float
    documents: tuple[str, ...]


class OwnPart(Value, frozen=True, kw_only=True):
    """What its own S/n of the data costs a rank of a ring within a node: it is written, and crosses no link.

    A byte of it costs s_per_byte (S / 1 GiB)^-growth.
    """

    collective: str
    # At 1 GiB.
    s_per_byte: float
    growth: float
    documents: tuple[str, ...]


class SendCost(Value, frozen=True, kw_only=True):
    """What one channel of sends carries within a node, and how long its pipeline fills."""

    # None: whatever they are.
    generation: str | None = None
    simple_Bps: float
    ll_Bps: float
    full_s: float
    documents: tuple[str, ...]


class MeasuredPattern(Value, frozen=True, kw_only=True):
    """That documents have a pattern: an algorithm, a chain (of one root), PAT, or sends of a collective."""

    pattern: str
    scope: Scope
    documents: tuple[str, ...]


class HeldOut(Value, frozen=True, kw_only=True):
    """What is left of cells whose document was left out: |ln(predicted / measured)|, less what widens it."""

    band: Band
    kinship: HeldKinship
    exchange: Exchange = "collective"
    scope: Scope
    document: str
    # Ten quantiles of the document's cells, the largest last.
    residuals: tuple[float, ...]


class PredictorConstants(Value, frozen=True, kw_only=True):
    """All that the closed form is fitted to."""

    # The most nodes of any document, by the kind of network.
    most_nodes: dict[str, Integer]
    share: tuple[LinkShare, ...]
    curve: tuple[RiseCurve, ...]
    hop: tuple[NetworkHop, ...]
    # None: no sweep of a tree over nodes.
    chunk: ChunkCost | None = None
    own: tuple[OwnPart, ...]
    send: tuple[SendCost, ...] = ()
    measured: tuple[MeasuredPattern, ...] = ()
    left_out: tuple[HeldOut, ...]


class PredictedCall(Value, frozen=True, kw_only=True):
    """One collective of one size by one algorithm. Rates are bus bandwidth, but for `algbw_Bps`."""

    nodes: Integer
    ranks: Integer
    size_bytes: Integer
    algorithm: str
    time_s: float
    busbw_Bps: float
    algbw_Bps: float
    # The ends of the 90 % interval, and what arithmetic allows.
    low_Bps: float
    high_Bps: float
    bound_Bps: float
    # Four parts of the time, which sum to it: what does not depend on the size, the pipeline that is not full, the
    # flags of LL and LL128, and the bytes at the rate of very large messages.
    latency_s: float
    filling_s: float
    flags_s: float
    wire_s: float
    # The part of the machine that limits very large messages.
    limited_by: str
    kinship: Kinship
    # Which collective no document has, where constants of others stand for it.
    unmeasured: str | None = None
    # Whether no document tells what of its links is reached: only cells of the machine itself make it a prediction.
    presumed: bool = False
    # How many times as far off as usual parts of its time may be: of what nobody measured.
    doubt: float = 1.0
    # Where the interval is from, and what was done to it; what makes most of its width.
    interval_words: str
    widest: str
    extrapolated: tuple[str, ...] = ()
    # How much of the limiting part's line rate large messages reach.
    share: float | None = None
    # The spread of the share that large messages were counted with; None: one document tells it.
    share_spread: float | None = None
    # By how much the interval was widened for that, on the logarithm.
    widened: float = 1.0
    # The constants, each fitted, and their documents.
    basis: tuple[str, ...]
    documents: tuple[str, ...]

    @property
    def loose(self) -> float:
        """Return the share of the time that is hops and what fills."""
        return (self.latency_s + self.filling_s) / self.time_s

    @property
    def mostly(self) -> str:
        """Return what most of the time is, and its share."""
        parts = {
            "latency": self.latency_s,
            "pipeline": self.filling_s,
            "flags": self.flags_s,
            self.limited_by: self.wire_s,
        }
        name = max(parts, key=lambda part: parts[part])
        return f"{name}, {100 * parts[name] / self.time_s:.0f} %"


# How a time is told: a formula, a schedule step by step, or event by event where what is under way shares links.
Tier = Literal["closed", "steps", "events"]


class SimulatedCall(Value, frozen=True, kw_only=True):
    """What a schedule makes of a call, with the constants of the closed form; it has no interval of its own."""

    tier: Tier
    algorithm: str
    time_s: float
    busbw_Bps: float
    # How much of the schedule was computed.
    words: str


class TimedSize(Value, frozen=True, kw_only=True):
    """What a schedule of somebody else takes at one size."""

    size_bytes: Integer
    timed: SimulatedCall | None = None
    cannot: str | None = None


class TimedSchedule(Value, frozen=True, kw_only=True):
    """What a schedule of somebody else takes on nodes of one kind. Nothing of it was measured."""

    name: str
    where: str
    # MSCCL or GOAL.
    form: str
    collective: str
    nodes: Integer
    ranks: Integer
    # Of one round, of all ranks.
    acts: Integer
    # Whose constants links and hops have.
    constants: str
    rows: tuple[TimedSize, ...]


class ChangedCall(Value, frozen=True, kw_only=True):
    """What a change of the machine would make of a call: its bus bandwidth over what it is without."""

    words: str
    algorithm: str
    limited_by: str
    busbw_Bps: float
    # Of 90 % between the ends; errors that both share have cancelled.
    ratio: float
    low_ratio: float
    high_ratio: float
    # The highest tier that it took, and what is assumed of the network between leaves at both ends.
    tier: Tier = "closed"
    assumed: tuple[str, ...] = ()


class PredictedSize(Value, frozen=True, kw_only=True):
    """One size on some nodes: the way that is expected, others, or why it cannot be told."""

    nodes: Integer
    size_bytes: Integer
    expected: PredictedCall | None = None
    others: tuple[PredictedCall, ...] = ()
    # As it was before calibrating cells shifted it; None: none did.
    before: PredictedCall | None = None
    # Why this way: by NCCL's own choice, as asked for, or as the fastest that is predicted.
    chosen_by: str = ""
    choice: PredictedChoice | None = None
    changed: ChangedCall | None = None
    cannot_change: str | None = None
    # By steps or events, where that was asked for, or why it cannot be.
    simulated: SimulatedCall | None = None
    cannot_simulate: str | None = None
    # Of SHARP, where steps or events were asked for: what each way takes at line rate, without latency and software.
    # That is no prediction: nothing of it is fitted.
    at_line_rate: tuple[SimulatedCall, ...] = ()
    cannot: str | None = None


class MeasuredElsewhere(Value, frozen=True, kw_only=True):
    """What somebody published of nodes of the same kind: no part of the prediction, and drawn beside it."""

    name: str
    document: str
    nodes: Integer
    size_bytes: Integer
    busbw_Bps: float


class InputWorth(Value, frozen=True, kw_only=True):
    """What bus bandwidth becomes when one input is less, and when it is more, by the share of its `Sensitivity`."""

    name: str
    # Whether a fit to documents gave it.
    is_fitted: bool
    less_Bps: float
    more_Bps: float


class Sensitivity(Value, frozen=True, kw_only=True):
    """What each input is worth for one call, the one that matters most first."""

    nodes: Integer
    size_bytes: Integer
    busbw_Bps: float
    # By how much each input is changed, as a share of itself.
    change: float
    inputs: tuple[InputWorth, ...]


class Narrower(Value, frozen=True, kw_only=True):
    """How wide the interval would be with a measured size on as many nodes: its ends over the centre, as shares."""

    nodes: Integer
    size_bytes: Integer
    half_width: float
    calibrated_half_width: float


class Prediction(Value, frozen=True, kw_only=True):
    """What a collective is predicted to take on nodes of one kind. Nothing of it was measured."""

    name: str
    collective: str
    gpus: Integer
    release: str
    # Of what is expected, and of what was asked for beside it.
    tier: Literal["closed"] = "closed"
    beside: Tier | None = None
    rows: tuple[PredictedSize, ...]
    elsewhere: tuple[MeasuredElsewhere, ...] = ()
    # Of the largest size on the most nodes; None: nothing is predicted.
    sensitivity: Sensitivity | None = None
    # None: nothing is predicted, or a cell of the machine was given already.
    narrower: Narrower | None = None
    notes: tuple[str, ...] = ()


class HeldCell(Value, frozen=True, kw_only=True):
    """A measured cell beside what is predicted for it."""

    document: str
    name: str
    nodes: Integer
    gpus: Integer
    collective: str
    size_bytes: Integer
    measured_Bps: float
    predicted: PredictedCall | None = None
    cannot: str | None = None

    @property
    def is_inside(self) -> bool | None:
        """Return whether the measured value is in the interval; None: nothing is predicted."""
        if self.predicted is None:
            return None
        return self.predicted.low_Bps <= self.measured_Bps <= self.predicted.high_Bps


class HeldDocument(Value, frozen=True, kw_only=True):
    """The cells of one document in one band: the median of |ln(predicted / measured)|, and how many are inside."""

    document: str
    band: Band
    kinship: Kinship | None
    cells: Integer
    told: Integer
    inside: Integer
    median_error: float | None
    # Median half-width of the intervals, as a share.
    half_width: float | None


class HeldTable(Value, frozen=True, kw_only=True):
    """A table of measured cells against predictions."""

    where: str
    cells: tuple[HeldCell, ...]
    documents: tuple[HeldDocument, ...]
    # Rows that were left out, with the reason.
    left_out: tuple[str, ...] = ()
