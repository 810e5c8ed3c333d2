"""From a request to a plan: every decision taken and written down before anything starts."""

import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from busbw import __version__
from busbw.base import layout
from busbw.base.errors import InputError
from busbw.base.units import format_size
from busbw.machine.capture import host as capture
from busbw.machine.capture.files import Collection
from busbw.machine.capture.gpus import Named, gpus
from busbw.machine.capture.metadata import answers
from busbw.machine.capture.sites import site_files
from busbw.machine.capture.snapshot import take_kernel
from busbw.machine.named import platform
from busbw.machine.read.hardware import hardware_of
from busbw.measure.backends import native_nccl, registry
from busbw.measure.backends.native_mpi import visitor
from busbw.measure.launchers import registry as launchers
from busbw.measure.launchers.launcher import Launchers
from busbw.measure.plan.hosts import (
    Chosen,
    Jobs,
    check_started_once,
    hosts_of,
    jobs,
    jobs_here,
    of_hosts,
    said,
)
from busbw.measure.plan.placing import counts_of, memory_of, mpi_counts, placement_of, reach_of, setup_of
from busbw.measure.plan.request import Request, run_id
from busbw.measure.plan.settings import surroundings_now
from busbw.measure.plan.surroundings import Surroundings, surroundings
from busbw.measure.plan.sweeps import MPI_OFFER, nccl_offer, sweeps_of
from busbw.model.host import Hardware, Snapshot
from busbw.model.launch import Allocation, Start
from busbw.model.machine import GpuSetup, Host
from busbw.model.plan import SMALL_NCCL_BYTES, Placement, Plan, Program, Sampling, Sweep, points_of
from busbw.model.settings import JobEnvironment

_TIMEOUT_S = 10.0
# All platforms have GPUs or a network of this kind; without either none needs to be looked for.
_FABRICS = ("InfiniBand", "EFA", "Slingshot")


def with_platform(found: JobEnvironment, asked: str | None, root: Path = Path("/")) -> JobEnvironment:
    """Return surroundings with the platform that is `asked` for, or that this host is recognised as, if it is any.

    No program is asked, for some take seconds: only what the kernel tells, and within a second the metadata service of
    the cloud that the firmware names. `root`: where the kernel's files lie. Raises InputError for a platform that there
    is not.
    """
    if asked is not None:
        return structs.replace(found, platform=platform(asked).platform.id, platform_from="asked")
    hardware = _hardware(root)
    if not hardware.gpus and not any(port.kind in _FABRICS for port in hardware.ports):
        return found
    # Importing them, and reading all platforms, takes as long as planning.
    from busbw.facts.platforms import all_platforms  # noqa: PLC0415
    from busbw.machine.detect.ladder import detect  # noqa: PLC0415

    try:
        detection = detect(hardware, answers(hardware.dmi), all_platforms(site_files()))
    except InputError:
        # A site's file that cannot be used is named by the verbs that are about platforms; it stops no measurement.
        return found
    return structs.replace(found, platform=detection.platform, platform_from=detection.rung)


def _hardware(root: Path) -> Hardware:
    taken = Collection(root, timeout_s=_TIMEOUT_S)
    take_kernel(taken)
    return hardware_of(
        Snapshot(
            busbw_version=__version__,
            captured="",
            hostname="",
            root=False,
            container=None,
            files=taken.files,
            links=taken.links,
            answers=(),
        )
    )


# Beside this package's modules.
_PLUGIN = "_nccl_profiler.so"
_MOST_LAUNCHES = 1000


def plan(request: Request, directory: Path | None, base: Path) -> tuple[Plan, Path]:
    """Return the plan of a request, and the run directory it is for: `directory`, or a new one under `base`.

    Raises InputError for what cannot be measured on this machine, and where a launcher started busbw several times.
    """
    check_started_once()
    ((made, where),) = _planned(request, (directory,), base)
    return msgspec.structs.replace(made, surroundings=with_platform(surroundings_now(), request.platform)), where


