r"""Progress bars of tqdm, as the Trainer of Hugging Face and PyTorch Lightning draw them.

` 5%|▌ | 50/1000 [01:23<26:00, 1.64s/it]` (tqdm/std.py, `format_meter`). The rate is smoothed over past steps, so the
time of a step is taken from the elapsed time, which has whole seconds: over stretches that are long enough for that.
"""

import re
from array import array
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise
from operator import ne

from busbw.train.reading.lines import RETURN, rank_of, rank_span
from busbw.train.reading.rows import NO_RANK, Cell, StepRows, cells_at
from busbw.train.reading.step_forms import StepForm

MARKS = (b"it/s", b"s/it")
# Within one line, and one state of a bar. It begins with the bar itself: a search for a fixed text is the fastest.
_BAR = re.compile(
    rb"%\|(?<=\d%\|)[^|\n\x1e]{0,800}\|[ \t\r\f\v]{0,20}(\d{1,12})/(\d{1,12}) "
    rb"\[((?:\d{1,5}:)?\d{1,2}):(\d\d)<[^,\n\x1e]{1,20},"
    rb"[ \t\r\f\v]{0,12}(\d{1,12}(?:\.\d{1,12})?|\?)(s/it|it/s)"
)
_PERCENT = re.compile(rb"\d{1,3}\Z")
_EPOCH = re.compile(rb"Epoch (\d{1,9})\b")
# Bars of what is not training.
_OTHERS = re.compile(
    rb"(?i)valid|sanity|test|eval|predict|load|download|fetch|map|filter|token|generat|sav|shard|process|pack|rollout|compil|epochs"
)
_FORM = StepForm(
    program="progress bar (Hugging Face, Lightning)",
    mark=b"",
    patterns=(),
    unit="clock",
    words="its elapsed time over its steps",
    weight=0,
)
_MOST_STRETCHES = 60
_LEAST_STRETCH_S = 10.0
# Of the mean: the rate is smoothed over past steps.
_MOST_APART = 0.1
_MOST_BARS = 64
_MOST_EPOCHS = 10**6
_LONGEST_NAME_BYTES = 80
# In place of the total, where a bar of each epoch goes on.
_ALL_EPOCHS = -1
_COLUMNS = {
    "step": ("whole", 0),
    "total": ("whole", 0),
    "elapsed_s": ("clock", 0),
    "s/it": ("real", 0),
    "it/s": ("real", 0),
    "epoch": ("whole", -1),
    "rank": ("whole", NO_RANK),
}
# The kind of each column of states of bars, and what stands for it where a line does not say it.
TABLE = list(_COLUMNS.values())


@dataclass(slots=True)
class _Bar:
    states: list[tuple[int, int, int]] = field(default_factory=list)
    total: int = 0
    # What its steps are counted from, and the seconds a step that its first state says; 0.0: it says none.
    offset: int = 0
    rate_s: float = 0.0
    # Of the last state.
    step: int = -1
    elapsed_s: int = -1

    def take(self, offset: int, step: int, elapsed_s: int, line: int, rate_s: float) -> None:
        """Take a state; one that says what the last one said is left out."""
        number = offset + step
        if number == self.step and elapsed_s == self.elapsed_s:
            return
        if not self.states:
            self.offset, self.rate_s = offset, rate_s
        self.step, self.elapsed_s = number, elapsed_s
        self.states.append((number, elapsed_s, line))

    def take_more(self, states: list[tuple[int, int, int]]) -> None:
        """Take states of which the first was taken already."""
        steps = [step for step, _, _ in states]
        if all(map(ne, steps, steps[1:])):
            self.states += states[1:]
        else:
            self.states += [state for before, state in pairwise(states) if before[:2] != state[:2]]
        self.step, self.elapsed_s, _ = states[-1]


@dataclass(frozen=True, slots=True)
class _BarPlace:
    """What stands between two bars: how many lines end there, and whose bar begins behind it."""

    lines: int
    # Of a job, and the first bar of its line.
    counts: bool
    epoch: int | None
    rank: int


