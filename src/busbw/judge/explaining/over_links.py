"""Runs over NCCL, judged by the links that the names of their GPUs tell of: a verdict without any platform named."""

from collections.abc import Sequence

from msgspec import structs

from busbw.facts.gpu_kinds import facts_of_gpus
from busbw.judge.explaining.explain import NO_CEILING, explain
from busbw.judge.explaining.grounds import Grounds
from busbw.judge.explaining.slow_ends import pair_findings_of_run
from busbw.judge.explaining.sources import series_of_run
from busbw.judge.explaining.told import Told
from busbw.model.platform import Platform
from busbw.model.run import Run

_ORDER = {"error": 0, "warn": 1, "note": 2}


def judged_by_links(run: Run, platforms: Sequence[Platform]) -> Run:
    """Return a run over NCCL with what its GPUs' links say of it.

    A verdict that rests on anything else stays; "cannot tell" for want of something to hold the figures against does
    not, where the links give an answer.
    """
    if not run.measurements:
        return run
    grounds = Grounds(gpus=facts_of_gpus(platforms))
    pairs = pair_findings_of_run(run, grounds)
    explained = explain(run.plan.run_id, series_of_run(run, Told()), grounds, run=run, findings=pairs)
    if explained.verdict.outcome == "cannot_tell":
        return run
    kept = tuple(found for found in run.findings if found.code != NO_CEILING)
    findings = tuple(sorted((*kept, *explained.findings), key=lambda found: _ORDER[found.severity]))
    return structs.replace(run, findings=findings, verdict=explained.verdict)
