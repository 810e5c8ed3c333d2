"""The verdict: its sentence, and which outcome comes before which."""

import pytest

from busbw.judge import judge
from busbw.model.run import Rates
from busbw.model.visit import Culprit

from .factories import (
    HOST,
    MiB,
    make_counters,
    make_hello,
    make_measurement,
    make_outcome,
    make_plan,
    make_rates,
    make_sweep,
    make_views,
    make_wrong,
)

HELLOS = tuple(make_hello(rank) for rank in range(4))
GOOD = make_measurement("all_gather", MiB, 1.3e-4)
SLOW = make_measurement("all_gather", MiB, 5e-4)
FAILED = make_outcome(
    ended="failed",
    exit_code=137,
    culprit=Culprit(
        rank=1, host=HOST, process_id=7, what="killed by signal 9 (SIGKILL)", step="all_reduce 4 KiB, sample 17"
    ),
)


def verdict(*measurements, plan=None, outcome=None, rates=None):
    """Return the verdict on a run that came to its end, unless told otherwise."""
    return judge(plan or make_plan(), outcome or make_outcome(), HELLOS, rates or make_rates(), measurements).verdict


def test_ok_says_what_was_reached_of_which_ceiling_and_the_latency():
    small = make_measurement("all_gather", 64, 9e-7, point=1)

    found = verdict(GOOD, small)

    assert found.outcome == "ok"
    assert found.sentence == (
        "ok: all_gather reaches 6.05 GB/s bus bandwidth at 1 MiB over 4 ranks, 60 % of the 10.0 GB/s that copying "
        "memory once allows; latency 900 ns at 64 B; no rank stands out."
    )


def test_ok_over_several_collectives_gives_each_its_own_best_and_never_an_average():
    found = verdict(GOOD, make_measurement("sendrecv", MiB, 2e-4, point=1), make_measurement("reduce", 64, point=2))

    assert found.outcome == "ok"
    assert "all_gather 6.05 GB/s at 1 MiB (60 %), sendrecv 5.24 GB/s at 1 MiB (52 %)" in found.sentence
    assert "not judged: reduce" in found.sentence


def test_ok_with_warnings_names_them():
    found = verdict(GOOD, outcome=make_outcome(after=make_counters(stolen_s=2.0, cpu_s=100.0)))

    assert found.outcome == "ok"
    assert found.sentence.startswith("ok with findings (RUN009): ")
    assert found.because == ("RUN009",)


def test_wrong_names_rank_index_got_and_expected():
    found = verdict(make_measurement(wrong=make_wrong(), verified=False))

    assert found.outcome == "wrong"
    assert "rank 2 on node1 got 1.5 at element 7, expected 2" in found.sentence


def test_failed_names_rank_host_cause_and_step():
    found = verdict(GOOD, outcome=FAILED)

    assert found.outcome == "failed"
    assert found.sentence == (
        "failed: rank 1 on node1 was killed by signal 9 (SIGKILL) (last seen: all_reduce 4 KiB, sample 17)."
    )


def test_what_a_program_said_is_told_once():
    said = "ended by SIGSEGV with buffers on GPUs"
    gave_up = Culprit(rank=0, host=HOST, process_id=7, what=f"gave up: {said}", step="before its first row")
    outcome = make_outcome(ended="failed", culprit=gave_up, cause=f"osu_latency: {said}", exit_code=139)

    (found,) = [one for one in judge(make_plan(), outcome, HELLOS, make_rates(), ()).findings if one.code == "RUN002"]

    assert found.evidence == f"rank 0 on {HOST} gave up: {said} (last seen: before its first row)"


def test_failed_without_a_culprit_gives_the_cause():
    found = verdict(outcome=make_outcome(ended="failed", cause="mpirun not found", exit_code=127))

    assert found.sentence == "failed: mpirun not found (exit code 127)."


