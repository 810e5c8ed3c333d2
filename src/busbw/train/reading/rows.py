"""Steps as they were read, in columns: a log of a day has half a million."""

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from busbw.train.reading.lines import rank_span
from busbw.train.reading.step_forms import ZEROS, StepForm, decimals, stamp_of, stamp_span

NO_RANK = -1
_WHOLE = ("totals", "batches", "consumed")
# After so many values their digits are known.
_MOST_FOR_DIGITS = 1000
# A file holds no more steps that anybody looks at.
MOST_STEPS = 5_000_000


_NO_NUMBER = float("nan")
# What the core reads as it is read here; "nan", "+5" and whole numbers beyond 64 bits are left.
_PLAIN = re.compile(
    rb"-?\d{1,18}(?:,\d{1,18})*(?:\.\d{0,24})?(?:[eE][-+]?\d{1,3})?"
    rb"|(?:\d{1,5}:)?\d{1,2}:\d\d|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d{1,6}"
)
# A column, and where in a line it begins and ends.
Cell = tuple[int, int, int]


@dataclass(slots=True)
class StepRows:
    """The steps of one form. Each column has a place for each line, once `complete` was called.

    What was not said is 0, -1 for a rank, or NaN.
    """

    form: StepForm
    numbers: "array[int]" = field(default_factory=lambda: array("q"))
    # As printed, in the unit of the form.
    values: "array[float]" = field(default_factory=lambda: array("d"))
    lines: "array[int]" = field(default_factory=lambda: array("q"))
    ranks: "array[int]" = field(default_factory=lambda: array("q"))
    stamps: "array[float]" = field(default_factory=lambda: array("d"))
    totals: "array[int]" = field(default_factory=lambda: array("q"))
    batches: "array[int]" = field(default_factory=lambda: array("q"))
    consumed: "array[int]" = field(default_factory=lambda: array("q"))
    # TFLOP/s of a GPU and the utilisation in percent, as the program prints them of itself.
    tflops: "array[float]" = field(default_factory=lambda: array("d"))
    mfu: "array[float]" = field(default_factory=lambda: array("d"))
    # Tokens a second of one device, and samples a second of all.
    tokens: "array[float]" = field(default_factory=lambda: array("d"))
    samples: "array[float]" = field(default_factory=lambda: array("d"))
    # What the rank waited for collectives, in the unit of the value.
    waited: "array[float]" = field(default_factory=lambda: array("d"))
    # Digits behind the point: the fewest of the first values, and so how coarse the print is.
    decimals: int = 99
    # Half of what the last digit, or a clock of whole seconds, leaves open; None: `decimals` tell it.
    rounding_s: float | None = None
    # Lines that begin like a step and are none.
    garbled: int = 0
    first_garbled: int = 0

    def take(self, line: bytes, number: int, rank: int | None) -> bool:
        """Take one line; False: it is garbled."""
        for pattern in self.form.patterns:
            match = pattern.search(line)
            if match is not None:
                break
        else:
            self.garbled += 1
            self.first_garbled = self.first_garbled or number
            return False
        text = match["value"]
        if b"," in text:
            text = text.replace(b",", b"")
        self.numbers.append(int(match["step"]))
        self.values.append(float(text))
        self.lines.append(number)
        self.ranks.append(NO_RANK if rank is None else rank)
        if len(self.numbers) <= _MOST_FOR_DIGITS:
            self.decimals = min(self.decimals, max(decimals(text, is_padded=self.form.is_padded), 0))
        if self.form.has_stamp:
            self.stamps.append(stamp_of(line))
        for name in self.form.more:
            self._more(name, match[name] if name in pattern.groupindex else None)
        return True

    def table(self) -> Sequence[tuple[str, float]]:
        """Return the kind of each of `_names`, and what stands for it where a line does not say it."""
        kinds = {"values": "real", "stamps": "moment", "numbers": "whole", "ranks": "whole"}
        kinds |= dict.fromkeys(ZEROS, "zeros")
        kinds |= {name: "whole" if name in _WHOLE else "real" for name in self.form.more}
        return [
            (kinds[name], NO_RANK if name == "ranks" else _NO_NUMBER if kinds[name] in ("real", "moment") else 0)
            for name in self._names()
        ]

    def rows_of(self, line: bytes) -> list[list[Cell]] | None:
        """Return where in a line the columns of its step stand; None: it has to be looked at by itself."""
        # The digits of the first values are looked at one by one.
        if len(self.numbers) < _MOST_FOR_DIGITS:
            return None
        match = next(filter(None, (pattern.search(line) for pattern in self.form.patterns)), None)
        if match is None:
            return None
        spans = {name: match.span(name) for name in match.re.groupindex if match[name] is not None}
        names = {"step": "numbers", "value": "values"}
        spans = {names.get(name, name): span for name, span in spans.items()}
        places = {"ranks": rank_span(line), "stamps": stamp_span(line)}
        spans |= {name: span for name, span in places.items() if span is not None}
        columns = self._names()
        cells = cells_at(line, [(columns.index(name), span) for name, span in spans.items() if name in columns])
        return None if cells is None else [cells]

    def take_columns(self, columns: list[bytes]) -> None:
        """Take steps that were read into the columns of `table`, and first the numbers of their lines."""
        for name, column in zip(("lines", *self._names()), columns, strict=True):
            if name not in ZEROS:
                getattr(self, name).frombytes(column)

    def _names(self) -> tuple[str, ...]:
        zeros = (name for name in ZEROS if any(name in pattern.groupindex for pattern in self.form.patterns))
        stamps = ("stamps",) if self.form.has_stamp else ()
        return ("numbers", "values", "ranks", *stamps, *self.form.more, *zeros)

    def add(
        self, step: int, value: float, line: int, rank: int | None, *, stamp_s: float = _NO_NUMBER, total: int = 0
    ) -> None:
        """Add a step that was read otherwise."""
        self.numbers.append(step)
        self.values.append(value)
        self.lines.append(line)
        self.ranks.append(NO_RANK if rank is None else rank)
        self.stamps.append(stamp_s)
        self.totals.append(total)

    def _more(self, name: str, text: bytes | None) -> None:
        if name in _WHOLE:
            getattr(self, name).append(0 if text is None else int(text))
        else:
            getattr(self, name).append(_NO_NUMBER if text is None else float(text.replace(b",", b"")))

    def complete(self) -> "StepRows":
        """Fill the columns that this form does not print, and return the rows."""
        count = len(self.numbers)
        for name in ("totals", "batches", "consumed"):
            column = getattr(self, name)
            if not column:
                column.extend(array("q", bytes(8 * count)))
        for name in ("stamps", "tflops", "mfu", "tokens", "samples", "waited"):
            column = getattr(self, name)
            if not column:
                column.extend(array("d", [_NO_NUMBER]) * count)
        for place, rate in enumerate(self.samples):
            if rate > 0 and not self.batches[place]:
                self.batches[place] = _batch_of_rate(rate, self.values[place])
        return self


def cells_at(line: bytes, spans: list[tuple[int, tuple[int, int]]]) -> list[Cell] | None:
    """Return cells of columns and spans; None: one of them is no plain number, a clock or a moment."""
    if not all(begin == end or _PLAIN.fullmatch(line, begin, end) for _, (begin, end) in spans):
        return None
    return [(column, *span) for column, span in spans]


def _batch_of_rate(samples_per_s: float, time_s: float) -> int:
    """Return the batch that a rate beside a time comes to, where their digits leave one whole number only, else 0."""
    batch = samples_per_s * time_s
    # Both are printed with three digits behind the point.
    doubt = 0.5e-3 * (samples_per_s + time_s)
    return round(batch) if 0.5 < batch < 1e9 and doubt < 0.5 and abs(batch - round(batch)) <= doubt else 0
