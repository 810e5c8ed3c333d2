"""`busbw train run` over MPI on this host: replayed, stored, shown, refused."""

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.runner import Busbw, read_run
from tests.warm import warm_busbw

from busbw.api.training.replaying import plan_replay
from busbw.base.errors import InputError
from busbw.cli.train.replaying import run as command
from busbw.model.request import Request, command_of
from busbw.model.train.replay import StepAsked

from .stepping import EIGHT

BRIEF = ("--backend", "native-mpi", "--bind-to", "none", "--min-samples", 3)
# What the JSON of a replayed step has; to take one away breaks whoever reads it.
FIELDS = {
    "steps", "step_s", "low_s", "high_s", "confidence", "compute_s", "exposed_s", "rest_s", "product_s", "calls",
}  # fmt: skip
CALL_FIELDS = {
    "name", "collective", "group", "ranks", "groups", "calls", "size_bytes", "alone_s", "alone_busbw_Bps", "in_step_s",
    "in_step_busbw_Bps", "busy_s", "exposed_s", "verified", "wrong_rank",
}  # fmt: skip


@pytest.fixture
def busbw(tmp_path: Path) -> Iterator[Busbw]:
    made = Busbw(tmp_path)
    yield made
    assert made.clean_up() == (), "processes of a run are left"


def test_two_ranks_go_from_a_plan_over_a_replayed_step_to_a_figure_of_jobs_and_a_page(
    busbw: Busbw, tmp_path: Path
) -> None:
    env = busbw.environment()
    planned = warm_busbw("train", "plan", "toy-moe", "--platform", "nvidia-dgx-h100", "--json", env=env)
    assert planned.returncode == 0, planned
    done = busbw("train", "run", "toy-moe", "--ranks", 2, *BRIEF, "--time-limit", 3, "--steps", 20, "--json")

    assert done.code in {0, 1, 4}, done
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
    # What was replayed is what was planned.
    names = {each["name"]: each["calls"] for each in json.loads(planned.stdout)["collectives"]}
    assert {call.name: call.calls for call in step.calls} == names
    shown = warm_busbw("show", env=env)
    assert run.verdict.sentence in shown.stdout
    assert "tokens to experts and back" in shown.stdout
    listed = warm_busbw("runs", env=env)
    assert "train-toy-moe" in listed.stdout, listed
    # Beside one GPU of a table it has a place in the figure of its job.
    (tmp_path / "one.csv").write_text(f"gpus,step_s,seqlen,gbs\n1,{2 * step.step_s:.6f},64,8\n")
    scaled = warm_busbw("train", "scale", busbw.directory(), tmp_path / "one.csv", "--json", env=env)
    assert scaled.returncode in {0, 1}, scaled
    (view,) = json.loads(scaled.stdout)["views"]
    assert [point["at"] for series in view["series"] for point in series["points"]] == [1, 2]
    assert any("replayed steps compute at a rate that is assumed" in note for note in view["notes"])
    (tmp_path / "scaled.json").write_text(scaled.stdout)
    page = tmp_path / "page.html"
    told = warm_busbw("report", "last", "--scaling", tmp_path / "scaled.json", "-o", page, env=env)
    assert told.returncode == 0, told
    assert page.read_text().count('id="step-over"') == 1
    drawn = warm_busbw("plot", "--step", "last", "-o", tmp_path / "step.svg", env=env)
    assert drawn.returncode == 0, drawn
    assert "EP alltoall 128 KiB x16" in (tmp_path / "step.svg").read_text()


@pytest.mark.parametrize(
    ("asked", "request_", "words"),
    [
        ({"workload": "nothing"}, {}, "'nothing' is no workload"),
        ({}, {"ranks": 3}, "the nearest that can: ep = 1 or 3, or 2 or 4 GPUs"),
        ({"layout": "tp=3"}, {}, "the nearest that can: 3"),
        ({"layout": "tp=1,tp=2"}, {}, "tp is changed twice"),
        ({"layout": "nic=2x"}, {}, "is no layout"),
        ({"layout": "global_batch=1000000"}, {}, "fewer micro-batches: --layout global_batch="),
        ({"scale_down": 0}, {}, "--scale-down 0"),
        ({"rate_flops": -1.0}, {}, "--rate"),
        ({"steps": 0}, {}, "--steps 0"),
        ({}, {"backend": "osu"}, "one of: native-mpi, native-nccl"),
        ({}, {"launcher": "sbatch"}, "sbatch --nodes 2 --wrap"),
        ({"workload": "llama3-405b"}, {"ranks": 2304}, "hint: fewer ranks"),
        ({"workload": "llama3-70b", "layout": "global_batch=16"}, {"ranks": 64}, "--scale-down 10, or more ranks"),
    ],
)
def test_what_cannot_be_replayed_is_refused_before_anything_starts(
    asked: dict[str, Any], request_: dict[str, Any], words: str
) -> None:
    request = Request(**{"backend": "native-mpi", "ranks": 2, **request_})
    with pytest.raises(InputError) as caught:
        plan_replay(request, StepAsked(**{"workload": "toy-moe", **asked}), None)
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 4


def test_a_plan_says_which_groups_call_what_and_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "eight.toml").write_text(EIGHT)
    done = warm_busbw(
        "train", "run", "./eight.toml", "--ranks", 8, *BRIEF, "--plan", cwd=tmp_path,
        env={**os.environ, "BUSBW_RUNS": str(tmp_path / "runs")},
    )  # fmt: skip

    assert done.returncode == 0, done
    assert "8 ranks = TP 2 x PP 2 x CP 1 x DP 2; EP 2" in done.stdout
    rows = [line.split()[:4] for line in done.stdout.splitlines()]
    assert ["TP", "all_gather", "2", "4"] in rows
    assert ["all", "all_reduce", "8", "1"] in rows
    assert not (tmp_path / "runs").exists()


def test_a_plan_names_the_command_that_asks_for_it_again(tmp_path: Path) -> None:
    asked = StepAsked(workload="toy-moe", layout="tp=2,ep=1", scale_down=3, rate_flops=2e11, steps=7)
    made, _where = plan_replay(Request(backend="native-mpi", ranks=2, time_limit_s=4.0), asked, tmp_path / "run")
    assert made.request is not None
    again = command_of(made.request)
    assert not any("smallest configuration" in note for note in made.notes)
    assert again[:4] == ("busbw", "train", "run", "toy-moe")
    known = {name for each in command.params for name in each.opts}
    assert [word for word in again if word.startswith("-") and word not in known] == []
    values = dict(pairwise(again))
    assert [values[name] for name in ("--layout", "--scale-down", "--rate", "--steps", "--ranks")] == [
        "tp=2,ep=1", "3", "0.2", "7", "2",
    ]  # fmt: skip


def test_without_a_number_the_smallest_configuration_is_taken_and_said(tmp_path: Path) -> None:
    made, _where = plan_replay(Request(backend="native-mpi"), StepAsked(workload="toy-moe"), tmp_path / "run")
    assert made.placement.ranks == 2
    assert made.notes[0] == "2 ranks, the smallest configuration of toy-moe: another with --ranks"
