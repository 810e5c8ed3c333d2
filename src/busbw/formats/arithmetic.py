"""Whether a row's time, rates and size agree, and the number of ranks its two rates give away.

A tool prints few digits, so every number stands for an interval: 8.95 is anything from 8.945 to 8.955. A row is doubted
only when no numbers in its intervals agree: algbw = size / time, busbw = algbw x factor(ranks).
"""

import math
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from busbw.base.units import format_rate

# The memory of a GPU of 2026 moves 8 TB/s (data sheets of B200 and MI355X); more than twice that is not a transfer.
FASTEST_Bps = 20e12
# Beyond the interval of the printed digits: what floating point itself loses.
_SLACK = 1e-9
_NUMBER = re.compile(r"[+-]?(\d{1,40})(?:\.(\d{0,40}))?(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_MOST_GROUPS = 8
_MOST_DOUBTS = 100

_RING = frozenset({"all_reduce"})
_OTHERS = frozenset(
    {
        "all_gather",
        "reduce_scatter",
        "alltoall",
        "alltoallv",
        "gather",
        "scatter",
        "all_gather or alltoall",
        "gather or scatter",
    }
)
_ONCE = frozenset({"broadcast", "reduce", "sendrecv", "hypercube"})
# In these, nccl-tests before 2020 (commit ec1b5e2), and hypercube to this day, have the factor in algbw already.
_FACTOR_IN_ALGBW = frozenset({"all_gather", "reduce_scatter", "hypercube", "all_gather or alltoall"})


class PrintedNumber(NamedTuple):
    """A number as it was printed, and the interval that its digits stand for."""

    value: float
    low: float
    high: float


def in_unit(value: float, factor: float) -> float:
    """Return their product to 15 digits: 6.63 us are 0.00000663 s, not 0.00000662999999."""
    return float(f"{value * factor:.15g}")


def printed(text: str, shift: int = 0) -> PrintedNumber | None:
    """Return what a printed number stands for, times ten to the power of `shift`.

    None for anything else: nan, inf, N/A, words, negative numbers.
    """
    match = _NUMBER.fullmatch(text)
    if match is None or text.startswith("-"):
        return None
    decimals, exponent = match[2], match[3]
    shifted = shift + int(exponent) if exponent is not None else shift
    # Shifted as a text, 263.975398 GB/s are 263975398000 bytes a second; as a product, 263975397999.99997.
    value = float(f"{text if exponent is None else text[: match.start(3) - 1]}e{shifted}")
    if not math.isfinite(value):
        return None
    half = 0.5 * 10.0 ** (shifted - len(decimals or ""))
    return PrintedNumber(value, value - half if value > half else 0.0, value + half)


class RowRates(NamedTuple):
    """One row's numbers: bytes, seconds, bytes per second. None: not printed, or no number."""

    size_bytes: int
    time_s: PrintedNumber | None
    algbw_Bps: PrintedNumber | None
    busbw_Bps: PrintedNumber | None


@dataclass(slots=True)
class _Group:
    """Rows that agree on a range of rank counts. `most` None: without an end."""

    least: int
    most: int | None
    rows: int = 0
    lines: list[int] = field(default_factory=list)

    def meets(self, least: int, most: int | None) -> bool:
        return (most is None or self.least <= most) and (self.most is None or least <= self.most)

    def join(self, least: int, most: int | None, line: int) -> None:
        self.least = max(self.least, least)
        self.most = most if self.most is None else self.most if most is None else min(self.most, most)
        self.rows += 1
        if len(self.lines) < _MOST_DOUBTS:
            self.lines.append(line)


@dataclass(slots=True)
class Check:
    """The rows of one table, checked one after the other."""

    # Rates of calls that return before anything has moved have no limit.
    of_calls_only: bool = False
    _groups: list[_Group] = field(default_factory=list)
    _doubts: list[tuple[int, str]] = field(default_factory=list)
    _more: int = 0

    def row(self, what: str, line: int, rates: RowRates) -> None:
        """Check one row of the collective `what`; what cannot be right is kept as a doubt."""
        if rates.size_bytes == 0 or rates.algbw_Bps is None:
            return
        # One rank alone sends nothing, and takes no time for it.
        alone = rates.busbw_Bps is not None and rates.busbw_Bps.high < 1e-3 * rates.algbw_Bps.low
        if rates.algbw_Bps.low > FASTEST_Bps and not self.of_calls_only and not alone:
            self.doubt(line, f"algbw of {format_rate(rates.algbw_Bps.value)} is more than any memory moves")
            return
        share = _share(rates)
        if share is not None and not share[0] <= 1 <= share[1]:
            self._other_convention(what, line, rates, share)
            return
        self._ranks(what, line, rates)

    def doubt(self, line: int, sentence: str) -> None:
        """Keep a doubt; of very many only the first."""
        if len(self._doubts) < _MOST_DOUBTS:
            self._doubts.append((line, sentence))
        else:
            self._more += 1

    def ranks(self) -> int | None:
        """Return the one number of ranks that fits the rows; None when there is none, or more than one."""
        best = self._best()
        return best.least if best is not None and best.least == best.most else None

    def compare(self, line: int, declared: int | None) -> None:
        """Doubt the table when no row could come from the ranks it declares, and the rows do not tell one number."""
        best = self._best()
        if best is not None and declared is not None and not best.meets(declared, declared) and self.ranks() is None:
            self.doubt(
                line, f"its rows fit {_span(best.least, best.most)}, and it declares {_span(declared, declared)}"
            )

    def doubts(self) -> tuple[tuple[int, str], ...]:
        """Return each doubtful line and why, in the order of the lines."""
        best = self._best()
        odd = [
            (line, f"its rates fit {_span(group.least, group.most)}, those of most rows {_span(best.least, best.most)}")
            for group in self._groups
            if best is not None and group is not best
            for line in group.lines
        ]
        found = sorted([*self._doubts, *odd])
        more = self._more + len(found) - min(len(found), _MOST_DOUBTS)
        found = found[:_MOST_DOUBTS]
        return (*found, (found[-1][0], f"and {more} more after it")) if more else tuple(found)

    def _best(self) -> _Group | None:
        return max(self._groups, key=lambda group: group.rows, default=None)

    def _other_convention(self, what: str, line: int, rates: RowRates, share: tuple[float, float]) -> None:
        algbw_Bps, busbw_Bps = rates.algbw_Bps, rates.busbw_Bps
        if what in _FACTOR_IN_ALGBW and share[1] < 1 and _same(algbw_Bps, busbw_Bps):
            self._fit(line, _others_inverse(share[0]), _others_inverse(share[1]))
            return
        implied_Bps = rates.size_bytes / rates.time_s.value if rates.time_s is not None and rates.time_s.value else 0.0
        said = format_rate(algbw_Bps.value) if algbw_Bps is not None else "none"
        self.doubt(line, f"algbw is {said}, but its size over its time is {format_rate(implied_Bps)}")

    def _ranks(self, what: str, line: int, rates: RowRates) -> None:
        factor = _factor(rates)
        if factor is None:
            return
        low, high = factor
        if what in _RING:
            self._fit(line, _ring_inverse(low), _ring_inverse(high))
        elif what in _OTHERS:
            self._fit(line, _others_inverse(low), _others_inverse(high))
        elif what in _ONCE and not low <= 1 <= high:
            self.doubt(line, f"busbw is {(low + high) / 2:.3g} times algbw, and for {what} both are the same")

    def _fit(self, line: int, low: float, high: float) -> None:
        """Take a row whose rates fit any number of ranks from `low` to `high`."""
        least = max(1, math.ceil(low * (1 - _SLACK))) if math.isfinite(low) else None
        most = math.floor(high * (1 + _SLACK)) if math.isfinite(high) else None
        if least is None or (most is not None and most < least):
            self.doubt(line, "no number of ranks gives its busbw from its algbw")
            return
        meeting = [group for group in self._groups if group.meets(least, most)]
        if meeting:
            best = meeting[0] if len(meeting) == 1 else max(meeting, key=lambda group: group.rows)
            best.join(least, most, line)
        elif len(self._groups) < _MOST_GROUPS:
            self._groups.append(_Group(least, most, 1, [line]))
        else:
            self.doubt(line, f"its rates fit {_span(least, most)}, those of other rows something else")


def _share(rates: RowRates) -> tuple[float, float] | None:
    """Return the interval of algbw x time / size, which is 1."""
    time_s, algbw_Bps = rates.time_s, rates.algbw_Bps
    if time_s is None or algbw_Bps is None:
        return None
    low = algbw_Bps.low * time_s.low / rates.size_bytes
    high = algbw_Bps.high * time_s.high / rates.size_bytes
    return low * (1 - _SLACK), high * (1 + _SLACK)


def _same(one: PrintedNumber | None, other: PrintedNumber | None) -> bool:
    return one is not None and other is not None and one.low <= other.high and other.low <= one.high


def _factor(rates: RowRates) -> tuple[float, float] | None:
    """Return the interval of busbw / algbw, from algbw as printed and as size and time give it."""
    busbw_Bps, algbw_Bps, time_s = rates.busbw_Bps, rates.algbw_Bps, rates.time_s
    if busbw_Bps is None or algbw_Bps is None or algbw_Bps.low <= 0:
        return None
    low, high = busbw_Bps.low / algbw_Bps.high, busbw_Bps.high / algbw_Bps.low
    if time_s is not None and time_s.low > 0:
        low = max(low, busbw_Bps.low * time_s.low / rates.size_bytes)
        high = min(high, busbw_Bps.high * time_s.high / rates.size_bytes)
    return low * (1 - _SLACK), high * (1 + _SLACK)


def _ring_inverse(factor: float) -> float:
    """Return n from 2(n-1)/n, infinity from 2 on."""
    return 2 / (2 - factor) if factor < 2 else math.inf


def _others_inverse(factor: float) -> float:
    """Return n from (n-1)/n, infinity from 1 on."""
    return 1 / (1 - factor) if factor < 1 else math.inf


def _span(least: int, most: int | None) -> str:
    if least == most:
        return "1 rank" if least == 1 else f"{least} ranks"
    return f"{least} ranks or more" if most is None else f"{least} to {most} ranks"
