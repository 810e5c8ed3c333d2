"""The JSON reports of nccl-tests (-J), versions 1 to 3, with their misspelt keys and truths in quotation marks."""

import math
import re
from collections.abc import Iterator, Sequence

import msgspec

from busbw.base.errors import InputError
from busbw.formats.arithmetic import Check, PrintedNumber, RowRates, in_unit, printed
from busbw.formats.form import Natural, Taken, TextLine, Unreadable, shaped
from busbw.formats.nccl_tests_head import DTYPES, collective_of_program, version_of
from busbw.model.imported import ListedDevice, Reading, Table
from busbw.model.settings import kept

TOOL = "nccl-tests"
# Infinity and "nan" are written as they are printed, in quotation marks.
_Number = float | str | None
_AVERAGING = {"0": "of rank 0", "1": "mean over ranks", "2": "least of all ranks", "3": "largest of all ranks"}
_LARGEST = 2**63 - 1


class _Device(msgspec.Struct):
    rank: Natural
    group: int | None = None
    pid: Natural | None = None
    hostname: str | None = None
    device: Natural | None = None
    device_hex: str | None = None
    device_info: str | None = None


class _Config(msgspec.Struct):
    nthreads: Natural = 1
    ngpus: Natural = 1
    devices: tuple[_Device, ...] = ()


class _Half(msgspec.Struct):
    alg_bw: _Number
    bus_bw: _Number
    time: _Number = None
    cpu_time: _Number = None
    nwrong: _Number = None


class _Iterations(msgspec.Struct):
    min_us: _Number = None
    max_us: _Number = None
    avg_us: _Number = None
    p50_us: _Number = None
    p95_us: _Number = None
    p99_us: _Number = None
    stdev_us: _Number = None
    cv_pct: _Number = None
    times_us: tuple[_Number, ...] = ()


class _Result(msgspec.Struct):
    size: Natural
    count: Natural
    type: str
    redop: str | None = None
    root: str | int | None = None
    out_of_place: _Half | None = None
    in_place: _Half | None = None
    out_of_place_per_iter: _Iterations | None = None
    in_place_per_iter: _Iterations | None = None


class _Bounds(msgspec.Struct):
    count: int
    okay: str | bool


class _Average(msgspec.Struct):
    bandwidth: _Number = None
    # Misspelt up to 2.17.8.
    bandwidith: _Number = None
    okay: str | bool | None = None


class _Report(msgspec.Struct):
    config: _Config
    results: tuple[_Result, ...]
    version: int | None = None
    start_time: str | None = None
    end_time: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    nccl_version: Natural | None = None
    out_of_bounds: _Bounds | None = None
    average_bus_bandwidth: _Average | None = None
    average_bus_bandwidith: _Average | None = None
    errors: tuple[str, ...] = ()


class _ReportDocuments:
    tool = TOOL
    is_record = False

    def recognises(self, document: object) -> bool:
        return (
            isinstance(document, dict)
            and isinstance(document.get("config"), dict)
            and isinstance(document.get("results"), list)
            and "nthreads" in document["config"]
        )

    def read(
        self, document: object, *, line: int, number: int, source: int
    ) -> Sequence[tuple[Table, Sequence[Reading]]]:
        report = shaped(document, _Report, tool=TOOL, line=line)
        ranks = _ranks(report)
        program = report.args[0] if report.args else None
        what = (collective_of_program(program) if program is not None else None) or "unknown"
        check = Check(of_calls_only=any(half.cpu_time is not None for half in _halves(report)))
        readings = [
            reading
            for result in report.results
            for reading in _readings(result, what, ranks, check, line=line, table=number)
        ]
        return [(_table(report, check, ranks, program, readings, (line, number, source)), readings)]


def _table(
    report: _Report,
    check: Check,
    ranks: int | None,
    program: str | None,
    readings: Sequence[Reading],
    place: tuple[int, int, int],
) -> Table:
    line, number, source = place
    environment, withheld = kept(report.env)
    average = report.average_bus_bandwidth or report.average_bus_bandwidith
    if average is not None:
        _check_average(average, readings, check, line)
    check.compare(line, ranks)
    return Table(
        number=number,
        source=source,
        first_line=line,
        last_line=line,
        tool=TOOL,
        program=program.rsplit("/", 1)[-1] if program is not None else None,
        format="json",
        statistic=_statistic(report),
        ranks=ranks,
        ranks_from_rates=check.ranks(),
        versions=(("NCCL", version_of(report.nccl_version)),) if report.nccl_version is not None else (),
        arguments=report.args,
        parameters=(
            ("nthreads", str(report.config.nthreads)),
            ("ngpus", str(report.config.ngpus)),
            *((("report version", str(report.version)),) if report.version is not None else ()),
            *((("start time", report.start_time),) if report.start_time is not None else ()),
        ),
        environment=environment,
        environment_withheld=withheld,
        devices=tuple(_device(device) for device in report.config.devices),
        footer=tuple(_footer(report, average)),
        complete=report.end_time is not None,
        failures=tuple((line, error[:300]) for error in report.errors if error.strip()),
        doubts=check.doubts(),
    )


