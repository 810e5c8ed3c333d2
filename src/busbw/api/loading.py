"""A run from its raw files: parsed, judged, written as run.json."""

import contextlib
from pathlib import Path

from busbw import judge
from busbw.api import runs
from busbw.base.errors import RunError
from busbw.facts.platforms import all_platforms
from busbw.judge.autopsy import autopsy
from busbw.judge.explaining.explain import judged_by_links
from busbw.judge.failures import unreached
from busbw.model.run import Run
from busbw.store import directory as directories
from busbw.store import outcome
from busbw.store import outcome as outcomes
from busbw.store.raw import read_visits


def load(directory: Path) -> Run:
    """Rebuild run.json from the plan, the outcome and the ranks' records, and return it.

    Raises InputError when the directory is not a run, RunError when run.json cannot be written.
    """
    run = rebuild(directory)
    outcome.write_run(directory, run)
    return run


def rebuild(directory: Path) -> Run:
    """Return the result of a run from its raw files, and write nothing."""
    plan = directories.read_plan(directory)
    outcome = outcomes.read(directory)
    parsed, unreadable = runs.parse(plan, directory)
    visits, damaged = read_visits(directory)
    judgement = judge.judge(
        plan,
        outcome,
        parsed.ranks,
        parsed.rates,
        parsed.measurements,
        parsed.failures,
        parsed.nodes,
        parsed.launches,
    )
    run = Run(
        plan=plan,
        outcome=outcome,
        ranks=parsed.ranks,
        rates=parsed.rates,
        measurements=parsed.measurements,
        ceilings=judgement.ceilings,
        findings=judgement.findings,
        verdict=judgement.verdict,
        unreadable=(*unreadable, *damaged),
        launches=parsed.launches,
        nodes=parsed.nodes,
        # A run that somebody stopped was visited too, but only to end it.
        autopsy=autopsy(plan, visits) if outcome is None or outcome.ended == "failed" else None,
        unreached=unreached(plan, outcome, parsed.measurements),
    )
    return judged_by_links(run, all_platforms()) if plan.gpu_setup is not None else run


def read(directory: Path) -> Run:
    """Return the stored result of a run directory, rebuilt when there is none.

    What was rebuilt is stored if the disk allows, and if it is final: a run may still be under way.
    """
    stored = outcome.read_run(directory)
    if stored is not None:
        return stored
    run = rebuild(directory)
    if run.outcome is not None:
        with contextlib.suppress(RunError):
            outcome.write_run(directory, run)
    return run
