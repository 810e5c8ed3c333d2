"""From a request to a plan: every decision taken and written down before anything starts."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import msgspec

from busbw import __version__
from busbw.base import layout
from busbw.base.errors import InputError
from busbw.machine.capture import host as capture
from busbw.machine.capture.environment import variables_in_force
from busbw.measure.backends import registry
from busbw.measure.backends.backend import Backend, ProgramStart, Settled, Surroundings, check_options, is_own
from busbw.measure.launchers.launcher import RankLauncher
from busbw.measure.plan.hosts import Chosen, Jobs, check_started_once, hosts_of, jobs, jobs_here, said, visitor
from busbw.measure.plan.placing import check_joined, counts_of, launcher_of, per_process, placement_of, reach_of
from busbw.measure.plan.request import run_id, with_placement
from busbw.measure.plan.surroundings import looked_at, surroundings_now, surroundings_of
from busbw.measure.plan.sweeps import asked_sizes, names_of, sweeps_of, with_sizes
from busbw.model.launch import Start
from busbw.model.plan import Plan, Program, Sampling, Step
from busbw.model.request import Mode, Request
from busbw.model.settings import JobEnvironment, RecommendedLayer


def plan(request: Request, directory: Path | None, base: Path) -> tuple[Plan, Path]:
    """Return the plan of a request, and the run directory it is for: `directory`, or a new one under `base`.

    Raises InputError for what cannot be measured on this machine, and where a launcher started busbw several times.
    """
    check_started_once()
    (made,) = _planned(request, (directory,), base)
    return made


def plans(request: Request, directories: Sequence[Path]) -> tuple[Plan, ...]:
    """Return the plans of several runs of the same request, one for each directory; the machine is looked at once.

    Raises InputError as `plan` does.
    """
    check_started_once()
    return tuple(each for each, _where in _planned(request, directories, Path()))


def _job_environment(request: Request) -> JobEnvironment:
    """Return the environment of a job that starts now, with its platform. Raises InputError for an unknown one."""
    found = surroundings_now()
    if request.platform is None and not capture.shows_platform():
        return found
    from busbw.measure.plan.platform import with_platform  # noqa: PLC0415 - importing it takes as long as planning

    return with_platform(found, request.platform)


def _planned(request: Request, directories: Sequence[Path | None], base: Path) -> tuple[tuple[Plan, Path], ...]:
    host = capture.host()
    allocation = hosts_of(request, host.name)
    backend = registry.find(request.backend)
    request = _usual(request, backend)
    # What is wrong with the request is the user's to hear first, before anything is looked for.
    check_options(request, backend)
    check_joined(request, backend)
    surroundings = surroundings_of(host, allocation)
    capabilities = backend.capabilities(surroundings)
    names = names_of(request, capabilities)
    if backend.over == "mpi":
        sweeps_of(request, sum(counts_of(request, surroundings, backend, names)), capabilities)
    seen = looked_at(request, surroundings, backend, names)
    now = _job_environment(request)
    layer = _layer(request, seen, backend, now)
    if layer is None:
        made = _composed(request, seen, directories, base)
    else:
        # What is found depends on the settings that the run will have: the order of GPUs, what a container is told.
        with variables_in_force(layer.env().items(), ()):
            seen = looked_at(request, surroundings_of(host, allocation), backend, names)
            made = _composed(request, seen, directories, base)
    return tuple((msgspec.structs.replace(_with(each, layer), surroundings=now), where) for each, where in made)


def _composed(
    request: Request, surroundings: Surroundings, directories: Sequence[Path | None], base: Path
) -> tuple[tuple[Plan, Path], ...]:
    if len(directories) == 1:
        return (compose(request, surroundings, directories[0], base),)
    return tuple(
        compose(request, dataclasses.replace(surroundings, token=f"{surroundings.token}-{number:03d}"), directory, base)
        for number, directory in enumerate(directories)
    )


def _layer(
    request: Request, surroundings: Surroundings, backend: Backend, now: JobEnvironment
) -> RecommendedLayer | None:
    if request.goal is None:
        return None
    from busbw.measure.plan.recommended import recommended_layer  # noqa: PLC0415 - few ask for it

    return recommended_layer(request, surroundings, backend, now)


def _with(plan: Plan, layer: RecommendedLayer | None) -> Plan:
    if layer is None:
        return plan
    from busbw.measure.plan.recommended import with_layer  # noqa: PLC0415 - as above

    return with_layer(plan, layer)


def _usual(request: Request, backend: Backend) -> Request:
    """Return the request with the suite that a backend measures when it is asked for nothing."""
    if request.collectives or request.suite is not None:
        return request
    return msgspec.structs.replace(request, suite=backend.usual_suite)


def compose(request: Request, surroundings: Surroundings, directory: Path | None, base: Path) -> tuple[Plan, Path]:
    """Return the plan of a request in the given surroundings, and its run directory. Touches nothing."""
    backend = registry.find(request.backend)
    request = _usual(request, backend)
    mode = check_options(request, backend)
    setup = backend.setup(request, surroundings) if is_own(backend) else None
    capabilities = backend.capabilities(surroundings)
    counts = counts_of(request, surroundings, backend, names_of(request, capabilities))
    ranks = sum(counts)
    counted, notes = sweeps_of(request, ranks, capabilities)
    name = run_id(request, surroundings.created, surroundings.token, ranks)
    where = (directory or base / name).absolute()
    chosen = launcher_of(request, surroundings, backend)
    launcher = chosen.name(surroundings.allocation)
    each = per_process(request, ranks, chosen.launcher)
    settled = Settled(
        sweeps=tuple(backend.moved(sweep, surroundings) for sweep in counted),
        asked=asked_sizes(request, capabilities),
        mode=mode,
        placement=placement_of(request, surroundings, backend, counts, each),
        per_process=each,
        directory=str(where),
        setup=setup,
        python=surroundings.python if surroundings.containment is None else request.image_python,
    )
    memory, tight = backend.memory(request, surroundings, settled, counts)
    starts = backend.starts(request, surroundings, settled)
    made = _commands(request, surroundings, settled, chosen.launcher, starts, backend)
    return (
        Plan(
            busbw_version=__version__,
            run_id=name,
            created=surroundings.created.isoformat(timespec="seconds"),
            backend=request.backend,
            launcher=launcher,
            sweeps=settled.sweeps,
            sampling=_sampling(request, mode, backend.launches(request, settled.sweeps) if is_own(backend) else 1),
            placement=settled.placement,
            reach=reach_of(request, surroundings.allocation),
            host=surroundings.host,
            mpi=surroundings.mpi,
            gpus=surroundings.gpus,
            gpu_setup=setup,
            mpi_driver=surroundings.mpi_driver,
            memory=memory,
            job=made[0].job,
            programs=tuple(one.program for one in surroundings.found.values()),
            steps=() if backend.is_ours else tuple(map(_step, starts, made)),
            visit=made[0].visit,
            visit_each=made[0].visit_each,
            notes=(
                *_allocated(surroundings, chosen),
                *(*notes, *filter(None, [tight])),
                *_notes(request, surroundings, backend, starts),
            ),
            allow_mixed=request.allow_mixed and backend.is_ours,
            tag=request.tag,
            request=with_placement(with_sizes(request, capabilities), settled.placement, launcher),
        ),
        where,
    )


def _allocated(surroundings: Surroundings, chosen: Chosen) -> tuple[str, ...]:
    return said(surroundings.allocation, chosen) if surroundings.allocation is not None else ()


def _notes(
    request: Request, surroundings: Surroundings, backend: Backend, starts: tuple[ProgramStart, ...]
) -> tuple[str, ...]:
    notes = backend.notes(request, surroundings, starts)
    if surroundings.allocation is None or backend.is_ours:
        return notes
    return (*notes, "these programs do not compare the hosts before they measure, as busbw's own ranks do")


def _sampling(request: Request, mode: Mode, launches: int) -> Sampling:
    return Sampling(
        mode=mode,
        # Who wants few samples at most need not say that fewer are enough.
        min_samples=min(request.min_samples, request.max_samples),
        max_samples=request.max_samples,
        calls=request.calls,
        warmup_calls=request.warmup_calls,
        verify=request.verify,
        time_limit_s=request.time_limit_s,
        launches=launches,
    )


def _step(start: ProgramStart, made: Jobs) -> Step:
    return Step(
        job=made.job,
        program=start.program.argv[0],
        points=start.points,
        samples=start.samples,
        report=start.report,
    )


def _commands(
    request: Request,
    surroundings: Surroundings,
    settled: Settled,
    launcher: RankLauncher,
    starts: tuple[ProgramStart, ...],
    backend: Backend,
) -> tuple[Jobs, ...]:
    """Return the commands of every start. Raises InputError for what the launcher, or a container, cannot do."""
    if surroundings.containment is not None and surroundings.mpi is None:
        raise InputError("ranks in a container are started by MPI", hint="--launcher mpirun, or srun")
    looking = visitor(settled.directory, surroundings.python)
    made: list[Jobs] = []
    for one in starts:
        # Visitors look at the host from outside of the container.
        start = visiting = _start(request, surroundings, settled, launcher, one.program, backend)
        if surroundings.containment is not None:
            from busbw.measure.plan.containing import in_container  # noqa: PLC0415 - few ask for it

            start = in_container(start, surroundings.containment, launcher)
        if surroundings.allocation is None:
            # Programs of the user have no heartbeat that a visit could read.
            made.append(jobs_here(launcher.job(start), looking if backend.is_ours else None))
        elif made:
            # Hosts are visited in the same way, whichever start they are in.
            made.append(Jobs(job=launcher.job(start)))
        else:
            made.append(jobs(launcher, start, visiting, looking))
    return tuple(made)


def _start(
    request: Request,
    surroundings: Surroundings,
    settled: Settled,
    launcher: RankLauncher,
    program: Program,
    backend: Backend,
) -> Start:
    given = {name for name, _value in program.env}
    return Start(
        program=program,
        placement=settled.placement,
        per_process=settled.per_process,
        directory=settled.directory,
        mpi=surroundings.mpi,
        through_mpi4py=backend.is_ours,
        slurm=surroundings.slurm,
        launcher_program=surroundings.launchers.get(launcher.program or launcher.name),
        python=surroundings.python,
        # By the last of them what is left of a run is found on its hosts.
        forward=(
            *(name for name in surroundings.settings if name not in given),
            *((layout.RUN_VARIABLE,) if surroundings.allocation is not None else ()),
        ),
        interface=request.interface,
        remote_shell=request.remote_shell,
        gpus_per_host=len(surroundings.gpus.devices) if surroundings.gpus is not None else None,
        options=request.launcher_options,
        as_root=surroundings.as_root,
        measuring_s=request.time_limit_s,
        stall_s=request.stall_s,
    )
