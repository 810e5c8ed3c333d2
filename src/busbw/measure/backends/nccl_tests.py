"""nccl-tests and rccl-tests, any version: command lines from what each binary knows, times from its rows."""

import dataclasses
import re
from collections.abc import Callable, Sequence

from busbw.base import layout
from busbw.base.collectives import OPERATIONS
from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.formats import nccl_tests, nccl_tests_json
from busbw.formats.lines.stream import Formats
from busbw.formats.nccl_tests_head import FAILURE
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
from busbw.measure.launchers import registry
from busbw.measure.launchers.launcher import Joining
from busbw.model.imported import Reading, Table
from busbw.model.plan import ForeignProgram, MemoryNeed, Plan, Program, Step, Sweep
from busbw.model.request import Mode, Request

name = "nccl-tests"
over: Carrier = "nccl"
is_ours = False
takes = frozenset({"buffers", "gpus_per_process", "graphs", "multicast_off", "programs"})
modes: tuple[Mode, ...] = ("stream", "graph")
joining: tuple[Joining, ...] = ("mpi", "one process")
usual_launcher = "direct"
usual_suite = "six"
formats = Formats(text=(nccl_tests.FORMAT,), documents=())
report_formats = Formats(text=(), documents=(nccl_tests_json.FORMAT,))

COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "alltoallv", "gather", "scatter",
    "sendrecv", "hypercube",
)  # fmt: skip
# In their alltoall, alltoallv and sendrecv the in-place columns print numbers and are not supported.
IN_PLACE = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter", "hypercube")
DTYPES = {
    "int8": "int8", "uint8": "uint8", "int32": "int32", "uint32": "uint32", "int64": "int64", "uint64": "uint64",
    "float16": "half", "float32": "float", "float64": "double", "bfloat16": "bfloat16", "float8e4m3": "f8e4m3",
    "float8e5m2": "f8e5m2",
}  # fmt: skip
_USUAL_ITERATIONS = 20
# src/common.h since 2.17.3; before, 1 stood for all of them.
_MEANINGS = {
    2: "an error of CUDA",
    3: "an error of NCCL",
    4: "its own time-out",
    5: "something it does not implement, such as more GPUs than there are",
    6: "an option it does not take",
    7: "wrong data, or less bandwidth than NCCL_TESTS_MIN_BW",
    255: "an argument it does not take",
}
# A line of one process cannot list more devices than this (2048 characters).
_MOST_LISTED = 16
_SAID = re.compile(
    r"(?P<host>\S+): (?P<what>Test (?:CUDA|NCCL|HIP) failure .*|Test timeout \(\d+s\).*)|"
    r" \.\. (?P<at>\S+)(?: pid (?P<pid>\d{1,9}))?: Test failure|"
    r"(?P<other>Invalid number of GPUs: .*)",
    re.ASCII,
)


class NcclTestsSettings(Value, frozen=True, kw_only=True):
    """What a sweep is measured with, beside itself. None: as the program does by default."""

    # Sizes as asked for: before any is rounded to whole parts, so that the program grows them as busbw did.
    smallest_bytes: int
    largest_bytes: int
    factor: int | None
    step_bytes: int | None
    iterations: int | None
    warmup: int | None
    verify: bool
    graphs: int
    register: int
    # GPUs of one process.
    per_process: int
    # Samples wanted of each size.
    samples: int


