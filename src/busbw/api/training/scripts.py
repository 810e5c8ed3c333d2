"""The script that starts a training run under Slurm, through what `busbw launch` knows, checked by `busbw env lint`."""

from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from busbw.api.launches import launch_line
from busbw.api.settings import lint_file
from busbw.api.training.workloads import workload_of
from busbw.base.cpus import mask_bits, parse_cpu_list
from busbw.base.errors import InputError
from busbw.facts.platforms import find_platform
from busbw.machine.capture.sites import site_files
from busbw.measure.plan.masks import process_masks
from busbw.model.launch import CpuSharing, LaunchRequest
from busbw.model.plan import JobFile
from busbw.model.platform import Platform
from busbw.model.train.script import CpuMasks, TrainScript
from busbw.model.train.workload import DataType, PublishedLaunch, Workload
from busbw.show.text.recommendation import launch_script
from busbw.store import files
from busbw.train.layout import layout_of
from busbw.train.planning import job_of

SUBMIT = "launch.sh"
_JOB = "job.sh"
_WHY: dict[CpuSharing, str] = {
    "even": "as published: an even share of the cores near its GPU, which no other process has",
    "numa": "busbw's own for collectives: the NUMA node of its GPU, also for NCCL's proxies and data loading",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptRequest:
    """What a script is asked for; None or (): as the workload's source has it."""

    workload: str
    platform: str
    directory: Path
    gpus: int | None = None
    dtype: DataType | None = None
    # The folder on a file system that all nodes see.
    stage: str | None = None
    image: str | None = None
    cpus: CpuSharing = "even"
    partition: str | None = None
    account: str | None = None
    time_s: int | None = None
    program: tuple[str, ...] = ()


def training_script(request: ScriptRequest) -> TrainScript:
    """Return the job, written into its folder.

    Raises InputError for a job that cannot be, for what its source does not say and nobody else, and for files that are
    there already.
    """
    workload = workload_of(request.workload)
    job = job_of(workload, request.gpus, request.dtype)
    layout_of(workload.model, job.configuration)
    platform = find_platform(request.platform, site_files()).platform
    nodes, rest = divmod(job.configuration.gpus, platform.gpu.count) if platform.gpu.count else (0, 1)
    if rest or not nodes:
        raise InputError(
            f"{job.configuration.gpus} GPUs are no whole nodes of {platform.id}, with {platform.gpu.count} in each",
            hint="a configuration of whole nodes: busbw train show " + workload.id,
        )
    folder = request.directory.absolute()
    filled = _filled(
        workload, request, {"dtype": job.dtype, "gpus": str(job.configuration.gpus), "directory": str(folder)}
    )
    asked = LaunchRequest(
        program=request.program or filled.program, platform=platform.id, nodes=nodes, goal="training",
        launcher="sbatch",
        cpus=request.cpus, runtime=filled.container, image=request.image or filled.image, mounts=filled.mounts,
        container_options=filled.container_options, batch_options=_directives(request, filled),
        time_s=request.time_s if request.time_s is not None else filled.time_s,
    )  # fmt: skip
    line = launch_line(asked, str(folder))
    environment = (*filled.environment.items(),)
    if "DTYPE" not in filled.environment:
        environment = (*environment, ("DTYPE", job.dtype))
    line = structs.replace(line, job=structs.replace(line.job, env=(*environment, *line.job.env)))
    files.write(line.job.files, folder)
    script = launch_script(line, str(folder), with_files=False)
    files.write([JobFile(path=SUBMIT, text=script, executable=True)], folder)
    return TrainScript(
        workload=workload.id, platform=platform.id, gpus=job.configuration.gpus, nodes=nodes, dtype=job.dtype,
        directory=str(folder), submit=SUBMIT, line=line, environment=environment, masks=_masks(platform, request.cpus),
        checked=lint_file(str(folder / _JOB), platform=platform.id),
    )  # fmt: skip


def _filled(workload: Workload, request: ScriptRequest, words: dict[str, str]) -> PublishedLaunch:
    """Return the published way to start it with what differs from job to job put in."""
    launch = workload.launch
    if launch is None:
        if not request.program:
            raise InputError(
                f"how {workload.id} is started is not published: name the program",
                hint=f"busbw train script {workload.id} ... -o DIR -- python train.py",
            )
        return PublishedLaunch(program=request.program, source="own")
    if request.stage is None and "{stage}" in str(launch):
        raise InputError(
            f"{workload.id} is started from a folder that all nodes see, which is not named",
            hint="--stage /shared/grok1",
        )
    known = {**words, "stage": (request.stage or "").rstrip("/"), "fp8": "true" if words["dtype"] == "fp8" else "false"}

    def put(text: str) -> str:
        for name, word in known.items():
            text = text.replace(f"{{{name}}}", word)
        return text

    return structs.replace(
        launch, program=tuple(map(put, launch.program)), image=put(launch.image) if launch.image is not None else None,
        mounts=tuple(map(put, launch.mounts)),
        environment={name: put(word) for name, word in launch.environment.items()},
    )  # fmt: skip


def _directives(request: ScriptRequest, filled: PublishedLaunch) -> tuple[str, ...]:
    own = (("partition", request.partition), ("account", request.account))
    return (*(f"--{name}={word}" for name, word in own if word is not None), *filled.batch_options)


def _masks(platform: Platform, chosen: CpuSharing) -> tuple[CpuMasks, ...]:
    """Return both ways to give processes their CPUs, as far as the platform's places are published."""
    found = []
    for sharing, why in _WHY.items():
        lists = process_masks(platform, None, sharing)
        if isinstance(lists, str):
            continue
        cpus = [parse_cpu_list(each) or () for each in lists]
        found.append(
            CpuMasks(
                sharing=sharing,
                cpus_each=min(map(len, cpus)),
                masks=tuple(f"{mask_bits(each):x}" for each in cpus),
                why=why,
                chosen=sharing == chosen,
            )
        )
    return tuple(found)
