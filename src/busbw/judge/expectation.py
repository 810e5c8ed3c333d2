"""What a usual MPI gives on this machine, and the measurements that stay far below it."""

from dataclasses import dataclass

from busbw.base.collectives import COLLECTIVES
from busbw.base.text import counted, listed, percent
from busbw.base.units import format_rate, format_time
from busbw.facts.envvars import algorithms
from busbw.facts.rules import finding
from busbw.judge.ceiling import (
    TRAFFIC,
    Path,
    Traffic,
    path_of,
    slowest_copy_rate_Bps,
    stream_rate_Bps,
    working_set_bytes,
)
from busbw.judge.usable import is_disturbed, is_solid
from busbw.model.finding import Ceiling, Finding
from busbw.model.machine import MpiFamily
from busbw.model.plan import Plan
from busbw.model.run import Measurement, Rates, label


def advice(plan: Plan, measurement: Measurement) -> str:
    """Return what to try for a slow measurement with this MPI or NCCL."""
    collective = measurement.collective
    if plan.mpi is None or measurement.nccl is not None:
        return (
            "see what NCCL chose (the column `NCCL used`), and try what else there is: NCCL_ALGO=Ring, NCCL_ALGO=Tree, "
            "NCCL_PROTO=Simple, each for one run"
        )
    family = plan.mpi.family
    offered = algorithms().get(family)
    if offered is not None and collective in offered.choices:
        choice = offered.choices[collective]
        settings = " ".join([*offered.requires, f"{choice.variable}=$a"])
        return (
            f"try its other algorithms: `for a in {' '.join(choice.values)}; do {settings} {_again(measurement)}; done`"
        )
    if measurement.collective in ("sendrecv", "latency", "bandwidth", "bibw", "message_rate"):
        return _transport_advice(family)
    return (
        f"try another algorithm for {collective}: look for the variables of your MPI that choose collective "
        "algorithms; then measure again"
    )


def _again(measurement: Measurement) -> str:
    size = f"-b {_option(measurement.size_bytes)} -e {_option(measurement.size_bytes)}"
    form = " --in-place in" if measurement.in_place else ""
    return f"busbw run {measurement.collective} --ranks {measurement.ranks} {size}{form}"


def _option(size_bytes: int) -> str:
    """Return a size as the options -b and -e take it: 16M, not 16777216."""
    for unit, bytes_per_unit in (("G", 2**30), ("M", 2**20), ("K", 2**10)):
        if size_bytes % bytes_per_unit == 0:
            return f"{size_bytes // bytes_per_unit}{unit}"
    return str(size_bytes)


def _transport_advice(family: MpiFamily) -> str:
    if family == "Open MPI":
        return (
            "see in raw/launcher.0.stderr which transport is used, after "
            "`OMPI_MCA_pml_base_verbose=10 OMPI_MCA_btl_base_verbose=30 busbw run ...`; "
            "on one host it should be shared memory (btl sm, or UCX)"
        )
    return "see which transport your MPI uses between ranks of one host: it should be shared memory"


# Large messages: the size, and the messages that the usual algorithm makes of it.
LARGE_BYTES = 2**20
LARGE_PART_BYTES = 64 * 2**10
# How many times longer than expected an exchange may take before that is a finding, and before the run is slow for it.
TOLERANCE = 2.0
SLOW_TIMES = 3.0
# Sums of these are made in software by most MPI libraries: their time is not that of memory.
SMALL_FLOATS = ("float16", "bfloat16")


@dataclass(frozen=True, kw_only=True, slots=True)
class MpiExpectation:
    """The time a usual MPI needs for one measurement, and how it was found."""

    measurement: Measurement
    path: Path
    time_s: float
    rate_Bps: float
    words: str

    @property
    def busbw_Bps(self) -> float:
        """The bus bandwidth that belongs to the expected time."""
        collective = COLLECTIVES[self.measurement.collective]
        return collective.factor(self.measurement.ranks) * self.measurement.size_bytes / self.time_s

    @property
    def excess(self) -> float:
        """How many times longer the exchange took than expected, at the favourable end of its interval."""
        return self.measurement.low_s / self.time_s

    @property
    def is_missed(self) -> bool:
        """Whether the exchange took longer than the tolerance allows."""
        return self.excess > TOLERANCE

    @property
    def is_slow(self) -> bool:
        """Whether it took so much longer that no doubt about the expectation explains it."""
        return self.excess > SLOW_TIMES


def expectations(plan: Plan, rates: Rates, measurements: tuple[Measurement, ...]) -> tuple[MpiExpectation, ...]:
    """Return the expectation of every measurement that can be judged by one, in their order."""
    found = (expectation_of(plan, rates, measurement) for measurement in measurements)
    return tuple(expectation for expectation in found if expectation is not None)