def arguments(sweep: Sweep, usage: Usage, settings: NcclTestsSettings, report: str) -> tuple[tuple[str, ...], int]:
    """Return what follows the program's name, and how many samples of each size come of it.

    `report`: the file for single samples, used where the program times every call. Raises InputError for what this
    program cannot do. It never gets `-b 0`: since 2.16.8 it would double that for ever.
    """
    grown = ("-f", str(settings.factor)) if settings.factor is not None else ("-i", str(settings.step_bytes))
    argv = ["-b", str(settings.smallest_bytes), "-e", str(settings.largest_bytes), *grown]
    argv += ["-g", str(settings.per_process), "-d", DTYPES[sweep.dtype], "-o", sweep.op, "-r", str(sweep.root)]
    argv += ["-w", str(settings.warmup)] if settings.warmup is not None else []
    argv += ["-c", "1" if settings.verify else "0"]
    argv += _buffers(usage, settings.register)
    # The default since 2.10, said because the times are read as means over ranks.
    argv += ["-a", "1"] if usage.knows("a") else []
    if settings.graphs > 0:
        argv += ["-G", _checked(usage, "G", "replays no CUDA graphs", str(settings.graphs))]
    elif usage.knows("I") and usage.knows("J"):
        calls = max(settings.iterations or _USUAL_ITERATIONS, settings.samples)
        return (*argv, "-n", str(calls), "-I", "1", "-J", report), calls
    argv += ["-n", str(settings.iterations or _USUAL_ITERATIONS)]
    if usage.knows("N") and settings.samples > 1:
        return (*argv, "-N", str(settings.samples)), settings.samples
    return tuple(argv), 1


def _buffers(usage: Usage, register: int) -> list[str]:
    if register == 0:
        return []
    _checked(usage, "R", "registers no buffers", str(register))
    if register == 2 and "/2>" not in usage.options["R"]:
        raise InputError("this program knows no symmetric buffers", where="-R 2", hint="nccl-tests 2.17 or later")
    return ["-R", str(register)]


def _checked(usage: Usage, letter: str, what: str, value: str) -> str:
    if not usage.knows(letter):
        raise InputError(f"this program {what}", where=f"-{letter} {value}", hint="a newer nccl-tests with --bin")
    return value


def place_of(_plan: Plan, _step: Step, reading: Reading) -> tuple[int, bool] | None:
    """Return the size, which nccl-tests counts as busbw does, and whether the row is in place."""
    return None if reading.size_bytes is None else (reading.size_bytes, reading.in_place is True)


def sample_of(_plan: Plan, _step: Step, reading: Reading) -> ForeignSample | None:
    """Return the mean time over iterations and ranks that a row tells."""
    if reading.time_s is None or reading.time_s <= 0 or reading.size_bytes is None:
        return None
    return ForeignSample(time_s=reading.time_s, wrong=reading.wrong, size_bytes=reading.size_bytes, dtype=reading.dtype)


def complaint(plan: Plan, step: Step, reading: Reading) -> str | None:
    """Return why a row is none of a run over all ranks."""
    asked, found = plan.placement.ranks, reading.ranks
    if found is None or found == asked:
        return None
    program = next((one for one in plan.programs if one.path == step.program), None)
    with_mpi = program is None or program.with_mpi
    if not with_mpi and asked > _MOST_LISTED:
        return None
    short = step.program.rsplit("/", 1)[-1]
    if with_mpi and found < asked and asked % found == 0:
        ranks = "one rank" if found == 1 else f"{found} ranks"
        return (
            f"{short} ran as {asked // found} separate runs of {ranks}, not as one of {asked}: it is built without "
            "MPI or for another MPI than this mpirun's, or NCCL_TESTS_SPLIT is set"
        )
    return f"{short} ran with {found} ranks, and {asked} were asked for"


def is_finished(_plan: Plan, _step: Step, rows: Rows) -> bool:
    """Whether the program printed its last line."""
    return bool(rows.tables) and all(table.complete and not table.failures for table in rows.tables)


def is_failure(line: str) -> bool:
    """Whether a line is one of nccl-tests' failures."""
    return FAILURE.search(line) is not None


def failure_of(lines: Sequence[str], exit_code: int, tables: Sequence[Table]) -> Failure | None:
    """Return what went wrong. `lines`: those that `is_failure` found, in order."""
    said, host, process_id = None, None, None
    for match in (_SAID.search(line) for line in lines):
        if match is not None:
            said = said or match["what"] or match["other"]
            host = host or match["host"] or match["at"]
            process_id = process_id or (int(match["pid"]) if match["pid"] else None)
    said = said or next((line.strip() for line in lines), None) or _MEANINGS.get(exit_code)
    if said is None:
        return None
    devices = [device for table in tables for device in table.devices]
    rank = next((device.rank for device in devices if process_id is not None and device.process_id == process_id), None)
    return Failure(cause=said, rank=rank, host=host, process_id=process_id)


