"""Several training jobs over the size of the machine: logs, and tables of what was published."""

from pathlib import Path
from typing import Literal

from busbw.api.loading import read
from busbw.api.stored import find_stored
from busbw.api.training.reading import read_source
from busbw.base.errors import InputError
from busbw.base.value import Integer, Value
from busbw.formats.scaling_table import MOST_BYTES, is_table, read_table, results_in
from busbw.model.scaling import Axis, ScalingEstimate, ScalingReport
from busbw.model.train.reading import StepWork, TrainingLog
from busbw.model.train.trace import TraceShare
from busbw.store import sources
from busbw.store.files import is_file
from busbw.train.replayed_jobs import Replay, check_alike, replay_in, replayed_job, with_replays
from busbw.train.scaling import TOKENS_PER_S, ScaleQuestion, StepResult, of_table, train_scaling

_HEAD_BYTES = 65_536


class TrainScaleRequest(Value, kw_only=True, frozen=True):
    """What is asked for. None and () leave it to what was read."""

    # Logs as `busbw train read` reads them, tables (gpus, step_s, tokens_per_s, seqlen, gbs, ...), and stored runs in
    # which a step was replayed.
    sources: tuple[str, ...]
    kind: Literal["strong", "weak"] | None = None
    axis: Axis | None = None
    base: Integer | None = None
    against: str | None = None
    ignored: tuple[str, ...] = ()
    sequence_length: Integer | None = None
    global_batch: Integer | None = None
    # Published differences without times, as "EOS=-2.3" in percent.
    differences: tuple[str, ...] = ()
    # Stored runs in which the step of a log was replayed, which says nothing of its communication itself.
    replays: tuple[str, ...] = ()


def train_scale(asked: TrainScaleRequest) -> ScalingReport:
    """Return the figure of what is asked for. Raises InputError for what cannot be read or stand in one figure."""
    if not asked.sources:
        raise InputError("no job to draw", hint="busbw train scale LOG..., or a table: gpus, step_s")
    runs = {source: _replay(source) for source in asked.sources if _is_run(source)}
    check_alike(tuple(runs.values()))
    jobs: list[StepResult] = []
    for source in asked.sources:
        jobs += (replayed_job(runs[source]),) if source in runs else _results(source, asked)
    results = with_replays(jobs, [_replay(name) for name in asked.replays])
    question = ScaleQuestion(
        kind=asked.kind,
        axis=asked.axis,
        base=asked.base,
        against=asked.against,
        ignored=asked.ignored,
        sequence_length=asked.sequence_length,
        global_batch=asked.global_batch,
        differences=tuple(_named_difference(text) for text in asked.differences),
    )
    return train_scaling(results, question)


def _named_difference(text: str) -> tuple[str, str]:
    name, separator, number = text.partition("=")
    if not separator or not name.strip():
        raise InputError(f"{text!r} is not a difference", hint="--difference 'EOS=-2.3', in percent")
    return name.strip()[:80], number.strip().removesuffix("%").strip()


def _results(source: str, asked: TrainScaleRequest) -> tuple[StepResult, ...]:
    with sources.opened(source) as file:
        first = next(file.blocks(), b"")
    if source == sources.STDIN or not is_table(first[:_HEAD_BYTES].decode("utf-8", "replace")):
        if source == sources.STDIN:
            raise InputError("a job from standard input has no name in a figure", hint="write it to a file")
        return (job_of_log(source, asked),)
    if len(first) > MOST_BYTES:
        raise InputError(f"a table of more than {MOST_BYTES // 2**20} MiB", where=source)
    text = first.decode("utf-8", "replace")
    columns = results_in(text, source)
    times = [each for each in columns if each.kind == "time"]
    rates = [each for each in columns if each.kind == "rate" and each.unit == TOKENS_PER_S]
    if len(times) > 1 or len(rates) > 1 or not (times or rates):
        raise InputError(
            "a table of training jobs has one column of step times, one of throughput, or both",
            where=source,
            hint="such as gpus, step_s, tokens_per_s, seqlen, gbs",
        )
    found = [read_table(text, source, wanted=each.name) for each in (*times, *rates)]
    steps, throughputs = (found[0] if times else ()), (found[-1] if rates else ())
    return of_table(steps, throughputs)


def _is_run(source: str) -> bool:
    return source != sources.STDIN and not is_file(Path(source))


def _replay(name: str) -> Replay:
    where = find_stored(name)
    return replay_in(read(where), where.name)


def job_of_log(source: str, asked: TrainScaleRequest) -> StepResult:
    """Return the job that a log or a trace is of. Raises InputError where it has no steps, or does not say its GPUs."""
    given = StepWork(sequence_length=asked.sequence_length, global_batch=asked.global_batch)
    log = read_source(source, given)
    if isinstance(log, TraceShare):
        return _of_trace(log, given)
    if not isinstance(log, TrainingLog) or log.window is None:
        raise InputError(
            "neither a table nor a log with the times of steps",
            where=source,
            hint="busbw train read says what is in it",
        )
    if log.work.gpus is None:
        raise InputError(
            "on how many GPUs this job ran is not told",
            where=source,
            hint="write a table: gpus, step_s, seqlen, gbs; busbw train read has the numbers",
        )
    work = (("seqlen", log.work.sequence_length), ("gbs", log.work.global_batch))
    return StepResult(
        source=str(Path(source)),
        gpus=log.work.gpus,
        nodes=None,
        settings=tuple((name, str(value)) for name, value in work if value is not None),
        step_s=log.window.step_s,
        tokens_per_s=None,
        exposed=log.exposed,
    )


def _of_trace(trace: TraceShare, given: StepWork) -> StepResult:
    """Return the job that a trace is of. Raises InputError where it has no steps, or does not say its GPUs."""
    if not trace.has_steps or trace.gpus is None:
        raise InputError(
            "a trace without steps or without the number of GPUs",
            where=trace.source,
            hint="profile with a schedule, and call step() of the profiler in each step",
        )
    work = (("seqlen", given.sequence_length), ("gbs", given.global_batch))
    return StepResult(
        source=str(Path(trace.source)),
        gpus=trace.gpus,
        nodes=None,
        settings=tuple((name, str(value)) for name, value in work if value is not None),
        step_s=trace.step_s,
        tokens_per_s=None,
        exposed=ScalingEstimate(value=trace.exposed),
    )