def _ranks(report: _Report) -> int | None:
    """Return the ranks of the first group: `devices` holds one entry per process only."""
    devices = report.config.devices
    processes = sum(device.group == devices[0].group for device in devices)
    ranks = processes * report.config.nthreads * report.config.ngpus
    return ranks if 0 < ranks < _LARGEST else None


def _readings(result: _Result, what: str, ranks: int | None, check: Check, *, line: int, table: int) -> list[Reading]:
    halves = (
        (False, result.out_of_place, result.out_of_place_per_iter),
        (True, result.in_place, result.in_place_per_iter),
    )
    found = []
    for in_place, half, iterations in halves:
        if half is None:
            continue
        time_s = _printed(half.time if half.time is not None else half.cpu_time, -6)
        algbw_Bps, busbw_Bps = _printed(half.alg_bw, 9), _printed(half.bus_bw, 9)
        check.row(what, line, RowRates(result.size, time_s, algbw_Bps, busbw_Bps))
        if time_s is None or algbw_Bps is None or busbw_Bps is None:
            check.doubt(line, f"size {result.size}: a time or a rate is not a number")
        wrong = _value(half.nwrong)
        found.append(
            Reading(
                table=table,
                line=line,
                what=what,
                size_bytes=result.size,
                count=result.count,
                dtype=DTYPES.get(result.type, result.type),
                op=result.redop or None,
                root=_root(result.root),
                in_place=in_place,
                ranks=ranks,
                time_s=time_s.value if time_s is not None else None,
                algbw_Bps=algbw_Bps.value if algbw_Bps is not None else None,
                busbw_Bps=busbw_Bps.value if busbw_Bps is not None else None,
                wrong=int(min(wrong, _LARGEST // 2)) if wrong is not None and wrong >= 0 else None,
                more=_more(iterations) if iterations is not None else (),
                samples_s=_samples(iterations) if iterations is not None else (),
            )
        )
    return found


def _more(iterations: _Iterations) -> tuple[tuple[str, float], ...]:
    pairs = (
        ("min_s", iterations.min_us, 1e-6),
        ("max_s", iterations.max_us, 1e-6),
        ("mean_s", iterations.avg_us, 1e-6),
        ("p50_s", iterations.p50_us, 1e-6),
        ("p95_s", iterations.p95_us, 1e-6),
        ("p99_s", iterations.p99_us, 1e-6),
        ("deviation_s", iterations.stdev_us, 1e-6),
        ("cv", iterations.cv_pct, 1e-2),
    )
    return tuple((name, in_unit(value, unit)) for name, said, unit in pairs if (value := _value(said)) is not None)


def _samples(iterations: _Iterations) -> tuple[float, ...]:
    return tuple(in_unit(value, 1e-6) for said in iterations.times_us if (value := _value(said)) is not None)


def _check_average(average: _Average, readings: Sequence[Reading], check: Check, line: int) -> None:
    said = _value(average.bandwidth if average.bandwidth is not None else average.bandwidith)
    rates_Bps = [reading.busbw_Bps for reading in readings if reading.busbw_Bps is not None]
    if said is None or not rates_Bps or len(rates_Bps) != len(readings):
        return
    mean = sum(rates_Bps) / len(rates_Bps) / 1e9
    if not math.isclose(mean, said, rel_tol=1e-5, abs_tol=1e-5):
        check.doubt(line, f"the tool's average is {said:g} GB/s, that of its results {mean:.6g} GB/s")


def _footer(report: _Report, average: _Average | None) -> list[tuple[str, str]]:
    footer = []
    if report.out_of_bounds is not None:
        okay = str(report.out_of_bounds.okay).lower() == "true"
        footer.append(("Out of bounds values", f"{report.out_of_bounds.count} {'OK' if okay else 'FAILED'}"))
    if average is not None:
        said = average.bandwidth if average.bandwidth is not None else average.bandwidith
        verdict = {"true": " OK", "false": " FAILED"}.get(str(average.okay).lower(), "")
        footer.append(("Avg bus bandwidth", f"{said}{verdict}"))
    return footer


def _statistic(report: _Report) -> str:
    averaging = "1"
    for option, value in zip(report.args, (*report.args, "")[1:], strict=True):
        if option in ("-a", "--average"):
            averaging = value
        elif option.startswith("--average="):
            averaging = option.partition("=")[2]
    cpu = any(half.cpu_time is not None for half in _halves(report))
    return f"mean over iterations, {_AVERAGING.get(averaging, 'over ranks')}" + (", CPU time of a call" if cpu else "")


def _halves(report: _Report) -> Iterator[_Half]:
    for result in report.results:
        yield from (half for half in (result.out_of_place, result.in_place) if half is not None)


def _device(device: _Device) -> ListedDevice:
    return ListedDevice(
        rank=device.rank,
        group=device.group,
        process_id=device.pid,
        host=device.hostname,
        device=device.device,
        bus_id=device.device_hex,
        model=device.device_info,
    )


def _root(said: str | int | None) -> int | None:
    """Return the root, which is written as it is printed: in quotation marks, padded."""
    text = str(said).strip() if said is not None else ""
    return int(text) if text.lstrip("-").isdecimal() and len(text) < 10 else None


def _value(said: _Number) -> float | None:
    if isinstance(said, str):
        return None
    return said if said is not None and math.isfinite(said) else None


def _printed(said: _Number, shift: int) -> PrintedNumber | None:
    value = _value(said)
    return printed(repr(value), shift) if value is not None else None


FORMAT = _ReportDocuments()


RCCL_TESTS = "rccl-tests"
_NAMES = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
    "Reduce": "reduce", "AlltoAll": "alltoall", "AllToAll": "alltoall", "AlltoAllv": "alltoallv", "Gather": "gather",
    "Scatter": "scatter", "SendRecv": "sendrecv", "HyperCube": "hypercube",
}  # fmt: skip
_LONGEST_BYTES = 65_536


class _Row(msgspec.Struct, rename={"wrong": "#wrong", "algbw": "algBw", "busbw": "busBw", "in_place": "inPlace"}):
    name: str
    size: Natural
    time: float | str
    algbw: float | str
    busbw: float | str
    type: str
    wrong: str | int | float | None = None
    in_place: int | bool | None = None
    redop: str | None = None
    ranks: Natural | None = None


class _RcclTestsTable:
    """The rows of one run; nothing tells one run from the next but the name of the collective and the ranks."""

    def __init__(self, line: TextLine, *, number: int, source: int) -> None:
        self._number = number
        self._source = source
        self._first_line = line.number
        self._run: tuple[str, int | None] | None = None
        self._check = Check()

    def take(self, line: TextLine) -> Taken | Sequence[Reading] | Unreadable:
        if not _RccTests.starts.match(line.text):
            return "foreign"
        if len(line.text) > _LONGEST_BYTES:
            return Unreadable("a row of more than 64 KiB")
        try:
            row = shaped(msgspec.json.decode(line.text), _Row, tool=RCCL_TESTS, line=line.number)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            return Unreadable(f"not JSON: {error}")
        except InputError as error:
            return Unreadable(error.cause)
        run = (row.name, row.ranks)
        if self._run is not None and run != self._run:
            return "foreign"
        self._run = run
        return [self._reading(line.number, row)]

    def finish(self, last_line: int) -> Table:
        self._check.compare(self._first_line, self._run[1] if self._run is not None else None)
        return Table(
            number=self._number,
            source=self._source,
            first_line=self._first_line,
            last_line=last_line,
            tool=RCCL_TESTS,
            program=self._run[0] if self._run is not None else None,
            format="json",
            statistic="mean over iterations and ranks",
            ranks=self._run[1] if self._run is not None else None,
            ranks_from_rates=self._check.ranks(),
            # Nothing ends these rows, so nothing can show that they are cut off.
            complete=self._run is not None,
            doubts=self._check.doubts(),
        )

    def _reading(self, line: int, row: _Row) -> Reading:
        what = _NAMES.get(row.name, row.name)
        time_s, algbw_Bps, busbw_Bps = (
            _rccl_printed(row.time, -6),
            _rccl_printed(row.algbw, 9),
            _rccl_printed(row.busbw, 9),
        )
        self._check.row(what, line, RowRates(row.size, time_s, algbw_Bps, busbw_Bps))
        wrong = _rccl_printed(str(row.wrong).strip().rstrip("*"), 0) if row.wrong is not None else None
        return Reading(
            table=self._number,
            line=line,
            what=what,
            size_bytes=row.size,
            dtype=DTYPES.get(row.type, row.type),
            op=row.redop,
            in_place=bool(row.in_place) if row.in_place is not None else None,
            ranks=row.ranks,
            time_s=time_s.value if time_s is not None else None,
            algbw_Bps=algbw_Bps.value if algbw_Bps is not None else None,
            busbw_Bps=busbw_Bps.value if busbw_Bps is not None else None,
            wrong=int(min(wrong.value, 2**62)) if wrong is not None else None,
        )


class _RccTests:
    tool = RCCL_TESTS
    passes_by = True
    starts = re.compile(r'^\s*\{(?=.{0,4000}"busBw")(?=.{0,4000}"algBw")(?=.{0,4000}"size")')

    def begin(self, line: TextLine, *, number: int, source: int) -> _RcclTestsTable:
        return _RcclTestsTable(line, number=number, source=source)


def _rccl_printed(said: float | str, shift: int) -> PrintedNumber | None:
    return printed(said.strip() if isinstance(said, str) else repr(said), shift)


RCCL_TESTS_FORMAT = _RccTests()
