"""Lines of MLPerf's training logs: `:::MLLOG {...}`, one event each (mlcommons/logging, mlperf_logging/mllog/mllog.py).

Steps are told, as far as a submission prints them, by `tracked_stats` with a `train_step_time`, or by the moments of
events that say how many samples or steps were done (`train_loss`, `block_stop`, `epoch_stop`, `eval_start`). Of the
number called `step` some count samples, so it counts for steps only beside a time of a step, or as `step_num`.
"""

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from busbw.train.reading.lines import marked, rank_of, rank_span
from busbw.train.reading.rows import NO_RANK, Cell, StepRows, cells_at
from busbw.train.reading.settings_lines import PrintedSettings
from busbw.train.reading.step_forms import StepForm

MARK = b":::MLLOG {"
_TIMES = StepForm(
    program="MLPerf", mark=MARK, patterns=(), unit="s", words="train_step_time of tracked_stats", weight=3
)
_MOMENTS = StepForm(
    program="MLPerf", mark=MARK, patterns=(), unit="moment", words="moments of events over the steps between", weight=3
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
# Tables of lines that differ in digits alone. Numbers of samples and steps have a moment, a time of a step a value.
TABLES = ("events", "times", "samples", "steps")
_COLUMNS = {"number": ("whole", 0), "value": ("real", 0), "time_ms": ("real", 0), "rank": ("whole", NO_RANK)}
_CELLS = {
    name: re.compile(rb'"%b"\s{0,4}:\s{0,4}(%b)(?=[,}\s])' % (name.encode(), number))
    for names, number in (
        (("step_num", "step", "samples_count"), rb"\d{1,15}"),
        (("time_ms", "train_step_time"), rb"-?\d{1,15}(?:\.\d{1,24})?(?:[eE][-+]?\d{1,2})?"),
    )
    for name in names
}
# What may be another kind of number, or none, with other digits.
_NOT_PLAIN = re.compile(rb"\\u|(?<![.\d])\d{16}|\d[eE][-+]?\d{3}")


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
    # Events that count steps or samples and do not say when.
    without_moments: int = 0
    first_without_moment: int = 0

    def look(self, block: bytes, first_line: int, settings: PrintedSettings) -> None:
        """Take the events of a block of whole lines."""
        line, counted = first_line, 0
        for start, text in marked(block, MARK, most=_LONGEST_EVENT_BYTES):
            line += block.count(b"\n", counted, start)
            counted = start
            at = text.index(MARK) + len(MARK) - 1
            try:
                event = _EVENTS.decode(text[at:].strip())
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self.garbled += 1
                self.first_garbled = self.first_garbled or line
                continue
            self.events += 1
            self._take(event, line, rank_of(text), settings)

    def rows_of(self, table: str, text: bytes) -> list[list[Cell]] | None:
        """Return where in a line the columns of a table stand; None: it has to be looked at by itself."""
        rows = self._rows_of(text)
        return None if rows is None else [rows[table]] if table in rows else []

    def _rows_of(self, text: bytes) -> dict[str, list[Cell]] | None:
        if text.count(MARK) != 1 or _NOT_PLAIN.search(text):
            return None
        try:
            event = _EVENTS.decode(text[text.index(MARK) + len(MARK) - 1 :].strip())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if event.key in _SETTINGS or event.key in ("submission_benchmark", "run_start"):
            return None
        if event.key in _PROGRESS and event.key != "tracked_stats" and not event.time_ms > 0:
            return None
        finds = {name: list(pattern.finditer(text)) for name, pattern in _CELLS.items()}
        spans = {name: found[0].span(1) for name, found in finds.items() if len(found) == 1}
        rank = [(3, span)] if (span := rank_span(text)) is not None else []
        rows: dict[str, list[Cell]] = {"events": []}
        for table, cells in self._said_by(event).items():
            at = [(column, spans[name]) for column, name in cells if name in spans]
            found = cells_at(text, [*at, *rank]) if len(at) == len(cells) else None
            if found is None:
                return None
            rows[table] = found
        return rows

    def _said_by(self, event: _MlperfEvent) -> dict[str, list[tuple[int, str]]]:
        """Return the tables that an event has a row of, with the name of each column."""
        probe = MlperfEvents()
        probe._take(event, 1, None, PrintedSettings())
        said = event.metadata if isinstance(event.metadata, dict) else {}
        step = (0, "step_num" if "step_num" in said else "step")
        moment = (2, "time_ms")
        return {
            name: cells
            for name, rows, cells in (
                ("times", probe.times, [step, (1, "train_step_time")]),
                ("samples", probe.samples, [(0, "samples_count"), moment]),
                ("steps", probe.steps, [step, moment]),
            )
            if rows.numbers
        }

    @staticmethod
    def table(name: str) -> Sequence[tuple[str, float]]:
        """Return the kind of each column of a table, and what stands for it where a line does not say it."""
        return [] if name == "events" else list(_COLUMNS.values())

    def take_columns(self, table: str, columns: list[bytes]) -> None:
        """Take what was read into a table."""
        lines = array("q", columns[0])
        if table == "events":
            self.events += len(lines)
            return
        numbers, values, moments, ranks = (
            array(kind, column) for kind, column in zip("qddq", columns[1:], strict=True)
        )
        rows = {"times": self.times, "samples": self.samples, "steps": self.steps}[table]
        for number, value, time_ms, line, rank in zip(numbers, values, moments, lines, ranks, strict=True):
            if table == "times":
                rows.add(number, value, line, rank)
            elif time_ms > 0 and (not rows.numbers or rows.numbers[-1] != number):
                rows.add(number, 0.0, line, rank, stamp_s=time_ms / 1e3)

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
        if event.value == "validation_step":
            return
        samples = _number(said.get("samples_count"))
        rows, number = (self.samples, samples) if samples is not None else (self.steps, _number(said.get("step_num")))
        if number is not None and not event.time_ms > 0:
            self.without_moments += 1
            self.first_without_moment = self.first_without_moment or line
        elif number is not None and (not rows.numbers or rows.numbers[-1] != number):
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
