"""The result of a run from its raw files, or as it is stored."""

import contextlib
from pathlib import Path

import msgspec

from busbw import judge
from busbw.base.errors import RunError
from busbw.facts.platforms import find_platform, platform_ids, platforms_with_gpus
from busbw.judge.autopsy import autopsy
from busbw.judge.explaining.explain import is_judged_by_links, judged_by_links
from busbw.judge.failures import unreached
from busbw.measure.backends import registry
from busbw.measure.backends.backend import Parsed, is_own
from busbw.model.plan import Plan
from busbw.model.platform import Platform
from busbw.model.run import Run
from busbw.store import directory as directories
from busbw.store import outcome as outcomes
from busbw.store.raw import read_printed, read_records, read_visits


def load(directory: Path) -> Run:
    """Rebuild run.json from the plan, the outcome and the ranks' records, and return it.

    Raises InputError when the directory is not a run, RunError when run.json cannot be written.
    """
    run = rebuild(directory)
    outcomes.write_run(directory, run)
    return run


def rebuild(directory: Path) -> Run:
    """Return the result of a run from its raw files, and write nothing."""
    plan = directories.read_plan(directory)
    outcome = outcomes.read(directory)
    parsed, unreadable = parse(plan, directory)
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
    if plan.fabric is not None:
        return _judged_as_sweep(run, directory)
    if plan.step is not None:
        from busbw.api.training.replaying import with_step  # noqa: PLC0415 - few runs replay a step

        return with_step(run, directory)
    return judged_by_links(run, _platforms_of(run)) if is_judged_by_links(plan) else run


def parse(plan: Plan, directory: Path) -> tuple[Parsed, tuple[str, ...]]:
    """Return what a run directory holds, and what of it was unreadable."""
    backend = registry.find(plan.backend)
    if is_own(backend):
        records, unreadable = read_records(directory)
        return backend.parse(plan, records), unreadable
    from busbw.measure.backends import foreign  # noqa: PLC0415 - it brings the readers of tables

    return foreign.parse(foreign.as_foreign(backend), plan, read_printed(directory)), ()


def _platforms_of(run: Run) -> tuple[Platform, ...]:
    """Return what is known of machines with the GPUs of a run, and of the platform that it is on.

    Reading the files of all platforms takes longer than all else that follows a short run.
    """
    models = {hello.gpu.model for hello in run.ranks if hello.gpu is not None}
    if run.plan.gpus is not None:
        models |= {device.model for device in run.plan.gpus.devices}
    found = platforms_with_gpus(frozenset(models))
    named = run.plan.surroundings.platform if run.plan.surroundings is not None else None
    if named is None or any(each.id == named for each in found):
        return found
    # A site's platform is unknown where its files are not.
    return (*found, find_platform(named).platform) if named in platform_ids() else found


def _judged_as_sweep(run: Run, directory: Path) -> Run:
    """Return a run with what its pairs say; one of which no pair has answered stays as it is."""
    from busbw.api.sweeping.swept import judged  # noqa: PLC0415 - importing it takes as long as judging

    records, _unreadable = read_records(directory)
    found = judged(run.plan, records, directory)
    if found is None:
        return run
    kept = tuple(each for each in run.findings if each.code not in _OF_POINTS)
    return msgspec.structs.replace(run, findings=(*found[0], *kept), verdict=found[1], unreached=None)


# Findings about points that were not measured: a sweep has none.
_OF_POINTS = frozenset({"RUN003"})


def read(directory: Path) -> Run:
    """Return the stored result of a run directory, rebuilt when there is none.

    What was rebuilt is stored if the disk allows, and if it is final: a run may still be under way, and of one that
    has just ended the launching side may store the result meanwhile, which then counts.
    """
    stored = outcomes.read_run(directory)
    if stored is not None:
        return stored
    run = rebuild(directory)
    if run.outcome is not None:
        with contextlib.suppress(RunError):
            if not outcomes.add_run(directory, run):
                return outcomes.read_run(directory) or run
    return run
