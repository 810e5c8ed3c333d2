"""A step as ranks replay it, from a job and as many ranks as there are; and what they took, put together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from busbw.base.collectives import COLLECTIVES, busbw_Bps, counted_size
from busbw.base.errors import InputError
from busbw.base.units import format_size
from busbw.facts.platforms import spellings
from busbw.facts.workloads import Accelerator, accelerator_of
from busbw.model.plan import Groups, Sweep
from busbw.model.platform import Platform
from busbw.model.record import StepsTaken
from busbw.model.run import Measurement
from busbw.model.train.replay import CallResult, ReplayedCall, ReplayedStep, StepAsked, StepPlan
from busbw.model.train.workload import DataType
from busbw.stats.distributions import median, median_interval
from busbw.train.layout import RankLayout, group_of, layout_of
from busbw.train.planning import TrainJob
from busbw.train.shape import BACKWARD_TIMES
from busbw.train.step import Call, slowest, stage_flops, step_calls

_CONFIDENCE = 0.95
# Of a GPU's dense peak in BF16, and what a core's worth of waiting stands for; both are assumptions that are printed.
_PEAK_SHARE = 0.4
_RATE_ON_CPUS = 1e11
_MOST_MOVES = 2**17
_TYPES: dict[DataType, str] = {"bf16": "bfloat16", "fp8": "bfloat16", "fp16": "float16", "fp32": "float32"}
LEFT_OUT = (
    "kernels that are no matrix products, and traffic to a GPU's own memory",
    "reading data, checkpoints, and the optimizer beyond its collectives",
    "the bubble of the pipeline: every rank replays the slowest stage, and stages pass on in a ring",
    "experts that are not evenly loaded: every rank sends every other as much",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RankRate:
    """The FLOP/s that a rank is taken to attain, and why."""

    flops: float
    words: str


def rate_of(asked: StepAsked, gpu_model: str | None, platforms: Sequence[Platform]) -> RankRate:
    """Return the rate that computing is replayed at. Raises InputError where none is given and none can be assumed."""
    if asked.rate_flops is not None:
        return RankRate(flops=asked.rate_flops, words="as given")
    if gpu_model is None:
        return RankRate(flops=_RATE_ON_CPUS, words="assumed, as no GPU computes; --rate TFLOPS for another")
    known = _accelerator(gpu_model, platforms)
    if known is None:
        raise InputError(f"what a {gpu_model} computes is not published", hint="--rate 400, in TFLOP/s of one rank")
    words = f"assumed: {_PEAK_SHARE:.0%} of the dense peak of a {gpu_model} in BF16; --rate TFLOPS for another"
    return RankRate(flops=_PEAK_SHARE * known.peak_bf16, words=words)


def _accelerator(model: str, platforms: Sequence[Platform]) -> Accelerator | None:
    """Return what is published of a GPU that its driver names so; platforms have names of their own."""
    named = (
        each.gpu.model
        for each in platforms
        if any(fnmatchcase(name, glob) for name in spellings(model) for glob in each.match.gpu_names)
    )
    return next((found for name in named if (found := accelerator_of(name)) is not None), accelerator_of(model))


def step_of(
    job: TrainJob, asked: StepAsked, rate: RankRate, time_limit_s: float, alignment_bytes: int
) -> tuple[StepPlan, tuple[Sweep, ...]]:
    """Return the step of a job as ranks replay it, and a sweep for each of its calls.

    Raises InputError for a job that cannot be, without communication, or with more moves than are kept.
    """
    model, configuration = job.workload.model, job.configuration
    layout = layout_of(model, configuration, job.order)
    stage = slowest(model, configuration, layout)
    found = step_calls(model, configuration, layout, job.dtype, stage)
    pairs = [each for each in (_replayed(call, job, layout, asked, alignment_bytes) for call in found) if each]
    if not pairs:
        raise InputError(
            f"nothing of this step is left to replay on {layout.gpus} ranks",
            hint="a smaller --scale-down, or more ranks",
        )
    calls, sweeps = (tuple(each) for each in zip(*pairs, strict=True))
    moves = 4 * sum(call.calls for call in calls)
    if moves > _MOST_MOVES:
        batch = max(1, configuration.global_batch * _MOST_MOVES // moves)
        raise InputError(
            f"{moves // 4} calls in a step are more than are replayed",
            hint=f"fewer micro-batches: --layout global_batch={batch}",
        )
    flops = stage_flops(model, configuration, stage) * layout.accumulation
    passes = 1 + BACKWARD_TIMES + (1 if configuration.parallelism.recompute == "full" else 0)
    kept = {call.name for call in calls}
    gone = tuple(f"{call.name}: too few bytes, or not of all ranks" for call in found if call.name not in kept)
    plan = StepPlan(
        asked=asked, workload=job.workload.id, title=job.workload.title, dtype=job.dtype, tp=layout.tp, cp=layout.cp,
        pp=layout.pp, ep=layout.ep, dp=layout.dp, expert_dp=layout.expert_dp, order=job.order,
        accumulation=layout.accumulation, sequence=configuration.sequence, global_batch=configuration.global_batch,
        calls=calls, compute_s=flops / rate.flops / asked.scale_down, flops=flops,
        rate_flops=rate.flops, rate_words=rate.words, backward_share=(passes - 1) / passes, time_limit_s=time_limit_s,
        most_steps=asked.steps or _MOST_STEPS, left_out=(*gone, *LEFT_OUT),
    )  # fmt: skip
    return plan, sweeps


_MOST_STEPS = 1000


def _replayed(
    call: Call, job: TrainJob, layout: RankLayout, asked: StepAsked, alignment_bytes: int
) -> tuple[ReplayedCall, Sweep] | None:
    """Return a call as it is replayed; None where nothing would be sent, and where some ranks have no part."""
    group = group_of(layout, call.group)
    if group.size * group.groups != layout.gpus:
        return None
    collective, dtype = COLLECTIVES[call.collective], _element(call, job)
    size_bytes = counted_size(collective, call.size_bytes // asked.scale_down, group.size, dtype, alignment_bytes)
    if size_bytes == 0 and call.size_bytes >= 1:
        # What is a number or two stays one.
        size_bytes = counted_size(collective, call.size_bytes, group.size, dtype, alignment_bytes)
    if size_bytes == 0:
        return None
    return (
        ReplayedCall(
            name=call.name, collective=call.collective, group=call.group, ranks=group.size, groups=group.groups,
            calls=call.calls, phase=call.phase, overlaps=call.overlaps, hidden_by=call.hidden_by,
            planned_bytes=call.size_bytes, size_bytes=size_bytes,
        ),
        Sweep(
            collective=call.collective, sizes_bytes=(size_bytes,), dtype=dtype, op="sum", root=0, in_place=False,
            within=Groups(kind=call.group, sizes=group.sizes, strides=group.strides),
            part_alignment_bytes=alignment_bytes,
        ),
    )  # fmt: skip


def _element(call: Call, job: TrainJob) -> str:
    """Return the data type of a call: gradients as they are reduced, sums of the loss and the norm in FP32."""
    if call.name.startswith("gradient"):
        return "float32" if job.configuration.parallelism.gradient_bytes == 4 else _TYPES[job.dtype]
    return "float32" if call.name in ("norm of the gradient", "sums of the loss") else _TYPES[job.dtype]


def result_of(
    plan: StepPlan, records: Mapping[int, Sequence[StepsTaken]], ranks: int, measurements: Sequence[Measurement]
) -> ReplayedStep | None:
    """Return what the ranks took; None where not every rank has written the same steps.

    `records`: by rank, those of one start of the run, in the order written.
    """
    every = [tuple(records.get(rank, ())) for rank in range(ranks)]
    steps = min(sum(len(record.step_ns) for record in each) for each in every)
    if steps == 0 or not all(_is_whole(record, len(plan.calls)) for each in every for record in each):
        return None
    step_s = _by_step([[ns for one in each for ns in one.step_ns] for each in every], steps, max)
    ordered = sorted(step_s)
    # A step takes time, whatever a damaged record says.
    if ordered[0] <= 0:
        return None
    interval = median_interval(ordered, _CONFIDENCE)
    compute_s = median(
        sorted(_by_step([[ns for one in each for ns in one.compute_ns] for each in every], steps, _mean))
    )
    calls = tuple(_call(plan, number, every, steps, measurements) for number in range(len(plan.calls)))
    exposed_s = sum(call.exposed_s for call in calls)
    products = [one.product_ns for each in every for one in each[:1] if one.product_ns is not None]
    return ReplayedStep(
        steps=steps, step_s=median(ordered), low_s=(interval or (ordered[0],))[0],
        high_s=(interval or (ordered[-1],))[-1], confidence=_CONFIDENCE if interval is not None else None,
        compute_s=compute_s, exposed_s=exposed_s, rest_s=max(0.0, median(ordered) - compute_s - exposed_s),
        product_s=sum(products) / len(products) * 1e-9 if products else None, calls=calls,
    )  # fmt: skip


def _is_whole(record: StepsTaken, calls: int) -> bool:
    rows = (*record.busy_ns, *record.exposed_ns)
    steps = len(record.step_ns)
    alike = len(record.busy_ns) == len(record.exposed_ns) == len(record.compute_ns) == steps
    return alike and all(len(row) == calls for row in rows)


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)


def _by_step(by_rank: Sequence[Sequence[int]], steps: int, combine: Callable[[Sequence[int]], float]) -> list[float]:
    """Return seconds of each step, the nanoseconds of all ranks combined."""
    return [combine([of_rank[step] for of_rank in by_rank]) * 1e-9 for step in range(steps)]


def _call(
    plan: StepPlan, number: int, every: Sequence[Sequence[StepsTaken]], steps: int, measurements: Sequence[Measurement]
) -> CallResult:
    call = plan.calls[number]
    busy = [[row[number] for one in each for row in one.busy_ns] for each in every]
    exposed = [[row[number] for one in each for row in one.exposed_ns] for each in every]
    busy_s, exposed_s = (median(sorted(_by_step(rows, steps, _mean))) for rows in (busy, exposed))
    alone = next((one for one in measurements if one.point == number and one.wrong is None), None)
    each_s = busy_s / call.calls
    checked = [len(each[0].checked) == len(plan.calls) for each in every]
    wrong = [rank for rank, each in enumerate(every) if checked[rank] and each[0].checked[number] is not None]
    return CallResult(
        name=call.name, collective=call.collective, group=call.group, ranks=call.ranks, groups=call.groups,
        calls=call.calls, size_bytes=call.size_bytes, alone_s=alone.median_s if alone is not None else None,
        alone_busbw_Bps=alone.busbw_Bps if alone is not None else None, in_step_s=each_s,
        in_step_busbw_Bps=busbw_Bps(COLLECTIVES[call.collective], call.size_bytes, call.ranks, each_s)
        if each_s > 0 else 0.0,
        busy_s=busy_s, exposed_s=exposed_s, verified=all(checked) and not wrong, wrong_rank=next(iter(wrong), None),
    )  # fmt: skip


def scaled_words(plan: StepPlan) -> str | None:
    """Return what is smaller than in the job; None where nothing is."""
    if plan.asked.scale_down == 1:
        return None
    largest = max(plan.calls, key=lambda call: call.planned_bytes)
    return (
        f"scaled down by {plan.asked.scale_down}: messages and computing; {largest.name} "
        f"{format_size(largest.planned_bytes)} in the job, {format_size(largest.size_bytes)} here"
    )
