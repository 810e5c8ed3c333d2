"""Harnesses of what training jobs write: logs of each program, traces, records, and tables of several jobs."""

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path

from tests.train.releases import RELEASES, log_of

from busbw.base.errors import InputError
from busbw.formats.scaling_table import is_table, read_table, results_in
from busbw.model.train.reading import StepWork, TrainingLog
from busbw.model.train.trace import TrainReadReport
from busbw.show.text.scaling import scaling_text
from busbw.show.text.train_reading import train_reading_text
from busbw.train.job_steps import job_steps
from busbw.train.overlap import trace_share
from busbw.train.reading import documents, inspector, kineto
from busbw.train.reading.reader import StepReader
from busbw.train.scaling import ScaleQuestion, of_table, train_scaling
from busbw.train.step_times import training_log

_SAMPLES = Path(__file__).parents[1] / "train" / "samples"
_TABLE = b"gpus,dtype,step_s,tokens_per_s,seqlen,gbs\n8,FP8,17,246724,4096,1024\n16,FP8,8.39,499917,4096,1024\n"
_KERNEL = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7}
_TRACE = json.dumps(
    {
        "schemaVersion": 1,
        "distributedInfo": {"rank": 0, "world_size": 2},
        "traceEvents": [
            {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#3", "ts": 1.0, "dur": 9.0, "pid": 0},
            _KERNEL | {"name": "gemm", "ts": 1.5, "dur": 4.0, "args": {}},
            _KERNEL | {"name": "ncclDevKernel_AllReduce", "ts": 4.0, "dur": 3.0, "args": {"Group size": 2}},
        ],
    }
).encode()
_LEARNED = [log_of(release, 1010).encode() for release in ("Megatron-LM core", "torchtitan 2024", "MLPerf")]
_RECORD = json.dumps(
    {
        "header": {"id": "a", "rank": 0, "n_ranks": 2, "nnodes": 1},
        "metadata": {"hostname": "n"},
        "coll_perf": {"coll": "AllReduce", "coll_msg_size_bytes": 8, "coll_exec_time_us": 5},
    }
).encode()


def _shown(report: TrainReadReport) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        train_reading_text(report)


def _log(data: bytes) -> object:
    """Read a log in small blocks to its text. Raises AssertionError where lines are miscounted."""
    reader = StepReader(source="fuzz")
    for at in range(0, len(data), 97):
        reader.feed(data[at : at + 97])
    reader.finish()
    assert reader.lines.lines == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    rows = reader.rows()
    if rows is None:
        return None
    work = StepWork(sequence_length=8192, global_batch=reader.settings.work("fuzz").global_batch, gpus=8)
    steps = job_steps(rows, work, "fuzz")
    log: TrainingLog = training_log(steps, work, source="fuzz", program="x", garbled=reader.garbled())
    _shown(TrainReadReport(logs=(log,)))
    return log


def _learned_log(data: bytes) -> object:
    """Read a log after a thousand steps: then lines are learned. Raises AssertionError for miscounted lines."""
    reader = StepReader(source="fuzz")
    reader.feed(_LEARNED[len(data) % len(_LEARNED)])
    before = reader.lines.lines
    for _ in range(2):
        reader.feed(data + b"\n")
    assert reader.lines.lines == before + 2 * (data.count(b"\n") + 1)
    return reader.rows()


def _metrics(data: bytes) -> object:
    rows = documents.read_metrics_table(data.decode("utf-8", "replace"), "fuzz")
    steps = job_steps(rows, StepWork(), "fuzz")
    return training_log(steps, StepWork(), source="fuzz", program="x")


def _trace(data: bytes) -> object:
    share = trace_share(kineto.read_trace(data, "fuzz"), "fuzz", len(data))
    _shown(TrainReadReport(traces=(share,)))
    return share


def _records(data: bytes) -> object:
    log = inspector.read_records([data], "fuzz")
    _shown(TrainReadReport(records=(log,)))
    return log


def _table(data: bytes) -> object:
    text = data.decode("utf-8", "replace")
    if not is_table(text):
        raise InputError("no table", where="fuzz")
    columns = results_in(text, "fuzz")
    by_kind = {
        kind: [each.name for each in columns if each.kind == kind and each.unit in (None, "tokens/s")]
        for kind in ("time", "rate")
    }
    found = {kind: read_table(text, "fuzz", wanted=names[0]) for kind, names in by_kind.items() if names}
    report = train_scaling(of_table(found.get("time", ()), found.get("rate", ())), ScaleQuestion())
    with contextlib.redirect_stdout(io.StringIO()):
        scaling_text(report)
    return report


TRAINING_LOG_HARNESSES: dict[str, Callable[[bytes], object]] = {
    "training_log": _log,
    "learned_training_log": _learned_log,
    "trainer_state": lambda data: documents.read_trainer_state(data, "fuzz"),
    "metrics_table": _metrics,
    "kineto_trace": _trace,
    "inspector_records": _records,
    "training_table": _table,
}
# The beginning of each log: its settings and some steps.
_LOGS = sorted(_SAMPLES.glob("*.log"))
TRAINING_LOG_SEEDS: dict[str, tuple[bytes, ...]] = {
    "training_log": (
        *(path.read_bytes()[:1200] for path in _LOGS),
        (_SAMPLES / "nemo-dllogger.json").read_bytes()[:900],
        *(log_of(release, 3).encode() for release in RELEASES),
    ),
    "learned_training_log": tuple(log_of(release, 3).encode() for release in RELEASES),
    "trainer_state": ((_SAMPLES / "trainer_state.json").read_bytes(),),
    "metrics_table": ((_SAMPLES / "metrics.csv").read_bytes()[:800],),
    "kineto_trace": (_TRACE,),
    "inspector_records": (_RECORD + b"\n" + _RECORD + b"\n", _RECORD.replace(b'"a"', b'""')),
    "training_table": (_TABLE,),
}
