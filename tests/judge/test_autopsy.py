"""Who is named from what the hosts say, and when nobody is."""

from typing import Any

import msgspec
import pytest
from tests.fabric.test_planned_sweep import planned

from busbw.judge.autopsy import autopsy
from busbw.model.plan import Placement, Plan
from busbw.model.visit import BeatSeen, CounterSeen, Heard, ProcessSeen, Silent, Visit, VisitLine

from .factories import make_plan, make_sweep


def plan() -> Plan:
    made = make_plan(make_sweep("all_reduce", (4096, 8192)))
    placement = Placement(
        ranks=3, hosts=("n0", "n1", "n2"), ranks_of_hosts=(1, 1, 1), binding="none", oversubscribed=False
    )
    return msgspec.structs.replace(made, placement=placement)


def look(
    rank: int, *, calls: int = 40, state: str = "R", busy_s: float = 0.9, system_s: float | None = None, **changes: Any
) -> Visit:
    """Return what host nRANK says of its only rank."""
    beat = BeatSeen(rank=rank, process_id=100 + rank, state="sampling", point=1, samples=17, calls=calls, in_call=1)
    process = ProcessSeen(
        process_id=100 + rank, rank=rank, name="python", state=state, wchan=None, busy_s=busy_s, watched_s=1.0,
        system_s=system_s,
    )  # fmt: skip
    values = {"host": f"n{rank}", "asked": "look", "unix_s": 1.0, "beats": (beat,), "processes": (process,)}
    return Visit(**(values | changes))


def silent(host: str, words: str | None = None) -> Silent:
    return Silent(host=host, asked="look", unix_s=1.0, waited_s=30.0, words=words)


def found(*lines: VisitLine) -> tuple[int | None, str]:
    """Return the rank that is named, and why."""
    made = autopsy(plan(), lines)
    assert made is not None
    return made.culprit.rank if made.culprit is not None else None, made.because


def test_without_visits_there_is_no_autopsy() -> None:
    assert autopsy(plan(), (Heard(text="bad news"),)) is None


def test_a_stopped_rank_is_named() -> None:
    assert found(look(0), look(1), look(2, state="T"))[0] == 2


def test_the_only_silent_host_is_named_with_the_words_of_the_launcher() -> None:
    rank, because = found(look(0), silent("n1", "ssh: timed out"), look(2))

    assert rank == 1
    assert because == "n1 does not answer (ssh: timed out), and every other host does"


def test_a_host_that_cannot_see_the_run_directory_is_named_and_what_to_do() -> None:
    absent: dict[str, Any] = {"beats": (), "processes": ()}
    hosts = [look(0, **absent, sees_plan=True), look(1, **absent, sees_plan=False), look(2, **absent, sees_plan=False)]

    made = autopsy(plan(), hosts)

    assert made is not None
    assert made.culprit is not None
    assert (made.culprit.rank, made.culprit.what) == (1, "is on a host that cannot see the run directory")
    assert made.because.startswith("n1, n2: not there; it must be at the same path on every host")


@pytest.mark.parametrize("seen", [(True, True, None), (False, False, False), (None, None, None)])
def test_a_run_directory_that_is_everywhere_or_nowhere_names_nobody(seen: tuple[bool | None, ...]) -> None:
    answers = [look(rank, beats=(), processes=(), sees_plan=each) for rank, each in enumerate(seen)]

    assert found(*answers)[0] is None


def test_two_silent_hosts_leave_it_open() -> None:
    assert found(look(0), silent("n1"), silent("n2")) == (None, "cannot tell: n1, n2 do not answer")


def test_all_hosts_silent_leave_it_open() -> None:
    assert found(silent("n0"), silent("n1"), silent("n2"))[0] is None


def test_the_only_rank_behind_is_named() -> None:
    assert found(look(0), look(1, calls=39), look(2))[0] == 1


def test_a_rank_that_moved_between_two_looks_is_not_behind() -> None:
    rank, because = found(look(0), look(1, calls=39), look(2), look(0), look(1, calls=40), look(2, calls=41))

    assert rank is None
    assert "slow, not stuck" in because


def test_a_rank_that_moved_during_a_look_is_not_behind() -> None:
    assert found(look(0, moved=True), look(1, calls=39), look(2))[0] is None


def test_the_only_rank_asleep_is_named() -> None:
    assert found(look(0), look(1), look(2, state="S", busy_s=0.0))[0] == 2


