"""What the records of a sweep over the pairs of a fabric say: its rounds, whom it lost, and its judgement."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from busbw.base.errors import InputError
from busbw.fabric.counters.evidence import CountedAgain, counter_notes, set_beside, weighed, with_retests
from busbw.fabric.counters.ports import PortChanges, changes
from busbw.fabric.places import members_text
from busbw.fabric.procedure import Swept
from busbw.fabric.recorded import beside_other_work, places_of, recorded, rounds_of
from busbw.fabric.report import ExpectedPair, FabricReport, expectations, report
from busbw.fabric.table import quantity
from busbw.facts.platforms import find_platform
from busbw.machine.capture.sites import site_files
from busbw.model.fabric import Earlier, FabricMetric
from busbw.model.finding import Finding, Verdict
from busbw.model.machine import CountersRead
from busbw.model.plan import Plan
from busbw.model.record import CountersKept, RetestCounted, RoundMeasured
from busbw.store import outcome as outcomes
from busbw.store.raw import Records

_WORST = ("wrong", "failed", "slow", "cannot_tell", "ok")


def measured_rounds(records: Records) -> tuple[RoundMeasured, ...]:
    """Return the rounds that rank 0 wrote down."""
    return tuple(record for _place, record in records.get(0, ()) if isinstance(record, RoundMeasured))


def lost_seats(plan: Plan, directory: Path, rounds: Sequence[RoundMeasured]) -> tuple[int, ...]:
    """Return the endpoints whose hosts did not answer, or died, in a sweep: nothing is measured with them again."""
    fabric = plan.fabric
    assert fabric is not None
    lost = {seat for each in rounds for seat in each.lost}
    outcome = outcomes.read(directory)
    if outcome is not None and outcome.culprit is not None:
        lost |= {seat for seat in fabric.of_rank if fabric.seats[seat].node == outcome.culprit.host}
    nodes = {fabric.seats[seat].node for seat in lost - waiting_seats(plan, directory, rounds)}
    return tuple(seat for seat in fabric.of_rank if fabric.seats[seat].node in nodes)


def waiting_seats(plan: Plan, directory: Path, rounds: Iterable[RoundMeasured]) -> frozenset[int]:
    """Return the endpoints that were lost only because they waited for the one that the visits found to be the cause.

    An MPI may wait without end where the other host stands still: Open MPI 5 asks its daemon for the address of a
    peer that it has not met.
    """
    outcome = outcomes.read(directory)
    if plan.fabric is None or outcome is None or outcome.culprit is None:
        return frozenset()
    cause = {at for at, each in enumerate(plan.fabric.seats) if each.node == outcome.culprit.host}
    before: frozenset[int] = frozenset()
    for each in rounds:
        new = frozenset(each.lost) - before
        if new & cause:
            met = {frozenset((test.sender, test.receiver)) for test in each.tests if test.value is None}
            return frozenset(
                seat for seat in new - cause if any(frozenset((seat, other)) in met for other in new & cause)
            )
        before |= new
    return frozenset()


def _beside_waiting(outcome: Swept, waiting: frozenset[int]) -> Swept:
    """Return a sweep that names none of those that only waited for another, and says that they did."""
    names = {str(outcome.places.endpoints[seat]) for seat in waiting}
    kept = [each for each in outcome.answers if each.kind != "unanswered" or not names.issuperset(each.parts)]
    said = f"{members_text(sorted(names))} waited for it and had no part in later rounds, but answered a visit"
    answers = (
        structs.replace(each, evidence=(*each.evidence, said)) if each.kind == "unanswered" else each for each in kept
    )
    return replace(outcome, answers=tuple(answers)) if names else outcome


def expected_of(
    texts: Sequence[str], metric: FabricMetric, metrics: Sequence[FabricMetric], *, where: str = "--expect"
) -> tuple[ExpectedPair, ...]:
    """Return what was said of a metric, as `380Gb/s` or `1.7us`; rates count for the first metric of rates.

    Raises InputError for a unit that no metric has.
    """
    found: dict[FabricMetric, ExpectedPair] = {}
    for text in texts:
        for each in metrics:
            try:
                value = quantity(text, each, where)
            except InputError:
                if each == metrics[-1] and not any(_fits(text, other, where) for other in metrics):
                    raise
                continue
            found.setdefault(each, ExpectedPair(value=value, kind="given", source="--expect"))
            break
    return (found[metric],) if metric in found else ()


def _fits(text: str, metric: FabricMetric, where: str) -> bool:
    try:
        quantity(text, metric, where)
    except InputError:
        return False
    return True


def swept(plan: Plan, records: Records, metric: FabricMetric) -> Swept:
    """Return a stored sweep of one metric. Raises InputError where no pair has answered."""
    assert plan.fabric is not None
    rounds = rounds_of((*plan.fabric.earlier, *measured_rounds(records)))
    return recorded(plan.fabric, metric, random.Random, rounds)


def report_of(
    plan: Plan, records: Records, metric: FabricMetric, directory: Path, expected: Sequence[ExpectedPair] | None
) -> FabricReport:
    """Return the judgement of one metric of a sweep; `expected` None: what the run itself was told to expect."""
    assert plan.fabric is not None
    asked = plan.fabric.asked
    if expected is None:
        expected = expected_of(asked.expect, metric, asked.metrics)
        platform = plan.request.platform if plan.request is not None else None
        if not expected and platform is not None:
            expected = expectations(find_platform(platform, site_files()).platform, metric)
    waiting = waiting_seats(plan, directory, measured_rounds(records))
    outcome = _beside_waiting(swept(plan, records, metric), waiting)
    if metric == "message-rate":
        outcome = beside_other_work(outcome, [test for each in _rounds(plan, records, metric) for test in each.tests])
    found = counted_in(plan, records)
    if found is not None:
        outcome = replace(outcome, answers=weighed(outcome.answers, found))
    outcome = replace(outcome, answers=with_retests(outcome.answers, counted_again(plan, records, metric)))
    made = report(outcome, metric, f"{metric} of pairs in run {directory.name}", expected=expected)
    notes = counter_notes(outcome.answers, found) if found is not None else ()
    return set_beside(made, (*plan.fabric.links, *notes))


def counted_in(plan: Plan, records: Records) -> PortChanges | None:
    """Return what the ports of the hosts counted during a sweep; None where no host wrote it down twice."""
    assert plan.fabric is not None
    sides: dict[str, list[CountersRead]] = {"before": [], "after": []}
    for rank, entries in sorted(records.items()):
        for _place, record in entries:
            if isinstance(record, CountersKept) and rank < len(plan.fabric.of_rank):
                # Under the name that the sweep has for the host.
                node = plan.fabric.seats[plan.fabric.of_rank[rank]].node
                sides[record.moment].append(structs.replace(record.read, host=node))
    found = changes(sides["before"], sides["after"], "during the sweep")
    return found if found.ports else None


def _rounds(plan: Plan, records: Records, metric: FabricMetric) -> Iterator[RoundMeasured | Earlier]:
    """Yield the rounds of one metric, those of the run that it goes on with first."""
    assert plan.fabric is not None
    rounds: tuple[RoundMeasured | Earlier, ...] = (*plan.fabric.earlier, *measured_rounds(records))
    return (each for each in rounds if each.metric == metric)


def counted_again(plan: Plan, records: Records, metric: FabricMetric) -> tuple[CountedAgain, ...]:
    """Return what the ports of each host counted in the retests of one metric, in their order."""
    assert plan.fabric is not None
    names = {at: str(each) for at, each in enumerate(places_of(plan.fabric).endpoints)}
    found = []
    for rank, entries in sorted(records.items()):
        for _place, record in entries:
            if not isinstance(record, RetestCounted) or record.metric != metric or rank >= len(plan.fabric.of_rank):
                continue
            node = plan.fabric.seats[plan.fabric.of_rank[rank]].node
            before, after = (structs.replace(each, host=node) for each in (record.before, record.after))
            tests = tuple((names[one], names[other]) for one, other in record.tests if {one, other} <= names.keys())
            moved = changes([before], [after], "").changes
            found.append(
                CountedAgain(host=node, round=record.round, tests=tests, changes=moved, unix_s=record.after.unix_s)
            )
    return tuple(sorted(found, key=lambda each: each.round))


def metrics_measured(plan: Plan, records: Records) -> tuple[FabricMetric, ...]:
    """Return the metrics of a sweep of which any pair has answered, in their order."""
    assert plan.fabric is not None
    rounds: tuple[RoundMeasured | Earlier, ...] = (*plan.fabric.earlier, *measured_rounds(records))
    there = {each.metric for each in rounds if any(test.value is not None for test in each.tests)}
    return tuple(each.metric for each in plan.fabric.probes if each.metric in there)


def judged(plan: Plan, records: Records, directory: Path) -> tuple[tuple[Finding, ...], Verdict] | None:
    """Return what a sweep found, all metrics together, and its verdict: the worst; None where no pair has answered."""
    reports = [report_of(plan, records, each, directory, None) for each in metrics_measured(plan, records)]
    if not reports:
        return None
    first = min(reports, key=lambda each: _WORST.index(each.verdict.outcome))
    return tuple(each for one in reports for each in one.findings), first.verdict
