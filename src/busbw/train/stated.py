"""A log held against the workload that its job ran: what a step is made of, and what of it the network may take.

What the log prints goes before what the workload says. With a platform the job is planned as it was measured: the
plan has the one constant that gives the measured step, so that its exposed communication is a share of that step.
"""

from dataclasses import dataclass

from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.text import listed
from busbw.model.train.reading import NetworkShare, StepWork, TrainingLog
from busbw.model.train.workload import Configuration, DataType, Workload
from busbw.train.planning import TrainJob, TrainMachine, constant_of_own, plan_step
from busbw.train.shape import sequence_flops


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedJob:
    """What is said of a job beside its log."""

    workload: Workload
    # As it was named.
    name: str
    dtype: DataType
    # None: nothing is planned.
    machine: TrainMachine | None

    @property
    def peak_flops(self) -> float | None:
        """Of one GPU for the data type; None: not known."""
        accelerator = self.machine.accelerator if self.machine is not None else None
        if accelerator is None:
            return None
        peaks = {"fp8": accelerator.peak_fp8, "bf16": accelerator.peak_bf16, "fp16": accelerator.peak_bf16}
        return peaks.get(self.dtype)


def stated_work(work: StepWork, stated: StatedJob) -> StepWork:
    """Return the work of a step with what the workload says where nothing else did.

    Raises InputError where the log's GPUs are of no configuration of the workload.
    """
    configuration = _configuration(stated, work.gpus)
    if configuration is None:
        return work
    gpus, sequence = work.gpus or configuration.gpus, work.sequence_length or configuration.sequence
    batch = work.global_batch
    if batch is None and work.tokens_per_step is None:
        batch = configuration.global_batch
    layers = configuration.layers if configuration.layers is not None else stated.workload.model.layers
    sequences = batch if batch is not None else (work.tokens or 0) / sequence
    flops = work.flops_per_step or sequence_flops(stated.workload.model, layers, sequence) * sequences or None
    filled = StepWork(
        sequence_length=sequence, global_batch=batch, tokens_per_step=work.tokens_per_step, gpus=gpus,
        flops_per_step=flops, peak_flops=work.peak_flops or stated.peak_flops,
    )  # fmt: skip
    names = ("sequence_length", "global_batch", "gpus", "flops_per_step", "peak_flops")
    added = tuple(
        (name, _source(stated, name))
        for name in names
        if getattr(work, name) is None and getattr(filled, name) is not None
    )
    return structs.replace(filled, sources=(*work.sources, *added))


def _source(stated: StatedJob, name: str) -> str:
    if name == "peak_flops" and stated.machine is not None:
        return f"{stated.dtype} of {stated.machine.platform.gpu.model} ({stated.machine.platform.id})"
    return stated.name


def _configuration(stated: StatedJob, gpus: int | None) -> Configuration | None:
    """Return how the workload was run on so many GPUs; None where they are not told and it has several."""
    known = stated.workload.configuration
    if gpus is None:
        return known[0] if len(known) == 1 else None
    found = next((each for each in known if each.gpus == gpus), None)
    if found is None:
        raise InputError(
            f"the log is of {gpus} GPUs, and {stated.name} has no configuration of them",
            where=stated.name,
            hint=f"it has {listed([str(each.gpus) for each in known])}: write yours into a file, busbw train make",
        )
    return found


def network_share(log: TrainingLog, stated: StatedJob) -> NetworkShare | None:
    """Return what of the measured step the plan of this job gives to the network; None without a platform or a step.

    Raises InputError for a job that cannot be.
    """
    configuration = _configuration(stated, log.work.gpus)
    if stated.machine is None or log.window is None or configuration is None:
        return None
    step_s = log.window.step_s.value
    job = TrainJob(
        workload=stated.workload,
        configuration=structs.replace(
            configuration,
            sequence=log.work.sequence_length or configuration.sequence,
            global_batch=log.work.global_batch or configuration.global_batch,
        ),
        dtype=stated.dtype,
    )
    plan = plan_step(job, stated.machine, constant_of_own(job, stated.machine, step_s))
    assert plan.estimate is not None
    exposed_s = plan.estimate.inside_s + plan.estimate.outside_s
    largest = max(plan.collectives, key=lambda each: each.exposed_s or 0.0, default=None)
    mfu = log.throughput.mfu
    return NetworkShare(
        workload=stated.name,
        platform=plan.platform,
        exposed_s=exposed_s,
        exposed=exposed_s / step_s,
        bubble=plan.estimate.bubble_s / step_s,
        largest=largest.name if largest is not None and largest.exposed_s else None,
        largest_group=f"{largest.group}, {largest.place.links}" if largest is not None and largest.exposed_s else None,
        largest_s=largest.exposed_s if largest is not None and largest.exposed_s else None,
        mfu_without=mfu.value / (1 - exposed_s / step_s) if mfu is not None and exposed_s < step_s else None,
        changes=tuple((each.change, each.change_share) for each in plan.what_if if each.change_share is not None),
        bounds=plan.estimate.bounds,
    )