def test_ranks_in_the_same_call_leave_it_open() -> None:
    rank, because = found(look(0), look(1), look(2))

    assert rank is None
    assert because.startswith("cannot tell: all ranks are in the same call")


def test_a_rank_that_computes_while_the_others_poll_the_network_is_named() -> None:
    made = autopsy(plan(), (look(0, system_s=0.4), look(1, system_s=0.3), look(2, system_s=0.0)))

    assert made is not None
    assert made.culprit is not None
    assert made.culprit.rank == 2
    assert made.culprit.what == "computes or spins outside of MPI while the others wait for it"
    # Hosts were not seen at the same instant: a second look has to say the same.
    assert made.compared


@pytest.mark.parametrize(
    "seconds",
    [
        # Nobody polls through the kernel: shared memory.
        (0.0, 0.0, 0.0),
        # Two compute, or one is in between.
        (0.4, 0.0, 0.0),
        (0.4, 0.1, 0.0),
        # All poll; what one does is not known.
        (0.4, 0.4, 0.4),
        (0.4, None, 0.0),
    ],
)
def test_where_waiting_ranks_may_look_the_same_nobody_is_named(seconds: tuple[float | None, ...]) -> None:
    rank, because = found(*(look(number, system_s=spent_s) for number, spent_s in enumerate(seconds)))

    assert rank is None
    assert because.startswith("cannot tell: all ranks are in the same call")


def test_a_rank_that_was_asked_to_stop_between_two_looks_has_not_moved() -> None:
    first = [look(number, system_s=spent_s) for number, spent_s in enumerate((0.4, 0.3, 0.0))]
    beats = (msgspec.structs.replace(first[0].beats[0], told_to_stop=True),)

    assert found(*first, msgspec.structs.replace(first[0], beats=beats), *first[1:])[0] == 2


def test_a_few_ticks_of_the_clock_tell_nothing() -> None:
    looks = [look(number, busy_s=0.08, system_s=spent_s) for number, spent_s in enumerate((0.04, 0.03, 0.0))]

    assert found(*looks)[0] is None


def test_a_rank_that_gave_up_before_it_knew_its_number_says_why() -> None:
    words = "busbw rank failed at loading MPI: cannot load MPI library; libfabric.so.1: No such file or directory\n"
    stated = Heard(text=f"{words}   Process name: [prterun-n0-155@1,1]\n   Exit code:    3\n")

    made = autopsy(plan(), (stated, *(look(rank, beats=(), processes=()) for rank in range(3))))

    assert made is not None
    assert made.culprit is not None
    assert (made.culprit.rank, made.culprit.step) == (1, "loading MPI")
    assert made.culprit.what.startswith("gave up: cannot load MPI library; libfabric.so.1")


def test_a_rank_whose_process_is_gone_is_named() -> None:
    assert found(look(0), look(1), look(2, processes=()))[0] == 2


def found_in_sweep(*lines: VisitLine) -> tuple[int | None, str]:
    """Return the rank of a sweep that is named, and why."""
    made = autopsy(msgspec.structs.replace(plan(), fabric=planned()), lines)
    assert made is not None
    return made.culprit.rank if made.culprit is not None else None, made.because


def test_a_rank_of_a_sweep_that_never_said_anything_is_named_with_its_host() -> None:
    nothing = {"beats": (), "processes": ()}
    for left in ({}, {"processes": ()}):
        rank, because = found_in_sweep(look(0, **left), look(1, **nothing), look(2, **left))
        assert (rank, because) == (1, "nothing of it is on n1, and every other rank left its heartbeat")


def test_of_ranks_of_a_sweep_that_never_said_anything_each_is_told_with_its_host() -> None:
    nothing = {"beats": (), "processes": ()}
    assert found_in_sweep(look(0), look(1, **nothing), look(2, **nothing)) == (
        None,
        "cannot tell which began it: rank 1 (n1), rank 2 (n2) did not start, or ended before they said anything",
    )
    assert found_in_sweep(*(look(rank, **nothing) for rank in range(3)))[1].startswith(
        "cannot tell: no rank said anything"
    )


def test_a_rank_of_a_sweep_that_is_gone_is_named_and_one_that_has_done_less_is_not() -> None:
    assert found_in_sweep(look(0), look(1), look(2, processes=()))[0] == 2
    assert found_in_sweep(look(0), look(1, calls=3), look(2)) == (
        None, "cannot tell: every rank is there, and none is stopped",
    )  # fmt: skip


