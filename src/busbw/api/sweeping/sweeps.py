"""Sweeps over the pairs of a fabric: planned, measured on its hosts, and gone on with."""

import random
from pathlib import Path

from msgspec import structs

from busbw.api import runs
from busbw.api.sweeping.evidence import topology_text
from busbw.api.sweeping.swept import expected_of, lost_seats, measured_rounds, waiting_seats
from busbw.base import layout
from busbw.base.errors import InputError
from busbw.base.hostlist import compressed
from busbw.base.value import Value
from busbw.fabric.table import quantity
from busbw.machine.capture.allocation import allocation
from busbw.measure.execute.launch import Listener
from busbw.measure.plan.fabric import gpu_request, plan_sweep
from busbw.measure.plan.hosts import check_started_once
from busbw.measure.plan.planning import plan as make_plan
from busbw.model.fabric import Earlier, FabricAsked
from busbw.model.plan import Plan
from busbw.model.request import Request
from busbw.model.run import Run
from busbw.store import directory as directories
from busbw.store import outcome as outcomes
from busbw.store.files import is_file
from busbw.store.raw import read_records


def is_in_job() -> bool:
    """Whether a batch system has given hosts to this job. Raises InputError where its variables make no sense."""
    return allocation() is not None


def plan_fabric(request: Request, asked: FabricAsked, directory: Path | None) -> tuple[Plan, Path]:
    """Return the plan of a sweep, and its run directory. Raises InputError for what cannot be measured."""
    for each in asked.expect:
        expected_of(asked.expect, asked.metrics[0], asked.metrics, where=f"--expect {each}")
    return plan_sweep(request, asked, directory, directories.root(), random.Random)


def plan_gpu_pairs(request: Request, asked: FabricAsked, directory: Path | None) -> tuple[Plan, Path]:
    """Return the plan of a run over the pairs of GPUs, and its directory. Raises InputError as `plan_fabric` does."""
    for each in asked.expect:
        quantity(each, "bibandwidth", f"--expect {each}")
    if asked.tree is not None:
        topology_text(asked.tree)
    return make_plan(gpu_request(request, asked), directory, directories.root())


def start_fabric(plan: Plan, directory: Path, listener: Listener) -> Run:
    """Measure a planned sweep, or pairs of GPUs, and return what came of it. Raises as `runs.start` does."""
    return runs.start(plan, directory, listener)


class EndedEarly(Value, kw_only=True, frozen=True):
    """Why a sweep did not come to its end, and its run as `--resume` takes it."""

    cause: str
    name: str
    # Else it was stopped.
    has_failed: bool


def ended_early(source: str) -> EndedEarly | None:
    """Return why the sweep that is named did not come to its end; None for one that did, and for all else."""
    try:
        where = directories.find(source, directories.root())
    except InputError:
        return None
    if directories.read_plan(where).fabric is None:
        return None
    outcome = outcomes.read(where)
    if outcome is not None and outcome.ended in ("complete", "time"):
        return None
    if outcome is None:
        return EndedEarly(cause="it was cut off, or is still under way", name=source, has_failed=False)
    cause = outcome.cause or "it was stopped"
    if (culprit := outcome.culprit) is not None:
        who = f"rank {culprit.rank} on {culprit.host}"
        cause = cause if who in cause else f"{who} {culprit.what}: {cause}"
    return EndedEarly(cause=cause, name=source, has_failed=outcome.ended == "failed")


def resumed_plan(directory: Path, hosts: str | None) -> tuple[Plan, Path]:
    """Return the plan that goes on with a sweep, and its directory: the same where every host is there.

    Where hosts are lost it is a run of its own beside it, over those that are left. Raises InputError where nothing is
    missing, and for other hosts than those of the run.
    """
    check_started_once()
    plan = directories.read_plan(directory)
    if plan.fabric is None or plan.request is None:
        raise InputError("this run is no sweep", where=str(directory), hint=f"busbw run --resume {directory.name}")
    if hosts is not None and hosts != plan.request.hosts:
        raise InputError(
            f"this run belongs to {compressed(plan.placement.hosts)}, and --hosts names {hosts[:80]}",
            where=str(directory),
            hint="leave --hosts out, or start anew without --resume",
        )
    runs.check_hosts(plan, directory)
    records, _unreadable = read_records(directory)
    rounds = measured_rounds(records)
    outcome = outcomes.read(directory)
    if outcome is not None and outcome.ended in ("complete", "time"):
        raise InputError("nothing is missing in this run", where=str(directory), hint=f"busbw fabric {directory.name}")
    lost = lost_seats(plan, directory, rounds)
    if not lost:
        return plan, directory
    left = [seat for seat in plan.fabric.of_rank if seat not in lost]
    names = compressed(tuple(dict.fromkeys(plan.fabric.seats[seat].node for seat in left)))
    # With those that only waited rounds are measured again: they are sound.
    waiting = waiting_seats(plan, directory, rounds)
    whole = [each for each in rounds if not waiting & set(each.lost)]
    earlier = tuple(Earlier(metric=each.metric, round=each.round, tests=each.tests) for each in whole)
    place = directory.with_name(f"{directory.name}.again")
    request = structs.replace(plan.request, hosts=names, nodes=None)
    return plan_sweep(
        request,
        plan.fabric.asked,
        place,
        directories.root(),
        random.Random,
        continues=directory.name,
        earlier=(*plan.fabric.earlier, *earlier),
        seats=plan.fabric.seats,
    )


def resume_fabric(plan: Plan, directory: Path, listener: Listener) -> Run:
    """Measure the rounds that are missing, with the plan of `resumed_plan`."""
    if is_file(directory / layout.PLAN_FILE):
        return runs.go_on(plan, directory, frozenset(), listener)
    return runs.start(plan, directory, listener)
