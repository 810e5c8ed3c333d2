"""Lines of MLPerf's training logs: `:::MLLOG {...}`, one event each (mlcommons/logging, mlperf_logging/mllog/mllog.py).

Steps are told, as far as a submission prints them, by `tracked_stats` with a `train_step_time`, or by the moments of
events that say how many samples or steps were done (`train_loss`, `block_stop`, `epoch_stop`, `eval_start`). Of the
number called `step` some count samples, so it counts for steps only beside a time of a step, or as `step_num`.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from busbw.train.reading.lines import marked, rank_of
from busbw.train.reading.rows import StepRows
from busbw.train.reading.settings_lines import PrintedSettings
from busbw.train.reading.step_forms import StepForm

_MARK = b":::MLLOG {"
_TIMES = StepForm(
    program="MLPerf", mark=_MARK, patterns=(), unit="s", words="train_step_time of tracked_stats", weight=3
)
_MOMENTS = StepForm(
    program="MLPerf", mark=_MARK, patterns=(), unit="moment", words="moments of events over the steps between", weight=3
)
_PROGRESS = ("train_loss", "block_stop", "epoch_stop", "eval_start", "tracked_stats")
_SETTINGS = {
    "global_batch_size": "global_batch",
    "max_sequence_length": "sequence_length",
    "seq_length": "sequence_length",
}
_MOST_STEP = 2**53
_LONGEST_EVENT_BYTES = 65_536


class _MlperfEvent(msgspec.Struct):
    key: str
    time_ms: float = 0.0
    value: Any = None
    metadata: Any = None


_EVENTS = msgspec.json.Decoder(_MlperfEvent)


@dataclass(slots=True)
class MlperfEvents:
    """What the events of a log say of steps."""

    times: StepRows = field(default_factory=lambda: StepRows(form=_TIMES))
    # Numbers are samples until the batch is known.
    samples: StepRows = field(default_factory=lambda: StepRows(form=_MOMENTS))
    steps: StepRows = field(default_factory=lambda: StepRows(form=_MOMENTS))
    benchmark: str | None = None
    runs: int = 0
    events: int = 0
    garbled: int = 0
    first_garbled: int = 0

    def look(self, block: bytes, first_line: int, settings: PrintedSettings) -> None:
        """Take the events of a block of whole lines."""
        if self._look_at_all(block, first_line, settings):
            return
        line, counted = first_line, 0
        for start, text in marked(block, _MARK, most=_LONGEST_EVENT_BYTES):
            line += block.count(b"\n", counted, start)
            counted = start
            at = text.index(_MARK) + len(_MARK) - 1
            try:
                event = msgspec.json.decode(text[at:].strip(), type=_MlperfEvent)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self.garbled += 1
                self.first_garbled = self.first_garbled or line
                continue
            self.events += 1
            self._take(event, line, rank_of(text), settings)

    def _look_at_all(self, block: bytes, first_line: int, settings: PrintedSettings) -> bool:
        """Take a block of nothing but events, all at once; False: it is no such block."""
        if not block.startswith(_MARK) or block.count(b"\n" + _MARK) + 1 != block.count(b"\n"):
            return False
        try:
            events = _EVENTS.decode_lines(block.replace(_MARK, b"{"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        self.events += len(events)
        for line, event in enumerate(events, start=first_line):
            self._take(event, line, None, settings)
        return True

    def _take(self, event: _MlperfEvent, line: int, rank: int | None, settings: PrintedSettings) -> None:
        if event.key in _SETTINGS and (number := _number(event.value)) is not None:
            settings.add(_SETTINGS[event.key], number, line)
        elif event.key == "submission_benchmark" and isinstance(event.value, str):
            self.benchmark = event.value[:80]
        elif event.key == "run_start":
            self.runs += 1
        elif event.key in _PROGRESS:
            self._progress(event, line, rank)

    def _progress(self, event: _MlperfEvent, line: int, rank: int | None) -> None:
        said = event.metadata if isinstance(event.metadata, dict) else {}
        value = event.value if isinstance(event.value, dict) else {}
        step = _number(said.get("step_num", said.get("step")))
        time_s = value.get("train_step_time")
        if isinstance(time_s, int | float) and step is not None:
            self.times.add(step, float(time_s), line, rank)
        # A throughput is said at the same moment as the loss: the loss alone counts the steps.
        if event.key == "tracked_stats":
            return
        # Blocks of validation count steps of their own, and an event without a moment tells no time.
        if event.value == "validation_step" or not event.time_ms > 0:
            return
        samples = _number(said.get("samples_count"))
        rows, number = (self.samples, samples) if samples is not None else (self.steps, _number(said.get("step_num")))
        if number is not None and (not rows.numbers or rows.numbers[-1] != number):
            rows.add(number, 0.0, line, rank, stamp_s=event.time_ms / 1e3)

    def rows(self, batch: int | None) -> tuple[StepRows, ...]:
        """Return the steps, those with times first."""
        found = [rows for rows in (self.times, self.steps) if rows.numbers]
        if self.samples.numbers and batch is not None:
            in_steps = StepRows(form=_MOMENTS)
            for number, stamp, line, rank in zip(
                self.samples.numbers, self.samples.stamps, self.samples.lines, self.samples.ranks, strict=True
            ):
                in_steps.add(number // batch, 0.0, line, rank, stamp_s=stamp)
            found.append(in_steps)
        for rows in found[:1]:
            rows.garbled, rows.first_garbled = self.garbled, self.first_garbled
            rows.decimals = 6
        return tuple(found[:1])


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST_STEP:
        return None
    return int(value)
