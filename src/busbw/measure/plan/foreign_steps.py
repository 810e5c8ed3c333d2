"""The starts that a run of foreign programs is made of, with every word of their command lines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.machine.capture import programs
from busbw.measure.backends import nccl_tests, osu
from busbw.measure.backends.foreign import Usage, is_rccl, nccl_tests_version, read_usage
from busbw.measure.backends.native_mpi import visitor
from busbw.measure.backends.native_nccl import MULTICAST_OFF
from busbw.measure.launchers import hosts, mpirun, registry
from busbw.measure.launchers.launcher import RankLauncher
from busbw.measure.plan.hosts import Jobs, jobs
from busbw.measure.plan.request import Request
from busbw.model import launch
from busbw.model.launch import Slurm, Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import ForeignProgram, Job, Placement, Program, Step, Sweep, points_of

_ALONE = Placement(ranks=1, hosts=("localhost",), binding="none", oversubscribed=False)


@dataclass(frozen=True, slots=True)
class Found:
    """A program and its own usage text."""

    program: ForeignProgram
    usage: Usage


def nccl_tests_programs(request: Request, names: tuple[str, ...]) -> dict[str, Found]:
    """Return the nccl-tests or rccl-tests program of each collective. Raises InputError."""
    _check_one_file(request, names)
    found = {}
    for name in names:
        path = programs.find((f"{name}_perf", f"{name}_perf_mpi"), request.programs)
        usage = _usage(path, programs.usage(path))
        program = ForeignProgram(
            collective=name,
            path=path,
            tool="rccl-tests" if is_rccl(usage) else nccl_tests.name,
            version=nccl_tests_version(usage),
            with_mpi=_with_mpi(request.launcher, path),
            options=tuple(sorted(usage.options)),
        )
        found[name] = Found(program, usage)
    if len({one.program.with_mpi for one in found.values()}) > 1:
        raise InputError("some of these programs are built with MPI and some without", hint="--bin FOLDER of one build")
    return found


def osu_programs(request: Request, names: tuple[str, ...], mpi: MpiLibrary, *, as_root: bool) -> dict[str, Found]:
    """Return the OSU program of each collective. They answer under a launcher only. Raises InputError."""
    _check_one_file(request, names)
    found = {}
    for name in names:
        names_of_it = osu.names_of(name) if request.gpu_buffers else osu.names_of(name)[:1]
        path = programs.find(names_of_it, request.programs)
        if osu.is_of_gpus(path) and not request.gpu_buffers:
            raise InputError("this program measures between GPUs only", where=path, hint="--gpu-buffers")
        asking = mpirun.job(
            Start(
                program=Program(argv=(), env=()),
                placement=_ALONE,
                directory="",
                mpi=mpi,
                as_root=as_root,
                measuring_s=1.0,
                stall_s=1.0,
            )
        )
        text = programs.usage(path, started_by=asking.argv)
        usage, version = read_usage(text), None
        if usage is None or not usage.options:
            usage, version = _osu_by_version(name, path, asking.argv, text)
        program = ForeignProgram(
            collective=name,
            path=path,
            tool=osu.name,
            version=version,
            with_mpi=True,
            options=tuple(sorted(usage.options)),
        )
        found[name] = Found(program, usage)
    return found


def _osu_by_version(name: str, path: str, started_by: tuple[str, ...], text: str) -> tuple[Usage, str]:
    """Return the options of a program whose usage text names none, and its version. Raises InputError."""
    version = osu.version_of(programs.usage(path, asked="-v", started_by=started_by))
    usage = osu.options_of(path, name, version, programs.gpus_of(path)) if version is not None else None
    if usage is None or version is None:
        raise InputError(
            f"it does not tell its options; it says: {_after_usage(text)[:300]}",
            where=f"{path} -h",
            hint="an OSU program that ends there may have been built with -D_FORTIFY_SOURCE: build it without",
        )
    return usage, f"{version[0]}.{version[1]}"


def _after_usage(text: str) -> str:
    """Return the first thing said beside the head of a usage text."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith(("Usage:", "Options:", "#"))), "nothing more")


