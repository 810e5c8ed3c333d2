"""Logs that hold several launches: ranks of one are not held against those of another."""

from .made import Job
from .test_diagnosis import codes, evidence, read


def again(text: str, *, pids: bool = True, communicator: str = "0x88bb") -> str:
    """Return the log of a launch as another launch on the same hosts would write it."""
    text = text.replace("0x77aa", communicator)
    return text.replace(":10", ":50").replace(":20", ":60") if pids else text


def test_a_second_launch_with_other_settings_is_no_difference_between_ranks():
    first = Job(version="2.27.3+cuda12.9", everywhere=("NCCL_PROTO set by environment to LL",)).text()
    second = again(Job(everywhere=("NCCL_PROTO set by environment to Simple",)).text())

    diagnosis = read(first + second)

    assert codes(diagnosis) == {"LOG043"}
    assert "4 ranks, ok; line 73: 4 ranks, ok (this one)" in evidence(diagnosis, "LOG043")
    assert [fact.values[0].value for fact in diagnosis.environment] == ["Simple"]


def test_launches_of_different_sizes_are_told_apart():
    diagnosis = read(Job(hosts=4).text() + again(Job(hosts=1).text()))

    assert "8 ranks, ok" in evidence(diagnosis, "LOG043")
    assert (diagnosis.ranks, diagnosis.nodes) == (2, 1)


def test_the_launch_that_failed_is_the_one_that_is_told():
    job = Job()
    failed = job.text(job.warn(2, "Cuda failure 'uncorrectable ECC error encountered'"))

    diagnosis = read(failed + again(Job().text()))

    assert diagnosis.verdict.outcome == "failed"
    assert "rank 2 on node01" in evidence(diagnosis, "LOG030")
    assert "failed (this one)" in evidence(diagnosis, "LOG043")


def test_what_a_launcher_says_belongs_to_the_launch_before_it():
    text = Job().text("srun: error: node01: task 3: Killed")

    diagnosis = read(text + again(Job().text()))

    assert diagnosis.verdict.outcome == "failed"
    assert "4 ranks, failed (this one); " in evidence(diagnosis, "LOG043")


def test_process_ids_that_come_again_are_other_processes():
    lines = ("NCCL_SOCKET_IFNAME set by environment to eth0",)
    text = Job(everywhere=lines).text() + again(Job(everywhere=lines).text(), pids=False)

    assert "LOG043" in codes(read(text))


def test_files_of_ranks_behind_each_other_are_one_launch():
    job = Job()
    text = "".join("\n".join(job.of(rank)) + "\n" for rank in range(4))

    diagnosis = read(text)

    assert not diagnosis.findings
    assert diagnosis.ranks_seen == 4


def test_communicators_that_are_made_later_are_no_launch():
    job = Job()
    later = [
        job.head(rank) + f"ncclCommSplit comm 0x9{rank} rank {rank % 2} nranks 2 cudaDev {rank % 2} nvmlDev 0 "
        f"busId 1 commId 0x{rank // 2 + 1} - Init {word}"
        for word in ("START", "COMPLETE")
        for rank in range(4)
    ]

    assert not read(job.text(*later)).findings
