"""`busbw train run` over MPI on this host: replayed, stored, shown, resumed to nothing, refused."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.runner import Busbw, read_run

from busbw.api.training.planning import TrainRequest, plan_training
from busbw.base.errors import InputError

from .stepping import EIGHT

BRIEF = ("--backend", "native-mpi", "--bind-to", "none", "--min-samples", 3)
# What the JSON of a replayed step has; to take one away breaks whoever reads it.
FIELDS = {
    "steps", "step_s", "low_s", "high_s", "confidence", "compute_s", "exposed_s", "rest_s", "product_s", "calls",
}  # fmt: skip
CALL_FIELDS = {
    "name", "collective", "group", "ranks", "groups", "calls", "size_bytes", "alone_s", "alone_busbw_Bps", "in_step_s",
    "in_step_busbw_Bps", "busy_s", "exposed_s", "verified",
}  # fmt: skip


@pytest.fixture
def busbw(tmp_path: Path) -> Iterator[Busbw]:
    made = Busbw(tmp_path)
    yield made
    assert made.clean_up() == (), "processes of a run are left"


def test_two_ranks_replay_a_step_that_is_stored_and_shown_again(busbw: Busbw) -> None:
    done = busbw("train", "run", "toy-moe", "--ranks", 2, *BRIEF, "--time-limit", 2, "--steps", 20, "--json")

    assert done.code in {0, 1}, done
    run = read_run(busbw.directory())
    step = run.step
    assert step is not None
    assert {(call.group, call.collective, call.calls) for call in step.calls} == {
        ("EP", "alltoall", 16), ("DP", "all_reduce", 1), ("all", "all_reduce", 1),
    }  # fmt: skip
    assert all(call.verified and call.alone_s is not None and call.in_step_s > 0 for call in step.calls)
    # Computing cannot be shorter than planned, and a step not than its parts.
    assert run.plan.step is not None
    assert step.compute_s >= run.plan.step.compute_s
    assert step.step_s >= step.compute_s
    printed = json.loads(done.out)["step"]
    assert set(printed) == FIELDS
    assert all(set(call) == CALL_FIELDS for call in printed["calls"])
    shown = busbw("show")
    assert run.verdict.sentence in shown.out
    assert "tokens to experts and back" in shown.out
    listed = busbw("runs")
    assert "train-toy-moe" in listed.out, listed


def test_measured_on_other_machines_than_the_plans_is_refused(busbw: Busbw) -> None:
    busbw("train", "run", "toy-moe", "--ranks", 2, *BRIEF, "--time-limit", 1, "--steps", 1)
    with pytest.raises(InputError, match="nothing measured"):
        plan_training(TrainRequest(workload="toy-moe", platform="nvidia-dgx-h100", measured=(str(busbw.directory()),)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), "'nothing' is no workload"),
        (("toy-moe", "--ranks", 3), "the nearest that can"),
        (("toy-moe", "--layout", "tp=3"), "the nearest that can: 3"),
        (("toy-moe", "--layout", "tp=1,tp=2"), "changed twice"),
        (("toy-moe", "--layout", "nic=2x"), "is no layout"),
        (("toy-moe", "--scale-down", 0), "--scale-down 0"),
        (("toy-moe", "--rate", "-1"), "--rate"),
        (("toy-moe", "--steps", 0), "--steps 0"),
        (("toy-moe", "--backend", "osu"), "one of: native-mpi, native-nccl"),
        (("llama3-405b", "--ranks", 2304), "of memory"),
    ],
)
def test_what_cannot_be_replayed_is_refused_before_anything_starts(
    busbw: Busbw, arguments: tuple[object, ...], words: str
) -> None:
    done = busbw("train", "run", *arguments)

    assert done.code == 2, done
    assert words in done.err
    assert len(done.err.splitlines()) <= 4, done
    assert not busbw.runs.exists()


def test_a_plan_says_which_groups_call_what_and_starts_nothing(busbw: Busbw) -> None:
    (busbw.folder / "eight.toml").write_text(EIGHT)
    done = busbw("train", "run", "./eight.toml", "--ranks", 8, *BRIEF, "--plan")

    assert done.code == 0, done
    assert "8 ranks = TP 2 x PP 2 x CP 1 x DP 2; EP 2" in done.out
    rows = [line.split()[:4] for line in done.out.splitlines()]
    assert ["TP", "all_gather", "2", "4"] in rows
    assert ["all", "all_reduce", "8", "1"] in rows
    assert not busbw.runs.exists()
