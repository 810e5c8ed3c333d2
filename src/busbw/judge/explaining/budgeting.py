"""The budget of one size: from the rate of the wire, step by step, down to what was measured."""

from busbw.base.units import format_time
from busbw.facts.expectations import SizeCurve
from busbw.judge.explaining.series import Series, SizeSample
from busbw.limits.algorithms import shape_of
from busbw.limits.ceiling import parts_of
from busbw.limits.message_rate import NAME as MESSAGE_RATE
from busbw.model.limit import Bound, NodeRates
from busbw.model.verdict import BudgetStep, StepName

# Data in what each protocol of NCCL sends: LL a flag for each 4 bytes, LL128 8 bytes in each 128.
_PROTOCOLS = {
    "LL": (1 / 2, "half of what LL sends is flags"),
    "LL128": (120 / 128, "8 of 128 bytes of LL128 are flags"),
}
_PROTOCOL_SOURCE = ("NVIDIA/nccl, src/device, prims_ll.h and prims_ll128.h",)
# Less than this of what was there before is no step worth a reason.
_WORTH = 0.2


class _Steps:
    """Steps as they are taken, each from what the one before left."""

    def __init__(self) -> None:
        self.taken: list[BudgetStep] = []

    @property
    def left_Bps(self) -> float:
        return self.taken[-1].busbw_Bps if self.taken else 0.0

    def to(self, name: StepName, title: str, busbw_Bps: float, words: str, source: tuple[str, ...] = ()) -> None:
        change_Bps = busbw_Bps - self.left_Bps if self.taken else 0.0
        self.taken.append(
            BudgetStep(name=name, title=title, busbw_Bps=busbw_Bps, change_Bps=change_Bps, words=words, source=source)
        )


def budget(
    series: Series,
    sample: SizeSample,
    bound: Bound,
    rates: NodeRates,
    curve: SizeCurve | None,
) -> tuple[BudgetStep, ...]:
    """Return where the bandwidth of one size went, if it was measured with the algorithm of `bound`.

    `curve`: how bandwidth rises with the size on such machines, as others measured it.
    """
    ceiling_Bps = bound.busbw_Bps
    wire = _wire(series, bound, rates)
    if ceiling_Bps is None or wire is None:
        return ()
    steps = _Steps()
    steps.to("wire", *wire)
    line = next((line for line in bound.lines if line.limits), None)
    formula = f" ({line.formula})" if line is not None else ""
    steps.to("algorithm", bound.algorithm, ceiling_Bps, f"{bound.why}{formula}", bound.source)
    share, why = _PROTOCOLS.get((sample.protocol or "").upper(), (1.0, ""))
    if why:
        steps.to("protocol", sample.protocol or "", steps.left_Bps * share, why, _PROTOCOL_SOURCE)
    if bound.attained_Bps is not None:
        seen = line.attained_words if line is not None and line.attained_words else "part of the line rate"
        steps.to("seen", "as seen elsewhere", steps.left_Bps * bound.attained_Bps / ceiling_Bps, seen)
    _filling(series, sample, steps, curve)
    words = "nothing is left" if sample.busbw_Bps >= steps.left_Bps else "what none of this explains"
    steps.to("unexplained", "measured", sample.busbw_Bps, words)
    return tuple(steps.taken)


def _wire(series: Series, bound: Bound, rates: NodeRates) -> tuple[str, float, str, tuple[str, ...]] | None:
    if bound.busbw_Bps is not None and series.network == "loopback" and rates.nic is not None:
        return "NICs of a GPU", bound.busbw_Bps, f"{rates.ports} x {rates.nic.figures}", rates.nic.source
    if series.collective == MESSAGE_RATE and bound.busbw_Bps is not None and rates.nic is not None:
        # All of it is one line of the bound: the NICs by bytes, or by messages.
        line = next(line for line in bound.lines if line.limits)
        title = "NICs, messages" if line.part == "messages" else "NICs, bytes"
        source = rates.messages.source if line.part == "messages" and rates.messages is not None else rates.nic.source
        return title, bound.busbw_Bps, line.figures, source
    for part in parts_of(rates, shape_of(rates, series.nodes or 1)):
        if part.name == bound.limited_by and part.rate_Bps is not None:
            return part.title, part.rate_Bps, part.figures, part.source
    return None


def _filling(series: Series, sample: SizeSample, steps: _Steps, curve: SizeCurve | None) -> None:
    if curve is None or steps.left_Bps <= 0:
        return
    left_Bps = curve.below_attained_Bps(series.factor, steps.left_Bps, sample.size_bytes)
    words = f"start-up of {format_time(curve.latency_s)} and filling of the pipeline, as of {curve.words}"
    steps.to("latency", "latency and filling", left_Bps, words, curve.source)


def limiter(steps: tuple[BudgetStep, ...]) -> str | None:
    """Return in words what limits a size: the wire, unless a later step takes a larger part of what was there."""
    if not steps:
        return None
    losses = {
        step.name: -step.change_Bps / (step.busbw_Bps - step.change_Bps)
        for step in steps
        if step.name in ("protocol", "latency", "unexplained") and step.busbw_Bps > step.change_Bps
    }
    worst = max(losses, key=lambda name: losses[name], default=None)
    if worst is None or losses[worst] < _WORTH:
        return steps[0].title
    if worst == "unexplained":
        return "something that is not explained"
    return next(step.title for step in steps if step.name == worst)