def test_slow_says_how_far_from_what():
    found = verdict(SLOW)

    assert found.outcome == "slow"
    assert found.because == ("PERF001",)
    assert "takes 500.0 us, 3.2 times what copying through shared memory allows here" in found.sentence


def test_more_than_twice_the_expected_time_is_a_finding_and_not_yet_slow():
    doubtful = make_measurement("all_gather", MiB, 3.9e-4)

    found = verdict(doubtful)

    assert found.outcome == "ok"
    assert found.because == ("PERF001",)
    assert "with findings (PERF001)" in found.sentence


def test_a_material_straggler_makes_slow():
    delayed = make_measurement(
        "all_gather", MiB, 1.3e-4, slow_samples=40, slow_excess_s=2e-4, per_rank=make_views(blamed={2: 39})
    )

    found = verdict(delayed)

    assert found.outcome == "slow"
    assert found.because == ("PERF004",)
    assert "rank 2 on node1 delays 4.0 % of the calls of all_gather 1 MiB by 200.0 us" in found.sentence


def test_a_harmless_straggler_is_a_finding_beside_ok():
    delayed = make_measurement(
        "all_gather", MiB, 1.3e-4, slow_samples=40, slow_excess_s=2e-5, per_rank=make_views(blamed={2: 39})
    )

    found = verdict(delayed)

    assert found.outcome == "ok"
    assert found.because == ("PERF004",)
    assert "no rank stands out" not in found.sentence


def test_a_large_guideline_violation_makes_slow_and_a_mild_one_does_not():
    parts = (
        make_measurement("reduce_scatter", 2**17, 1e-4, point=1),
        make_measurement("all_gather", 2**17, 1e-4, point=2),
    )
    large = make_measurement("all_reduce", 2**17, 3.1e-4, point=3)
    mild = make_measurement("all_reduce", 2**17, 2.5e-4, point=3)

    assert verdict(GOOD, large, *parts).because == ("PERF006",)
    assert verdict(GOOD, large, *parts).outcome == "slow"
    assert verdict(GOOD, mild, *parts).outcome == "ok"
    assert verdict(GOOD, mild, *parts).because == ("PERF006",)


@pytest.mark.parametrize(
    ("words", "case"),
    [
        ("8 ranks share 4 cores", {"plan": make_plan(ranks=8, oversubscribed=True)}),
        ("throttled", {"outcome": make_outcome(after=make_counters(throttle_events=3, cpu_s=40.0))}),
        ("hypervisor took 10 %", {"outcome": make_outcome(after=make_counters(stolen_s=4.0, cpu_s=40.0))}),
        ("quota", {"outcome": make_outcome(after=make_counters(quota_stops=50, cpu_s=40.0))}),
        ("nothing that the large messages could be held against", {"rates": Rates()}),
    ],
)
def test_conditions_that_spoil_speed_are_cannot_tell(words, case):
    found = verdict(GOOD, **case)

    assert found.outcome == "cannot_tell"
    assert words in found.sentence


@pytest.mark.parametrize(
    ("words", "measurements"),
    [
        ("nothing was measured", ()),
        ("no point has 30 samples", (make_measurement(samples=12),)),
        ("no result was verified", (make_measurement(verified=False),)),
        ("nothing of 1 MiB or more was measured", (make_measurement(size_bytes=2**16),)),
    ],
)
def test_too_little_data_is_cannot_tell(words, measurements):
    found = verdict(*measurements)

    assert found.outcome == "cannot_tell"
    assert words in found.sentence


def test_a_rank_named_at_one_point_of_many_heavy_ones_does_not_make_slow():
    named = make_measurement(
        "all_gather", MiB, 1.3e-4, slow_samples=40, slow_excess_s=2e-4, per_rank=make_views(blamed={2: 39})
    )
    unnamed = [
        make_measurement("all_gather", 64, 1e-6, point=point, slow_samples=40, slow_excess_s=2e-4) for point in (1, 2)
    ]

    assert verdict(named, unnamed[0]).outcome == "slow"
    assert verdict(named, *unnamed).outcome == "ok"


