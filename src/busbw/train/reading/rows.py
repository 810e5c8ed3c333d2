"""Steps as they were read, in columns: a log of a day has half a million."""

from array import array
from dataclasses import dataclass, field

from busbw.train.reading.step_forms import StepForm, decimals, stamp_of

NO_RANK = -1
_NAN = float("nan")
# A file holds no more steps that anybody looks at.
MOST_STEPS = 5_000_000


@dataclass(slots=True)
class StepRows:
    """The steps of one form. Each column has a place for each line; 0, -1 or NaN where it was not said."""

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
    # Tokens a second of one device.
    tokens: "array[float]" = field(default_factory=lambda: array("d"))
    # Digits behind the point: the fewest of any value, and so how coarse the print is.
    decimals: int = 99
    # Half of what the last digit, or a clock of whole seconds, leaves open; None: `decimals` tell it.
    rounding_s: float | None = None
    # Lines that begin like a step and are none.
    garbled: int = 0
    first_garbled: int = 0

    def take(self, line: bytes, number: int, rank: int | None) -> bool:
        """Take one line; False: it is garbled."""
        match = next((found for each in self.form.patterns if (found := each.search(line)) is not None), None)
        if match is None:
            self.garbled += 1
            self.first_garbled = self.first_garbled or number
            return False
        groups = match.groupdict()
        text = groups["value"].replace(b",", b"")
        self.add(int(groups["step"]), float(text), number, rank)
        if self.decimals > 0:
            self.decimals = min(self.decimals, max(decimals(text), 0))
        self.stamps[-1] = (stamp_of(line) or _NAN) if self.form.has_stamp else _NAN
        self._more(groups)
        return True

    def add(self, step: int, value: float, line: int, rank: int | None) -> None:
        """Add a step of which no more is known."""
        self.numbers.append(step)
        self.values.append(value)
        self.lines.append(line)
        self.ranks.append(NO_RANK if rank is None else rank)
        for whole in (self.totals, self.batches, self.consumed):
            whole.append(0)
        for number in (self.stamps, self.tflops, self.mfu, self.tokens):
            number.append(_NAN)

    def _more(self, groups: dict[str, bytes | None]) -> None:
        for name, text in groups.items():
            if text is None or name in ("step", "value"):
                continue
            if name == "total":
                self.totals[-1] = int(text)
            elif name == "batch":
                self.batches[-1] = int(text)
            elif name == "consumed":
                self.consumed[-1] = int(text)
            elif name == "tflops":
                self.tflops[-1] = float(text.replace(b",", b""))
            elif name == "mfu":
                self.mfu[-1] = float(text)
            elif name == "tokens":
                self.tokens[-1] = float(text)
            elif name == "samples":
                self._batch_of_rate(float(text))

    def _batch_of_rate(self, samples_per_s: float) -> None:
        """Keep the batch that a rate beside a time comes to, where their digits leave one whole number only."""
        batch = samples_per_s * self.values[-1]
        # Both are printed with three digits behind the point.
        doubt = 0.5e-3 * (samples_per_s + self.values[-1])
        if 0.5 < batch < 1e9 and doubt < 0.5 and abs(batch - round(batch)) <= doubt:
            self.batches[-1] = round(batch)