# Versions of nccl-tests by the newest option that they have (its tags, v2.0.0 to v2.19.6).
_SINCE = (
    ("K", "2.19.6 or later"),
    ("I", "2.19.2 to 2.19.5"),
    ("u", "2.18.0 to 2.19.1"),
    ("M", "2.17.7 to 2.17.10"),
    ("S", "2.17.6"),
    ("J", "2.17.3 to 2.17.5"),
    ("x", "2.17.0 to 2.17.2"),
    ("N", "2.13.10 to 2.16.9"),
    ("T", "2.13.4 to 2.13.9"),
    ("G", "2.10.0 to 2.13.3"),
)


def is_rccl(usage: Usage) -> bool:
    """Whether it is rccl-tests', where -u and -x mean something else than in nccl-tests."""
    return "cumask" in usage.options.get("u", "") or "--cumask" in usage.text or "--memory_type" in usage.text


def nccl_tests_version(usage: Usage) -> str | None:
    """Return the versions of nccl-tests that know these options; None for rccl-tests, which does not keep in step."""
    if is_rccl(usage):
        return None
    return next((versions for letter, versions in _SINCE if usage.knows(letter)), "2.0.0 to 2.9.0")


def operations(usage: Usage) -> tuple[str, ...]:
    """Return the operations that the usage text of nccl-tests lists for -o."""
    listed = re.search(r"--op <([a-z/]{1,80})>", usage.text)
    return tuple(name for name in listed[1].split("/") if name != "all") if listed is not None else ("sum",)


def capabilities(surroundings: Surroundings | None) -> Capabilities:
    """Return what nccl-tests offers; its own usage text lists the operations. Which types it has shows at its start."""
    listed = [operations(one.usage) for one in surroundings.found.values()] if surroundings is not None else []
    return Capabilities(
        interface=name,
        collectives=COLLECTIVES,
        in_place=IN_PLACE,
        dtypes=tuple(DTYPES),
        operations=listed[0] if listed else OPERATIONS,
        most_elements=None,
        largest_bytes=2**30,
        suite_largest_bytes=2**30,
    )


def look(request: Request, surroundings: Surroundings, door: Door, names: tuple[str, ...]) -> Surroundings:
    """Return surroundings with the program of each collective, and the MPI that starts it where it is built with one.

    Raises InputError.
    """
    programs = door.programs()
    check_one_file(request, names, programs)
    found = {each: _found(each, request, programs) for each in names}
    if len({one.program.with_mpi for one in found.values()}) > 1:
        raise InputError("some of these programs are built with MPI and some without", hint="--bin FOLDER of one build")
    with_mpi = any(one.program.with_mpi for one in found.values())
    return dataclasses.replace(
        surroundings, found=found, mpi=door.mpi(request.mpirun) if with_mpi else None, gpu_count=programs.gpu_count()
    )


def _found(collective: str, request: Request, programs: Programs) -> Found:
    path = programs.find((f"{collective}_perf", f"{collective}_perf_mpi"), request.programs)
    text = programs.usage(path)
    usage = read_usage(text)
    if usage is None:
        said = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise InputError(f"it does not tell its options; it says: {said[:300]}", where=f"{path} -h")
    program = ForeignProgram(
        collective=collective,
        path=path,
        tool="rccl-tests" if is_rccl(usage) else name,
        version=nccl_tests_version(usage),
        with_mpi=_with_mpi(request.launcher, path, programs),
        options=tuple(sorted(usage.options)),
    )
    return Found(program, usage)


def _with_mpi(launcher: str | None, path: str, programs: Programs) -> bool:
    """Whether a program is built with MPI: its launcher says so, else the names in its file, else its own."""
    asked = registry.known(launcher)
    uses = asked.joining == "mpi" if asked is not None else programs.uses_mpi(path)
    if uses is not None:
        return uses
    if path.endswith("_mpi"):
        return True
    raise InputError(
        "this is a script, and cannot tell whether it is built with MPI",
        where=path,
        hint="--launcher mpirun, or --launcher direct for one process that drives every GPU",
    )


