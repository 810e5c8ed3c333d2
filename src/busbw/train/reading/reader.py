"""A log of a training job, read block by block: its steps in whatever form, and the settings that it prints."""

import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from busbw.base.errors import InputError
from busbw.formats.arithmetic import printed
from busbw.model.scaling import ScalingEstimate
from busbw.train.reading.bars import MARKS as BAR_MARKS
from busbw.train.reading.bars import TABLE as BAR_TABLE
from busbw.train.reading.bars import ProgressBars
from busbw.train.reading.learned_lines import LearnedLines, LearnedTable
from busbw.train.reading.lines import LineBlocks, marked, rank_of
from busbw.train.reading.mllog import MARK as MLLOG_MARK
from busbw.train.reading.mllog import TABLES as MLLOG_TABLES
from busbw.train.reading.mllog import MlperfEvents
from busbw.train.reading.rows import MOST_STEPS, Cell, StepRows, cells_at
from busbw.train.reading.settings_lines import MARKS as SETTING_MARKS
from busbw.train.reading.settings_lines import PrintedSettings
from busbw.train.reading.step_forms import STEP_FORMS

_MEAN_MARK = b"train_runtime"
_MEAN = re.compile(
    rb"['\"]train_runtime['\"]: '?(?P<runtime>\d{1,12}(?:\.\d{1,12})?)'?,.{0,200}?"
    rb"['\"]train_steps_per_second['\"]: '?(?P<rate>\d{1,9}(?:\.\d{1,12})?)"
)
# Megatron-Bridge prints it above each line of a step, and so does NeMo built on it (training/utils/train_utils.py).
_BRIDGE_MARK = b"TFLOP/s/GPU"
_BRIDGE = re.compile(rb"GPU utilization: (\d{1,9}(?:\.\d{1,9})?) ?(?:MODEL_)?TFLOP/s/GPU")
# Fewer steps of a second program are a quotation, not a second job.
_LEAST_OF_A_JOB = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class PrintedMean:
    """What Hugging Face's Trainer prints at its end: seconds of the run, and steps a second, of the steps planned."""

    runtime_s: float
    # With what its digits leave open: since 2025 there are four of them.
    steps_per_s: ScalingEstimate
    line: int


