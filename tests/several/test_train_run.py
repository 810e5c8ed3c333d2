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
    # 2 sequences of 64 tokens, 128 wide, 2 bytes each; a rank has half of them (TP), of experts two a token.
    states = 2 * 64 * 128 * 2
    sizes = {(call.group, call.collective, call.size_bytes) for call in run.step.calls}
    assert sizes >= {
        ("TP", "all_gather", states), ("TP", "reduce_scatter", states), ("TP", "all_gather", 2 * states),
        ("EP", "alltoall", states // 2 * 2), ("PP", "sendrecv", states // 2),
    }  # fmt: skip
    assert run.plan.step is not None
    assert [(call.name, call.size_bytes) for call in run.step.calls] == [
        (call.name, call.planned_bytes) for call in run.plan.step.calls
    ]
    # Ranks of a group: TP on one host, experts and replicas on the next, stages on the one after that.
    groups = {each.within.kind: each.within.strides for each in run.plan.sweeps if each.within is not None}
    assert groups == {"TP": (1,), "EP": (2,), "DP": (2,), "PP": (4,), "all": (1, 2, 4)}
    # What is overlapped takes longer than is waited for it.
    hidden = {call.name for call in run.plan.step.calls if call.hidden_by is not None}
    overlapped = [call for call in run.step.calls if call.name in hidden]
    assert {call.group for call in overlapped} == {"TP", "PP", "DP"}
    assert all(call.exposed_s < call.busy_s for call in overlapped)
    # Together they are under way for longer than there is computing to hide them: groups of several kinds at once.
    assert sum(call.busy_s - call.exposed_s for call in overlapped) > run.step.compute_s
