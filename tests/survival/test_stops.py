"""Somebody stops a run on several hosts: what was measured stays, and nothing is left anywhere."""

import signal

import pytest
from tests.patience import wait_until

from .mpi import under
from .several import BYTES, HOSTS, SIZES, Several


def check_stops(several: Several, number: signal.Signals) -> None:
    """Send a signal to busbw in the middle, and check that what was measured stays."""
    several.measure()
    several.process.send_signal(number)

    assert several.finish() in {1, 4}, several.said

    run = several.run()
    assert run.outcome is not None
    assert (run.outcome.ended, run.outcome.exit_code) == ("stopped", 0), several.said
    assert [point.size_bytes for point in run.measurements] == BYTES[: len(run.measurements)] != []
    several.check_nothing_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1], ids=lambda number: number.name)
def test_a_signal_stops_after_the_samples_in_hand(several: Several, number: signal.Signals) -> None:
    check_stops(several, number)


@under()
def test_sigterm_stops_with_grace_and_the_run_goes_on(several: Several) -> None:
    check_stops(several, signal.SIGTERM)
    several.resume()


def test_a_second_signal_ends_at_once(several: Several) -> None:
    several.measure()
    several.process.send_signal(signal.SIGTERM)
    several.wait_for("stopping after the samples in hand")
    several.process.send_signal(signal.SIGTERM)

    several.finish()

    outcome = several.run().outcome
    assert outcome is not None
    assert outcome.ended == "stopped"
    several.check_nothing_left()


def test_a_stop_before_the_ranks_have_begun_leaves_nothing(several: Several) -> None:
    several.start("run", "all_reduce", *SIZES, *several.way)
    wait_until(lambda: any("busbw.rank" in each.argv for each in several.lab.processes("n0")), 60, "the launcher")
    several.process.send_signal(signal.SIGTERM)

    several.finish()

    outcome = several.run().outcome
    assert outcome is not None
    assert outcome.ended == "stopped", several.said
    several.check_nothing_left()


@under("MPICH")
def test_busbw_killed_takes_its_ranks_along_on_every_host(several: Several) -> None:
    several.measure()
    several.process.send_signal(signal.SIGKILL)
    several.process.wait(30)

    for host in HOSTS:
        wait_until(lambda host=host: several.lab.processes(host) == (), 60, f"{host} to have no process left")
    for host in HOSTS:
        several.clear(host)
