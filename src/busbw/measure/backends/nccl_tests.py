"""nccl-tests and rccl-tests, any version: command lines from what each binary knows, times from its rows."""

import re
from collections.abc import Sequence

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.formats import nccl_tests, nccl_tests_json
from busbw.formats.lines.stream import Formats
from busbw.formats.nccl_tests_head import FAILURE
from busbw.measure.backends.foreign import Failure, ForeignSample, Rows, Usage
from busbw.model.imported import Reading, Table
from busbw.model.plan import Plan, Step, Sweep

name = "nccl-tests"
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
