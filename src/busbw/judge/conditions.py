"""What disturbed a measurement: the conditions of its hosts, and how its samples came about."""

from collections.abc import Callable
from dataclasses import dataclass

from busbw.base.text import counted, listed, percent
from busbw.facts.rules import finding
from busbw.judge.failures import ended_words, more_samples
from busbw.judge.usable import LEAST_SAMPLES, core_losses, half_width, is_disturbed, missed_share
from busbw.model.finding import Finding
from busbw.model.plan import Plan
from busbw.model.preflight import Difference, differences, sentences
from busbw.model.record import Hello, Node
from busbw.model.run import Measurement, Outcome, label

# Share of the processor time that the hypervisor took: worth a word, and too much to judge speed.
STOLEN_NOTED = 0.01
STOLEN_SPOILS = 0.05
# Stops for the quota, as a share of the periods of 100 ms (the kernel's default) that the run lasted.
QUOTA_PERIOD_S = 0.1
QUOTA_SPOILS = 0.05
# Processes waiting for or on a core before the run began, beyond the cores that the ranks leave free.
LOAD_NOTED = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class CounterChange:
    """How the host's counters changed from before the ranks started to after they ended. None: not kept."""

    stolen_share: float | None
    quota_stops: int | None
    quota_share: float | None
    throttle_events: int | None


def change_of(outcome: Outcome) -> CounterChange:
    """Return what the counters say of the time of the run."""
    before, after = outcome.counters_before, outcome.counters_after
    stolen_s = _grown(before.stolen_s, after.stolen_s)
    cpu_s = after.cpu_s - before.cpu_s
    stops = _grown(before.quota_stops, after.quota_stops)
    periods = max(1.0, outcome.wall_s / QUOTA_PERIOD_S)
    throttled = _grown(before.throttle_events, after.throttle_events)
    return CounterChange(
        stolen_share=None if stolen_s is None or cpu_s <= 0 else min(1.0, stolen_s / cpu_s),
        quota_stops=None if stops is None else int(stops),
        quota_share=None if stops is None else stops / periods,
        throttle_events=None if throttled is None else int(throttled),
    )


def _grown(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0, after - before)


def spoilers(plan: Plan, outcome: Outcome | None) -> tuple[tuple[str, str], ...]:
    """Return why speed cannot be judged at all under these conditions, as (code, words): neither ok nor slow."""
    found = []
    if plan.placement.oversubscribed:
        found.append(("RUN006", f"{plan.placement.ranks} ranks share {counted(_cores(plan), 'core')}"))
    if outcome is None:
        return tuple(found)
    change = change_of(outcome)
    if change.throttle_events:
        found.append(("RUN007", "the CPU was throttled during the run"))
    if change.quota_share is not None and change.quota_share > QUOTA_SPOILS:
        found.append(("RUN008", f"the CPU quota stopped the run {counted(change.quota_stops or 0, 'time')}"))
    if change.stolen_share is not None and change.stolen_share > STOLEN_SPOILS:
        found.append(("RUN009", f"the hypervisor took {percent(change.stolen_share)} of the processor time"))
    return tuple(found)


def _cores(plan: Plan) -> int:
    return plan.host.cores or len(plan.host.cpus)


def condition_findings(plan: Plan, outcome: Outcome | None, hellos: tuple[Hello, ...]) -> tuple[Finding, ...]:
    """Return what a reader must know about the conditions."""
    return (
        *_placement_findings(plan),
        *(() if outcome is None else _counter_findings(plan, outcome)),
        *_rank_findings(hellos),
    )


def _placement_findings(plan: Plan) -> list[Finding]:
    found = []
    if plan.placement.oversubscribed:
        found.append(
            finding(
                "RUN006",
                ranks=plan.placement.ranks,
                cores=counted(_cores(plan), "core"),
                evidence="a rank that waits must give its core away before another can answer",
                fix=f"measure with at most {_cores(plan)} ranks on this host",
            )
        )
    if plan.host.governor == "powersave":
        found.append(
            finding(
                "RUN016",
                evidence=f"scaling governor of {plan.host.name}: powersave",
                fix="as root: `cpupower frequency-set --governor performance`",
            )
        )
    return found


def _counter_findings(plan: Plan, outcome: Outcome) -> list[Finding]:
    change, found = change_of(outcome), []
    if change.throttle_events:
        found.append(
            finding(
                "RUN007",
                evidence=f"{counted(change.throttle_events, 'throttle event')} in {outcome.wall_s:.0f} s",
                fix="check cooling and power limits of the host",
            )
        )
    if change.quota_stops:
        quota = f"; the limit is {plan.host.cpu_quota:g} CPUs" if plan.host.cpu_quota is not None else ""
        found.append(
            finding(
                "RUN008",
                evidence=f"stopped {counted(change.quota_stops, 'time')} in {outcome.wall_s:.0f} s{quota}",
                fix="give the container a whole CPU for each rank, or measure with fewer ranks",
            )
        )
    if change.stolen_share is not None and change.stolen_share > STOLEN_NOTED:
        found.append(
            finding("RUN009", share=percent(change.stolen_share), evidence="stolen over all processor time of the run")
        )
    return [*found, *_load_findings(plan, outcome)]


