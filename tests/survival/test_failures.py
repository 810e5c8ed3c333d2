"""A rank or a host fails: busbw ends in bounded time, names it, keeps what was measured, and can go on."""

import os
import signal

import pytest

from busbw.model.run import Run

from .mpi import NAMES, under, unless_every
from .several import BYTES, Several

# A run that fails is looked into, ended on every host, and resumed to its end.


def check_failed_by_rank_2(several: Several, *words: str) -> Run:
    """Check what every failure of the rank on n2 has in common."""
    assert several.finish() == 3, several.said
    run = several.run()
    assert run.outcome is not None
    assert run.outcome.ended == "failed"
    assert run.outcome.culprit is not None, several.said
    assert (run.outcome.culprit.rank, run.outcome.culprit.host) == (2, "n2")
    for word in ("rank 2 on n2", *words):
        assert word in run.verdict.sentence, several.said
    assert [point.size_bytes for point in run.measurements] == BYTES[: len(run.measurements)] != []
    assert run.autopsy is not None
    assert run.autopsy.culprit == run.outcome.culprit
    return run


@under("MPICH")
def test_a_rank_killed_on_another_host_is_named(several: Several) -> None:
    several.measure()
    os.kill(several.rank_on("n2").id, signal.SIGKILL)

    run = check_failed_by_rank_2(several)

    # The others' MPI may give up before the launcher has told how the rank ended; how is then not known.
    assert any(words in run.verdict.sentence for words in ("SIGKILL", "ended or lost its connection")), several.said
    assert run.autopsy.silent == ()
    assert [rank.state for rank in run.autopsy.ranks] == ["gone"] * 3
    several.check_nothing_left()
    several.resume()


@under()
def test_a_rank_stopped_on_another_host_is_named_and_the_others_say_where_they_wait(several: Several) -> None:
    several.measure()
    os.kill(several.rank_on("n2").id, signal.SIGSTOP)

    run = check_failed_by_rank_2(several, "stopped")

    assert [rank.state for rank in run.autopsy.ranks][2] == "stopped"
    assert all(rank.frame is not None for rank in run.autopsy.ranks[:2]), run.autopsy
    assert all(host.counters > 0 for host in run.autopsy.hosts)
    several.check_nothing_left()
    several.resume()


@pytest.mark.parametrize("several", [unless_every(name) for name in NAMES], indirect=True)
def test_a_host_that_is_gone_is_named_and_the_others_are_cleared(several: Several) -> None:
    several.measure()
    several.lab.kill_host("n2")

    run = check_failed_by_rank_2(several, "does not answer")

    assert [silent.host for silent in run.autopsy.silent] == ["n2"]
    assert "cannot tell whether processes are left on n2" in str(run.outcome.cause)
    several.check_nothing_left("n0", "n1")
    several.lab.restart("n2")
    several.resume()


@under()
def test_a_host_that_hangs_is_named_and_the_others_are_cleared(several: Several) -> None:
    several.measure()
    several.lab.pause("n2")

    run = check_failed_by_rank_2(several, "does not answer")

    assert [silent.host for silent in run.autopsy.silent] == ["n2"]
    several.check_nothing_left("n0", "n1")
    several.lab.kill_processes("n2")
    several.lab.unpause("n2")
    several.clear("n2")
    several.resume()


@pytest.mark.parametrize("several", [unless_every(name) for name in NAMES], indirect=True)
def test_a_host_that_is_cut_off_is_named_and_the_others_are_cleared(several: Several) -> None:
    several.measure()
    several.lab.cut("n2")

    check_failed_by_rank_2(several, "does not answer")

    several.check_nothing_left("n0", "n1")
    several.lab.kill_processes("n2")
    several.lab.mend("n2")
    several.clear("n2")
    several.resume()
