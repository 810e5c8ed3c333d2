"""A stored sweep: whom a host that stood still took with it, and what other verbs say of a sweep."""

import random
from pathlib import Path

import msgspec
import pytest
from tests.judge.factories import make_outcome, make_plan

from busbw.api.comparisons import result_of
from busbw.api.history import run_of
from busbw.api.sweeping.swept import lost_seats, report_of
from busbw.api.verdicts import open_results
from busbw.base import layout
from busbw.base.errors import InputError
from busbw.fabric.procedure import Swept
from busbw.fabric.recorded import beside_other_work, carried_out
from busbw.fabric.report import ExpectedPair, report
from busbw.fabric.simulation import Fault, Noise, Simulated
from busbw.model import codec
from busbw.model.fabric import PairSeen
from busbw.model.record import RoundMeasured
from busbw.model.visit import Culprit
from busbw.store import outcome as outcomes
from busbw.store.directory import create

from .test_planned_sweep import PLACES, planned

STILL, AFTER = 6, 2


def measured():
    """Return a plan, and its rounds: from the third on n6 and who was its partner then answer nobody."""
    fabric = planned(full=True)
    draws = random.Random(7)
    network = Simulated(topology="fat-tree-2", places=PLACES, faults=(), noise=Noise(), metric="bandwidth", draws=draws)
    lost: set[int] = set()
    rounds = []

    def measure(pairs, number):
        if number == AFTER:
            lost.update(next((each.sender, each.receiver) for each in pairs if STILL in (each.sender, each.receiver)))
        values = [
            None if lost & {pair.sender, pair.receiver} else value
            for pair, value in zip(pairs, network.measure(pairs, number), strict=True)
        ]
        tests = tuple(
            PairSeen(sender=pair.sender, receiver=pair.receiver, value=value)
            for pair, value in zip(pairs, values, strict=True)
        )
        rounds.append(
            RoundMeasured(
                metric="bandwidth", round=number, tests=tests, lost=tuple(sorted(lost)),
                started_unix_s=0.0, ended_unix_s=1.0,
            )
        )  # fmt: skip
        return values

    carried_out(fabric, "bandwidth", random.Random, measure)
    return msgspec.structs.replace(make_plan(), fabric=fabric), rounds, min(lost - {STILL})


@pytest.mark.parametrize("found", [True, False])
def test_who_only_waited_is_neither_named_nor_left_out_where_visits_found_the_cause(
    tmp_path: Path, *, found: bool
) -> None:
    plan, rounds, waiting = measured()
    still = Culprit(rank=STILL, host=f"n000{STILL}", process_id=1, what="is on a host that does not answer", step="")
    outcomes.write(tmp_path, make_outcome(ended="failed", culprit=still if found else None))

    report = report_of(plan, {0: [(0, each) for each in rounds]}, "bandwidth", tmp_path, ())

    named = [each.place for each in report.answers]
    alone, both = f"node n000{STILL}", {f"node {PLACES.endpoints[each]}" for each in (STILL, waiting)}
    assert {each.removesuffix(", which does not answer") for each in named} == ({alone} if found else both)
    assert lost_seats(plan, tmp_path, rounds) == ((STILL,) if found else tuple(sorted((STILL, waiting))))
    waited = f"{PLACES.endpoints[waiting]} waited for it and had no part in later rounds, but answered a visit"
    assert (waited in report.answers[0].evidence) is found
    assert "slower" not in report.verdict.sentence


def test_the_list_of_runs_counts_the_metrics_of_a_sweep(tmp_path: Path) -> None:
    plan, rounds, _waiting = measured()
    where = tmp_path / "run"
    create(plan, where)
    outcomes.write(where, make_outcome())
    records = where / layout.RAW_DIRECTORY / layout.records_name(0, 0)
    records.parent.mkdir(exist_ok=True)
    records.write_bytes(b"".join(codec.encode(each) + b"\n" for each in rounds))

    row = run_of(where).row

    assert (row.measured, row.planned) == (1, len(plan.fabric.probes))


def test_verbs_about_points_say_what_judges_a_sweep(tmp_path: Path) -> None:
    plan, _rounds, _waiting = measured()
    where = tmp_path / "run"
    create(plan, where)
    outcomes.write(where, make_outcome())

    with pytest.raises(InputError, match="is a sweep over pairs of hosts: it has no points") as of_compare:
        result_of(str(where), side=0, block=0)
    with pytest.raises(InputError, match="is a sweep over pairs of hosts, which is judged") as of_judge:
        open_results((str(where),)).__enter__()

    assert {of_compare.value.hint, of_judge.value.hint} == {
        "judge each by itself: busbw fabric run",
        "busbw fabric run",
    }


def of_rates(busy: set[int], bad: int) -> Swept:
    """Return a sweep of message rates over 16 hosts, n000BAD slow, in which other work had the cores of `busy`."""
    plan = planned(metric="message-rate")
    draws = random.Random(7)
    fault = Fault(kind="node", element=bad, effect=0.3)
    network = Simulated(
        topology="fat-tree-2", places=PLACES, faults=(fault,), noise=Noise(), metric="message-rate", draws=draws
    )
    seen = []

    def measure(pairs, number):
        values = network.measure(pairs, number)
        for pair, value in zip(pairs, values, strict=True):
            taken_off = tuple(25 if seat in busy else 1 for seat in (pair.sender, pair.receiver))
            test = PairSeen(sender=pair.sender, receiver=pair.receiver, value=value, taken_off=taken_off, wall_s=0.1)
            seen.append(test)
        return values

    return beside_other_work(carried_out(plan, "message-rate", random.Random, measure), seen)


def test_a_slow_host_is_named_by_its_message_rate_where_its_core_is_its_own() -> None:
    outcome = of_rates({3}, STILL)
    assert [each.place for each in outcome.answers] == [f"node n000{STILL}"]
    assert outcome.withheld == ""


@pytest.mark.parametrize(("busy", "who"), [({STILL}, f"the rank of node n000{STILL}"), (set(range(16)), "the ranks")])
def test_nobody_is_named_by_a_message_rate_that_other_work_on_the_cores_explains(busy: set[int], who: str) -> None:
    outcome = of_rates(busy, STILL)
    made = report(outcome, "message-rate", "", expected=(ExpectedPair(value=9e6, kind="given", source="--expect"),))
    assert made.answers == ()
    assert made.verdict.outcome == "cannot_tell"
    assert f"cannot tell: other work had the core of {who} in " in made.verdict.sentence
