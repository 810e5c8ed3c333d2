"""Who is named when every rank is found ended at once: the one that said why, if it was the only one."""

import os
import subprocess
from pathlib import Path

import pytest

from busbw.measure.execute.blame import blame
from busbw.measure.execute.watch import Watch

from .test_watch import PLAN, write_beat

OWN = "busbw rank {} failed at sampling all_reduce 1 KiB, sample 2: ncclAllReduce: unhandled system error\n"


@pytest.fixture
def watch(tmp_path: Path):
    """Two ranks that ended between two looks, and of which nobody can say how."""
    watch = Watch(PLAN, tmp_path)
    ranks = [subprocess.Popen(["sleep", "60"]) for _rank in range(2)]
    for rank, process in enumerate(ranks):
        write_beat(tmp_path, rank, process.pid, "sampling")
    watch.look()
    for process in ranks:
        process.terminate()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    watch.glance()
    yield watch
    watch.close()
    for process in ranks:
        process.wait()


def test_the_only_rank_that_says_it_failed_is_named(watch: Watch):
    found = blame(OWN.format(1), 1, watch)

    assert found.culprit is not None
    assert (found.culprit.rank, found.culprit.what) == (1, "gave up")
    assert found.cause == OWN.format(1).strip().removeprefix("busbw ")


@pytest.mark.parametrize("text", ["", OWN.format(0) + OWN.format(1), "busbw rank failed at joining: no peers\n"])
def test_no_rank_is_named_where_none_or_several_speak(watch: Watch, text: str):
    assert blame(text, 1, watch).culprit is None
