"""Where the time of a step goes, drawn: lanes add up to the step, and what cannot be drawn is refused."""

import itertools
from pathlib import Path

import pytest
from tests.warm import warm_busbw

from busbw.api.training.planning import TrainRequest, plan_training
from busbw.model import codec
from busbw.show.figures.training import planned_step_figure

JOB = Path(__file__).parents[2] / "docs" / "data" / "job-64-gpus.toml"


@pytest.mark.parametrize(
    ("workload", "asked"),
    [(str(JOB), {"step_s": 20.479}), ("grok1-314b", {"gpus": 512})],
)
def test_lanes_follow_each_other_and_add_up_to_the_step(workload: str, asked: dict[str, float]) -> None:
    plan = plan_training(TrainRequest(workload=workload, platform="azure-nd-h100-v5", **asked))  # type: ignore[arg-type]
    drawn = planned_step_figure(plan)

    assert plan.estimate is not None
    assert drawn is not None
    spans = [(trace["x"][0], trace["x"][1]) for trace in drawn.figure["data"]]
    assert spans[0][0] == 0
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(spans))
    assert spans[-1][1] == pytest.approx(plan.estimate.step_s, rel=1e-6)
    assert drawn.figure["data"][0]["name"].startswith("1 computing")


def test_a_plan_without_a_time_has_no_figure(tmp_path: Path) -> None:
    plan = plan_training(TrainRequest(workload="toy-moe", platform="nvidia-dgx-h100"))
    assert planned_step_figure(plan) is None
    (tmp_path / "plan.json").write_bytes(codec.encode_pretty(plan))

    done = warm_busbw("plot", "--step", str(tmp_path / "plan.json"), "-o", str(tmp_path / "step.svg"))

    assert done.returncode == 2
    assert "the plan has no time of a step" in done.stderr
    assert not (tmp_path / "step.svg").exists()


def test_the_verb_draws_a_plan(tmp_path: Path) -> None:
    plan = plan_training(TrainRequest(workload=str(JOB), platform="azure-nd-h100-v5", step_s=20.479))
    (tmp_path / "plan.json").write_bytes(codec.encode_pretty(plan))

    done = warm_busbw("plot", "--step", str(tmp_path / "plan.json"), "-o", str(tmp_path / "step.svg"))

    assert done.returncode == 0, done.stderr
    text = (tmp_path / "step.svg").read_text()
    assert "computing: " in text
    assert "all_gather, TP: " in text