def plans(request: Request, directories: Sequence[Path]) -> tuple[Plan, ...]:
    """Return the plans of several runs of the same request, one for each directory; the machine is looked at once.

    Raises InputError as `plan` does.
    """
    check_started_once()
    now = with_platform(surroundings_now(), request.platform)
    made = _planned(request, directories, Path())
    return tuple(msgspec.structs.replace(each, surroundings=now) for each, _where in made)


def _planned(request: Request, directories: Sequence[Path | None], base: Path) -> tuple[tuple[Plan, Path], ...]:
    host = capture.host()
    allocation = hosts_of(request, host.name)
    if request.backend in registry.FOREIGN:
        from busbw.measure.plan import foreign  # noqa: PLC0415 - importing it takes as long as planning a run of our own

        return tuple(foreign.plan(request, host, allocation, directory, base) for directory in directories)
    if request.backend == native_nccl.name:
        around = _nccl_surroundings(request, host, allocation)
    else:
        # Checked before the MPI is looked for: what is wrong with the request is the user's to hear first.
        sweeps_of(request, sum(mpi_counts(host, request, allocation)))
        around = surroundings(request, host, capture.mpi(request.mpirun), allocation)
    if len(directories) == 1:
        return (compose(request, around, directories[0], base),)
    return tuple(
        compose(request, dataclasses.replace(around, token=f"{around.token}-{number:03d}"), directory, base)
        for number, directory in enumerate(directories)
    )


def _nccl_surroundings(request: Request, host: Host, allocation: Allocation | None) -> Surroundings:
    from importlib import resources  # noqa: PLC0415 - over MPI nothing else is read from the package

    named = Named(nccl=request.nccl, driver=request.driver, nvrtc=request.nvrtc)
    found = gpus(named, sys.executable)
    mpi = None
    if allocation is not None or request.launcher in (None, "mpirun"):
        try:
            mpi = capture.mpi(request.mpirun)
        except InputError:
            # NCCL does not need it; asked for by name it must be there.
            if allocation is not None or request.launcher is not None or request.mpirun is not None:
                raise
    plugin = None if "NCCL_PROFILER_PLUGIN" in os.environ else str(resources.files("busbw") / _PLUGIN)
    return surroundings(request, host, mpi, allocation, gpus=found, plugin=plugin)


def compose(request: Request, around: Surroundings, directory: Path | None, base: Path) -> tuple[Plan, Path]:
    """Return the plan of a request in the given surroundings, and its run directory. Touches nothing."""
    setup = setup_of(request, around.gpus, around.plugin) if around.gpus is not None else None
    counts = counts_of(request, around)
    ranks = sum(counts)
    offer = nccl_offer(around.gpus.dtypes) if around.gpus is not None else MPI_OFFER
    sweeps, notes = sweeps_of(request, ranks, offer)
    where = (
        directory if directory is not None else base / run_id(request, around.created, around.token, ranks)
    ).absolute()
    placement = placement_of(request, around, counts, setup)
    memory, tight = memory_of(sweeps, around, setup, counts)
    launcher = _launcher(request, around)
    mode = request.mode or ("isolated" if setup is None else "stream")
    _check_mode(mode, setup)
    made = _jobs(request, around, placement, setup, str(where))
    return (
        Plan(
            busbw_version=__version__,
            run_id=run_id(request, around.created, around.token, ranks),
            created=around.created.isoformat(timespec="seconds"),
            backend=request.backend,
            launcher=launcher.name(around.allocation),
            sweeps=sweeps,
            sampling=Sampling(
                mode=mode,
                min_samples=request.min_samples,
                calls=request.calls,
                warmup_calls=request.warmup_calls,
                verify=request.verify,
                time_limit_s=request.time_limit_s,
                launches=_launches(request, sweeps, setup),
            ),
            placement=placement,
            reach=reach_of(request, around.allocation),
            host=around.host,
            mpi=around.mpi,
            gpus=around.gpus,
            gpu_setup=setup,
            memory=memory,
            job=made.job,
            visit=made.visit,
            visit_each=made.visit_each,
            notes=(
                *(said(around.allocation, launcher) if around.allocation is not None else ()),
                *notes,
                *([tight] if tight else []),
                *_gpu_note(around),
            ),
            allow_mixed=request.allow_mixed,
            tag=request.tag,
        ),
        where,
    )


