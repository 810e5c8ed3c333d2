"""A stored sweep: whom a host that stood still took with it, and what other verbs say of a sweep."""

import random
from pathlib import Path

import msgspec
import pytest
from tests.judge.factories import make_outcome, make_plan

from busbw.api import sweeps
from busbw.api.comparisons import result_of
from busbw.api.verdicts import open_results
from busbw.base.errors import InputError
from busbw.fabric.recorded import carried_out
from busbw.fabric.simulation import Noise, Simulated
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

    report = sweeps.report_of(plan, {0: [(0, each) for each in rounds]}, "bandwidth", tmp_path, ())

    named = [each.place for each in report.answers]
    alone, both = f"node n000{STILL}", {f"node {PLACES.endpoints[each]}" for each in (STILL, waiting)}
    assert {each.removesuffix(", which does not answer") for each in named} == ({alone} if found else both)
    assert sweeps.lost_seats(plan, tmp_path, rounds) == ((STILL,) if found else tuple(sorted((STILL, waiting))))
    waited = f"{PLACES.endpoints[waiting]} waited for it and had no part in later rounds, but answered a visit"
    assert (waited in report.answers[0].evidence) is found
    assert "slower" not in report.verdict.sentence


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