@dataclass(slots=True)
class ProgressBars:
    """The states of each bar: step, elapsed seconds, line. A bar of each epoch goes on where the last one ended."""

    found: dict[tuple[int, int], _Bar] = field(default_factory=dict)

    def look(self, block: bytes, first_line: int) -> None:
        """Take the bars of a block of whole lines, in the order of the file."""
        if not any(mark in block for mark in MARKS):
            return
        # The block begins behind a line's end. Most bars have the same text between them, and the same total.
        line, end, ahead = first_line - 1, 0, b"\n"
        places: dict[bytes, _BarPlace] = {}
        bars: dict[tuple[bytes, bytes], tuple[_Bar | None, int]] = {}
        for match in _BAR.finditer(block):
            start, after = match.span()
            between = ahead + block[end:start]
            end, ahead = after, b""
            step, total, minutes, second, rate, unit = match.groups()
            place = places.get(between) or places.setdefault(between, _place(between))
            line += place.lines
            if not place.counts:
                continue
            bar, offset = bars.get((between, total)) or bars.setdefault(
                (between, total), self._bar(place.epoch, place.rank, int(total))
            )
            if bar is not None:
                rate_s = _step_s(0.0 if rate == b"?" else float(rate), unit)
                bar.take(offset, int(step), _seconds(minutes) + int(second), line, rate_s)

    def rows_of(self, text: bytes) -> list[list[Cell]] | None:
        """Return where on a line the columns of `TABLE` stand, [] for no bar; None: look at it by itself."""
        match = _BAR.search(text)
        place = _place(b"\n" + text[: match.start()]) if match is not None else None
        if match is None or place is None or not place.counts:
            return []
        before = _PERCENT.sub(b"", text[: match.start()])
        name = _name_before(before)
        epoch = _EPOCH.search(name)
        start = len(before) - len(name)
        spans = {
            "step": match.span(1),
            "total": match.span(2),
            "elapsed_s": (match.start(3), match.end(4)),
            match[6].decode(): match.span(5) if match[5] != b"?" else None,
            "epoch": (start + epoch.start(1), start + epoch.end(1)) if epoch is not None else None,
            "rank": rank_span(text),
        }
        columns = list(_COLUMNS)
        cells = cells_at(text, [(columns.index(name), span) for name, span in spans.items() if span is not None])
        return None if cells is None else [cells]

    def take_columns(self, columns: list[bytes]) -> None:
        """Take states that were read into the columns of `TABLE`, and first the numbers of their lines."""
        kinds = ("q", *("d" if kind == "real" else "q" for kind, _ in TABLE))
        lines, steps, totals, elapsed_s, each_s, rates, epochs, ranks = (
            array(kind, column) for kind, column in zip(kinds, columns, strict=True)
        )
        at = 0
        keys = (totals, epochs, ranks)
        # Almost always one bar alone was drawn.
        is_one = all(key.count(key[0]) == len(key) for key in keys)
        groups = [(next(zip(*keys, strict=True)), lines)] if is_one else groupby(zip(*keys, strict=True))
        for (total, epoch, rank), rows in groups:
            bar, offset = self._bar(None if epoch < 0 else int(min(epoch, _MOST_EPOCHS)), int(rank), int(total))
            place = slice(at, at := at + sum(1 for _ in rows))
            if bar is not None:
                rate_s = each_s[place.start] or _step_s(rates[place.start], b"it/s")
                bar.take(offset, steps[place.start], elapsed_s[place.start], lines[place.start], rate_s)
                numbers = [offset + step for step in steps[place]] if offset else steps[place]
                bar.take_more(list(zip(numbers, elapsed_s[place], lines[place], strict=True)))

    def _bar(self, epoch: int | None, rank: int, total: int) -> tuple[_Bar | None, int]:
        """Return a bar and what its steps are counted from; None: there are too many bars already."""
        key = (total if epoch is None else _ALL_EPOCHS, rank)
        if key not in self.found and len(self.found) == _MOST_BARS:
            return None, 0
        bar = self.found.setdefault(key, _Bar())
        bar.total = max(bar.total, total)
        return bar, 0 if epoch is None else epoch * total

    def rows(self) -> StepRows | None:
        """Return the longest bar in stretches; None: there is no bar of a few seconds."""
        bars = [bar for bar in self.found.values() if _length_s(bar) >= _LEAST_STRETCH_S]
        bars = bars or [whole for bar in self.found.values() if (whole := _from_its_start(bar)) is not None]
        if not bars:
            return None
        bar = max(bars, key=_length_s)
        rows = StepRows(form=_FORM)
        least_s = max(_LEAST_STRETCH_S, _length_s(bar) / _MOST_STRETCHES)
        first = bar.states[0]
        for before, state in zip([bar.states[0], *bar.states], bar.states, strict=False):
            if state[0] < before[0] or state[1] < before[1]:
                first = state
            elif state[1] - first[1] >= least_s and state[0] > first[0]:
                step_s = (state[1] - first[1]) / (state[0] - first[0])
                rows.add(state[0], step_s, state[2], None, total=bar.total)
                # Both ends of a stretch are cut to whole seconds.
                share = 1 / (state[1] - first[1])
                rows.rounding_s = max(rows.rounding_s or 0.0, share * rows.values[-1])
                first = state
        return rows if len(rows.numbers) else None


def _place(between: bytes) -> _BarPlace:
    start = max(between.rfind(b"\n"), between.rfind(RETURN)) + 1
    text = between[start:]
    name = _name_before(_PERCENT.sub(b"", text))
    epoch = _EPOCH.search(name)
    rank = rank_of(text)
    return _BarPlace(
        lines=between.count(b"\n"),
        counts=start > 0 and _OTHERS.search(name) is None,
        epoch=None if epoch is None else min(int(epoch[1]), _MOST_EPOCHS),
        rank=NO_RANK if rank is None else rank,
    )


def _name_before(text: bytes) -> bytes:
    """Return what a bar is called: what stands before its percentage, behind other bars and brackets."""
    start = max(text.rfind(b"|"), text.rfind(b"["), len(text) - _LONGEST_NAME_BYTES - 1) + 1
    return text[start:]


def _length_s(bar: _Bar) -> int:
    return sum(
        state[1] - before[1]
        for before, state in zip(bar.states, bar.states[1:], strict=False)
        if state[1] > before[1] and state[0] >= before[0]
    )


def _from_its_start(bar: _Bar) -> _Bar | None:
    """Return a bar of hardly more than one state with the state it began with; None: its rate is not that of its steps.

    A bar of a job that was resumed begins at a step above zero with no time: its rate lies far off.
    """
    step, elapsed_s, line = bar.states[0]
    if step <= bar.offset or elapsed_s < _LEAST_STRETCH_S:
        return None
    mean_s = elapsed_s / (step - bar.offset)
    if abs(bar.rate_s - mean_s) > _MOST_APART * mean_s:
        return None
    return _Bar(states=[(bar.offset, 0, line), bar.states[0]], total=bar.total)


def _step_s(number: float, unit: bytes) -> float:
    return number if unit == b"s/it" or number == 0 else 1 / number


@lru_cache(maxsize=64)
def _seconds(minutes: bytes) -> int:
    """Return the seconds of `minutes` or `hours:minutes`."""
    hours, _, rest = minutes.rpartition(b":")
    return 3600 * int(hours or b"0") + 60 * int(rest)