def _gpu_note(around: Surroundings) -> tuple[str, ...]:
    if around.gpus is not None or not around.gpus_seen:
        return ()
    return (f"{around.gpus_seen} NVIDIA GPUs here, not measured over MPI: busbw run --backend nccl",)


def _check_mode(mode: str, setup: GpuSetup | None) -> None:
    if mode in ("graph", "loaded") and setup is None:
        raise InputError(f"{mode} mode needs a GPU", where=f"--mode {mode}", hint="--backend native-nccl")


def _launches(request: Request, sweeps: tuple[Sweep, ...], setup: GpuSetup | None) -> int:
    """Return how often the ranks are started. Raises InputError where further starts would have nothing to measure."""
    launches = 1 if request.launches is None else request.launches
    if not 1 <= launches <= _MOST_LAUNCHES:
        raise InputError(f"ranks are started once to {_MOST_LAUNCHES} times", where=f"--launches {launches}")
    if launches > 1 and setup is None:
        raise InputError(f"{request.backend} is started once", where=f"--launches {launches}", hint="busbw compare")
    if launches > 1 and all(point.size_bytes >= SMALL_NCCL_BYTES for point in points_of(sweeps)):
        raise InputError(
            f"further starts measure sizes below {format_size(SMALL_NCCL_BYTES)} again, and there is none",
            where=f"--launches {launches}",
            hint="-b 1K",
        )
    return launches


def _launcher(request: Request, around: Surroundings) -> Chosen:
    if around.mpi is None:
        found = launchers.find(request.launcher or "processes")
        if found.joining != "variables":
            raise InputError(f"{found.name!r} starts no ranks without MPI", hint="one of: processes, torchrun")
        return Chosen(found)
    if around.allocation is None:
        return Chosen(launchers.find("mpirun"))
    there = Launchers(slurm=around.slurm, on_path=tuple(around.launchers), settings=around.settings)
    return of_hosts(request, around.allocation, around.mpi, there)


def _jobs(request: Request, around: Surroundings, placement: Placement, setup: GpuSetup | None, directory: str) -> Jobs:
    backend = registry.find(request.backend)
    contained = around.containment
    python = around.python if contained is None else request.image_python
    program = backend.program(directory, python)
    if setup is not None:
        program = Program(argv=program.argv, env=native_nccl.environment(setup, around.plugin or ""))
    per_process = setup.per_process if setup is not None else 1
    launcher = _launcher(request, around).launcher
    if around.mpi is None and contained is not None:
        raise InputError("ranks in a container are started by MPI", hint="--launcher mpirun, or srun")
    given = {name for name, _value in program.env}
    start = Start(
        program=program,
        placement=placement,
        per_process=per_process,
        directory=directory,
        mpi=around.mpi,
        through_mpi4py=True,
        slurm=around.slurm,
        launcher_program=around.launchers.get(launcher.name),
        python=around.python,
        # By the last of them what is left of a run is found on its hosts.
        forward=(
            *(name for name in around.settings if name not in given),
            *((layout.RUN_VARIABLE,) if around.allocation is not None else ()),
        ),
        interface=request.interface,
        remote_shell=request.remote_shell,
        gpus_per_host=len(around.gpus.devices) if around.gpus is not None else None,
        options=request.launcher_options,
        as_root=around.as_root,
        measuring_s=request.time_limit_s,
        stall_s=request.stall_s,
    )
    # Visitors look at the host from outside of the container.
    visiting = start
    if contained is not None:
        from busbw.measure.plan.containing import in_container  # noqa: PLC0415 - few ask for it

        start = in_container(start, contained, launcher)
    if around.allocation is None:
        return jobs_here(launcher.job(start), visitor(directory, around.python))
    return jobs(launcher, start, visiting, visitor(directory, around.python))
