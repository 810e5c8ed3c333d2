"""Ctrl-C and the time limit: what is measured stays, the rest is named and can be measured later."""

from .runner import TIMEOUT_S, Busbw, left_of, read_run

SIZES = ("-n", 2, "-b", "4K", "-e", "64K", "-i", "4K", "--time-limit", 4, "--min-samples", 10)
# Also on cores that others hold; a rank that hangs ends such a run.
ENOUGH = ("--time-limit", 60)
BYTES = [4096 * number for number in range(1, 17)]
# Far more sizes than the time allows.
MANY = ("-n", 2, "-b", "1K", "-e", "2000K", "-i", "1K")


def test_ctrl_c_stops_after_the_samples_in_hand_and_the_run_can_go_on(busbw: Busbw):
    started = busbw.start("run", "all_reduce", *SIZES)
    started.wait_for("ended by")
    started.interrupt()

    result = started.finish()

    assert result.code in {1, 4}, result
    assert "stopping after the samples in hand; Ctrl-C again ends the ranks at once" in result.err
    # Every size has its first sample by then; most have no more.
    assert "too few samples" in result.out
    assert "RUN004" in result.out
    assert "the run was stopped" in result.out
    assert left_of(busbw.folder) == ()
    before = read_run(busbw.directory())
    assert before.outcome is not None
    assert before.outcome.ended == "stopped"
    assert [point.size_bytes for point in before.measurements] == BYTES
    assert busbw("show").out == result.out
    resumed = busbw.to_the_end(busbw("run", "--resume", "last"))
    assert resumed.code in {0, 1, 4}, resumed
    after = read_run(busbw.directory())
    assert [point.size_bytes for point in after.measurements] == BYTES
    assert all(point.ended != "stopped" for point in after.measurements)


def test_a_second_ctrl_c_ends_the_ranks_at_once(busbw: Busbw):
    # Otherwise they would hang until the stall limit.
    started = busbw.start("run", "all_reduce", *SIZES, *ENOUGH, "--stall-timeout", 2 * TIMEOUT_S, env=busbw.held(2048))
    started.wait_for("ended by")
    started.interrupt()
    started.wait_for("Ctrl-C again")
    started.interrupt()

    result = started.finish()

    # 1: what was measured before may be slow on a busy machine.
    assert result.code in {1, 3, 4}, result
    assert left_of(busbw.folder) == ()
    run = read_run(busbw.directory())
    assert run.outcome is not None
    assert (run.outcome.ended, run.outcome.cause) == ("stopped", "ended by the user")
    # Every size had its first sample before rank 1 came to its tenth call of 8 KiB.
    assert [point.size_bytes for point in run.measurements] == BYTES
    assert run.measurements[0].turns > 0
    assert run.measurements[1].turns == 0


def test_the_time_limit_ends_the_run_says_what_is_missing_and_can_be_given_again(busbw: Busbw):
    result = busbw("run", "all_reduce", *MANY, "--time-limit", 1)

    assert result.code in {1, 4}, result
    run = read_run(busbw.directory())
    assert run.outcome is not None
    assert run.outcome.ended == "time"
    # Starting, measuring the machine and ending come on top of the limit; a busy machine takes its time for them.
    assert run.outcome.wall_s < TIMEOUT_S / 2
    missing = 2000 - len(run.measurements)
    assert 0 < missing < 2000
    # The finding says it whatever the verdict: a machine that is slow besides has that for its verdict.
    assert f"RUN003 {missing} points not measured: all_reduce " in result.out
    assert "the time limit was reached" in result.out
    # What is missing are the largest sizes, with the time they would take.
    assert max(point.size_bytes for point in run.measurements) == 1024 * len(run.measurements)
    assert " more would reach the first sample of each" in result.out
    assert run.unreached is not None
    assert run.unreached.points == tuple(range(2000 - missing, 2000))
    for _attempt in range(10):  # a busy machine may leave no time for a single point
        busbw("run", "--resume", "last")
        again = read_run(busbw.directory())
        if len(again.measurements) > len(run.measurements):
            break
    assert len(again.measurements) > len(run.measurements)


def test_no_size_has_a_second_turn_before_all_have_their_first(busbw: Busbw):
    result = busbw("run", "-n", 2, "-b", "64K", "-e", "1M", "-f", 16, "--time-limit", 3)

    run = read_run(busbw.directory())
    # Twelve on two cores that others use too; where they are overrun, first samples are all there is.
    assert len(run.measurements) == 12 or all(one.turns == 0 for one in run.measurements), result


def test_a_limit_that_is_over_at_once_measures_the_smallest_message_of_the_first(busbw: Busbw):
    result = busbw("run", "all_reduce", "broadcast", "-n", 2, "-b", "64K", "-e", "1M", "-f", 16, "--time-limit", 1e-6)

    assert result.code in {1, 4}, result
    run = read_run(busbw.directory())
    assert [(one.collective, one.size_bytes, one.turns) for one in run.measurements] == [("all_reduce", 65536, 0)]
    assert run.unreached is not None
    assert run.unreached.names == ("all_reduce 1 MiB", "broadcast 64 KiB", "broadcast 1 MiB")
    assert "3 points not measured" in result.out