def _check_one_file(request: Request, names: tuple[str, ...]) -> None:
    if request.programs is not None and len(names) > 1 and programs.is_file(request.programs):
        raise InputError(
            f"one program measures one collective, and {len(names)} were asked for",
            where=f"--bin {request.programs}",
            hint=f"--bin FOLDER, or one of: {', '.join(names)}",
        )


def _usage(path: str, text: str) -> Usage:
    usage = read_usage(text)
    if usage is None:
        said = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise InputError(f"it does not tell its options; it says: {said[:300]}", where=f"{path} -h")
    return usage


def _with_mpi(launcher: str | None, path: str) -> bool:
    if launcher is not None:
        return registry.find(launcher).joining == "mpi"
    uses = programs.uses_mpi(path)
    if uses is not None:
        return uses
    if path.endswith("_mpi"):
        return True
    raise InputError(
        "this is a script, and cannot tell whether it is built with MPI",
        where=path,
        hint="--launcher mpirun, or --launcher direct for one process that drives every GPU",
    )


# The fewest samples whose extremes enclose the median with 95 %, for programs that print one mean a start.
_USUAL_LAUNCHES = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class StepStart:
    """How any step of a run is started."""

    found: Mapping[str, Found]
    mpi: MpiLibrary | None
    placement: Placement
    per_process: int
    directory: str
    as_root: bool
    # What starts ranks on several hosts; None: this host alone.
    launcher: RankLauncher | None = None
    # Its path, where it is that of another batch system than Slurm.
    launcher_program: str | None = None
    slurm: Slurm | None = None
    # Names of the settings that other hosts must have too.
    settings: tuple[str, ...] = ()
    # The interpreter that looks after a run on other hosts.
    python: str = ""

    def jobs(self, request: Request, argv: tuple[str, ...]) -> Jobs:
        """Return the command that starts a program over all ranks, or the program itself where there is no MPI.

        With several hosts, also the commands that look after it there.
        """
        program = Program(argv=argv, env=MULTICAST_OFF if request.multicast_off else ())
        if self.mpi is None:
            timeout_s = request.time_limit_s + hosts.MPI_GRACE_S
            return Jobs(job=Job(argv=argv, env=program.env, timeout_s=timeout_s, stall_s=request.stall_s))
        given = {name for name, _value in program.env}
        start = launch.Start(
            program=program,
            placement=self.placement,
            per_process=self.per_process,
            directory=self.directory,
            mpi=self.mpi,
            slurm=self.slurm,
            launcher_program=self.launcher_program,
            forward=()
            if self.launcher is None
            else (*(name for name in self.settings if name not in given), layout.RUN_VARIABLE),
            interface=request.interface,
            remote_shell=request.remote_shell,
            options=request.launcher_options,
            as_root=self.as_root,
            measuring_s=request.time_limit_s,
            stall_s=request.stall_s,
        )
        if self.launcher is None:
            return Jobs(job=mpirun.job(start))
        return jobs(self.launcher, start, start, visitor(self.directory, self.python))


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedSizes:
    """Sizes before rounding, and how they grow: what nccl-tests is given."""

    sizes_bytes: tuple[int, ...]
    factor: int | None
    step_bytes: int | None


# Number of a step -> the step.
_Make = Callable[[int], Step]


