"""Which programs of others a request needs, where they are, and what they say they can do."""

from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.machine.capture import programs
from busbw.measure.backends import nccl_tests, osu, osu_options
from busbw.measure.backends.usage import Usage, is_rccl, nccl_tests_version, read_usage
from busbw.measure.launchers import mpirun
from busbw.measure.plan.request import Request
from busbw.measure.plan.starting import LAUNCHERS
from busbw.model.launch import Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import ForeignProgram, Placement, Program

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
    version = osu_options.version_of(programs.usage(path, asked="-v", started_by=started_by))
    usage = osu_options.options_of(path, name, version, programs.gpus_of(path)) if version is not None else None
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
    if launcher in (*LAUNCHERS, "direct"):
        return launcher != "direct"
    if launcher is not None:
        known = ", ".join(f"--launcher {name}" for name in (*LAUNCHERS, "direct"))
        raise InputError(f"{launcher!r} starts no foreign programs", hint=f"one of: {known}")
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
