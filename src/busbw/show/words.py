"""Words of the report: verdicts, names of measurements, numbers with their unit."""

from dataclasses import dataclass

from busbw.base.collectives import COLLECTIVES
from busbw.base.units import format_size, format_time
from busbw.model.finding import Verdict
from busbw.model.measurement import Measurement


@dataclass(frozen=True, kw_only=True, slots=True)
class OutcomeWords:
    """How an outcome is shown: never by colour alone."""

    outcome: str
    word: str
    symbol: str
    meaning: str


OUTCOMES: dict[str, OutcomeWords] = {
    words.outcome: words
    for words in (
        OutcomeWords(
            outcome="ok", word="ok", symbol="✓",
            meaning="Every result was right, and everything that could be judged is as fast as this machine allows.",
        ),
        OutcomeWords(
            outcome="slow", word="slow", symbol="▲",
            meaning="Results were right, and there is solid evidence that the machine could do better; "
            "the findings say what to change.",
        ),
        OutcomeWords(
            outcome="wrong", word="wrong", symbol="✗",
            meaning="At least one exchange gave a wrong result. Its speed does not matter.",
        ),
        OutcomeWords(
            outcome="failed", word="failed", symbol="■",
            meaning="The run did not come to its end. What was measured before may stand.",
        ),
        OutcomeWords(
            outcome="cannot_tell", word="cannot tell", symbol="?",
            meaning="Data are missing, too few, or were disturbed: neither a pass nor a fail.",
        ),
    )
}  # fmt: skip

ENDED_WORDS = {
    "complete": "came to its end",
    "time": "was ended by its time limit",
    "stopped": "was stopped",
    "failed": "failed",
}

_UNITS = {
    "latency": "half a round trip",
    "bandwidth": "one message of a window of 64",
    "message_rate": "one message of a window of 64",
    "bibw": "one message each way of a window of 64; busbw adds both directions",
}


def verdict_rest(verdict: Verdict) -> str:
    """Return the verdict's sentence without the word of its outcome, which is shown apart."""
    return verdict.sentence.removeprefix(OUTCOMES[verdict.outcome].word).removeprefix(":").strip()


def form_of(measurement: Measurement) -> str:
    """Return "in place" or "out of place"; "" for exchanges that know no such forms."""
    collective = COLLECTIVES.get(measurement.collective)
    if collective is not None and not collective.in_place:
        return ""
    return "in place" if measurement.in_place else "out of place"


def series_name(measurement: Measurement) -> str:
    """Return what the sizes of one sweep have in common: `all_reduce, in place`."""
    parts = [f"{measurement.collective}{pair_words(measurement)}", form_of(measurement)]
    parts += [f"groups of {measurement.group}"] if measurement.group is not None else []
    return ", ".join(part for part in parts if part)


def pair_words(measurement: Measurement) -> str:
    """Return " 0-1" where only two ranks exchange, else nothing."""
    return f" {measurement.pair[0]}-{measurement.pair[1]}" if measurement.pair is not None else ""


def series_note(measurement: Measurement) -> str:
    """Return type, operation, ranks, and what a time is the time of."""
    collective = COLLECTIVES.get(measurement.collective)
    parts = [
        f"{measurement.ranks} ranks",
        measurement.dtype,
        measurement.op if collective is not None and collective.reduces else "",
        f"root {measurement.root}" if collective is not None and collective.rooted else "",
        f"time of {_UNITS[measurement.collective]}" if measurement.collective in _UNITS else "",
    ]
    return ", ".join(part for part in parts if part)


def point_name(measurement: Measurement) -> str:
    """Return how a measurement is called: `all_reduce in place 4 MiB`."""
    place = " in place" if measurement.in_place else ""
    return f"{measurement.collective}{pair_words(measurement)}{place} {format_size(measurement.size_bytes)}"


def interval_words(measurement: Measurement) -> str:
    """Return the interval of the median: `12.1 us to 12.5 us (95 %)`."""
    low, high = format_time(measurement.low_s), format_time(measurement.high_s)
    return f"{low} to {high} ({100 * measurement.confidence:g} %)"


def interval_share(measurement: Measurement) -> float | None:
    """Return how far the interval of the median reaches, as a share of it; None where one sample has no spread."""
    median_s = measurement.median_s
    if median_s <= 0 or measurement.samples < 2:
        return None
    return max(measurement.high_s - median_s, median_s - measurement.low_s) / median_s


def interval_percent(measurement: Measurement) -> str:
    """Return `interval_share` as a cell of a table, in percent."""
    share = interval_share(measurement)
    if share is None:
        return "n/a"
    return f"{100 * share:.1f}" if share < 1 else ">99"


def percentile_s(measurement: Measurement, percentile: float) -> float | None:
    """Return a percentile of the time; None when too few samples lie beyond it."""
    return dict(measurement.percentiles).get(percentile)


def tail_weight(measurement: Measurement) -> tuple[float, float]:
    """Return what orders measurements by their tail: what slow samples add to the mean sample, then the longest one."""
    median_s = measurement.median_s
    if median_s <= 0 or measurement.samples <= 0:
        return (0.0, 0.0)
    share = measurement.slow_samples / measurement.samples
    return (share * (measurement.slow_excess_s or 0.0) / median_s, measurement.max_s / median_s)


def tail_words(measurement: Measurement) -> str:
    """Return how heavy the tail is: `12 of 800 samples slow, by 40.1 us in the median`."""
    if measurement.slow_samples == 0:
        return f"none of {measurement.samples} samples slow"
    excess = measurement.slow_excess_s
    by = f", by {format_time(excess)} in the median" if excess is not None else ""
    return f"{measurement.slow_samples} of {measurement.samples} samples slow{by}"


def numbers_words(numbers: tuple[int, ...]) -> str:
    """Return CPU numbers with runs shortened: `0-3, 8`."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
