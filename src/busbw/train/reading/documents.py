"""Whole files of training programs: the state of Hugging Face's Trainer, and metrics.csv of PyTorch Lightning.

`trainer_state.json` (transformers/trainer_callback.py, `TrainerState`) has a history of losses without times; only
its last entry has a time, of the last start of the job. `metrics.csv` (lightning/pytorch/loggers/csv_logs.py) has the
columns that a job logs: `train_step_timing in s` (NeMo), `step_time`, or those of Lightning's ThroughputMonitor
(lightning/fabric/utilities/throughput.py), elapsed `time` beside `batches`.
"""

import csv
import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from busbw.base.errors import InputError
from busbw.train.reading.rows import MOST_STEPS, StepRows
from busbw.train.reading.step_forms import StepForm

MOST_BYTES = 256 * 2**20
_COLUMNS = ("train_step_timing in s", "step_time", "step_time_s", "iteration_time", "iter_time", "batch_time")
_STEPS = ("global_step", "trainer/global_step", "step")
_LIGHTNING = "PyTorch Lightning"
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{0,24})?(?:[eE][-+]?\d{1,3})?", re.ASCII)
_LONGEST_LINE = 65_536


class TrainerState(msgspec.Struct):
    """What counts of a trainer_state.json."""

    log_history: list[dict[str, Any]]
    global_step: int = 0
    total_flos: float = 0.0


class RunMean(msgspec.Struct, frozen=True):
    """The one time there is of a whole run, and the steps of it."""

    runtime_s: float
    steps: int
    flops_per_step: float | None
    losses: int


def is_trainer_state(head: bytes) -> bool:
    """Whether a file begins like the state of Hugging Face's Trainer: an object with one of its first keys."""
    return head.lstrip()[:1] == b"{" and any(
        key in head for key in (b'"best_metric"', b'"best_model_checkpoint"', b'"log_history"', b'"best_global_step"')
    )


def read_trainer_state(content: bytes, where: str) -> RunMean:
    """Return the mean time of a step. Raises InputError where the file is damaged, or has no time."""
    try:
        state = msgspec.json.decode(content, type=TrainerState)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"a trainer_state.json that cannot be read: {error}", where=where) from error
    entry = next((each for each in reversed(state.log_history) if "train_runtime" in each), None)
    runtime_s = entry["train_runtime"] if entry is not None else None
    if not isinstance(runtime_s, int | float) or not 0 < runtime_s < 1e10 or not 0 < state.global_step < 2**53:
        raise InputError(
            "no time in it: the Trainer writes train_runtime when the job ends",
            where=where,
            hint="give the log of the job instead: its progress bar has times",
        )
    has_flops = math.isfinite(state.total_flos) and state.total_flos > 0
    return RunMean(
        runtime_s=float(runtime_s),
        steps=state.global_step,
        flops_per_step=state.total_flos / state.global_step if has_flops else None,
        losses=sum("loss" in each for each in state.log_history),
    )


def is_metrics_table(head: bytes) -> bool:
    """Whether a file begins with the names of columns of Lightning's CSV logger."""
    first = head.split(b"\n", 1)[0].decode("utf-8", "replace")
    names = [name.strip().strip('"') for name in first.split(",")]
    return len(names) > 1 and any(name in names for name in _STEPS) and _columns(names) is not None


def _columns(names: Sequence[str]) -> tuple[str, str, bool] | None:
    """Return the columns of the step and of the time, and whether that time runs on; None: there is none."""
    step = next((name for name in _STEPS if name in names), None)
    direct = next((name for name in names if name in _COLUMNS or name.removeprefix("train/") in _COLUMNS), None)
    if direct is not None and step is not None:
        return step, direct, False
    for separator in ("/", "|"):
        clock, batches = f"train{separator}time", f"train{separator}batches"
        if clock in names and batches in names:
            return batches, clock, True
    return None


def read_metrics_table(text: str, where: str) -> StepRows:
    """Return the steps of a metrics.csv. Rows without a time are of something else. Raises InputError."""
    lines = text.splitlines()
    if any(len(line) > _LONGEST_LINE for line in lines):
        raise InputError(f"a line of more than {_LONGEST_LINE} characters", where=where)
    table = csv.reader(lines, strict=False)
    names = [name.strip() for name in next(table, [])]
    columns = _columns(names)
    if columns is None:
        raise InputError("no column with the time of a step", where=where, hint="such as step_time")
    step_name, time_name, runs_on = columns
    step_at, time_at = names.index(step_name), names.index(time_name)
    form = StepForm(
        program=_LIGHTNING,
        mark=b"",
        patterns=(),
        unit="moment" if runs_on else "s",
        words=f"the column {time_name}" + (f" from row to row over {step_name}" if runs_on else ""),
    )
    rows = StepRows(form=form)
    for number, cells in enumerate(table, start=2):
        if len(cells) != len(names):
            rows.garbled += 1
            rows.first_garbled = rows.first_garbled or number
            continue
        step, time_s = (cells[at].strip() for at in (step_at, time_at))
        if not step or not time_s:
            continue
        if not _NUMBER.fullmatch(step) or not _NUMBER.fullmatch(time_s.removeprefix("-")) or float(step) > 2**53:
            rows.garbled += 1
            rows.first_garbled = rows.first_garbled or number
            continue
        value = float(time_s)
        rows.add(int(float(step)), value, number, None, stamp_s=value if runs_on else math.nan)
        rows.decimals = min(rows.decimals, len(time_s.partition(".")[2]))
        if len(rows.numbers) > MOST_STEPS:
            raise InputError(f"more than {MOST_STEPS} steps", where=where)
    return rows