def expectation_of(plan: Plan, rates: Rates, measurement: Measurement) -> MpiExpectation | None:
    """Return what to expect of one measurement; None where it cannot be judged by one.

    That is small messages, sums of 16-bit floats, disturbed points, unknown paths, and rates that were not measured.
    """
    traffic = TRAFFIC.get(measurement.collective)
    if traffic is None or not _is_large(traffic, measurement) or not is_solid(measurement) or is_disturbed(measurement):
        return None
    if COLLECTIVES[measurement.collective].reduces and measurement.dtype in SMALL_FLOATS:
        return None
    path = path_of(plan, measurement)
    if path == "memory":
        size_bytes = working_set_bytes(traffic, measurement)
        return _expect(
            measurement,
            path,
            slowest_copy_rate_Bps(rates, size_bytes),
            traffic.usual(measurement.ranks),
            f"two copies through a shared segment, {traffic.usual_words}",
        )
    if path == "loopback":
        streams = measurement.ranks if traffic.stream == "ring" else measurement.ranks / 2
        return _expect(
            measurement,
            path,
            stream_rate_Bps(rates, traffic.stream),
            traffic.usual_sent(measurement.ranks) * streams / measurement.ranks,
            "TCP streams as fast as the loopback interface carried them alone",
        )
    return None


def _expect(
    measurement: Measurement, path: Path, rate_Bps: float | None, busiest: float, words: str
) -> MpiExpectation | None:
    """Return the time the busiest rank needs for `busiest` x S bytes at its n-th part of the rate of all ranks."""
    if rate_Bps is None:
        return None
    time_s = busiest * measurement.size_bytes * measurement.ranks / rate_Bps
    return MpiExpectation(measurement=measurement, path=path, time_s=time_s, rate_Bps=rate_Bps, words=words)


def _is_large(traffic: Traffic, measurement: Measurement) -> bool:
    if measurement.ranks < 2 or measurement.size_bytes < LARGE_BYTES:
        return False
    return not traffic.parts or measurement.size_bytes >= LARGE_PART_BYTES * measurement.ranks


def slow_findings(plan: Plan, expected: tuple[MpiExpectation, ...]) -> tuple[Finding, ...]:
    """Return one finding for each collective and path that misses its expectation, about its worst size."""
    groups: dict[tuple[str, bool, str, Path], list[MpiExpectation]] = {}
    for expectation in expected:
        if expectation.is_missed:
            measurement = expectation.measurement
            key = (measurement.collective, measurement.in_place, measurement.dtype, expectation.path)
            groups.setdefault(key, []).append(expectation)
    return tuple(_slow_finding(plan, missed) for missed in groups.values())


def _slow_finding(plan: Plan, missed: list[MpiExpectation]) -> Finding:
    worst = max(missed, key=lambda expectation: expectation.excess)
    measurement = worst.measurement
    others = [label(one.measurement) for one in missed if one is not worst]
    also = f"; also {listed(others)}" if others else ""
    return finding(
        "PERF002" if worst.path == "loopback" else "PERF001",
        what=label(measurement),
        times=f"{worst.excess:.1f}",
        evidence=f"median {format_time(measurement.median_s)}, at best {format_time(measurement.low_s)} "
        f"({percent(measurement.confidence)} interval, {counted(measurement.samples, 'sample')}); "
        f"expected {format_time(worst.time_s)}, {format_rate(worst.busbw_Bps)} bus bandwidth: {worst.words}, "
        f"at {format_rate(worst.rate_Bps)} for all ranks{also}",
        fix=advice(plan, measurement),
        point=measurement.point,
    )


def cache_findings(measurements: tuple[Measurement, ...], ceilings: tuple[Ceiling, ...]) -> tuple[Finding, ...]:
    """Return a note for the measurements above their ceiling: their working set stays in cache."""
    by_point = {measurement.point: measurement for measurement in measurements}
    above = [
        (by_point[ceiling.point], ceiling)
        for ceiling in ceilings
        if ceiling.basis == "memory"
        and is_solid(by_point[ceiling.point])
        and by_point[ceiling.point].busbw_Bps > ceiling.busbw_Bps
    ]
    if not above:
        return ()
    measurement, ceiling = max(above, key=lambda pair: pair[0].busbw_Bps / pair[1].busbw_Bps)
    return (
        finding(
            "PERF003",
            points=counted(len(above), "point"),
            evidence=f"{label(measurement)}: {format_rate(measurement.busbw_Bps)}, "
            f"{percent(measurement.busbw_Bps / ceiling.busbw_Bps)} of {format_rate(ceiling.busbw_Bps)}",
            point=measurement.point,
        ),
    )
