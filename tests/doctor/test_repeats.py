"""Lines of failure that come again and again: counted, each for its own, as if each had been read alone."""

import pytest

from busbw.logs.reader import LogReader

RETRY = (
    "[1700000000.{when:06}] [n{node}:{pid}:0] ib_mlx5_log.c:177  UCX  ERROR Transport retry count exceeded on "
    "mlx5_{nic}:1/IB\n"
)
COMPLETION = (
    "n{node}:{pid}:9{when} [{nic}] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer "
    "10.0.0.1<{when}> with status={status} opcode=0 len=1 vendor err 129 localGid fe80::{when:x}a1 \n"
)
WATCHDOG = (
    "[rank{rank}]:[E1125 10:00:{when:02}.1 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={sequence}, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) "
    "ran for 60000{when} milliseconds before timing out.\n"
)
UNKNOWN = "n{node}:{pid}:9{when} [0] misc/x.cc:1 NCCL WARN Something {when} that nobody knows\n"


def counts(text: str) -> list[tuple[str, str | None, int | None, int]]:
    """Return kind, process, rank and count of every event. The sieve has read a first part before it meets the rest."""
    reader = LogReader()
    for line in text.splitlines(keepends=True):
        reader.feed(line.encode())
    reader.end_source()
    return [(event.kind, event.process, event.rank, event.count) for event in reader.troubles.events.values()]


def test_lines_with_other_times_and_addresses_are_counted_with_the_process_that_says_them():
    lines = "".join(UNKNOWN.format(node=1, pid=pid, when=when) for when in range(50) for pid in (10, 11))

    assert [(process, count) for _kind, process, _rank, count in counts(lines)] == [("n1:10", 50), ("n1:11", 50)]


def test_timeouts_of_other_calls_and_ranks_stay_apart():
    lines = "".join(
        WATCHDOG.format(rank=rank, sequence=sequence, when=when)
        for when in range(10, 20)
        for rank in (0, 1)
        for sequence in (7, 8)
    )

    assert sorted((rank or 0, count) for _kind, _process, rank, count in counts(lines)) == [(0, 10)] * 2 + [(1, 10)] * 2


@pytest.mark.parametrize("order", [(12, 5), (5, 12)])
def test_a_number_on_which_the_cause_rests_loses_no_line(order: tuple[int, int]):
    lines = "".join(
        COMPLETION.format(node=1, pid=10, nic=0, when=when, status=status) for when in range(20) for status in order
    )

    assert sum(count for _kind, _process, _rank, count in counts(lines)) == 40


def test_a_process_that_begins_anew_counts_for_itself():
    starts = "n1:10:11 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
    made = (
        "n1:10:11 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x5 - Init START\n"
    )
    lines = "".join(UNKNOWN.format(node=1, pid=10, when=when) for when in range(5))

    found = counts(f"{starts}{made}{lines}{starts}{made}{lines}")

    assert [(process, count) for _kind, process, _rank, count in found] == [("n1:10", 5), ("n1:10 (2)", 5)]


def test_a_line_that_was_known_before_others_is_still_counted_in_one_block():
    text = "".join(RETRY.format(node=1, pid=10, nic=0, when=when) for when in range(3000))
    reader = LogReader()
    reader.feed(text.encode())
    reader.end_source()

    assert [event.count for event in reader.troubles.events.values()] == [3000]
