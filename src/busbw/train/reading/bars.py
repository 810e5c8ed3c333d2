r"""Progress bars of tqdm, as the Trainer of Hugging Face and PyTorch Lightning draw them.

` 5%|▌ | 50/1000 [01:23<26:00, 1.64s/it]` (tqdm/std.py, `format_meter`). The rate is smoothed over past steps, so the
time of a step is taken from the elapsed time, which has whole seconds: over stretches that are long enough for that.
"""

import re
from dataclasses import dataclass, field

from busbw.train.reading.lines import marked, rank_of
from busbw.train.reading.rows import NO_RANK, StepRows
from busbw.train.reading.step_forms import StepForm

_MARKS = (b"it/s", b"s/it")
_BAR = re.compile(
    rb"\d{1,3}%\|[^|\n]{0,800}\|\s{0,20}(?P<step>\d{1,12})/(?P<total>\d{1,12}) "
    rb"\[(?P<elapsed>(?:\d{1,5}:)?\d{1,2}:\d\d)<[^,\n]{1,20},\s{0,12}(?:\d{1,12}(?:\.\d{1,12})?|\?)(?:s/it|it/s)"
)
_EPOCH = re.compile(rb"Epoch (\d{1,9})\b")
# Bars of what is not training.
_OTHERS = re.compile(
    rb"(?i)valid|sanity|test|eval|predict|load|download|fetch|map|filter|token|generat|sav|shard|process|pack"
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
_MOST_BARS = 64
_LONGEST_NAME_BYTES = 80


@dataclass(slots=True)
class _Bar:
    states: list[tuple[int, int, int]] = field(default_factory=list)
    total: int = 0


@dataclass(slots=True)
class ProgressBars:
    """The states of each bar: step, elapsed seconds, line. A bar of each epoch goes on where the last one ended."""

    found: dict[tuple[bytes, int], _Bar] = field(default_factory=dict)

    def look(self, block: bytes, first_line: int) -> None:
        """Take the bars of a block of whole lines."""
        for mark in _MARKS:
            line, counted = first_line, 0
            for start, text in marked(block, mark):
                line += block.count(b"\n", counted, start)
                counted = start
                match = _BAR.search(text)
                if match is None:
                    continue
                name = _name_before(text, match.start())
                if not _OTHERS.search(name):
                    self._take(match, name, line, rank_of(text))

    def _take(self, match: re.Match[bytes], name: bytes, line: int, rank: int | None) -> None:
        step, total = int(match["step"]), int(match["total"])
        epoch = _EPOCH.search(name)
        key = (b"epoch" if epoch is not None else b"", NO_RANK if rank is None else rank)
        key = (key[0] or b"%d" % total, key[1])
        if key not in self.found and len(self.found) == _MOST_BARS:
            return
        bar = self.found.setdefault(key, _Bar())
        bar.total = max(bar.total, total)
        offset = min(int(epoch[1]), 10**6) * total if epoch is not None else 0
        state = (offset + step, _seconds(match["elapsed"]), line)
        if not bar.states or bar.states[-1][:2] != state[:2]:
            bar.states.append(state)

    def rows(self) -> StepRows | None:
        """Return the longest bar in stretches; None: there is no bar of a few seconds."""
        bars = [bar for bar in self.found.values() if _length_s(bar) >= _LEAST_STRETCH_S]
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


def _name_before(text: bytes, end: int) -> bytes:
    """Return what a bar is called: what stands before its percentage, behind other bars and brackets."""
    start = max(text.rfind(b"|", 0, end), text.rfind(b"[", 0, end), end - _LONGEST_NAME_BYTES - 1) + 1
    return text[start:end]


def _length_s(bar: _Bar) -> int:
    return sum(
        state[1] - before[1]
        for before, state in zip(bar.states, bar.states[1:], strict=False)
        if state[1] > before[1] and state[0] >= before[0]
    )


def _seconds(text: bytes) -> int:
    seconds = 0
    for part in text.split(b":"):
        seconds = seconds * 60 + int(part)
    return seconds
