"""A training step over test hosts: the plan's groups, several at once on eight ranks of four hosts."""

from pathlib import Path

import pytest
from tests.e2e.runner import read_run
from tests.lab.lab import Lab
from tests.train.stepping import EIGHT

from .test_hosts import on_n0

pytestmark = pytest.mark.root


def test_eight_ranks_of_four_hosts_replay_every_kind_of_group_at_once(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "eight.toml").write_text(EIGHT)

    done = on_n0(
        lab, tmp_path, "train", "run", "./eight.toml", "--hosts", "n[0-3]", "--ranks-per-node", 2, "--interface",
        "eth0", "--backend", "native-mpi", "--bind-to", "none", "--time-limit", 2, "--steps", 2, "--min-samples", 1,
        "--out", tmp_path / "run",
    )  # fmt: skip

    run = read_run(tmp_path / "run")
    assert run.step is not None, done
    assert [rank.host for rank in run.ranks] == [f"n{rank // 2}" for rank in range(8)]
    found = {(call.group, call.ranks, call.groups) for call in run.step.calls}
    assert found == {("TP", 2, 4), ("EP", 2, 4), ("PP", 2, 4), ("DP", 2, 4), ("all", 8, 1)}
    assert all(call.verified and call.in_step_s > 0 for call in run.step.calls), done
    # What is overlapped takes longer than is waited for it.
    hidden = {call.name for call in run.plan.step.calls if call.hidden_by is not None} if run.plan.step else set()
    assert hidden
    assert all(call.exposed_s < call.busy_s for call in run.step.calls if call.name in hidden)