def test_a_rank_that_lost_its_core_most_is_no_culprit_where_all_ranks_lost_theirs():
    views = make_views(blamed={2: 39}, losses=900)
    named = make_measurement("all_gather", MiB, 1.3e-4, slow_samples=40, slow_excess_s=2e-4, per_rank=views)
    quiet = make_measurement("all_gather", 2 * MiB, 2.6e-4, point=1)

    found = verdict(named, quiet)

    assert found.outcome == "ok"
    assert found.because == ("PERF004", "RUN022")


def test_large_messages_that_were_all_disturbed_are_cannot_tell():
    found = verdict(make_measurement("all_gather", MiB, 5e-4, per_rank=make_views(losses=900)))

    assert found.outcome == "cannot_tell"
    assert found.because == ("RUN022",)


def test_a_collective_disturbed_at_every_large_message_has_no_answer():
    disturbed = make_measurement("sendrecv", MiB, 5e-3, point=1, per_rank=make_views(losses=900))

    found = verdict(GOOD, disturbed)

    assert found.outcome == "cannot_tell"
    assert "at every large message of sendrecv" in found.sentence
    assert found.because == ("RUN022",)


def test_a_collective_disturbed_at_some_messages_is_judged_by_the_others():
    disturbed = make_measurement("all_gather", 2 * MiB, 5e-3, point=1, per_rank=make_views(losses=900))
    missing = make_plan(make_sweep("all_gather", (MiB, 2 * MiB, 4 * MiB)))

    alone, beside = verdict(GOOD, disturbed), verdict(GOOD, disturbed, plan=missing)

    assert alone.outcome == "ok"
    assert beside.because == ("RUN003", "RUN022")


def test_cannot_tell_still_reports_the_latency():
    found = verdict(make_measurement("latency", 8, 9e-7, ranks=2))

    assert found.outcome == "cannot_tell"
    assert found.sentence.endswith("time alone is not judged; measured: latency 900 ns at 8 B.")


def test_points_missing_at_the_time_limit_are_named():
    plan = make_plan(make_sweep("all_gather", (MiB, 2 * MiB)))

    found = verdict(GOOD, plan=plan, outcome=make_outcome(ended="time"))

    assert found.outcome == "cannot_tell"
    assert "1 point not measured (all_gather 2 MiB), the time limit was reached" in found.sentence


def test_a_run_that_was_cut_off_is_cannot_tell():
    found = judge(make_plan(), None, HELLOS, make_rates(), (GOOD,)).verdict

    assert found.outcome == "cannot_tell"
    assert "cut off" in found.sentence


def test_wrong_comes_before_failed_before_slow_before_cannot_tell():
    wrong = make_measurement(wrong=make_wrong(), point=1)
    missing = make_plan(make_sweep("all_gather", (MiB, 2 * MiB, 4 * MiB)))

    assert verdict(SLOW, wrong, plan=missing, outcome=FAILED).outcome == "wrong"
    assert verdict(SLOW, plan=missing, outcome=FAILED).outcome == "failed"
    assert verdict(SLOW, plan=missing).outcome == "slow"
    assert verdict(GOOD, plan=missing).outcome == "cannot_tell"


def test_slow_on_shared_cores_is_not_claimed_but_mentioned():
    found = verdict(SLOW, plan=make_plan(ranks=8, oversubscribed=True))

    assert found.outcome == "cannot_tell"
    assert "seen, but not to be trusted: all_gather 1 MiB" in found.sentence


def test_findings_come_with_the_severest_first():
    found = judge(
        make_plan(governor="powersave"),
        make_outcome(),
        HELLOS,
        make_rates(),
        (SLOW, make_measurement(wrong=make_wrong(), point=1)),
    ).findings

    assert [one.severity for one in found] == ["error", "warn", "note"]
