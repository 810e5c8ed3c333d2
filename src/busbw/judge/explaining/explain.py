"""The explained verdict: every series, size by size, and the answer they give together."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from busbw.base.text import counted
from busbw.facts.platforms import facts_of_gpus, gains
from busbw.judge.explaining.concluding import Sized, findings_of_series, verdict_of_series
from busbw.judge.explaining.expecting import Knowledge, empty_call
from busbw.judge.explaining.known_machine import KnownMachine, platform_findings
from busbw.judge.explaining.memory import curve_of, explain_in_memory, measured_of, regime
from busbw.judge.explaining.scenarios import bounds
from busbw.judge.explaining.series import Series, SizeSample, StatedFacts, stated_by_settings
from busbw.judge.explaining.sizing import Against, explain_size
from busbw.judge.explaining.slow_ends import pair_findings_of_run
from busbw.judge.explaining.sources import series_of_run, settings_of, started_with
from busbw.limits.message_rate import NAME as MESSAGE_RATE
from busbw.model.finding import Finding, Verdict
from busbw.model.plan import Plan
from busbw.model.platform import Platform
from busbw.model.run import Run
from busbw.model.verdict import ExplainedVerdict, Regime, SeriesExplanation, SweepCurve

_SEVERITY = {"error": 0, "warn": 1, "note": 2}
_WORST_FIRST = ("wrong", "failed", "slow", "cannot_tell", "ok")
# What a run says when nothing was known of its links; here something is.
NO_CEILING = "RUN021"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Explained:
    series: SeriesExplanation
    findings: tuple[Finding, ...]
    grounds: str | None


def explain(
    subject: str,
    series: Sequence[Series],
    known_machine: KnownMachine,
    *,
    run: Run | None = None,
    findings: tuple[Finding, ...] = (),
    left_out: tuple[str, ...] = (),
) -> ExplainedVerdict:
    """Return everything explained and judged.

    `run`: whose measurements the series are, for what it measured of its host and for its own verdict. `findings`: what
    was found of single GPUs and pairs.
    """
    known = [_explain_series(each, known_machine, run) for each in series]
    about_platform = platform_findings(known_machine.platform) if known_machine.platform is not None else ()
    every = dict.fromkeys((*findings, *(found for each in known for found in each.findings), *about_platform))
    steps = [each.series.next_step for each in known if each.series.next_step is not None]
    steps += [found.fix for found in findings if found.fix is not None]
    explained = tuple(each.series for each in known)
    return ExplainedVerdict(
        subject=subject,
        machine=_machine(known_machine),
        grounds=tuple(dict.fromkeys(each.grounds for each in known if each.grounds is not None)),
        series=explained,
        findings=tuple(sorted(every, key=lambda found: _SEVERITY[found.severity])),
        left_out=left_out,
        gains=_gains(series, known_machine),
        verdict=_together(explained, run, findings, left_out),
        next_steps=tuple(dict.fromkeys(steps)),
    )


def _gains(series: Sequence[Series], known_machine: KnownMachine) -> tuple[str, ...]:
    if known_machine.platform is None:
        return ()
    found = (gains(known_machine.platform, each.collective) for each in series)
    return tuple(dict.fromkeys(words for each in found for words in each))


def _machine(known_machine: KnownMachine) -> str | None:
    if known_machine.hardware is not None:
        return known_machine.hardware.hostname
    return known_machine.platform.id if known_machine.platform is not None else None


def _explain_series(series: Series, known_machine: KnownMachine, run: Run | None) -> _Explained:
    at_home = run is not None and series.library == "mpi" and series.nodes == 1
    rates, where = known_machine.rates(series)
    found, no_bound = bounds(rates, series)
    platform = known_machine.platform
    curve = curve_of(series)
    if at_home and run is not None:
        sizes = _at_home(series, curve, run)
        return _Explained(
            series=_conclude(series, curve, sizes), findings=(), grounds="the memory of the host, measured in the run"
        )
    known = Knowledge(
        series=series,
        known_machine=known_machine,
        rates=rates,
        references=known_machine.references(series) if rates is not None else (),
        empty=empty_call(series, rates, known_machine.sm(series)),
    )
    against = Against(
        known=known,
        bounds=found,
        no_bound=no_bound if rates is not None else where,
        published=platform.published if platform is not None else (),
    )
    sized: list[Sized] = []
    for sample in series.samples:
        size, seems = explain_size(against, sample)
        sized.append(Sized(sample=sample, size=size, suspect=seems))
    return _Explained(
        series=_conclude(series, curve, sized),
        findings=findings_of_series(series, sized, rates),
        # Without rates it is the reason why, which each size gives.
        grounds=where if rates is not None else None,
    )


def _at_home(series: Series, curve: SweepCurve, run: Run) -> list[Sized]:
    def decides(sample: SizeSample) -> Regime | None:
        return regime(curve, series.collective, sample.size_bytes)

    return [
        Sized(
            sample=sample,
            size=explain_in_memory(
                series,
                sample,
                measured_of(run, sample.point),
                curve,
                decides(sample),
            ),
        )
        for sample in series.samples
    ]


def _conclude(series: Series, curve: SweepCurve, sized: Sequence[Sized]) -> SeriesExplanation:
    verdict = verdict_of_series(series, sized)
    # The size that leads comes first: the largest, or the one of which most messages were sent.
    counts = series.collective == MESSAGE_RATE
    ordered = sorted(sized, key=lambda each: each.size.time_s if counts else -each.size.size_bytes)
    steps = [each.size.next_step for each in ordered if each.size.verdict.outcome == verdict.outcome]
    return SeriesExplanation(
        title=series.title,
        collective=series.collective,
        dtype=series.dtype,
        op=series.op,
        in_place=series.in_place,
        ranks=series.ranks,
        nodes=series.nodes,
        gpus_per_node=series.gpus_per_node,
        library=series.library,
        statistic=series.statistic,
        table=series.table,
        settings=_settings(series),
        curve=curve,
        sizes=tuple(each.size for each in sized),
        verdict=verdict,
        next_step=next((step for step in steps if step is not None), None),
    )


def _settings(series: Series) -> tuple[tuple[str, str], ...]:
    found = []
    if series.nvls is not None:
        found.append(("NVLS", "on" if series.nvls else "off"))
    if series.sharp is not None:
        found.append(("SHARP", "on" if series.sharp else "off"))
    if series.algorithms:
        found.append(("algorithm", ", ".join(series.algorithms)))
    if series.network is not None:
        found.append(("network", series.network))
    return tuple(found)


def _together(
    series: Sequence[SeriesExplanation], run: Run | None, findings: Sequence[Finding], left_out: Sequence[str]
) -> Verdict:
    """Return the verdict on everything; what a run says of its own conditions goes before what its figures say."""
    own = run.verdict if run is not None else None
    if own is not None and _stands(own, series):
        return own
    slow_ends = [found for found in findings if found.code == "PERF013"]
    if not series:
        return _without_series(slow_ends, left_out)
    worst = min(series, key=lambda each: _WORST_FIRST.index(each.verdict.outcome)).verdict
    if slow_ends and worst.outcome in ("slow", "cannot_tell", "ok"):
        return _slow_end(slow_ends[0])
    if own is not None and own.outcome == "slow" and worst.outcome != "wrong":
        # A rank that delays the others, or another way to the same result that is faster: it needs no expectation.
        return own
    others = sum(each.verdict.outcome == worst.outcome for each in series) - 1
    if worst.outcome == "ok" or not others:
        return worst
    return Verdict(
        outcome=worst.outcome,
        sentence=f"{worst.sentence[:-1]}; {others} other table{'s' if others > 1 else ''} too.",
        because=worst.because,
    )


def _stands(own: Verdict, series: Sequence[SeriesExplanation]) -> bool:
    """Whether a run's own verdict needs nothing of what is explained here."""
    if own.outcome in ("wrong", "failed"):
        return True
    if own.outcome == "cannot_tell":
        return bool(set(own.because) - {NO_CEILING})
    # MPI within one host: the run was judged by the same rates, and by its conditions besides.
    return bool(series) and all(each.library == "mpi" and each.nodes == 1 for each in series)


