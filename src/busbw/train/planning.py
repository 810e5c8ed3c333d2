"""The plan of a step: everything that is known of a job on a platform before it runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from msgspec import structs

from busbw.base.errors import InputError
from busbw.facts.platforms import GpuFacts
from busbw.facts.workloads import Accelerator, accelerator_of
from busbw.model.finding import Finding
from busbw.model.platform import Platform
from busbw.model.train.plan import (
    GroupKind,
    HeldStep,
    LinkName,
    OrderCost,
    ShownConfiguration,
    ShownWorkload,
    StepCollective,
    TrainPlan,
    WhatIf,
)
from busbw.model.train.workload import Configuration, DataType, PublishedStep, Workload
from busbw.train import memory, step
from busbw.train.findings import findings_of_plan, findings_of_source
from busbw.train.layout import DEFAULT_ORDER, RankLayout, Seats, group_of, layout_of, place_of
from busbw.train.predicting import MeasuredCollective, by_expectation, by_measurements, first_of
from busbw.train.shape import FLOPS_FORMULA, FLOPS_SOURCE, active_parameters, parameters, sequence_flops
from busbw.train.timing import (
    Answer,
    StepTerms,
    Work,
    changed_step,
    estimate_of,
    fitted_rate,
    terms_of,
    timed_calls,
)
from busbw.train.two_level import alltoall_choices
from busbw.train.what_if import SCALED, JobChange, read_change, scaled_answer
from busbw.train.workloads import configuration_for

# Megatron's own, its --use-tp-pp-dp-mapping, experts beside tensor parallelism, and two that put TP last.
ORDERS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "tp-ep-cp-dp-pp", "pp-cp-ep-dp-tp", "dp-ep-cp-pp-tp")
# What is asked of every plan: which part of the machine a step hangs on.
_SENSITIVITY = ("nic=2x", "nvlink=2x")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainMachine:
    """A platform, what its GPU can do, and what answers how long a collective takes there."""

    platform: Platform
    accelerator: Accelerator | None
    answer: Answer
    seats: Seats


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """The constant of the step's model: FLOP/s of one GPU, and where it is from."""

    rate_flops: float
    words: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainJob:
    """One configuration of a workload, as it is to run."""

    workload: Workload
    configuration: Configuration
    dtype: DataType
    order: str = DEFAULT_ORDER
    notes: tuple[str, ...] = ()

    @property
    def layers(self) -> int:
        """Of the model, or of its proxy."""
        own = self.configuration.layers
        return own if own is not None else self.workload.model.layers


def machine_of(
    platform: Platform,
    gpus: dict[str, GpuFacts],
    measured: Sequence[MeasuredCollective] = (),
    leaf_nodes: int | None = None,
) -> TrainMachine:
    """Return a platform ready to be asked; `leaf_nodes`: how many nodes share a leaf switch, where that is known.

    Raises InputError for a platform without GPUs, or whose GPUs are not counted.
    """
    if platform.kind == "cpu" or platform.gpu.count < 1:
        raise InputError(
            f"{platform.id} has no GPUs, or how many a node has is not known",
            hint="a platform with GPUs: busbw platform list",
        )
    answer = first_of([by_measurements(measured), by_expectation(platform, gpus)])
    seats = Seats(
        node_gpus=platform.gpu.count, domain_gpus=platform.nvlink.domain_gpus, leaf_nodes=leaf_nodes
    )  # fmt: skip
    return TrainMachine(
        platform=platform, accelerator=accelerator_of(platform.gpu.model), answer=answer, seats=seats
    )  # fmt: skip


def job_of(workload: Workload, gpus: int | None, dtype: DataType | None, order: str = DEFAULT_ORDER) -> TrainJob:
    """Return the job of so many GPUs. Raises InputError for a data type that the workload does not have."""
    configuration, notes = configuration_for(workload, gpus)
    chosen = dtype if dtype is not None else workload.dtypes[0]
    if chosen not in workload.dtypes:
        raise InputError(f"{workload.id} has no {chosen}", hint=f"one of: {', '.join(workload.dtypes)}")
    return TrainJob(workload=workload, configuration=configuration, dtype=chosen, order=order, notes=notes)


def work_of(job: TrainJob, machine: TrainMachine) -> Work:
    """Return a job on a machine, ready to be timed.

    Raises InputError for a configuration that cannot be, and for a data type that the GPU does not compute in.
    """
    accelerator, platform = machine.accelerator, machine.platform
    if job.dtype == "fp8" and accelerator is not None and accelerator.peak_fp8 is None:
        raise InputError(f"the GPUs of {platform.id} ({platform.gpu.model}) have no FP8", hint="--dtype bf16")
    return Work(
        model=job.workload.model, configuration=job.configuration,
        layout=layout_of(job.workload.model, job.configuration, job.order), dtype=job.dtype,
        seats=machine.seats, answer=machine.answer,
    )  # fmt: skip


