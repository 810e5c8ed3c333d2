"""Reports of NCCL's monitor, made after the format strings of its 2.28."""

from busbw.model.finding import Diagnosis

from .made import Job
from .test_diagnosis import codes, evidence, read

HEAD = """Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         4         8         8   RUNNING  {0}

Errors
======

"""
LOST = """INCOMPLETE
  Missing communicator data from 1 job process
  Process 4711 on node 10.0.0.9 managing GPU 3

#0-0 (c0ffee0123456789) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 7 -- GPU 3 managed by process 4711 on node 10.0.0.9
"""
DEAD = """DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 4711 on node 10.0.0.9 managing GPU 3

#0-0 (c0ffee0123456789) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 7
"""
APART = """
Warnings
========

#0-0 (c0ffee0123456789) MISMATCH
  Communicator ranks have different AllReduce operation counts
  6 ranks have launched up to operation {0}
  2 ranks have launched up to operation {1}
  Rank 2 -- GPU 2 managed by process 4702 on node 10.0.0.8
  Rank 5 -- GPU 1 managed by process 4705 on node 10.0.0.9
"""


def report(*parts: str, status: str = "MISMATCH") -> str:
    return HEAD.format(status) + "".join(parts)


def only(diagnosis: Diagnosis) -> str:
    (found,) = diagnosis.findings
    return found.code


def test_a_healthy_report_has_no_finding():
    assert not read(report(status="OK")).findings


def test_a_process_that_does_not_answer_is_named():
    diagnosis = read(report(LOST, status="INCOMPLETE"))

    assert diagnosis.verdict.outcome == "failed"
    assert "process 4711 on 10.0.0.9, GPU 3; rank 7 (process 4711 on 10.0.0.9); no answer" in evidence(
        diagnosis, "LOG038"
    )


def test_a_process_that_is_dead_is_certain():
    (found,) = read(report(DEAD, status="INCOMPLETE")).findings

    assert (found.code, found.confidence) == ("LOG038", "certain")
    assert "rank 7; dead" in (found.evidence or "")


def test_ranks_that_are_behind_are_named():
    found = evidence(read(report(APART.format(640, 633))), "LOG039")

    assert "AllReduce: 2 ranks at 633, 6 ranks at 640; behind: ranks 2, 5 on 10.0.0.8, 10.0.0.9" in found


def test_one_rank_is_behind_on_a_line_of_its_own():
    text = report(
        "#0-0 (c0ffee0123456789) MISMATCH\n  Communicator ranks have different Broadcast operation counts\n"
        "  7 ranks have launched up to operation 64\n"
        "  Rank 6 has not launched any operations -- GPU 2 managed by process 4706 on node n2\n"
    )

    assert "1 rank at 0, 7 ranks at 64; behind: rank 6 on n2" in evidence(read(text), "LOG039")


def test_one_operation_is_nothing_unless_it_stays():
    once, again = report(APART.format(640, 639)), report(APART.format(641, 640))

    assert only(read(once)) == "LOG045"
    assert only(read(once + again)) == "LOG045"
    assert only(read(once + once)) == "LOG039"


def test_ranks_that_are_ahead_leave_the_others_behind_without_names():
    assert "behind: 6 ranks, which the report does not name" in evidence(read(report(APART.format(640, 641))), "LOG045")


def test_a_difference_in_state_is_no_operation():
    text = report(
        APART.format(640, 639),
        "\n#1-0 (beef) MISMATCH\n  Communicator ranks have different status\n  6 ranks have status UNKNOWN\n",
    )

    assert only(read(text)) == "LOG045"


def test_a_report_may_stand_in_the_log_of_the_job():
    assert codes(read(Job().text(report(DEAD)))) == {"LOG038"}
