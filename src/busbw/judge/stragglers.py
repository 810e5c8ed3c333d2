"""Ranks that delay the others: who explains the slow calls, and how much they cost."""

from dataclasses import dataclass

from busbw.base.text import counted, listed, percent
from busbw.base.units import format_time
from busbw.facts.rules import finding
from busbw.judge.usable import is_disturbed, is_usable
from busbw.model.finding import Finding
from busbw.model.record import Attribution, Hello
from busbw.model.run import Measurement, label
from busbw.stats.tail import culprit, culprit_of_halves

# A tail without a name is worth a note from this share of the calls on, and this many.
HEAVY_SHARE = 0.01
HEAVY_SAMPLES = 5
# A named rank makes the machine slow when its delays lengthen the mean call by this share of the median, ...
COST_SHARE = 0.10
# ... or when this share of the calls takes at least twice the median.
SLOW_SHARE = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Straggler:
    """One rank, and the measurements in which it explains the slow calls."""

    rank: int
    measurements: tuple[Measurement, ...]
    # Measurements with a heavy tail that no rank explains.
    unexplained: int

    @property
    def worst(self) -> Measurement:
        """The measurement that it lengthens most."""
        return max(self.measurements, key=cost_share)

    @property
    def is_material(self) -> bool:
        """Whether its delays alone make the machine slow: they cost, and it explains most of the heavy tails.

        Not where the other ranks lost their cores too: then it is only the one that lost most.
        """
        material = sum(
            _is_material(measurement) and not is_disturbed(measurement, besides=self.rank)
            for measurement in self.measurements
        )
        return 0 < material >= self.unexplained


def slow_share(measurement: Measurement) -> float:
    """Return the share of the samples that were slow."""
    return measurement.slow_samples / measurement.samples if measurement.samples else 0.0


def cost_share(measurement: Measurement) -> float:
    """Return what slow samples add to the mean sample, as a share of the median."""
    excess_s = measurement.slow_excess_s or 0.0
    return slow_share(measurement) * excess_s / measurement.median_s


def _is_material(measurement: Measurement) -> bool:
    doubled = (measurement.slow_excess_s or 0.0) >= measurement.median_s
    return cost_share(measurement) >= COST_SHARE or (doubled and slow_share(measurement) >= SLOW_SHARE)


def stragglers(measurements: tuple[Measurement, ...]) -> tuple[Straggler, ...]:
    """Return each rank that explains the slow calls of at least one measurement, the costliest first."""
    named: dict[int, list[Measurement]] = {}
    for measurement in measurements:
        if is_usable(measurement) and (rank := named_rank(measurement)) is not None:
            named.setdefault(rank, []).append(measurement)
    unexplained = len(unexplained_tails(measurements))
    found = (
        Straggler(rank=rank, measurements=tuple(points), unexplained=unexplained) for rank, points in named.items()
    )
    return tuple(sorted(found, key=lambda straggler: (-cost_share(straggler.worst), straggler.rank)))


def named_rank(measurement: Measurement) -> int | None:
    """Return the rank that explains the slow calls of one measurement; None when nobody does, or several could."""
    by_samples = _by_samples(measurement)
    if by_samples is not None or not measurement.attribution:
        return by_samples
    return culprit_of_halves(measurement.attribution, measurement.ranks)


def _by_samples(measurement: Measurement) -> int | None:
    if measurement.slow_samples == 0 or len(measurement.per_rank) != measurement.ranks:
        return None
    views = sorted(measurement.per_rank, key=lambda view: view.rank)
    return culprit(tuple(view.blamed for view in views), measurement.slow_samples, measurement.ranks)


def straggler_findings(found: tuple[Straggler, ...], hellos: tuple[Hello, ...]) -> tuple[Finding, ...]:
    """Return one finding for each straggler."""
    return tuple(_straggler_finding(straggler, hellos) for straggler in found)