def usual_ranks(request: Request, surroundings: Surroundings, _names: tuple[str, ...]) -> int:
    """Return a rank for each GPU that a program sees, or those that its one process was asked to drive."""
    if surroundings.allocation is None and surroundings.mpi is None and request.gpus_per_process > 1:
        return request.gpus_per_process
    if surroundings.gpu_count:
        return surroundings.gpu_count
    if surroundings.allocation is None:
        raise InputError("cannot tell how many GPUs there are", hint="say how many to use: --ranks 8")
    raise InputError("cannot tell how many GPUs a host has", hint="say how many to use: --ranks-per-node 8")


def check_ranks(request: Request, surroundings: Surroundings, _names: tuple[str, ...], counts: tuple[int, ...]) -> None:
    """Raise InputError for more ranks than this host has GPUs, and for processes that are not alike."""
    for ranks in counts:
        if surroundings.allocation is None and surroundings.gpu_count is not None and ranks > surroundings.gpu_count:
            raise InputError(
                f"{ranks} GPUs asked for, {surroundings.gpu_count} here", hint=f"--ranks {surroundings.gpu_count}"
            )
        if request.gpus_per_process < 1 or ranks % request.gpus_per_process:
            raise InputError(f"{ranks} GPUs are not equal parts of {request.gpus_per_process}", where="-g")


def moved(sweep: Sweep, _surroundings: Surroundings) -> Sweep:
    """Return a sweep as it is: a program that lacks the type says so at its start."""
    return sweep


def memory(
    _request: Request, _surroundings: Surroundings, _settled: Settled, _counts: tuple[int, ...]
) -> tuple[MemoryNeed, str | None]:
    """Return nothing: it is on GPUs, and the programs look themselves."""
    return MemoryNeed(buffers_bytes=0, overhead_bytes=0, scratch_bytes=0), None


def starts(request: Request, surroundings: Surroundings, settled: Settled) -> tuple[ProgramStart, ...]:
    """Return the starts: one program run measures both placements of a collective.

    Raises InputError for what a program does not know.
    """
    groups: dict[tuple[str, str, str, int], list[int]] = {}
    for number, sweep in enumerate(settled.sweeps):
        groups.setdefault((sweep.collective, sweep.dtype, sweep.op, sweep.root), []).append(number)
    return in_turn([_making(request, surroundings, settled, numbers) for numbers in groups.values()], request)


def _making(
    request: Request, surroundings: Surroundings, settled: Settled, numbers: Sequence[int]
) -> Callable[[int], ProgramStart]:
    sweep = settled.sweeps[numbers[0]]
    found = surroundings.found[sweep.collective]
    settings = _settings(request, settled, sweep)

    def make(step: int) -> ProgramStart:
        file = layout.step_report_name(step)
        report = f"{settled.directory}/{layout.RAW_DIRECTORY}/{file}"
        argv, samples = arguments(sweep, found.usage, settings, report)
        env = MULTICAST_OFF if request.multicast_off else ()
        return ProgramStart(
            program=Program(argv=(found.program.path, *argv), env=env),
            points=points_in(settled.sweeps, numbers),
            samples=samples,
            report=file if report in argv else None,
        )

    return make


def _settings(request: Request, settled: Settled, sweep: Sweep) -> NcclTestsSettings:
    # What is too small for one part of each rank would be a row of 0 bytes.
    sizes = [size_bytes for size_bytes in settled.asked.sizes_bytes if size_bytes >= sweep.sizes_bytes[0]]
    return NcclTestsSettings(
        smallest_bytes=sizes[0],
        largest_bytes=sizes[-1],
        factor=settled.asked.factor,
        step_bytes=settled.asked.step_bytes,
        iterations=request.calls,
        warmup=request.warmup_calls,
        verify=request.verify,
        graphs=request.graphs or int(settled.mode == "graph"),
        register={"plain": 0, "registered": 1, "symmetric": 2}[request.buffers],
        per_process=settled.per_process,
        samples=request.min_samples,
    )


def notes(_request: Request, _surroundings: Surroundings, starts: tuple[ProgramStart, ...]) -> tuple[str, ...]:
    """Return what a sample is."""
    if starts[0].report is not None:
        return ("a sample is one call, timed by CUDA events, on the GPU where it took longest",)
    return ("a sample is the mean over iterations and ranks that nccl-tests prints in one row",)