def fitted_row(workload: Workload, dtype: DataType) -> PublishedStep | None:
    """Return the published step that the constant of a data type is fitted on; None where there is none."""
    return next((each for each in workload.published if each.fitted and each.dtype == dtype), None)


def job_of_row(workload: Workload, row: PublishedStep) -> TrainJob:
    """Return the job that somebody published a step of."""
    configuration = row.configuration
    if configuration is None:
        configuration = configuration_for(workload, row.gpus)[0]
    return TrainJob(workload=workload, configuration=configuration, dtype=row.dtype)


def constant_of_row(workload: Workload, row: PublishedStep, there: TrainMachine, here: TrainMachine) -> Constant | None:
    """Return the constant that a published step gives; on other GPUs it is scaled with their peak, and says so."""
    work = work_of(job_of_row(workload, row), there)
    rate = fitted_rate(terms_of(work, timed_calls(work)), row.step_s)
    if rate is None:
        return None
    words = f"fitted on {row.gpus} GPUs of {row.machine}: {row.step_s:g} s in {row.dtype} ({row.source})"
    if there.accelerator is here.accelerator:
        return Constant(rate_flops=rate, words=words)
    old, new = (_peak(each.accelerator, row.dtype) for each in (there, here))
    if old is None or new is None:
        return None
    return Constant(rate_flops=rate * new / old, words=f"{words}; scaled with the peak of the GPU, x {new / old:.2f}")


def constant_of_own(job: TrainJob, machine: TrainMachine, step_s: float) -> Constant:
    """Return the constant that makes the model give a step of one's own. Raises InputError where none does."""
    work = work_of(job, machine)
    rate = fitted_rate(terms_of(work, timed_calls(work)), step_s)
    if rate is None:
        raise InputError(f"no step of this job takes {step_s:g} s", hint="--step-time: seconds of one step, as 20.6")
    return Constant(rate_flops=rate, words=f"fitted on your own step of {step_s:g} s")


def _peak(accelerator: Accelerator | None, dtype: DataType) -> float | None:
    if accelerator is None:
        return None
    return accelerator.peak_fp8 if dtype == "fp8" else accelerator.peak_bf16 if dtype in ("bf16", "fp16") else None


