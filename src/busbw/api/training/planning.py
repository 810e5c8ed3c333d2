"""The plan of a step on a platform."""

from dataclasses import dataclass

from msgspec import structs

from busbw.api.training.workloads import workload_of
from busbw.base.errors import InputError
from busbw.base.text import counted, listed
from busbw.facts.platforms import facts_of_gpus, find_platform, platforms_with
from busbw.machine.capture.sites import site_files
from busbw.model.platform import Platform
from busbw.model.train.plan import TrainPlan
from busbw.model.train.workload import DataType
from busbw.train.layout import DEFAULT_ORDER, MOST_GPUS
from busbw.train.planning import (
    Constant,
    TrainJob,
    TrainMachine,
    constant_of_own,
    constant_of_row,
    fitted_row,
    job_of,
    machine_of,
    plan_step,
)
from busbw.train.predicting import MeasuredCollective, measured_in

_LONGEST_STEP_S = 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainRequest:
    """What a plan is asked for; None or (): not said."""

    workload: str
    platform: str
    gpus: int | None = None
    dtype: DataType | None = None
    order: str = DEFAULT_ORDER
    what_if: tuple[str, ...] = ()
    # Stored runs, imports or files of tools that hold measured collectives.
    measured: tuple[str, ...] = ()
    # Nodes that share a leaf switch (of a rail, where rails have switches of their own).
    leaf_nodes: int | None = None
    # Seconds that a step of this job takes, as measured.
    step_s: float | None = None


def plan_training(request: TrainRequest) -> TrainPlan:
    """Return the plan of a step. Raises InputError for what there is not, and for a job that cannot be."""
    workload = workload_of(request.workload)
    leaf_nodes = request.leaf_nodes
    if leaf_nodes is not None and not 1 <= leaf_nodes <= MOST_GPUS:
        raise InputError(f"{leaf_nodes} nodes on a leaf switch", where="--leaf-nodes", hint="--leaf-nodes 32")
    here = find_platform(request.platform, site_files()).platform
    measured = tuple(each for name in request.measured for each in _measured(name, here))
    machine = named_machine(request.platform, measured, leaf_nodes)
    job = job_of(workload, request.gpus, request.dtype, request.order)
    constant = _constant(request, job, machine)
    why = f"no step of {workload.id} in {job.dtype} is published: give one of your own, --step-time SECONDS"
    plan = plan_step(job, machine, constant, request.what_if, why)
    return structs.replace(plan, notes=(*plan.notes, *_unused(plan, measured)))


def _constant(request: TrainRequest, job: TrainJob, machine: TrainMachine) -> Constant | None:
    step_s = request.step_s
    if step_s is not None:
        if not 0 < step_s <= _LONGEST_STEP_S:
            raise InputError(f"a step of {step_s:g} s", where="--step-time", hint="seconds of one step, as 20.6")
        return constant_of_own(job, machine, step_s)
    row = fitted_row(job.workload, job.dtype)
    if row is None:
        return None
    return constant_of_row(job.workload, row, named_machine(row.platform), machine)


def named_machine(
    name: str, measured: tuple[MeasuredCollective, ...] = (), leaf_nodes: int | None = None
) -> TrainMachine:
    """Return a platform by any of its names, ready to be asked. Raises InputError for one that there is not."""
    site = site_files()
    found = find_platform(name, site).platform
    alike = platforms_with(found.match.gpu_names, site)
    return machine_of(found, facts_of_gpus(alike), measured, leaf_nodes)


def _measured(name: str, here: Platform) -> tuple[MeasuredCollective, ...]:
    """Return what a run, an import or a file of another tool measured on GPUs such as a platform's."""
    from busbw.api.verdicts import open_results, opened_series  # noqa: PLC0415 - most plans have no measurements

    with open_results((name,)) as result:
        return measured_in(opened_series(result, here.gpu.count or None), result.name, here)


def _unused(plan: TrainPlan, measured: tuple[MeasuredCollective, ...]) -> tuple[str, ...]:
    """Return what was measured and is of no group of the job, a note for each result."""
    used = {call.time.words for call in plan.collectives if call.time.basis == "measured"}
    notes = []
    for name in dict.fromkeys(each.name for each in measured):
        if not any(name in words for words in used):
            own = [each for each in measured if each.name == name]
            what = (f"{each.collective} of {each.ranks} ranks on {counted(each.nodes, 'node')}" for each in own)
            notes.append(f"{name} has nothing that this step calls: {listed(dict.fromkeys(what))}")
    return tuple(notes)
