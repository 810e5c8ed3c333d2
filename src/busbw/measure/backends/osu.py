"""The OSU micro-benchmarks 5 to 7, as the user built them: command lines from what each binary knows, rows to times.

OSU gives the bytes that one rank contributes. busbw's size is the larger of what a rank sends and receives, so that of
all_gather, alltoall, gather and scatter is as many times larger as there are ranks; all others are the same.
"""

import dataclasses
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from types import MappingProxyType

import msgspec

from busbw.base.collectives import COLLECTIVES as KNOWN
from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.formats import osu
from busbw.formats.lines.stream import Formats
from busbw.measure.backends.backend import (
    MULTICAST_OFF,
    Capabilities,
    Carrier,
    Door,
    Found,
    Programs,
    ProgramStart,
    Settled,
    Surroundings,
    Usage,
)
from busbw.measure.backends.foreign import Failure, ForeignSample, Rows, check_one_file, in_turn, points_in, read_usage
from busbw.measure.backends.native_mpi import need_of, ranks_of_cores
from busbw.measure.launchers import mpirun
from busbw.measure.launchers.launcher import Joining
from busbw.model.imported import Reading, Table
from busbw.model.launch import Start
from busbw.model.plan import ForeignProgram, MemoryNeed, Placement, Plan, Program, Step, Sweep
from busbw.model.request import Mode, Request

name = "osu"
over: Carrier = "mpi"
is_ours = False
takes = frozenset({"gpu_buffers", "multicast_off", "programs"})
modes: tuple[Mode, ...] = ("stream",)
joining: tuple[Joining, ...] = ("mpi",)
usual_launcher = None
usual_suite = "p2p"
formats = Formats(text=(osu.FORMAT,), documents=())
report_formats = Formats(text=(), documents=())

PROGRAMS = {
    "latency": "osu_latency",
    "bandwidth": "osu_bw",
    "bibw": "osu_bibw",
    "message_rate": "osu_mbw_mr",
    "all_reduce": "osu_allreduce",
    "all_gather": "osu_allgather",
    "reduce_scatter": "osu_reduce_scatter",
    "broadcast": "osu_bcast",
    "reduce": "osu_reduce",
    "alltoall": "osu_alltoall",
    "gather": "osu_gather",
    "scatter": "osu_scatter",
}
# Beside them, those that measure NCCL or RCCL, as 7.3 and later call them and as those before did.
_OF_GPUS = ("osu_xccl_", "osu_nccl_")
# These measure one pair.
TWO_RANKS = ("latency", "bandwidth", "bibw")
_PER_PART = ("all_gather", "alltoall", "gather", "scatter")
_TYPES = {"int8": "mpi_char", "int32": "mpi_int", "float32": "mpi_float"}
DTYPES = tuple(_TYPES)
_ON_GPUS = re.compile(r"^OSU MPI-(?:CUDA|ROCM)", re.IGNORECASE)
# As a shell and mpirun tell it, and as Python does.
_SEGMENTATION_FAULT = (128 + signal.SIGSEGV, -signal.SIGSEGV)
# What a program holds at most without -M, per process.
_MEMORY_LIMIT_BYTES = 512 * 2**20
# Beside what a program calls an error, these begin lines that say why it gave up.
_FAILURES = (
    "This test ", "Invalid ", "Could Not Allocate", "Benchmark Does Not Support", "CUDA Support Not Enabled",
    "Error", "ERROR", "[OMB]", "MPI_ABORT", "*** ", "Option Missing",
)  # fmt: skip


class OsuSettings(Value, frozen=True, kw_only=True):
    """What a sweep is measured with, beside itself. None: as the program does by default."""

    iterations: int | None
    warmup: int | None
    verify: bool
    gpu_buffers: bool


def names_of(collective: str) -> tuple[str, ...]:
    """Return what the program of a collective may be called, the one that measures MPI first."""
    name = PROGRAMS[collective]
    return (name, *(prefix + name.removeprefix("osu_") for prefix in _OF_GPUS))


def is_of_gpus(program: str) -> bool:
    """Whether a program measures NCCL or RCCL, which have no buffers elsewhere."""
    return program.rsplit("/", 1)[-1].startswith(_OF_GPUS)


def parts(collective: str, ranks: int) -> int:
    """Return how many times OSU's size busbw's size is."""
    return ranks if collective in _PER_PART else 1


def dtype_of(collective: str, asked: str, usage: Usage) -> str:
    """Return the type that a program moves when `asked` is asked for. Raises InputError when it cannot be had.

    Programs without -T sum floats, and move bytes where nothing is summed.
    """
    if usage.knows("T"):
        if asked not in _TYPES:
            raise InputError(f"OSU has no {asked}", where=f"-d {asked}", hint="one of: " + ", ".join(_TYPES))
        return asked
    if not KNOWN[collective].reduces:
        return "int8"
    if asked != "float32":
        raise InputError(f"this {PROGRAMS[collective]} sums float32 only", where=f"-d {asked}", hint="OSU 7.1 or later")
    return asked


