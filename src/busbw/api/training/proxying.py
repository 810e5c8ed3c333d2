"""A small transformer with the sizes of a workload, trained for real over PyTorch: `busbw train proxy`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from busbw.api.training.reading import read_source
from busbw.api.training.workloads import workload_of
from busbw.measure.execute import training
from busbw.model import codec
from busbw.model.train.proxy import LOG_NAME, RESULT_NAME, ProxyDevice, ProxyResult
from busbw.model.train.reading import StepWork, TrainingLog
from busbw.model.train.workload import DataType
from busbw.store.files import check_new_folder, read_bounded
from busbw.train.planning import job_of
from busbw.train.proxying import proxy_plan
from busbw.train.what_if import changed_layout

_MOST_RESULT_BYTES = 64 * 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class ProxyRequest:
    """What is asked for; None: not said."""

    workload: str
    directory: Path
    gpus: int | None = None
    dtype: DataType | None = None
    # Changes to the layout, as `tp=2,ep=1`.
    layout: str | None = None
    device: ProxyDevice | None = None
    steps: int = 20
    # A step as one CUDA graph.
    graph: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Proxied:
    """What the program measured, and what its log says to `busbw train read`."""

    result: ProxyResult
    log: TrainingLog


def train_proxy(request: ProxyRequest, say: Callable[[str], None]) -> Proxied:
    """Train, and return what was measured; `say` is given the lines of the log as they come.

    Started by torchrun, srun or mpirun this process becomes one of the program's, and does not return. Raises
    InputError for a job that cannot be, RunError where its processes fail.
    """
    ranks = training.ranks_of_launcher()
    job = job_of(workload_of(request.workload), request.gpus if request.gpus is not None else ranks, request.dtype)
    if request.layout is not None:
        job = replace(job, configuration=changed_layout(request.layout, job.configuration))
    directory = request.directory.absolute()
    plan = proxy_plan(job, steps=request.steps, device=request.device, directory=str(directory), graph=request.graph)
    if ranks is not None:
        training.become_rank(plan)
    check_new_folder(directory)
    training.train_here(plan, say)
    return proxied(directory)


def proxied(directory: Path) -> Proxied:
    """Return what a folder of `busbw train proxy` holds. Raises InputError where it is none."""
    raw = read_bounded(directory / RESULT_NAME, most_bytes=_MOST_RESULT_BYTES, kind="result")
    result = codec.decode(raw, ProxyResult, where=str(directory / RESULT_NAME))
    log = read_source(str(directory / LOG_NAME), StepWork())
    assert isinstance(log, TrainingLog)
    return Proxied(result=result, log=log)
