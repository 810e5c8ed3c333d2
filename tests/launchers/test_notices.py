"""What launchers and Slurm print at an early end, as they printed it, and what is read from it."""

import pytest

from busbw.measure.launchers.notices import Notice, batch_end, first_death, lost_host, peer_lost

# Open MPI 5.0.11, a rank of another host killed by SIGKILL.
PRTERUN_KILLED = """\
--------------------------------------------------------------------------
prterun noticed that process rank 2 with PID 138 on node n2 exited on
signal 9 (Killed).
--------------------------------------------------------------------------
"""
# The same, where another rank noticed first: mpirun blames the messenger.
PRTERUN_PEER = """\
An MPI communication peer process has unexpectedly disconnected.  This
usually indicates a failure in the peer process (e.g., a crash or
otherwise exiting without calling MPI_FINALIZE first).

Although this local MPI process will likely now behave unpredictably
(it may even hang or crash), the root cause of this problem is the
failure of the peer -- that is what you need to investigate.  For
example, there may be a core file that you can examine.  More
generally: such peer hangups are frequently caused by application bugs
or other external events.

  Local host: n0
  Local PID:  14178
  Peer host:  n2
--------------------------------------------------------------------------
 [n0:00000] *** An error occurred in Socket closed
--------------------------------------------------------------------------
prterun has exited due to process rank 0 with PID 0 on node n0 calling
"abort". This may have caused other processes in the application to be
terminated by signals sent by prterun (as reported here).
"""
# Its daemon on n2 was killed; mpirun then ends with code 0.
PRTERUN_LOST = """\
PRTE has lost communication with a remote daemon.

  HNP daemon   : [prterun-n0-14574@0,0] on node n0
  Remote daemon: [prterun-n0-14574@0,2] on node n2

This is usually due to either a failure of the TCP network
connection to the node, or possibly an internal failure of
the daemon itself.
"""
# MPICH 5.0.2, a rank of another host killed by SIGKILL.
HYDRA_KILLED = """\
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 15976 RUNNING AT n2
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
"""


def test_the_host_of_a_killed_rank_is_read() -> None:
    killed = Notice(rank=2, process_id=138, what="killed by signal 9 (SIGKILL)", host="n2")
    assert first_death(PRTERUN_KILLED) == killed
    assert first_death(HYDRA_KILLED) == Notice(
        rank=None, process_id=15976, what="killed by signal 9 (SIGKILL)", host="n2"
    )


def test_the_rank_that_exited_first_is_read_in_the_words_of_both_open_mpis() -> None:
    four = "The first process to do so was:\n\n  Process name: [[11172,1],2]\n  Exit code:    3\n"
    five = "The first process to do so was:\n\n   Process name: [prterun-n0-155@1,2]\n   Exit code:    3\n"

    assert first_death(four) == first_death(five) == Notice(rank=2, process_id=None, what="exited with code 3")


def test_a_rank_that_lost_its_peer_is_not_the_first_to_end() -> None:
    assert first_death(PRTERUN_PEER) is None
    assert peer_lost(PRTERUN_PEER) == "n2"


def test_a_lost_daemon_names_its_host() -> None:
    assert lost_host(PRTERUN_LOST) == "n2"
    assert lost_host("ssh: connect to host n2 port 22: Connection timed out\n") == "n2"
    assert lost_host(PRTERUN_KILLED) is None


@pytest.mark.parametrize(
    ("line", "rank", "what"),
    [
        ("srun: error: n1: task 3: Killed", 3, "killed by signal 9 (SIGKILL)"),
        ("srun: error: n1: task 1: Segmentation fault (core dumped)", 1, "killed by signal 11 (SIGSEGV)"),
        ("srun: error: n1: tasks 2-3: Exited with exit code 5", 2, "exited with code 5"),
        ("srun: error: n1: task 0: Out Of Memory", 0, "killed because its host or its limit had no memory left"),
    ],
)
def test_srun_names_host_and_task(line: str, rank: int, what: str) -> None:
    assert first_death(f"slurmstepd: error: something\n{line}\n") == Notice(
        rank=rank, process_id=None, what=what, host="n1"
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            "flux-shell[0]: FATAL: task-exit: x: task rank 1 on host system76-pc failed and exit-on-error is set",
            Notice(rank=1, process_id=None, what="exited without finishing MPI", host="system76-pc"),
        ),
        (
            "flux-shell[0]: FATAL: doom: sh: rank 3 on host frontier10490 exited and exit-timeout=30s has expired",
            Notice(rank=3, process_id=None, what="exited without finishing MPI", host="frontier10490"),
        ),
        (
            "_pmiu_daemon(SIGCHLD): [NID 02765] [c6-1c1s3n1] [Mon Sep  1 17:08:02 2014] PE RANK 4 exit signal Aborted",
            Notice(rank=4, process_id=None, what="killed by signal 6 (SIGABRT)", host=None),
        ),
    ],
)
def test_flux_and_aprun_name_the_rank(line: str, found: Notice) -> None:
    assert first_death(f"something\n{line}\n") == found


def test_flux_names_a_host_that_is_gone() -> None:
    line = "9.1s: flux-shell[0]: FATAL: doom: p: shell rank 2 on host n2 failed and exit-on-error is set"

    assert lost_host(line) == "n2"
    assert first_death(line) is None


def test_tasks_that_srun_has_ended_itself_are_no_cause() -> None:
    assert first_death("srun: error: n0: task 0: Terminated\nsrun: error: n2: task 2: Killed\n").rank == 2


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("", "cancelled"),
        (" DUE TO TIME LIMIT", "time limit"),
        (" DUE TO PREEMPTION", "preempted"),
        (" DUE TO JOB REQUEUE", "requeued"),
        (" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", "node failure"),
    ],
)
def test_slurm_says_why_it_ended_a_step(why: str, said: str) -> None:
    assert batch_end(f"slurmstepd: error: *** STEP 12.0 ON n0 CANCELLED AT 2026-01-02T03:04:05{why} ***\n") == said
    assert batch_end(f"slurmstepd: error: *** JOB 12 ON n0 CANCELLED AT 2026-01-02T03:04:05{why} ***\n") == said


def test_nothing_is_read_from_a_good_end() -> None:
    for reader in (first_death, lost_host, peer_lost, batch_end):
        assert reader("busbw-event {}\nall is well\n") is None
