"""A run from its raw files: parsed, judged, written as run.json."""

from pathlib import Path

from busbw import judge
from busbw.backends import registry
from busbw.model.run import Run
from busbw.store import directory as directories
from busbw.store import outcome as outcomes
from busbw.store import raw, runs


def load(directory: Path) -> Run:
    """Rebuild run.json from the plan, the outcome and the ranks' records, and return it.

    Raises InputError when the directory is not a run, RunError when run.json cannot be written.
    """
    plan = directories.read_plan(directory)
    outcome = outcomes.read(directory)
    records, unreadable = raw.read_records(directory)
    parsed = registry.find(plan.backend).parse(plan, records)
    judgement = judge.judge(plan, outcome, parsed.ranks, parsed.rates, parsed.measurements)
    run = Run(
        plan=plan,
        outcome=outcome,
        ranks=parsed.ranks,
        rates=parsed.rates,
        measurements=parsed.measurements,
        ceilings=judgement.ceilings,
        findings=judgement.findings,
        verdict=judgement.verdict,
        unreadable=unreadable,
    )
    runs.write(directory, run)
    return run


def read(directory: Path) -> Run:
    """Return the stored result of a run directory, rebuilding it when there is none."""
    stored = runs.read(directory)
    return stored if stored is not None else load(directory)