def _load_findings(plan: Plan, outcome: Outcome) -> list[Finding]:
    load = outcome.counters_before.load_average
    free = max(0, len(plan.host.cpus) - plan.placement.ranks)
    if load <= free + LOAD_NOTED:
        return []
    return [
        finding(
            "RUN010",
            evidence=f"load average {load:.1f} in the minute before the run, {counted(free, 'CPU')} left free by the "
            "ranks; a run that ended just before counts too",
            fix="measure again when it is quiet; what runs: `ps -eo pcpu,pid,comm --sort=-pcpu`",
        )
    ]


def _rank_findings(hellos: tuple[Hello, ...]) -> list[Finding]:
    found = []
    interposed = sorted({name for hello in hellos for name in hello.interposed})
    if interposed:
        found.append(
            finding(
                "RUN015",
                evidence=listed(interposed),
                fix="measure without LD_PRELOAD and without the profiler",
            )
        )
    if multiple := [hello for hello in hellos if hello.thread_level.lower().endswith("multiple")]:
        found.append(finding("RUN017", evidence=f"thread level {multiple[0].thread_level} on rank {multiple[0].rank}"))
    if own := [hello for hello in hellos if hello.small_float_reductions == "busbw"]:
        found.append(finding("RUN018", evidence=f"{own[0].mpi_library} has no such operation (rank {own[0].rank})"))
    return found


_PORT = "port "


def node_findings(nodes: tuple[Node, ...]) -> tuple[Finding, ...]:
    """Return what a reader must know about the hosts of a run."""
    found = differences(nodes) if nodes else ()
    mixed = _mixed(found)
    ports = [difference for difference in found if difference.what.startswith(_PORT)]
    others = [difference for difference in found if not difference.stops and difference not in ports]
    findings = []
    if mixed:
        findings.append(
            finding(
                "RUN023",
                what=listed([difference.what for difference in mixed]),
                evidence=sentences(mixed),
                fix="make the hosts alike, or measure those that are alike: --hosts",
            )
        )
    if ports:
        findings.append(
            finding(
                "RUN025",
                ports=counted(len(ports), "network port"),
                evidence=sentences(ports),
                fix="see `ibstat` and `ip -br link` on the hosts named",
            )
        )
    if others:
        what = listed([difference.what for difference in others])
        findings.append(finding("RUN024", what=what, evidence=sentences(others)))
    return tuple(findings)


def mixture_words(nodes: tuple[Node, ...]) -> str | None:
    """Return why the numbers of a run are of a mixture, and not to be held against those of another; None else."""
    mixed = _mixed(differences(nodes)) if nodes else ()
    if not mixed:
        return None
    return f"the hosts differ in {listed([difference.what for difference in mixed])}: the numbers are of a mixture"


def _mixed(found: tuple[Difference, ...]) -> tuple[Difference, ...]:
    return tuple(difference for difference in found if difference.stops)


# A shift of the median between the halves of a point that is worth a word, when the interval does not cover it.
DRIFT_NOTED = 0.05
# Lag-1 autocorrelation from which the interval is noticeably too narrow (1.4 times at 0.3).
AUTOCORRELATION_NOTED = 0.3
MISSED_NOTED = 0.05
# Share of the measured time that the clocks of two ranks may be apart.
CLOCK_NOTED = 0.10

Measure = Callable[[Measurement], float]


def sampling_findings(
    plan: Plan, measurements: tuple[Measurement, ...], outcome: Outcome | None = None
) -> tuple[Finding, ...]:
    """Return what a reader must know about the samples. A wrong point is not looked at: its time counts for nothing."""
    points = tuple(point for point in measurements if point.wrong is None)
    found = (
        _few(plan, points, outcome),
        _wide(plan, points),
        _drifting(points),
        _correlated(points),
        _unstable(points),
        _missed(points),
        _clock(points),
        _unverified(points),
        None if plan.placement.oversubscribed else _disturbed(points),
    )
    return tuple(one for one in found if one is not None)


def effective_samples(measurement: Measurement) -> float:
    """Return how many independent samples say as much: n (1 - r) / (1 + r) for lag-1 autocorrelation r.

    Exact for the mean of a first-order autoregressive series (Bayley, Hammersley, 1946); for a median it is a guide.
    """
    correlation = max(0.0, min(measurement.autocorrelation or 0.0, 0.999))
    return measurement.samples * (1 - correlation) / (1 + correlation)


