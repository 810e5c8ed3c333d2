"""The site's own runs of the same hosts come before what others published, and do not excuse what others would not."""

import datetime as dt

import pytest
from msgspec import structs
from tests.history.stored import keep
from tests.judge.factories import make_sweep

from busbw.api.verdicts import judge_results

from .gpu_runs import make_gpu_run, make_point

# What two sources give for 8 GiB on four H200.
USUAL_S = 2**33 * 1.5 / 363.3e9
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("BUSBW_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "runs").mkdir()

    def stored(number, slower, *, host="node1"):
        point = make_point(0, 2**33, USUAL_S * slower, chosen=("RING", "SIMPLE"))
        run = make_gpu_run([structs.replace(point, low_s=point.median_s)], hosts=(host,))
        created = START + dt.timedelta(days=number)
        plan = structs.replace(
            run.plan,
            run_id=f"{created:%Y%m%dT%H%M%S}-{number:04d}",
            created=created.isoformat(),
            sweeps=(make_sweep("all_reduce", sizes_bytes=(2**33,)),),
        )
        verdict = structs.replace(run.verdict, outcome="ok")
        return keep(structs.replace(run, plan=plan, verdict=verdict), tmp_path / "runs")

    return stored


def judged(where):
    return judge_results((str(where),)).verdict


def test_a_run_below_five_of_its_own_is_slow_though_others_would_have_it_sound(store):
    for number in range(5):
        store(number, 1 + 0.004 * number)

    verdict = judged(store(9, 1.10))

    assert verdict.outcome == "slow"
    assert "the median of 5 runs on these hosts" in verdict.sentence


def test_a_run_as_its_own_is_ok(store):
    for number in range(5):
        store(number, 1 + 0.004 * number)

    assert judged(store(9, 1.01)).outcome == "ok"


@pytest.mark.parametrize(("count", "host"), [(4, "node1"), (6, "node2")], ids=["too few", "of another host"])
def test_without_enough_runs_of_these_hosts_others_decide(store, count, host):
    for number in range(count):
        store(number, 1.0, host=host)

    verdict = judged(store(9, 1.10))

    assert verdict.outcome == "ok"
    assert "on these hosts" not in verdict.sentence


def test_a_machine_that_was_always_slow_is_not_ok_for_that(store):
    for number in range(6):
        store(number, 1.4)

    verdict = judged(store(9, 1.4))

    assert verdict.outcome == "cannot_tell"
    assert "100 % of" in verdict.sentence
    assert "but of such machines elsewhere" in verdict.sentence
