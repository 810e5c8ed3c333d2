"""The phrases that findings and verdicts are made of."""

from busbw.base.units import format_size
from busbw.model.run import Measurement


def label(measurement: Measurement) -> str:
    """Return how a measurement is called in a sentence: `all_reduce 4 MiB`."""
    pair = f" {measurement.pair[0]}-{measurement.pair[1]}" if measurement.pair is not None else ""
    place = " in place" if measurement.in_place else ""
    return f"{measurement.collective}{pair}{place} {format_size(measurement.size_bytes)}"


def counted(number: int, noun: str) -> str:
    """Return `1 point`, `3 points`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


def percent(share: float) -> str:
    """Return a share in percent, with a decimal only where it says something."""
    value = share * 100
    return f"{value:.1f} %" if value < 10 else f"{value:.0f} %"
