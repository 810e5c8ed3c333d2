"""Comparisons, scaling and explanations with something in every place, for the figures drawn of them."""

from busbw.model.comparison import ComparedPoint, Comparison, ComparisonVerdict, Side, SpeedEstimate, Versus
from busbw.model.finding import Finding, Verdict
from busbw.model.run import Run
from busbw.model.scaling import (
    LineDifference,
    PairedPoint,
    Scaling,
    ScalingPoint,
    ScalingReport,
    ScalingSeries,
    ScalingVerdict,
)
from busbw.model.scaling import ScalingEstimate as Placed
from busbw.model.verdict import (
    BudgetStep,
    Condition,
    Expected,
    ExplainedVerdict,
    FittedLine,
    SeriesExplanation,
    SizeExplanation,
    SweepCurve,
)
from busbw.model.verdict import FittedParameter as Fitted


def make_comparison(name: str = "NCCL_PROTO=LL") -> Comparison:
    def point(collective: str, size_bytes: int, ratio: float, low: float | None, high: float | None) -> ComparedPoint:
        claim = "cannot_tell" if low is None else "faster" if low > 1.01 else "slower" if (high or 2) < 0.99 else "none"
        return ComparedPoint(
            collective=collective,
            size_bytes=size_bytes,
            dtype="float32",
            op="sum",
            root=0,
            in_place=False,
            ranks=4,
            band="small" if size_bytes < 65536 else "large",
            first_s=1e-5,
            other_s=1e-5 / ratio,
            first_busbw_Bps=1e9,
            other_busbw_Bps=1e9 * ratio,
            estimate=SpeedEstimate(ratio=ratio, low=low, high=high, blocks=(ratio,) * 6, claim=claim),
        )

    points = tuple(
        point(collective, 8 * 8**step, *values)
        for collective, sign in (("all_reduce", 1), ("alltoall", -1))
        for step, values in enumerate(
            (1 + sign * shift, 1 + sign * shift - wide, 1 + sign * shift + wide)
            if wide
            else (1 + sign * shift, None, None)
            for shift, wide in ((0.2, 0.02), (0.1, 0.03), (0.05, 0.0), (0.01, 0.02), (-0.08, 0.03))
        )
    )
    return Comparison(
        busbw_version="0.1.0",
        design="random_order",
        sides=(
            Side(letter="A", name="default", kind="settings", launches=("a1", "a2")),
            Side(letter="B", name=name, kind="settings", launches=("b1", "b2")),
        ),
        versus=(Versus(other=1, points=points, bands=(), unmatched=("all_reduce 4 MiB (only A)",)),),
        false_claims=0.05,
        least_difference=0.01,
        blocks=6,
        verdict=ComparisonVerdict(
            outcome="mixed", sentence=f"mixed: {name} is faster at small sizes, slower at large."
        ),
    )


def make_scaling(label: str = "SHARP on") -> ScalingReport:
    def points(share: float) -> tuple[ScalingPoint, ...]:
        return tuple(
            ScalingPoint(
                at=nodes,
                nodes=nodes,
                busbw_Bps=Placed(value=share * 2e11 * nodes**-0.05, low=share * 1.9e11 * nodes**-0.05, high=2e11),
                limit_Bps=2e11,
                limit_words="8 NICs of 25 GB/s",
                of_limit=Placed(value=share * nodes**-0.05),
            )
            for nodes in (2, 4, 8, 16, 32)
        )

    words = f"{label} is 3.0 % above SHARP off in bus bandwidth"
    difference = LineDifference(
        line=label,
        reference="SHARP off",
        quantity="bus bandwidth",
        answer="above",
        change=Placed(value=0.03, low=0.02, high=0.04),
        points=(PairedPoint(at=2, change=Placed(value=0.03), observations=1, reference_observations=2),),
        unmatched=((64, f"measured on {label} only"),),
        words=words,
        meaning="the interval is how far the difference varies",
    )
    views = (
        Scaling(
            kind="collective",
            title="all_reduce 1 GiB",
            axis="nodes",
            size_bytes=2**30,
            conditions=(("collective", "all_reduce"), ("type", "float32")),
            series=(
                ScalingSeries(label=label, points=points(0.97)),
                ScalingSeries(label="SHARP off", points=points(0.8)),
            ),
            differences=(difference,),
            notes=("read from 10 runs",),
        ),
    )
    found = Finding(code="SCAL001", severity="warn", title=label, evidence=label, fix=f"measure {label} again")
    verdict = ScalingVerdict(outcome="slower", sentence=f"{label} is slower", because=("SCAL001",))
    return ScalingReport(verdict=verdict, views=views, findings=(found,))


def make_explained(run: Run, words: str = "one NIC of 50 GB/s") -> ExplainedVerdict:
    items = [item for item in run.measurements if item.collective == "all_reduce"]
    sizes = tuple(
        SizeExplanation(
            point=item.point,
            size_bytes=item.size_bytes,
            time_s=item.median_s,
            busbw_Bps=item.busbw_Bps,
            algbw_Bps=item.algbw_Bps,
            algorithm="ring",
            protocol="Simple",
            regime="latency" if item.size_bytes < 4096 else "bandwidth",
            ceiling_Bps=5e10,
            ceiling_words=words,
            limited_by="the NICs",
            band_time_s=3e-6 if item.size_bytes <= 4096 else None,
            band_low_Bps=4e10 if item.size_bytes > 4096 else None,
            band_high_Bps=4.6e10 if item.size_bytes > 4096 else None,
            expected=(
                Expected(
                    title="published for two nodes",
                    basis="measured",
                    busbw_Bps=4.5e10,
                    applies="no",
                    conditions=(Condition(name="nodes", asked="2", here="1", outcome="differs"),),
                    doubt=words,
                ),
            ),
            budget=(
                BudgetStep(name="wire", title="wire", busbw_Bps=5e10, change_Bps=0.0, words=words),
                BudgetStep(name="unexplained", title="left", busbw_Bps=3e10, change_Bps=-2e10, words="nobody knows"),
            ),
            verdict=Verdict(outcome="slow", sentence=f"slow: {words}."),
            next_step="run `busbw doctor --here`",
        )
        for item in items
    )
    fitted = Fitted(value=2e-6, low=1.9e-6, high=2.1e-6, confidence=0.95)
    curve = SweepCurve(
        whole=FittedLine(
            from_bytes=8,
            to_bytes=sizes[-1].size_bytes,
            points=len(sizes),
            latency_s=fitted,
            algbw_Bps=Fitted(value=8e9, low=7.9e9, high=8.1e9, confidence=0.95),
            half_bytes=None,
            spread=0.01,
        ),
        missing=("a Hill curve: too few sizes",),
    )
    series = SeriesExplanation(
        title="all_reduce, float32, sum",
        collective="all_reduce",
        ranks=4,
        curve=curve,
        sizes=sizes,
        verdict=Verdict(outcome="slow", sentence=f"slow: {words}."),
        next_step="look at the NIC",
    )
    return ExplainedVerdict(
        subject=run.plan.run_id,
        machine=words,
        grounds=("the host's own capture",),
        series=(series,),
        verdict=Verdict(outcome="slow", sentence="slow"),
        next_steps=("run `busbw fabric`",),
    )
