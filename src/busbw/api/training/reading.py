"""What logs and traces of training jobs say: each file read by what it holds."""

from collections.abc import Iterator
from itertools import chain

from msgspec.structs import replace

from busbw.api.training.planning import named_machine
from busbw.api.training.workloads import workload_of
from busbw.base.errors import InputError
from busbw.base.units import format_time
from busbw.base.value import Integer, Value
from busbw.model.scaling import ScalingEstimate
from busbw.model.train.reading import StepColumns, StepThroughput, StepWork, TrainingLog
from busbw.model.train.trace import InspectorLog, TraceShare, TrainReadReport
from busbw.model.train.workload import DataType
from busbw.store import sources
from busbw.train.job_steps import job_steps
from busbw.train.overlap import trace_share
from busbw.train.planning import job_of
from busbw.train.reading import documents, inspector, kineto
from busbw.train.reading.reader import PrintedMean, StepReader
from busbw.train.reading.rows import StepRows
from busbw.train.stated import StatedJob, network_share, stated_work
from busbw.train.step_times import training_log

_HEAD_BYTES = 65_536
_KNOWN = "Megatron-LM, NeMo, DeepSpeed, torchtitan, MaxText, Hugging Face, Lightning or MLPerf"


class TrainReadRequest(Value, kw_only=True, frozen=True):
    """What is asked for. What is given here goes before what a log prints; None leaves it to the log."""

    # Files, or "-" for standard input.
    sources: tuple[str, ...]
    sequence_length: Integer | None = None
    global_batch: Integer | None = None
    gpus: Integer | None = None
    flops_per_step: float | None = None
    peak_tflops: float | None = None
    # The workload that the jobs ran, by name or file, in which data type, and the platform they ran on.
    workload: str | None = None
    dtype: DataType | None = None
    platform: str | None = None

    def work(self) -> StepWork:
        """Return the work that was given. Raises InputError for what is not above zero."""
        options = (
            ("sequence_length", "--sequence", self.sequence_length),
            ("global_batch", "--batch", self.global_batch),
            ("gpus", "--gpus", self.gpus),
            ("flops_per_step", "--flops-per-step", self.flops_per_step),
            ("peak_flops", "--peak-tflops", self.peak_tflops),
        )
        for _, option, value in options:
            if value is not None and not 0 < value < 1e30:
                raise InputError(
                    f"{option} {value:g} is not above zero", hint=f"leave out {option} where it is unknown"
                )
        return StepWork(
            sequence_length=self.sequence_length,
            global_batch=self.global_batch,
            gpus=self.gpus,
            flops_per_step=self.flops_per_step,
            peak_flops=self.peak_tflops * 1e12 if self.peak_tflops is not None else None,
            sources=tuple((name, option) for name, option, value in options if value is not None),
        )


def train_read(asked: TrainReadRequest) -> TrainReadReport:
    """Return what each file says. Raises InputError for one that cannot be read or holds nothing of a training job."""
    if not asked.sources:
        raise InputError("nothing to read", hint="busbw train read LOG..., a trace, or - for standard input")
    given, stated = asked.work(), stated_job(asked.workload, asked.dtype, asked.platform)
    found = [read_source(source, given, stated) for source in asked.sources]
    return TrainReadReport(
        logs=tuple(each for each in found if isinstance(each, TrainingLog)),
        traces=tuple(each for each in found if isinstance(each, TraceShare)),
        records=tuple(each for each in found if isinstance(each, InspectorLog)),
    )


def stated_job(workload: str | None, dtype: DataType | None, platform: str | None) -> StatedJob | None:
    """Return what is said of a job beside its log; None: nothing. Raises InputError for what there is not."""
    if workload is None:
        if dtype is not None or platform is not None:
            raise InputError("a data type or a platform without a workload", hint="--workload FILE.toml says what ran")
        return None
    found = workload_of(workload)
    chosen = job_of(found, None, dtype).dtype
    machine = named_machine(platform) if platform is not None else None
    return StatedJob(workload=found, name=workload, dtype=chosen, machine=machine)


def read_source(
    source: str, given: StepWork, stated: StatedJob | None = None
) -> TrainingLog | TraceShare | InspectorLog:
    """Return what one file says, with what is said of its job. Raises InputError."""
    found = _read(source, given, stated)
    if stated is None or not isinstance(found, TrainingLog):
        return found
    return replace(found, network=network_share(found, stated))


def _read(source: str, given: StepWork, stated: StatedJob | None) -> TrainingLog | TraceShare | InspectorLog:
    with sources.opened(source) as file:
        blocks = file.blocks()
        first = next(blocks, b"")
        head = first[:_HEAD_BYTES]
        if kineto.is_trace(head):
            content = _whole(first, blocks, source, kineto.MOST_BYTES)
            _check(file, source)
            return trace_share(kineto.read_trace(content, source), source, len(content))
        if inspector.is_record(head):
            return inspector.read_records(chain((first,), blocks), source)
        if documents.is_trainer_state(head):
            content = _whole(first, blocks, source, documents.MOST_BYTES)
            _check(file, source)
            mean = documents.read_trainer_state(content, source)
            return _of_mean(mean, _filled(given, stated), source, len(content))
        if documents.is_metrics_table(head):
            text = _whole(first, blocks, source, documents.MOST_BYTES)
            rows = documents.read_metrics_table(text.decode("utf-8", "replace"), source)
            log = _of_rows(rows, _filled(given, stated), source, (rows.garbled, rows.first_garbled))
            return replace(log, bytes_read=len(text), lines_read=text.count(b"\n"))
        log = _of_log(chain((first,), blocks), given, source, stated)
        problem = (f"the file was not read to its end: {file.problem}",) if file.problem is not None else ()
        return replace(log, notes=(*log.notes, *problem)) if problem else log


