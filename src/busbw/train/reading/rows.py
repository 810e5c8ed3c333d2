"""Steps as they were read, in columns: a log of a day has half a million."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from busbw.train.reading.lines import has_long_line, has_ranks
from busbw.train.reading.step_forms import StepForm, decimals, stamps_of

NO_RANK = -1
_WHOLE = ("totals", "batches", "consumed")
# After so many values their digits are known.
_MOST_FOR_DIGITS = 1000
# A file holds no more steps that anybody looks at.
MOST_STEPS = 5_000_000


_NO_NUMBER = float("nan")
_FLOATS, _WHOLES = msgspec.json.Decoder(list[float]), msgspec.json.Decoder(list[int])
_N = TypeVar("_N", int, float)


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
            self.stamps.append(next(iter(stamps_of(line)), None) or _NO_NUMBER)
        for name in self.form.more:
            self._more(name, match[name] if name in pattern.groupindex else None)
        return True

    def take_block(self, block: bytes, first_line: int) -> bool:
        """Take a block of whole lines each of which is a step of one rank, all at once; False: it is no such block."""
        count = block.count(b"\n")
        if not count or block.count(self.form.mark) != count or has_ranks(block):
            return False
        if has_long_line(block):
            return False
        stamps = stamps_of(block) if self.form.has_stamp else []
        if self.form.has_stamp and len(stamps) != count:
            return False
        for pattern in self.form.patterns:
            found = pattern.findall(block)
            if len(found) == count:
                break
        else:
            return False
        columns = dict(
            zip(sorted(pattern.groupindex, key=pattern.groupindex.__getitem__), zip(*found, strict=True), strict=True)
        )
        values = _plain(columns["value"])
        self.stamps.extend(_NO_NUMBER if stamp is None else stamp for stamp in stamps)
        self.numbers.extend(_wholes(columns["step"]))
        self.values.extend(_floats(values))
        self.lines.extend(range(first_line, first_line + count))
        self.ranks.extend(array("q", [NO_RANK]) * count)
        if len(self.numbers) - count < _MOST_FOR_DIGITS:
            digits = (decimals(text, is_padded=self.form.is_padded) for text in values[:_MOST_FOR_DIGITS])
            self.decimals = min(self.decimals, *(max(digit, 0) for digit in digits))
        for name in self.form.more:
            texts = columns.get(name, (b"",) * count)
            if name in _WHOLE:
                _extend(getattr(self, name), texts, _wholes, 0)
            else:
                _extend(getattr(self, name), _plain(texts), _floats, _NO_NUMBER)
        return True

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


def _plain(texts: Sequence[bytes]) -> Sequence[bytes]:
    """Return numbers without the commas between their thousands."""
    joined = b"\n".join(texts)
    return joined.replace(b",", b"").split(b"\n") if b"," in joined else texts


def _floats(texts: Sequence[bytes]) -> Sequence[float]:
    """Return numbers of their texts; those that JSON has too, as almost all, in one go, which takes a third."""
    try:
        return _FLOATS.decode(b"[%b]" % b",".join(texts))
    except msgspec.DecodeError:
        return [float(text) for text in texts]


def _wholes(texts: Sequence[bytes]) -> Sequence[int]:
    """Return whole numbers of their texts, in the same way."""
    try:
        return _WHOLES.decode(b"[%b]" % b",".join(texts))
    except msgspec.DecodeError:
        return [int(text) for text in texts]


def _extend(
    column: "array[_N]", texts: Sequence[bytes], read: Callable[[Sequence[bytes]], Sequence[_N]], nothing: _N
) -> None:
    """Add what texts say to a column; most columns say the same in every line, or something in each."""
    if texts.count(texts[0]) == len(texts):
        column.extend(array(column.typecode, [read(texts[:1])[0] if texts[0] else nothing]) * len(texts))
    elif b"" not in texts:
        column.extend(read(texts))
    else:
        column.extend(read((text,))[0] if text else nothing for text in texts)


def _batch_of_rate(samples_per_s: float, time_s: float) -> int:
    """Return the batch that a rate beside a time comes to, where their digits leave one whole number only, else 0."""
    batch = samples_per_s * time_s
    # Both are printed with three digits behind the point.
    doubt = 0.5e-3 * (samples_per_s + time_s)
    return round(batch) if 0.5 < batch < 1e9 and doubt < 0.5 and abs(batch - round(batch)) <= doubt else 0