def _straggler_finding(straggler: Straggler, hellos: tuple[Hello, ...]) -> Finding:
    worst = straggler.worst
    host, cpus = host_of(straggler, hellos), _cpus_of(straggler.rank, hellos)
    others = [label(measurement) for measurement in straggler.measurements if measurement is not worst]
    parts = [
        _slowness(worst),
        _who(straggler.rank, worst),
        _tail(worst),
        f"allowed CPUs: {_numbers(cpus)}" if cpus else "its CPUs are not known",
        f"also at {listed(others)}" if others else "",
    ]
    where = f"CPU {_numbers(cpus)}" if cpus else "its CPUs"
    return finding(
        "PERF004",
        rank=straggler.rank,
        host=host,
        points=counted(len(straggler.measurements), "point"),
        evidence="; ".join(part for part in parts if part),
        fix="measure again with the ranks on other cores: a slow core stays, a slow process moves along; what else "
        f"runs on {where} of {host}, beside what /proc/interrupts counts: `ps -eLo psr,pid,pcpu,comm --sort=-pcpu`",
        point=worst.point if len(straggler.measurements) == 1 else None,
    )


def _slowness(measurement: Measurement) -> str:
    return (
        f"{label(measurement)}: {percent(slow_share(measurement))} of the calls are slow, by "
        f"{format_time(measurement.slow_excess_s or 0.0)} in the median"
    )


def _who(rank: int, measurement: Measurement) -> str:
    blamed = sum(view.blamed for view in measurement.per_rank if view.rank == rank)
    switches = sum(view.involuntary_switches for view in measurement.per_rank if view.rank == rank)
    if _by_samples(measurement) == rank:
        words = f"rank {rank} alone explains {blamed} of {measurement.slow_samples}"
    else:
        inside = [half for half in measurement.attribution if rank in half.ranks]
        outside = [half for half in measurement.attribution if rank not in half.ranks]
        words = (
            f"among halves of the ranks, those with rank {rank} had {_slow_of(inside)} slow calls, "
            f"those without {_slow_of(outside)}"
        )
    return words + (f"; it was taken off its core {switches} times" if switches else "")


def _slow_of(halves: list[Attribution]) -> str:
    return f"{sum(half.slow_calls for half in halves)} of {sum(half.calls for half in halves)}"


def _tail(measurement: Measurement) -> str:
    p99_s = dict(measurement.percentiles).get(99.0)
    return "" if p99_s is None else f"p99 is {p99_s / measurement.median_s:.1f} times the median"


def host_of(straggler: Straggler, hellos: tuple[Hello, ...]) -> str:
    """Return the host of the straggler, as the rank itself or a measurement names it."""
    names = [hello.host for hello in hellos if hello.rank == straggler.rank]
    names += [view.host for view in straggler.worst.per_rank if view.rank == straggler.rank]
    return names[0] if names else "an unknown host"


def _cpus_of(rank: int, hellos: tuple[Hello, ...]) -> tuple[int, ...]:
    return next((hello.cpus for hello in hellos if hello.rank == rank), ())


def _numbers(cpus: tuple[int, ...]) -> str:
    """Return CPU numbers with runs shortened: 0-3, 8."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def unexplained_tails(measurements: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
    """Return the measurements with many slow calls that no rank explains."""
    return tuple(
        measurement
        for measurement in measurements
        if is_usable(measurement)
        and measurement.slow_samples >= HEAVY_SAMPLES
        and slow_share(measurement) >= HEAVY_SHARE
        and named_rank(measurement) is None
    )


def tail_findings(measurements: tuple[Measurement, ...]) -> tuple[Finding, ...]:
    """Return a note on the points whose slow calls no rank explains."""
    heavy = unexplained_tails(measurements)
    if not heavy:
        return ()
    worst = max(heavy, key=cost_share)
    tail = _tail(worst)
    return (
        finding(
            "PERF005",
            points=counted(len(heavy), "point"),
            evidence=_slowness(worst) + (f"; {tail}" if tail else ""),
            fix="measure again in isolated mode, which times every call alone" if worst.mode == "stream" else None,
            point=worst.point if len(heavy) == 1 else None,
        ),
    )
