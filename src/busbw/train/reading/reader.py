"""A log of a training job, read block by block: its steps in whatever form, and the settings that it prints."""

import math
import re
from array import array
from dataclasses import dataclass, field

from busbw.base.errors import InputError
from busbw.formats.arithmetic import printed
from busbw.model.scaling import ScalingEstimate
from busbw.train.reading.bars import ProgressBars
from busbw.train.reading.lines import LineBlocks, marked, rank_of
from busbw.train.reading.mllog import MlperfEvents
from busbw.train.reading.rows import MOST_STEPS, StepRows
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
    # The form that every line of the last block had; None: it had others.
    _dense: StepRows | None = None
    _rows: tuple[StepRows, ...] = field(default_factory=lambda: tuple(StepRows(form=form) for form in STEP_FORMS))

    def feed(self, block: bytes) -> None:
        """Take the next bytes. Raises InputError for more steps than any job has."""
        self._look(self.lines.feed(block))

    def finish(self) -> None:
        """Take the last line, where it has no end."""
        self._look(self.lines.finish())

    def _look(self, block: bytes) -> None:
        if not block:
            return
        first_line = self.lines.lines + 1
        if self._dense is not None and self._dense.take_block(block, first_line):
            # Each of its lines is a step: there is nothing else in it.
            self._bounded(self._dense)
            self.lines.lines += block.count(b"\n")
            return
        self._dense = None
        for rows in self._rows:
            if rows.form.mark not in block:
                continue
            if rows.take_block(block, first_line):
                self._dense = rows
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
        self.lines.lines += block.count(b"\n")

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