def _slow_end(found: Finding) -> Verdict:
    return Verdict(outcome="slow", sentence=f"slow: {found.title}: {found.evidence}.", because=(found.code,))


def _without_series(slow_ends: Sequence[Finding], left_out: Sequence[str]) -> Verdict:
    if slow_ends:
        return _slow_end(slow_ends[0])
    why = f": {left_out[0]}" if left_out else ""
    return Verdict(outcome="cannot_tell", sentence=f"cannot tell: nothing was measured that can be judged{why}.")


def explain_published(platform: Platform) -> ExplainedVerdict:
    """Return what the health checks that are in use for a platform ask for, held against what its parts carry."""
    found = platform_findings(platform)
    words = f"{counted(len(found), 'finding')} on" if found else "nothing speaks against"
    return ExplainedVerdict(
        subject=f"health checks of {platform.id}",
        machine=platform.id,
        grounds=(f"published for {platform.id}",),
        findings=found,
        verdict=Verdict(
            outcome="ok",
            sentence=f"ok: {words} the {counted(len(platform.thresholds), 'limit')} of health checks in use for "
            f"{platform.id}; no result was judged.",
        ),
    )


_ORDER = {"error": 0, "warn": 1, "note": 2}


_NCCL_TESTS = "nccl-tests"


def is_judged_by_links(plan: Plan) -> bool:
    """Whether what a run measures goes over links that something is known of: GPUs of ours, or NICs in a loopback."""
    if plan.gpu_setup is not None or plan.backend != _NCCL_TESTS:
        return plan.gpu_setup is not None
    return stated_by_settings(started_with(plan)).network == "loopback" and not plan.placement.is_spread


def _machine_of(run: Run, platforms: Sequence[Platform]) -> KnownMachine:
    """Return what a run over NCCL is held against: its GPUs by name, and in a loopback the platform for its NICs.

    What crosses the NICs of one node is not bound by the links between its GPUs, and a GPU's name says nothing of NICs.
    """
    gpus = facts_of_gpus(platforms)
    start = run.plan.surroundings
    is_loopback = stated_by_settings(settings_of(run)).network == "loopback" and not run.plan.placement.is_spread
    named = start.platform if start is not None and is_loopback else None
    platform = next((each for each in platforms if each.id == named), None) if named is not None else None
    return KnownMachine(platform=platform, platform_name=named if platform is not None else None, gpus=gpus)


def judged_by_links(run: Run, platforms: Sequence[Platform]) -> Run:
    """Return a run over NCCL with what its GPUs' links say of it.

    A verdict that rests on anything else stays; "cannot tell" for want of something to hold the figures against does
    not, where the links give an answer.
    """
    if not run.measurements:
        return run
    known_machine = _machine_of(run, platforms)
    pairs = pair_findings_of_run(run, known_machine)
    explained = explain(run.plan.run_id, series_of_run(run, StatedFacts()), known_machine, run=run, findings=pairs)
    if explained.verdict.outcome == "cannot_tell":
        return run
    kept = tuple(found for found in run.findings if found.code != NO_CEILING)
    findings = tuple(sorted((*kept, *explained.findings), key=lambda found: _ORDER[found.severity]))
    return structs.replace(run, findings=findings, verdict=explained.verdict)
