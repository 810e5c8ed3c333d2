"""The plan of a step that is replayed: a start of the ranks like any other, whose points are its collectives alone."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from busbw.base.collectives import PART_ALIGNMENT_BYTES
from busbw.base.errors import InputError
from busbw.facts.platforms import all_platforms
from busbw.measure.backends import registry
from busbw.measure.backends.native_mpi import check_fits, need_of, of_busiest
from busbw.measure.backends.native_nccl import check_gpus_fit, gpu_need_of
from busbw.measure.plan.planning import plan as make_plan
from busbw.model.plan import MemoryNeed, Plan, Sweep
from busbw.model.request import Request
from busbw.model.train.replay import StepAsked
from busbw.model.train.workload import Configuration, Workload
from busbw.train.planning import TrainJob, job_of
from busbw.train.replaying import rate_of, scaled_words, step_of
from busbw.train.what_if import changed_layout

_BACKENDS = ("native-mpi", "native-nccl")
# Of the time that is asked for; the collectives alone get the rest.
_STEPS_SHARE = 0.5
# What is planned before the ranks are counted: a size that any of them can exchange.
_FIRST_BYTES = 2**20
_LARGEST_SCALE = 2**40
# A collective alone is held beside the same one in the step, where ranks wait for each other: that differs by more.
_HALF_WIDTH = 0.05


def plan_step_run(
    request: Request, asked: StepAsked, workload: Workload, directory: Path | None, base: Path
) -> tuple[Plan, Path]:
    """Return the plan of a replayed step, and its run directory.

    Raises InputError for a workload that cannot be laid out over these ranks, and for what cannot run here.
    """
    _check(request, asked, workload)
    first = structs.replace(
        request, collectives=("all_reduce",), smallest_bytes=_FIRST_BYTES, largest_bytes=_FIRST_BYTES, mode="stream",
        time_limit_s=request.time_limit_s, step=asked,
    )  # fmt: skip
    said: tuple[str, ...] = ()
    if request.ranks is None and request.hosts is None and request.nodes is None:
        first = structs.replace(first, ranks=min(each.gpus for each in workload.configuration))
        said = (f"{first.ranks} ranks, the smallest configuration of {workload.id}: another with --ranks",)
    try:
        made, where = make_plan(first, directory, base)
    except InputError as error:
        # No size of a step can be asked for.
        hint = (
            error.hint
            if error.hint is None or "-e" not in error.hint.replace(",", " ").split()
            else "fewer ranks: --ranks"
        )
        raise InputError(error.cause, where=error.where, hint=hint) from None
    if made.gpus is not None and made.gpus.nvrtc is None:
        raise InputError(
            "computing is matrix products, which NVRTC compiles, and it was not found",
            hint="name a libnvrtc.so with --nvrtc, or: pip install nvidia-cuda-nvrtc",
        )
    ranks = made.placement.ranks
    job = _job(workload, asked, ranks)
    gpu = made.gpus.devices[0].model if made.gpus is not None and made.gpus.devices else None
    share_s = request.time_limit_s * _STEPS_SHARE
    alignment_bytes = 1 if request.unaligned else PART_ALIGNMENT_BYTES
    step, sweeps = step_of(job, asked, rate_of(asked, gpu, all_platforms()), share_s, alignment_bytes)
    memory, tight = _memory(made, sweeps)
    # What was said of the size that stood for all of them is no longer true.
    kept = (note for note in made.notes if note != _tight(made, made.memory))
    notes = (*said, *kept, *job.notes, *filter(None, (scaled_words(step), tight)))
    return (
        structs.replace(
            made, sweeps=sweeps, step=step, memory=memory, notes=notes,
            sampling=structs.replace(
                made.sampling, time_limit_s=request.time_limit_s - share_s, half_width=_HALF_WIDTH
            ),
            request=structs.replace(made.request, step=asked) if made.request is not None else None,
        ),
        where,
    )  # fmt: skip


def _check(request: Request, asked: StepAsked, workload: Workload) -> None:
    backend = registry.find(request.backend)
    if backend.name not in _BACKENDS:
        raise InputError(
            f"a step is replayed by ranks of busbw's own, not by {backend.name}",
            where="--backend",
            hint=f"one of: {', '.join(_BACKENDS)}",
        )
    if request.launcher == "sbatch":
        raise InputError(
            "a step is not submitted as a job: it is started inside of one", where="--launcher sbatch",
            hint=f"sbatch --nodes 2 --wrap 'busbw train run {workload.id}'",
        )  # fmt: skip
    if not 1 <= asked.scale_down <= _LARGEST_SCALE:
        raise InputError("a step is scaled down by 1 or more", where=f"--scale-down {asked.scale_down}")
    if asked.rate_flops is not None and not 1e6 <= asked.rate_flops <= 1e18:
        raise InputError("a rank computes at 0.000001 to 1000000 TFLOP/s", where="--rate", hint="--rate 400")
    if asked.steps is not None and not 1 <= asked.steps <= 100_000:
        raise InputError("1 to 100000 steps", where=f"--steps {asked.steps}")


def _job(workload: Workload, asked: StepAsked, ranks: int) -> TrainJob:
    """Return the job of a workload on so many ranks. Raises InputError with the nearest numbers that can be."""
    dtype = next((each for each in ("bf16", "fp16", "fp32", "fp8") if each == asked.dtype), None)
    job = job_of(workload, ranks, dtype, asked.order)
    if asked.layout is None:
        return job
    configuration: Configuration = changed_layout(asked.layout, job.configuration)
    return TrainJob(
        workload=job.workload, configuration=configuration, dtype=job.dtype, order=job.order,
        notes=(*job.notes, f"layout changed: {asked.layout}"),
    )  # fmt: skip


def _memory(plan: Plan, sweeps: tuple[Sweep, ...]) -> tuple[MemoryNeed, str | None]:
    """Return what the busiest host needs, buffers of every call beside those of the points, and a note."""
    ranks = plan.placement.ranks
    here = max(plan.placement.ranks_of_hosts or (ranks,))
    gpus, setup = plan.gpus, plan.gpu_setup
    each = (sweeps, *((sweep,) for sweep in sweeps))
    if gpus is not None and setup is not None:
        # Matrices to multiply are there once.
        setups = (setup, *(structs.replace(setup, load_side=0) for _sweep in sweeps))
        needs = [gpu_need_of(some, ranks, how, gpus) for some, how in zip(each, setups, strict=True)]
        need = of_busiest(_together(needs), here, ranks)
    else:
        need = of_busiest(_together([need_of(some, ranks) for some in each]), here, ranks)
    try:
        return need, _tight(plan, need)
    except InputError as error:
        raise InputError(error.cause, where=error.where, hint="--scale-down 10, or more ranks") from None


def _tight(plan: Plan, need: MemoryNeed) -> str | None:
    """Return a note where memory is tight on the busiest host. Raises InputError where it is too little."""
    here = max(plan.placement.ranks_of_hosts or (plan.placement.ranks,))
    return check_fits(need, plan.host, here) if plan.gpus is None else check_gpus_fit(need, here, plan.gpus)


def _together(needs: Sequence[MemoryNeed]) -> MemoryNeed:
    """Return the sum of buffers that are there at once; what a rank needs besides it needs once."""
    return MemoryNeed(
        buffers_bytes=sum(need.buffers_bytes for need in needs),
        overhead_bytes=needs[0].overhead_bytes,
        scratch_bytes=needs[0].scratch_bytes,
    )