def arguments(sweep: Sweep, usage: Usage, settings: OsuSettings, ranks: int) -> tuple[str, ...]:
    """Return what follows the program's name to measure the sizes of a sweep, all powers of two times the first.

    Raises InputError for what this program cannot do.
    """
    smallest, largest = (size_bytes // parts(sweep.collective, ranks) for size_bytes in _ends(sweep))
    argv = []
    if usage.knows("m"):
        # Reductions of version 5 count the least size in floats, later ones in bytes: begin where both have it.
        least = max(smallest // 4, 1) if KNOWN[sweep.collective].reduces else smallest
        argv += ["-m", f"{least}:{largest}"]
    elif smallest & (smallest - 1):
        raise InputError(
            f"this {PROGRAMS[sweep.collective]} measures powers of two only", where=f"{smallest} bytes", hint="-f 2"
        )
    argv += _option(usage, "x", settings.warmup, "--warmup")
    argv += _option(usage, "i", settings.iterations, "--calls")
    argv += ["-f"] if usage.knows("f") else []
    argv += ["-c"] if settings.verify and usage.knows("c") else []
    argv += ["-T", _TYPES[sweep.dtype]] if usage.knows("T") else []
    argv += _root(sweep, usage)
    if usage.knows("M") and 3 * sweep.sizes_bytes[-1] > _MEMORY_LIMIT_BYTES:
        argv += ["-M", str(3 * sweep.sizes_bytes[-1])]
    return (*argv, *_buffers(sweep, usage, settings))


def _ends(sweep: Sweep) -> tuple[int, int]:
    return sweep.sizes_bytes[0], sweep.sizes_bytes[-1]


def _option(usage: Usage, letter: str, value: int | None, asked: str) -> list[str]:
    if value is None:
        return []
    if not usage.knows(letter):
        raise InputError(f"this program knows no -{letter}", where=f"{asked} {value}")
    return [f"-{letter}", str(value)]


def _root(sweep: Sweep, usage: Usage) -> list[str]:
    if not KNOWN[sweep.collective].rooted or sweep.root == 0:
        return []
    if not usage.knows("k"):
        raise InputError(
            "this program has rank 0 as its root",
            where=f"-r {sweep.root}",
            hint="gather, reduce or scatter of OSU 7.2 or later",
        )
    return ["-k", str(sweep.root)]


def _buffers(sweep: Sweep, usage: Usage, settings: OsuSettings) -> list[str]:
    if not settings.gpu_buffers:
        return []
    if not usage.knows("d"):
        raise InputError(
            f"this {PROGRAMS[sweep.collective]} is built without GPUs",
            where="--gpu-buffers",
            hint="build it with --enable-cuda or --enable-rocm",
        )
    kind = "rocm" if "cuda" not in usage.options["d"] and "rocm" in usage.options["d"] else "cuda"
    return ["-d", kind, *(("D", "D") if KNOWN[sweep.collective].pairs else ())]


def place_of(plan: Plan, step: Step, reading: Reading) -> tuple[int, bool] | None:
    """Return busbw's size of a row, whose own is the bytes of one rank."""
    collective = _collective(plan, step)
    of_it = (collective, osu.ONE_WAY_OR_BOTH) if collective in ("bandwidth", "bibw") else (collective,)
    if reading.size_bytes is None or reading.size_bytes == 0 or reading.what not in of_it:
        return None
    return reading.size_bytes * parts(collective, plan.placement.ranks), False


def _collective(plan: Plan, step: Step) -> str:
    return next((one.collective for one in plan.programs if one.path == step.program), "")


def sample_of(plan: Plan, step: Step, reading: Reading) -> ForeignSample | None:
    """Return the time of one exchange: of a message, where rates of messages are printed."""
    collective, time_s, size_bytes = _collective(plan, step), reading.time_s, reading.size_bytes
    if size_bytes is None or size_bytes == 0:
        return None
    if time_s is None and reading.messages_per_s:
        # Every pair sends them at once.
        time_s = (plan.placement.ranks // 2) / reading.messages_per_s
    elif time_s is None and reading.bandwidth_Bps:
        time_s = (2 if collective == "bibw" else 1) * size_bytes / reading.bandwidth_Bps
    if time_s is None or time_s <= 0:
        return None
    calls = dict(reading.more).get("iterations")
    return ForeignSample(
        time_s=time_s,
        wrong=reading.wrong,
        size_bytes=size_bytes * parts(collective, plan.placement.ranks),
        dtype=reading.dtype,
        calls=int(calls) if calls is not None else plan.sampling.calls,
    )


def complaint(plan: Plan, step: Step, reading: Reading) -> str | None:
    """Return why a row is none of a run over all ranks, where the program tells how many it has."""
    if reading.ranks is None or reading.ranks == plan.placement.ranks:
        return None
    short = step.program.rsplit("/", 1)[-1]
    return f"{short} ran with {reading.ranks} ranks, and {plan.placement.ranks} were asked for"


def is_finished(_plan: Plan, step: Step, rows: Rows) -> bool:
    """Whether every size came: the program has no last line."""
    return all(len(rows.samples.get(point, ())) >= step.samples for point in step.points)


def is_failure(line: str) -> bool:
    """Whether a line says why a program gave up."""
    return line.strip().startswith(_FAILURES)


def failure_of(lines: Sequence[str], exit_code: int, tables: Sequence[Table]) -> Failure | None:
    """Return the first thing that was said, else what a crash with buffers on GPUs usually means."""
    if lines:
        return Failure(cause=lines[0].strip())
    on_gpus = next((table for table in tables if _ON_GPUS.search(table.program or "")), None)
    if on_gpus is None or exit_code not in _SEGMENTATION_FAULT:
        return None
    return Failure(
        cause="ended by SIGSEGV with buffers on GPUs, as happens where the MPI does not know GPU memory; for Open MPI "
        "`ompi_info --parsable --all | grep mpi_built_with_cuda_support:value` tells"
    )


_VERSION = re.compile(r"^# OSU .{1,80} v(?P<major>\d{1,3})\.(?P<minor>\d{1,3})\s*$", re.ASCII | re.MULTILINE)
_SINCE_ALL = (7, 0)
_SINCE_TYPES = (7, 1)
_SINCE_ROOTS = (7, 2)
_COMMON = "mxi"
_COLLECTIVE = "fM"
_PAIRS = ("latency", "bandwidth", "bibw", "message_rate")
_ROOTED = ("gather", "scatter", "reduce")


def version_of(text: str) -> tuple[int, int] | None:
    """Return the version that a program answers when it is asked with -v; None when it tells none."""
    found = _VERSION.search(text)
    return (int(found["major"]), int(found["minor"])) if found is not None else None


def options_of(program: str, collective: str, version: tuple[int, int], gpus: str | None) -> Usage | None:
    """Return what a program of this version takes; None for versions that print their usage whole.

    `gpus`: "cuda" or "rocm" for a program that is built with GPUs, as -d calls them.
    """
    if version < _SINCE_ALL:
        return None
    letters = _COMMON
    if collective not in _PAIRS:
        letters += _COLLECTIVE
    if is_of_gpus(program):
        return Usage(MappingProxyType(dict.fromkeys(letters, "") | {"d": gpus or "cuda"}), "")
    letters += "c"
    if version >= _SINCE_TYPES:
        letters += "T"
    if version >= _SINCE_ROOTS and collective in _ROOTED:
        letters += "k"
    options = dict.fromkeys(letters, "") | ({"d": gpus} if gpus is not None else {})
    return Usage(MappingProxyType(options), "")


_ALONE = Placement(ranks=1, hosts=("localhost",), binding="none", oversubscribed=False)


def capabilities(_surroundings: Surroundings | None) -> Capabilities:
    """Return what OSU's programs offer."""
    return Capabilities(
        interface="OSU",
        collectives=tuple(PROGRAMS),
        in_place=(),
        dtypes=DTYPES,
        operations=("sum",),
        most_elements=None,
        largest_bytes=4 * 2**20,
        suite_largest_bytes=4 * 2**20,
    )


def look(request: Request, surroundings: Surroundings, door: Door, names: tuple[str, ...]) -> Surroundings:
    """Return surroundings with the MPI and the program of each collective, which answers under a launcher only.

    Raises InputError.
    """
    programs = door.programs()
    check_one_file(request, names, programs)
    mpi = door.mpi(request.mpirun)
    asking = mpirun.job(
        Start(
            program=Program(argv=(), env=()),
            placement=_ALONE,
            directory="",
            mpi=mpi,
            as_root=surroundings.as_root,
            measuring_s=1.0,
            stall_s=1.0,
        )
    )
    found = {each: _found(each, request, programs, asking.argv) for each in names}
    return dataclasses.replace(surroundings, found=found, mpi=mpi)


def _found(collective: str, request: Request, programs: Programs, started_by: tuple[str, ...]) -> Found:
    wanted = names_of(collective) if request.gpu_buffers else names_of(collective)[:1]
    path = programs.find(wanted, request.programs)
    if is_of_gpus(path) and not request.gpu_buffers:
        raise InputError("this program measures between GPUs only", where=path, hint="--gpu-buffers")
    text = programs.usage(path, started_by=started_by)
    usage, version = read_usage(text), None
    if usage is None or not usage.options:
        release = version_of(programs.usage(path, asked="-v", started_by=started_by))
        usage = options_of(path, collective, release, programs.gpus_of(path)) if release is not None else None
        if usage is None or release is None:
            raise InputError(
                f"it does not tell its options; it says: {_after_usage(text)[:300]}",
                where=f"{path} -h",
                hint="an OSU program that ends there may have been built with -D_FORTIFY_SOURCE: build it without",
            )
        version = f"{release[0]}.{release[1]}"
    program = ForeignProgram(
        collective=collective,
        path=path,
        tool=name,
        version=version,
        with_mpi=True,
        options=tuple(sorted(usage.options)),
    )
    return Found(program, usage)


def _after_usage(text: str) -> str:
    """Return the first thing said beside the head of a usage text."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith(("Usage:", "Options:", "#"))), "nothing more")


def usual_ranks(_request: Request, surroundings: Surroundings, names: tuple[str, ...]) -> int:
    """Return how many ranks a host has where nobody says: two in all, where a program wants that."""
    if any(each in TWO_RANKS for each in names):
        return 2 if surroundings.allocation is None else 1
    return ranks_of_cores(surroundings.host)


def check_ranks(_request: Request, surroundings: Surroundings, names: tuple[str, ...], counts: tuple[int, ...]) -> None:
    """Raise InputError for a program that wants two ranks, and gets others."""
    pair = next((each for each in names if each in TWO_RANKS), None)
    if pair is None or sum(counts) == 2:
        return
    if surroundings.allocation is None:
        raise InputError(f"OSU's {pair} is between two ranks", where=f"--ranks {sum(counts)}")
    raise InputError(
        f"OSU's {pair} is between two ranks, and these are {sum(counts)}",
        hint="name two hosts and --ranks-per-node 1, or one host and --ranks 2",
    )


def moved(sweep: Sweep, surroundings: Surroundings) -> Sweep:
    """Return a sweep with the type that its program moves. Raises InputError where it cannot be had."""
    return msgspec.structs.replace(
        sweep, dtype=dtype_of(sweep.collective, sweep.dtype, surroundings.found[sweep.collective].usage)
    )


def memory(
    request: Request, _surroundings: Surroundings, settled: Settled, counts: tuple[int, ...]
) -> tuple[MemoryNeed, str | None]:
    """Return what all ranks need, by our own arithmetic; on GPUs the programs look themselves."""
    if request.gpu_buffers:
        return MemoryNeed(buffers_bytes=0, overhead_bytes=0, scratch_bytes=0), None
    return need_of(settled.sweeps, sum(counts)), None


def starts(request: Request, surroundings: Surroundings, settled: Settled) -> tuple[ProgramStart, ...]:
    """Return the starts of the programs. Raises InputError for what a program does not know."""
    settings = OsuSettings(
        iterations=request.calls,
        warmup=request.warmup_calls,
        verify=request.verify,
        gpu_buffers=request.gpu_buffers,
    )

    def making(number: int, part: Sweep) -> Callable[[int], ProgramStart]:
        found = surroundings.found[part.collective]
        argv = arguments(part, found.usage, settings, settled.placement.ranks)
        made = ProgramStart(
            program=Program(argv=(found.program.path, *argv), env=MULTICAST_OFF if request.multicast_off else ()),
            points=points_in(settled.sweeps, [number], part.sizes_bytes),
            samples=1,
        )
        return lambda _step: made

    makes = [making(number, part) for number, sweep in enumerate(settled.sweeps) for part in _doubling(sweep)]
    return in_turn(makes, request)


def _doubling(sweep: Sweep) -> Iterator[Sweep]:
    """Yield a sweep whole when its sizes grow by powers of two, as these programs' do; else each size alone."""
    factors = [right // left if right % left == 0 else 0 for left, right in pairwise(sweep.sizes_bytes)]
    if all(factor and factor & (factor - 1) == 0 for factor in factors):
        yield sweep
        return
    for size_bytes in sweep.sizes_bytes:
        yield msgspec.structs.replace(sweep, sizes_bytes=(size_bytes,))


def notes(_request: Request, _surroundings: Surroundings, _starts: tuple[ProgramStart, ...]) -> tuple[str, ...]:
    """Return what a sample is, and a size."""
    said = (
        "a sample is the mean that one start of an OSU program prints; its collectives wait in a barrier between "
        "calls, and where a rank has a part for each rank, OSU's size is one part and busbw's all of them"
    )
    return (said,)