def _check(file: sources.OpenSource, source: str) -> None:
    if file.problem is not None:
        raise InputError(file.problem, where=source)


def _whole(first: bytes, blocks: Iterator[bytes], source: str, most_bytes: int) -> bytes:
    parts, size_bytes = [first], len(first)
    for block in blocks:
        parts.append(block)
        size_bytes += len(block)
        if size_bytes > most_bytes:
            raise InputError(f"more than {most_bytes // 2**20} MiB, which is read as a whole", where=source)
    return b"".join(parts)


def _of_log(blocks: Iterator[bytes], given: StepWork, source: str, stated: StatedJob | None) -> TrainingLog:
    reader = StepReader(source=source)
    for block in blocks:
        reader.feed(block)
    reader.finish()
    work = _filled(_joined(given, reader.settings.work(source)), stated)
    rows = reader.rows()
    notes = [f"the log prints more than one {words}: the last counts" for words in reader.settings.contradictions()]
    if reader.lines.cut:
        notes.append("a line of more than 64 MiB was read in part")
    if rows is not None:
        log = _of_rows(rows, work, source, reader.garbled(), notes)
    elif reader.mean is not None:
        log = _of_mean(_mean_of(reader.mean), work, source, 0, reader.mean.steps_per_s)
    else:
        raise _nothing(reader, source)
    return replace(log, bytes_read=reader.lines.bytes, lines_read=reader.lines.lines)


def _nothing(reader: StepReader, source: str) -> InputError:
    """Return why a log has no step."""
    torn, line = reader.garbled()
    if torn:
        return InputError(
            "lines that begin as a step does, and none that can be read",
            where=f"{source}:{line}",
            hint="the log may be cut off, or mixed from several ranks: srun --output=log-%t gives each its own",
        )
    if reader.events.samples.numbers:
        return InputError(
            "events of MLPerf count samples, and the global batch is not told",
            where=source,
            hint="give it: --batch N",
        )
    if reader.events.without_moments:
        return InputError(
            f"events of MLPerf tell no time: {reader.events.without_moments} that count steps have no time_ms",
            where=f"{source}:{reader.events.first_without_moment}",
            hint="give the log as the program wrote it: mlperf_logging prints time_ms in every event",
        )
    return InputError(
        f"no step of {_KNOWN}",
        where=source,
        hint="other programs: busbw scaling --pattern 'step time: {s_per_step} s' --name 'run-{gpus}'",
    )


def _filled(work: StepWork, stated: StatedJob | None) -> StepWork:
    return work if stated is None else stated_work(work, stated)


def _joined(given: StepWork, printed: StepWork) -> StepWork:
    """Return what was given, and of the rest what the log prints."""
    told = {name for name, _ in given.sources}
    tokens = given.tokens_per_step if given.tokens_per_step is not None else printed.tokens_per_step
    return StepWork(
        sequence_length=given.sequence_length or printed.sequence_length,
        global_batch=given.global_batch or printed.global_batch,
        tokens_per_step=tokens,
        gpus=given.gpus or printed.gpus,
        flops_per_step=given.flops_per_step or printed.flops_per_step,
        peak_flops=given.peak_flops or printed.peak_flops,
        sources=(*given.sources, *(each for each in printed.sources if each[0] not in told)),
    )


def _of_rows(
    rows: StepRows, work: StepWork, source: str, garbled: tuple[int, int], notes: list[str] | None = None
) -> TrainingLog:
    steps = job_steps(rows, work, source)
    return training_log(
        steps, work, source=source, program=rows.form.program, garbled=garbled, notes=tuple(notes or ())
    )


def _mean_of(said: PrintedMean) -> documents.RunMean:
    rate = said.steps_per_s
    steps = max(1, round(said.runtime_s * rate.value))
    return documents.RunMean(runtime_s=said.runtime_s, steps=steps, flops_per_step=None, losses=0)


def _of_mean(
    mean: documents.RunMean, work: StepWork, source: str, size_bytes: int, rate: ScalingEstimate | None = None
) -> TrainingLog:
    """Return a log that has one time for the whole run. `rate`: steps a second, where the steps are not told."""
    mean_s = ScalingEstimate(value=mean.runtime_s / mean.steps)
    if rate is not None and rate.low and rate.high and mean.runtime_s * (rate.high - rate.low) >= 1:
        # Its digits leave more than one number of steps.
        mean_s = ScalingEstimate(value=1 / rate.value, low=1 / rate.high, high=1 / rate.low, basis="digits")
    step_s = mean_s.value
    if work.flops_per_step is None and mean.flops_per_step is not None:
        work = replace(
            work,
            flops_per_step=mean.flops_per_step,
            sources=(*work.sources, ("flops_per_step", f"{source}: total_flos")),
        )
    interval = (
        f" ({format_time(mean_s.low)} to {format_time(mean_s.high)} by its digits)"
        if mean_s.low and mean_s.high
        else ""
    )
    words = f"{format_time(step_s)} a step{interval} on average over the run of {format_time(mean.runtime_s)}"
    return TrainingLog(
        source=source,
        program="Hugging Face Trainer",
        basis="mean",
        basis_words="train_runtime over the steps of the run",
        planned_steps=mean.steps if mean_s.low is None else None,
        columns=StepColumns(numbers=(), times_s=(), lines=()),
        work=work,
        mean_step_s=mean_s,
        throughput=StepThroughput(
            missing=("steady steps and throughput, from an average with pauses in it: give the log of the job",)
        ),
        bytes_read=size_bytes,
        outcome="cannot_tell",
        sentence=f"{words}, start and pauses with it",
        notes=("a job that was resumed counts all steps over the time of its last start",),
    )