@dataclass(slots=True)
class StepReader:
    """Reads a log in blocks. `rows` holds the steps afterwards, a table for each form that was found."""

    source: str
    lines: LineBlocks = field(default_factory=LineBlocks)
    settings: PrintedSettings = field(default_factory=PrintedSettings)
    bars: ProgressBars = field(default_factory=ProgressBars)
    events: MlperfEvents = field(default_factory=MlperfEvents)
    mean: PrintedMean | None = None
    # TFLOP/s of a GPU that stand on lines of their own.
    tflops: "array[float]" = field(default_factory=lambda: array("d"))
    learned: LearnedLines = field(init=False)
    _rows: tuple[StepRows, ...] = field(default_factory=lambda: tuple(StepRows(form=form) for form in STEP_FORMS))

    def __post_init__(self) -> None:
        self.learned = LearnedLines(
            self._tables(), json_mark=MLLOG_MARK, others=(*SETTING_MARKS, _MEAN_MARK), is_other=_says_once
        )

    def feed(self, block: bytes) -> None:
        """Take the next bytes. Raises InputError for more steps than any job has."""
        self._look(self.lines.feed(block))

    def finish(self) -> None:
        """Take the last line, where it has no end."""
        self._look(self.lines.finish())

    def _look(self, block: bytes) -> None:
        at, line = 0, self.lines.lines + 1
        while at < len(block):
            begin, at, line = self.learned.left(block, at, line)
            left = block[begin:at]
            self._look_at_each(left, line)
            self.learned.learn(left, line)
            line += left.count(b"\n")
        self.lines.lines = line - 1

    def _look_at_each(self, block: bytes, first_line: int) -> None:
        """Look at lines that are not known; they have a mark, and one that was known too is among them now and then."""
        if not block:
            return
        for rows in self._rows:
            if rows.form.mark not in block:
                continue
            line, counted = first_line, 0
            for start, text in marked(block, rows.form.mark):
                line += block.count(b"\n", counted, start)
                counted = start
                rows.take(text, line, rank_of(text))
            self._bounded(rows)
        if _BRIDGE_MARK in block and len(self.tflops) < MOST_STEPS:
            self.tflops.extend(map(float, _BRIDGE.findall(block)))
        self.settings.look(block, first_line)
        self.bars.look(block, first_line)
        self.events.look(block, first_line, self.settings)
        self._look_for_mean(block, first_line)

    def _look_for_mean(self, block: bytes, first_line: int) -> None:
        for start, text in marked(block, _MEAN_MARK):
            match = _MEAN.search(text)
            rate = printed(match["rate"].decode()) if match is not None else None
            if match is not None and rate is not None and rate.low > 0 and float(match["runtime"]) > 0:
                self.mean = PrintedMean(
                    runtime_s=float(match["runtime"]),
                    steps_per_s=ScalingEstimate(value=rate.value, low=rate.low, high=rate.high, basis="digits"),
                    line=first_line + block.count(b"\n", 0, start),
                )

    def _tables(self) -> Iterator[LearnedTable]:
        for rows in self._rows:
            yield LearnedTable(
                marks=(rows.form.mark,), columns=rows.table(), rows=rows.rows_of, take=partial(self._take_steps, rows)
            )
        yield LearnedTable(
            marks=(_BRIDGE_MARK,), columns=[("real", math.nan)], rows=_bridge_rows, take=self._take_tflops
        )
        yield LearnedTable(marks=BAR_MARKS, columns=BAR_TABLE, rows=self.bars.rows_of, take=self.bars.take_columns)
        for name in MLLOG_TABLES:
            yield LearnedTable(
                marks=(MLLOG_MARK,),
                columns=self.events.table(name),
                rows=partial(self.events.rows_of, name),
                take=partial(self.events.take_columns, name),
            )

    def _take_steps(self, rows: StepRows, columns: list[bytes]) -> None:
        rows.take_columns(columns)
        self._bounded(rows)

    def _take_tflops(self, columns: list[bytes]) -> None:
        if len(self.tflops) < MOST_STEPS:
            self.tflops.frombytes(columns[1])

    def _bounded(self, rows: StepRows) -> None:
        if len(rows.numbers) > MOST_STEPS:
            raise InputError(f"more than {MOST_STEPS} steps", where=self.source)

    def rows(self) -> StepRows | None:
        """Return the steps of the one program of this log; None: there is none.

        Raises InputError where two programs printed steps: two jobs are mixed.
        """
        batch = self.settings.work(self.source).global_batch
        # One moment alone tells no time.
        told = (rows for rows in self._rows if len(rows.numbers) > (rows.form.unit == "moment"))
        found = [*told, *self.events.rows(batch)]
        mains = [rows for rows in found if rows.form.weight >= 3 and len(rows.numbers) >= _LEAST_OF_A_JOB]
        names = list(dict.fromkeys(rows.form.program for rows in mains if rows.form.program != "MLPerf"))
        if len(names) > 1:
            places = ", ".join(f"{self.source}:{rows.lines[0]} ({rows.form.program})" for rows in mains)
            raise InputError(
                f"two jobs are mixed: steps of {' and of '.join(names)}",
                where=places,
                hint="give the log of each job by itself",
            )
        best = max(found, key=lambda rows: (rows.form.weight, len(rows.numbers)), default=None)
        if best is not None and len(self.tflops) == len(best.numbers) and all(map(math.isnan, best.tflops)):
            best.tflops = self.tflops
        return best if best is not None else self.bars.rows()

    def garbled(self) -> tuple[int, int]:
        """Return how many lines begin like a step and are none, and the first of them; (0, 0): there is none."""
        torn = [(each.garbled, each.first_garbled) for each in self._rows if each.garbled]
        if self.events.garbled:
            torn.append((self.events.garbled, self.events.first_garbled))
        return sum(count for count, _ in torn), min((line for _, line in torn), default=0)


def _bridge_rows(line: bytes) -> list[list[Cell]] | None:
    found = [cells_at(line, [(0, match.span(1))]) for match in _BRIDGE.finditer(line)]
    return None if None in found else [cells for cells in found if cells is not None]


def _says_once(line: bytes) -> bool:
    """Whether a line says a setting or a mean of the run: what is said once is not learned."""
    return PrintedSettings.says(line) or (_MEAN_MARK in line and _MEAN.search(line) is not None)
