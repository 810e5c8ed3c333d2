"""Self-consistent performance guidelines: no exchange may be slower than others that do its work.

Traff, Gropp, Thakur, "Self-consistent MPI Performance Guidelines", IEEE TPDS 21(5), 2010; Hunold, Carpen-Amarie, Lubbe,
Traff, "PGMPI", arXiv:1606.00215. Which of them hold with busbw's sizes, and which were left out, is in
docs/method-judging.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from busbw.base.text import counted, listed, percent
from busbw.base.units import format_size, format_time
from busbw.facts.rules import finding
from busbw.judge.expectation import advice
from busbw.judge.usable import is_host_bound, is_steady
from busbw.model.finding import Finding
from busbw.model.plan import Plan
from busbw.model.run import Measurement, label

# Left takes no longer than all of right together, all with the same size: out of place, without local copies.
COMPOSITIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("all_reduce", ("reduce_scatter", "all_gather")),
    ("all_reduce", ("reduce", "broadcast")),
    ("all_gather", ("gather", "broadcast")),
    ("broadcast", ("scatter", "all_gather")),
    ("reduce", ("all_reduce",)),
    ("reduce", ("reduce_scatter", "gather")),
    ("reduce_scatter", ("reduce", "scatter")),
    ("gather", ("all_gather",)),
)

# What must be exceeded before a violation is claimed, beside disjoint intervals.
LEAST_EXCESS = 0.10
# Sizes rounded to whole parts may differ by this share and still be compared.
SIZE_TOLERANCE = 0.02
# A violation this large (at the favourable ends of both intervals), from this size on, makes a machine slow.
LARGE_RATIO = 1.5
LARGE_BYTES = 64 * 2**10


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """`left` took longer than all of `right` one after the other, or than the larger size that `right` is."""

    left: Measurement
    right: tuple[Measurement, ...]

    @property
    def right_median_s(self) -> float:
        """The medians of the right side, added."""
        return sum(measurement.median_s for measurement in self.right)

    @property
    def right_high_s(self) -> float:
        """The upper ends of the right side, added: at least the upper end of their sum."""
        return sum(measurement.high_s for measurement in self.right)

    @property
    def ratio(self) -> float:
        """How many times longer the left side took, by medians."""
        return self.left.median_s / self.right_median_s

    @property
    def certain_ratio(self) -> float:
        """The same at the favourable ends of the intervals."""
        return self.left.low_s / self.right_high_s

    @property
    def is_claimed(self) -> bool:
        """Whether intervals are disjoint and the excess is worth a word."""
        return self.certain_ratio > 1 and self.ratio >= 1 + LEAST_EXCESS

    @property
    def is_large(self) -> bool:
        """Whether it alone makes the machine slow."""
        return self.is_claimed and self.certain_ratio >= LARGE_RATIO and self.left.size_bytes >= LARGE_BYTES


def violations(measurements: tuple[Measurement, ...]) -> tuple[Violation, ...]:
    """Return every violation that can be claimed among steady measurements.

    Not of small messages over NCCL whose time is mostly the host's: launches fall into two modes, within a start too.
    """
    steady = tuple(each for each in measurements if is_steady(each) and not is_host_bound(each))
    pairs = [*_compositions(steady), *_larger_sizes(steady)]
    return tuple(violation for violation in pairs if violation.is_claimed)


def _compositions(steady: tuple[Measurement, ...]) -> Iterator[Violation]:
    for name, parts in COMPOSITIONS:
        for left in steady:
            if left.collective != name or left.in_place:
                continue
            right = [_partner(left, part, steady) for part in parts]
            found = tuple(measurement for measurement in right if measurement is not None)
            if len(found) == len(parts) and _roots_agree(left, found):
                yield Violation(left=left, right=found)


def _partner(left: Measurement, name: str, steady: tuple[Measurement, ...]) -> Measurement | None:
    """Return the measurement of `name` nearest in size to `left`, where the two may be compared."""
    candidates = [
        other
        for other in steady
        if other.collective == name
        and not other.in_place
        and _same_kind(left, other)
        and abs(other.size_bytes - left.size_bytes) <= SIZE_TOLERANCE * left.size_bytes
    ]
    return min(candidates, key=lambda other: abs(other.size_bytes - left.size_bytes), default=None)


def _same_kind(left: Measurement, right: Measurement) -> bool:
    same = (left.mode, left.dtype, left.ranks) == (right.mode, right.dtype, right.ranks)
    reduces = {"all_reduce", "reduce_scatter", "reduce"}
    both_reduce = left.collective in reduces and right.collective in reduces
    return same and (left.op == right.op or not both_reduce)


def _roots_agree(left: Measurement, right: tuple[Measurement, ...]) -> bool:
    rooted = {"broadcast", "reduce", "gather", "scatter"}
    return len({measurement.root for measurement in (left, *right) if measurement.collective in rooted}) <= 1


def _larger_sizes(steady: tuple[Measurement, ...]) -> Iterator[Violation]:
    """Compare each measurement with the fastest of the larger ones of its sweep."""
    for left in steady:
        larger = [
            right for right in steady if _sweep_of(right) == _sweep_of(left) and right.size_bytes > left.size_bytes
        ]
        if larger:
            yield Violation(left=left, right=(min(larger, key=lambda right: right.high_s),))


def _sweep_of(measurement: Measurement) -> tuple[object, ...]:
    return (
        measurement.collective,
        measurement.in_place,
        measurement.dtype,
        measurement.op,
        measurement.root,
        measurement.ranks,
        measurement.mode,
    )


def guideline_findings(plan: Plan, found: tuple[Violation, ...]) -> tuple[Finding, ...]:
    """Return one finding for each guideline and sweep, about its worst size."""
    groups: dict[tuple[object, ...], list[Violation]] = {}
    for violation in found:
        names = tuple(measurement.collective for measurement in violation.right)
        groups.setdefault((_sweep_of(violation.left), names), []).append(violation)
    return tuple(_guideline_finding(plan, group) for group in groups.values())


def _guideline_finding(plan: Plan, group: list[Violation]) -> Finding:
    worst = max(group, key=lambda violation: violation.certain_ratio)
    grows = worst.right[0].collective == worst.left.collective
    others = [format_size(violation.left.size_bytes) for violation in group if violation is not worst]
    right = format_size(worst.right[0].size_bytes) if grows else " + ".join(one.collective for one in worst.right)
    return finding(
        "PERF007" if grows else "PERF006",
        what=label(worst.left),
        right=right,
        times=f"{worst.ratio:.2f}",
        evidence=f"{_seen(worst.left)} against "
        + " + ".join(_seen(one) for one in worst.right)
        + (f"; also at {listed(others)}" if others else ""),
        fix=advice(plan, worst.left),
        point=worst.left.point,
    )


def _seen(measurement: Measurement) -> str:
    return (
        f"{label(measurement)} {format_time(measurement.median_s)} "
        f"[{format_time(measurement.low_s)}, {format_time(measurement.high_s)}] "
        f"({percent(measurement.confidence)}, {counted(measurement.samples, 'sample')})"
    )