def plan_step(
    job: TrainJob,
    machine: TrainMachine,
    constant: Constant | None,
    what_if: Sequence[str] = (),
    why_no_constant: str = "",
) -> TrainPlan:
    """Return the plan of a step. Raises InputError for a job that cannot be and a change that says nothing."""
    work = work_of(job, machine)
    layout, model, configuration = work.layout, work.model, work.configuration
    platform = machine.platform
    terms = terms_of(work, timed_calls(work))
    estimate = estimate_of(terms, constant.rate_flops, constant.words) if constant is not None else None
    layers_s = estimate.layers_s if estimate is not None else inf
    collectives = _exposed(terms, layers_s)
    parts = memory.memory_parts(model, configuration, layout, job.dtype)
    memory_bytes = sum(part.size_bytes for part in parts)
    has = machine.accelerator.memory_bytes if machine.accelerator is not None else None
    each = sequence_flops(model, job.layers, configuration.sequence)
    kinds = dict.fromkeys(call.group for call in collectives)
    return TrainPlan(
        workload=job.workload.id, title=job.workload.title, platform=platform.id, gpus=layout.gpus,
        nodes=-(-layout.gpus // platform.gpu.count), dtype=job.dtype, layers=job.layers, order=job.order,
        configuration=configuration, dp=layout.dp, expert_dp=layout.expert_dp, accumulation=layout.accumulation,
        stages=layout.stages, groups=tuple(group_of(layout, kind) for kind in kinds),
        parameters=parameters(model, job.layers), active_parameters=active_parameters(model, job.layers),
        sequence_flops=each, step_flops=each * configuration.global_batch, flops_formula=FLOPS_FORMULA,
        flops_source=FLOPS_SOURCE, tokens=configuration.sequence * configuration.global_batch, memory=parts,
        memory_bytes=memory_bytes, gpu_memory_bytes=has, left_out=(*memory.LEFT_OUT, *step.LEFT_OUT),
        collectives=collectives, estimate=estimate,
        no_estimate=None if estimate is not None else why_no_constant or "no step of this workload is known",
        published=_held(job, estimate.step_s if estimate is not None else None),
        orders=_orders(job, machine, terms, layers_s),
        what_if=_what_ifs(job, machine, terms, constant, what_if),
        alltoalls=alltoall_choices(collectives, machine.answer),
        findings=(
            *findings_of_source(job.workload, configuration, layout),
            *findings_of_plan(layout, collectives, memory_bytes, has, platform.id),
        ),
        notes=job.notes,
    )  # fmt: skip


def shown(workload: Workload) -> ShownWorkload:
    """Return a workload with the sizes of each configuration. Raises InputError for one that cannot be."""
    found: list[ShownConfiguration] = []
    findings: list[Finding] = []
    model = workload.model
    for each in sorted(workload.configuration, key=lambda each: each.gpus):
        layout = layout_of(model, each)
        job = TrainJob(workload=workload, configuration=each, dtype=workload.dtypes[0])
        findings += findings_of_source(workload, each, layout)
        found.append(
            ShownConfiguration(
                configuration=each,
                layers=job.layers,
                dp=layout.dp,
                expert_dp=layout.expert_dp,
                accumulation=layout.accumulation,
                parameters=parameters(model, job.layers),
                sequence_flops=sequence_flops(model, job.layers, each.sequence),
                memory_bytes=sum(p.size_bytes for p in memory.memory_parts(model, each, layout, job.dtype)),
            )
        )
    return ShownWorkload(
        workload=workload, parameters=parameters(model, model.layers),
        active_parameters=active_parameters(model, model.layers), configurations=tuple(found),
        findings=tuple(dict.fromkeys(findings)),
    )  # fmt: skip


def _exposed(terms: StepTerms, layers_s: float) -> tuple[StepCollective, ...]:
    """Return the collectives with what of each is not hidden; None where its time is not known."""
    exposed = terms.with_layers(layers_s).exposed
    return tuple(
        structs.replace(call, exposed_s=value if call.total_s is not None else None)
        for call, value in zip(terms.calls, exposed, strict=True)
    )


def _held(job: TrainJob, step_s: float | None) -> tuple[HeldStep, ...]:
    """Return published steps of this very configuration and data type beside the model's step here."""
    return tuple(
        HeldStep(
            machine=row.machine,
            step_s=row.step_s,
            residual=step_s / row.step_s - 1 if step_s is not None else None,
            fitted=row.fitted,
            source=row.source,
        )
        for row in job.workload.published
        if row.dtype == job.dtype and job_of_row(job.workload, row).configuration == job.configuration
    )


def _orders(job: TrainJob, machine: TrainMachine, terms: StepTerms, layers_s: float) -> tuple[OrderCost, ...]:
    own = terms.with_layers(layers_s)
    base_s = own.inside_s + own.outside_s
    found = []
    for order in dict.fromkeys((job.order, *ORDERS)):
        other = work_of(
            TrainJob(workload=job.workload, configuration=job.configuration, dtype=job.dtype, order=order), machine
        )
        parts = terms_of(other, timed_calls(other)).with_layers(layers_s)
        cost_s = parts.inside_s + parts.outside_s
        found.append(
            OrderCost(
                order=order,
                tp_links=_links(other.layout, "TP", machine),
                ep_links=_links(other.layout, "EP", machine),
                exposed_s=cost_s,
                change_s=cost_s - base_s,
            )
        )
    return tuple(found)


def _links(layout: RankLayout, kind: GroupKind, machine: TrainMachine) -> LinkName:
    return place_of(layout, group_of(layout, kind), machine.seats).links


def _what_ifs(
    job: TrainJob, machine: TrainMachine, terms: StepTerms, constant: Constant | None, asked: Sequence[str]
) -> tuple[WhatIf, ...]:
    """Return changes with what they give, the largest gain first; those that cannot be told last."""
    found = [
        _what_if(job, machine, terms, constant, read_change(text, job.configuration, machine.platform))
        for text in asked
    ]
    for text in _SENSITIVITY:
        try:
            change = read_change(text, job.configuration, machine.platform)
        except InputError:
            continue
        if text not in asked:
            found.append(_what_if(job, machine, terms, constant, change))
    return tuple(sorted(found, key=lambda each: each.change_share if each.change_share is not None else inf))


def _what_if(
    job: TrainJob, machine: TrainMachine, terms: StepTerms, constant: Constant | None, change: JobChange
) -> WhatIf:
    is_machine = change.platform is not machine.platform
    answer = scaled_answer(machine.answer, machine.platform, change.platform) if is_machine else machine.answer
    other = TrainJob(workload=job.workload, configuration=change.configuration, dtype=job.dtype, order=job.order)
    try:
        work = work_of(other, replace(machine, answer=answer))
    except InputError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return WhatIf(
            change=change.text, step_s=None, change_share=None, exposed_before_s=None, exposed_s=None,
            words=f"cannot be: {error.cause}{hint}",
        )  # fmt: skip
    changed = terms_of(work, timed_calls(work))
    words = [SCALED] if is_machine else []
    step_s = share = None
    if constant is None:
        before, after = terms.with_layers(inf), changed.with_layers(inf)
        words.insert(0, "without a step's time only communication is told")
    else:
        before, after = terms.at(constant.rate_flops), changed_step(terms, constant.rate_flops, changed)
        # Of the time for each sequence, as a change may be one of the batch.
        sequences = change.configuration.global_batch / job.configuration.global_batch
        step_s, share = after.step_s, after.step_s / before.step_s / sequences - 1
    return WhatIf(
        change=change.text, step_s=step_s, change_share=share, exposed_before_s=before.inside_s + before.outside_s,
        exposed_s=after.inside_s + after.outside_s, words="; ".join(words) or None,
    )  # fmt: skip