def nccl_tests_steps(
    request: Request, start: StepStart, sweeps: tuple[Sweep, ...], asked: AskedSizes
) -> tuple[Step, ...]:
    """Return the starts of nccl-tests: one program run measures both placements of a collective.

    Raises InputError for what a program does not know.
    """
    groups: dict[tuple[str, str, str, int], list[int]] = {}
    for number, sweep in enumerate(sweeps):
        groups.setdefault((sweep.collective, sweep.dtype, sweep.op, sweep.root), []).append(number)

    def making(numbers: Sequence[int]) -> _Make:
        sweep = sweeps[numbers[0]]
        found = start.found[sweep.collective]
        settings = _settings(request, start, sweep, asked)

        def make(step: int) -> Step:
            name = layout.step_report_name(step)
            report = f"{start.directory}/{layout.RAW_DIRECTORY}/{name}"
            argv, samples = nccl_tests.arguments(sweep, found.usage, settings, report)
            return Step(
                job=start.jobs(request, (found.program.path, *argv)).job,
                program=found.program.path,
                points=_points(sweeps, numbers),
                samples=samples,
                report=name if report in argv else None,
            )

        return make

    makes = [making(numbers) for numbers in groups.values()]
    return _in_turn(makes, request)


def _settings(request: Request, start: StepStart, sweep: Sweep, asked: AskedSizes) -> nccl_tests.NcclTestsSettings:
    # What is too small for one part of each rank would be a row of 0 bytes.
    sizes = [size_bytes for size_bytes in asked.sizes_bytes if size_bytes >= sweep.sizes_bytes[0]]
    return nccl_tests.NcclTestsSettings(
        smallest_bytes=sizes[0],
        largest_bytes=sizes[-1],
        factor=asked.factor,
        step_bytes=asked.step_bytes,
        iterations=request.calls,
        warmup=request.warmup_calls,
        verify=request.verify,
        graphs=request.graphs or int(request.mode == "graph"),
        register={"plain": 0, "registered": 1, "symmetric": 2}[request.buffers],
        per_process=start.per_process,
        samples=request.min_samples,
    )


def osu_steps(request: Request, start: StepStart, sweeps: tuple[Sweep, ...]) -> tuple[Step, ...]:
    """Return the starts of the OSU programs. Raises InputError for what a program does not know."""
    settings = osu.OsuSettings(
        iterations=request.calls,
        warmup=request.warmup_calls,
        verify=request.verify,
        gpu_buffers=request.gpu_buffers,
    )

    def making(number: int, part: Sweep) -> _Make:
        found = start.found[part.collective]
        argv = osu.arguments(part, found.usage, settings, start.placement.ranks)
        made = Step(
            job=start.jobs(request, (found.program.path, *argv)).job,
            program=found.program.path,
            points=_points(sweeps, [number], part.sizes_bytes),
            samples=1,
        )
        return lambda _step: made

    makes = [making(number, part) for number, sweep in enumerate(sweeps) for part in _doubling(sweep)]
    return _in_turn(makes, request)


def _doubling(sweep: Sweep) -> Iterator[Sweep]:
    """Yield a sweep whole when its sizes grow by powers of two, as these programs' do; else each size alone."""
    factors = [right // left if right % left == 0 else 0 for left, right in pairwise(sweep.sizes_bytes)]
    if all(factor and factor & (factor - 1) == 0 for factor in factors):
        yield sweep
        return
    for size_bytes in sweep.sizes_bytes:
        yield msgspec.structs.replace(sweep, sizes_bytes=(size_bytes,))


def _in_turn(makes: Sequence[_Make], request: Request) -> tuple[Step, ...]:
    """Return every step once, then all of them again: what changes meanwhile meets all collectives alike."""
    first = [make(number) for number, make in enumerate(makes)]
    usual = 1 if all(step.samples > 1 for step in first) else min(request.min_samples, _USUAL_LAUNCHES)
    launches = request.launches if request.launches is not None else usual
    return tuple(
        makes[number % len(makes)](number) if number >= len(first) else first[number]
        for number in range(launches * len(makes))
    )


def _points(
    sweeps: tuple[Sweep, ...], numbers: Sequence[int], sizes_bytes: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    return tuple(
        number
        for number, point in enumerate(points_of(sweeps))
        if point.sweep in numbers and (sizes_bytes is None or point.size_bytes in sizes_bytes)
    )
