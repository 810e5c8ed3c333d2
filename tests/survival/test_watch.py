"""Ranks of one host as the launching side watches them, also where the kernel does not say when a process ends."""

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest
from tests.fuzz.seeds import plan_of_two_ranks

from busbw.base import layout
from busbw.measure.execute import processes
from busbw.measure.execute.watch import Watch
from busbw.model import codec
from busbw.model.plan import Plan

PLAN = codec.decode(json.dumps(plan_of_two_ranks()).encode(), Plan, where="seed")


def write_beat(raw: Path, rank: int, process_id: int, state: str) -> None:
    words = (process_id, layout.HEARTBEAT_STATES.index(state), 0, 0, 0, 0, 0, 0)
    (raw / layout.heartbeat_name(rank)).write_bytes(struct.pack("=8Q", *words))


@pytest.mark.parametrize("tells_ends", [True, False])
def test_a_rank_that_is_killed_is_found_dead_and_one_that_is_done_is_not_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, tells_ends: bool
):
    if not tells_ends:
        # Linux before 5.3, and a Python that was built there.
        monkeypatch.delattr(os, "pidfd_open")
    ranks = [subprocess.Popen(["sleep", "60"]) for _rank in range(2)]
    watch = Watch(PLAN, tmp_path)
    try:
        for rank, process in enumerate(ranks):
            write_beat(tmp_path, rank, process.pid, "sampling")
        watch.look()
        assert watch.deaths == []

        write_beat(tmp_path, 1, ranks[1].pid, "done")
        for process in ranks:
            process.kill()
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        watch.glance()

        assert {death.rank: death.what for death in watch.deaths} == {0: "killed by signal 9 (SIGKILL)", 1: "done"}
        assert [death.rank for death in watch.early_deaths] == [0]
        watch.look()
        assert len(watch.deaths) == 2
    finally:
        watch.close()
        for process in ranks:
            process.kill()
            process.wait()


def test_a_process_that_is_gone_has_no_end_to_wait_for():
    ended = subprocess.Popen(["true"])
    ended.wait()

    with pytest.raises(ProcessLookupError):
        processes.end_descriptor(ended.pid)