def _report(
    code: str,
    points: list[Measurement],
    worst: Measure,
    say: Callable[[Measurement], str],
    fix: str | None = None,
    why: str | None = None,
) -> Finding | None:
    """Return one finding about `points`, told by the one that is `worst`; None without points."""
    if not points:
        return None
    first = max(points, key=worst)
    others = [label(point) for point in points if point is not first]
    return finding(
        code,
        points=counted(len(points), "point"),
        evidence=f"{label(first)}: {say(first)}"
        + (f"; also {listed(others)}" if others else "")
        + (f"; {why}" if why is not None else ""),
        fix=fix,
        point=first.point if len(points) == 1 else None,
    )


def _few(plan: Plan, points: tuple[Measurement, ...], outcome: Outcome | None) -> Finding | None:
    few = [point for point in points if point.samples < LEAST_SAMPLES]
    is_cut = outcome is not None and outcome.ended in ("time", "stopped")
    return _report(
        "RUN004",
        few,
        lambda point: -point.samples,
        lambda point: counted(point.samples, "sample"),
        more_samples(plan, few) or "give the run more time, or measure fewer sizes",
        ended_words(outcome) if is_cut else None,
    )


def _wide(plan: Plan, points: tuple[Measurement, ...]) -> Finding | None:
    asked = plan.sampling.half_width
    wide = [point for point in points if point.samples >= LEAST_SAMPLES and half_width(point) > asked]
    return _report(
        "RUN005",
        wide,
        half_width,
        lambda point: (
            f"interval +-{percent(half_width(point))} after {counted(point.samples, 'sample')} "
            f"(asked: {percent(asked)}; ended by {point.ended})"
        ),
        "give the run more time if the difference matters",
    )


def _drifting(points: tuple[Measurement, ...]) -> Finding | None:
    drifting = [
        point
        for point in points
        if point.drift is not None and abs(point.drift) > max(DRIFT_NOTED, 2 * half_width(point))
    ]
    return _report(
        "RUN011",
        drifting,
        lambda point: abs(point.drift or 0.0),
        lambda point: f"{(point.drift or 0.0) * 100:+.1f} % from the first to the second half",
        "measure again: a number that moves while it is taken may be another tomorrow",
    )


def _correlated(points: tuple[Measurement, ...]) -> Finding | None:
    correlated = [point for point in points if (point.autocorrelation or 0.0) > AUTOCORRELATION_NOTED]
    return _report(
        "RUN012",
        correlated,
        lambda point: point.autocorrelation or 0.0,
        lambda point: (
            f"lag-1 autocorrelation {point.autocorrelation:.2f}: {counted(point.samples, 'sample')} say as "
            f"much as {effective_samples(point):.0f} independent ones"
        ),
    )


def _unstable(points: tuple[Measurement, ...]) -> Finding | None:
    # The first sample alone is taken after one call; that it is alone is said already.
    unstable = [point for point in points if not point.warmup_stable and point.turns > 0]
    return _report(
        "RUN013",
        unstable,
        lambda point: point.warmup_calls,
        lambda point: f"{counted(point.warmup_calls, 'warm-up call')} and the time still moved",
    )


def _missed(points: tuple[Measurement, ...]) -> Finding | None:
    missed = [point for point in points if missed_share(point) > MISSED_NOTED]
    return _report(
        "RUN014",
        missed,
        missed_share,
        lambda point: f"{point.missed} of {counted(point.samples + point.missed, 'start')} left out",
    )


def clock_share(measurement: Measurement) -> float:
    """Return how far the clocks may be apart, as a share of the time measured; 0 where no common clock is needed."""
    if measurement.mode != "isolated" or measurement.clock_error_s is None or measurement.median_s <= 0:
        return 0.0
    return measurement.clock_error_s / measurement.median_s


def _clock(points: tuple[Measurement, ...]) -> Finding | None:
    coarse = [point for point in points if clock_share(point) > CLOCK_NOTED]
    return _report(
        "RUN019",
        coarse,
        clock_share,
        lambda point: f"clocks may differ by {percent(clock_share(point))} of the time measured",
        "measure short messages in stream mode",
    )


def _unverified(points: tuple[Measurement, ...]) -> Finding | None:
    unverified = [point for point in points if not point.verified]
    return _report("RUN020", unverified, lambda point: point.size_bytes, lambda _point: "no element was checked")


def _disturbed(points: tuple[Measurement, ...]) -> Finding | None:
    disturbed = [point for point in points if is_disturbed(point)]
    return _report(
        "RUN022",
        disturbed,
        lambda point: core_losses(point) / max(point.samples, 1),
        lambda point: (
            f"a rank lost its core {counted(core_losses(point), 'time')} in {counted(point.samples, 'sample')}"
        ),
        "measure again when it is quiet, or with fewer ranks; what runs: `ps -eLo psr,pid,pcpu,comm --sort=-pcpu`",
    )