def test_the_launcher_is_believed_before_what_is_seen_afterwards() -> None:
    stated = Heard(text="srun: error: n1: task 1: Killed\n")

    assert found(stated, look(0, processes=()), look(1, processes=()), look(2, processes=()))[0] == 1


def test_a_process_that_hydra_names_by_its_id_is_found_by_host_and_heartbeat() -> None:
    stated = Heard(text="=   PID 102 RUNNING AT n2\n=   EXIT CODE: 9\n")

    rank, because = found(stated, look(0, processes=()), look(1, processes=()), look(2, processes=()))

    assert rank == 2
    # MPI in its neighbour may crash where a rank exits, and the neighbour is all that Hydra tells of.
    assert because == "the launcher saw it end first; it does not tell of ranks that exit by themselves"


def test_the_first_rank_that_gave_up_is_named_with_its_step() -> None:
    stated = Heard(text="busbw rank 1 failed at writing all_reduce 8 KiB: OSError: No space left on device\n")

    made = autopsy(plan(), (stated, look(0), look(1), look(2)))

    assert made is not None
    assert made.culprit is not None
    assert (made.culprit.rank, made.culprit.step) == (1, "writing all_reduce 8 KiB")
    assert made.culprit.what == "gave up: OSError: No space left on device"


def test_a_host_that_mpi_lost_first_is_named_when_all_have_ended() -> None:
    stated = Heard(text="process has unexpectedly disconnected.\n  Local host: n0\n  Peer host:  n2\n")

    assert found(stated, look(0, processes=()), look(1, processes=()), look(2, processes=()))[0] == 2


# Open MPI 5.0.11: rank 1 lost its connection to rank 2, which was killed; mpirun says nothing of that one.
GAVE_UP = """\
[n1:00000] *** An error occurred in Socket closed
[n1:00000] *** reported by process [1381236737,1]
prterun has exited due to process rank 0 with PID 0 on node n0 calling
"abort". This may have caused other processes in the application to be
terminated by signals sent by prterun (as reported here).
"""


def ended(rank: int, told_to_stop: bool | None) -> Visit:
    """Return what a host says of a rank that has ended, and of whether a signal had asked it to."""
    seen = look(rank, processes=())
    return msgspec.structs.replace(seen, beats=(msgspec.structs.replace(seen.beats[0], told_to_stop=told_to_stop),))


def test_the_only_rank_that_ended_unasked_is_named() -> None:
    stated = Heard(text=GAVE_UP)

    rank, because = found(
        stated, ended(0, told_to_stop=True), ended(1, told_to_stop=False), ended(2, told_to_stop=False)
    )

    assert rank == 2
    assert because == "every other rank was asked to end, or MPI gave up in it"


@pytest.mark.parametrize(
    "asked",
    [(False, False, False), (True, False, True), (True, False, None)],
    ids=["two ended unasked", "none did but the one that gave up", "not known of one"],
)
def test_where_several_ended_unasked_or_none_it_stays_open(asked: tuple[bool | None, ...]) -> None:
    looks = [ended(rank, told_to_stop=stated) for rank, stated in enumerate(asked)]

    assert found(Heard(text=GAVE_UP), *looks)[0] is None


def test_ranks_that_had_all_ended_leave_it_open() -> None:
    looks = [look(rank, processes=()) for rank in range(3)]

    assert found(*looks) == (None, "cannot tell: every rank had ended before anyone could look")


def test_counters_that_moved_and_faults_since_the_point_began_are_told() -> None:
    sent = CounterSeen(name="mlx5_0/1 port_xmit_data", at_point=5, now=10, later=10)
    received = CounterSeen(name="mlx5_0/1 port_rcv_data", at_point=5, now=10, later=14)
    lost = CounterSeen(name="mlx5_0/1 out_of_sequence", at_point=1, now=3, later=3)

    made = autopsy(plan(), (look(0, counters=(sent, received, lost)), look(1), look(2)))

    assert made is not None
    assert (made.hosts[0].counters, made.hosts[0].moved) == (3, ("mlx5_0/1 port_rcv_data +4",))
    assert made.hosts[0].faults == ("mlx5_0/1 out_of_sequence +2",)


def test_processes_that_would_not_end_are_told() -> None:
    ended = Visit(host="n1", asked="end", unix_s=2.0, left=(101,))

    made = autopsy(plan(), (look(0), look(1), look(2), ended))

    assert made is not None
    assert [host.left for host in made.hosts] == [(), (101,), ()]
