"""Where the time of a step goes, drawn: lanes add up to the step, and what cannot be drawn is refused."""

import itertools
from pathlib import Path

import pytest
from tests.report.factories import subjects
from tests.warm import warm_busbw

from busbw.api.training.planning import TrainRequest, plan_training
from busbw.model import codec
from busbw.show.figures.replayed_step import replayed_step_figure
from busbw.show.figures.training import planned_step_figure
from busbw.show.page.html import report_html
from busbw.show.page.section import section_of

from .stepping import replayed_run

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
    # What is hidden, paler, lies beside computing.
    spans = [(trace["x"][0], trace["x"][1]) for trace in drawn.figure["data"] if trace.get("showlegend", True)]
    spans = [span for span in spans if span[1] > 0]
    assert spans[0][0] == 0
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(spans))
    assert spans[-1][1] == pytest.approx(plan.estimate.step_s, rel=1e-6)
    assert drawn.figure["data"][0]["name"].startswith("1 computing")
    shares = [trace for trace in drawn.share["data"] if trace.get("showlegend", True)]
    assert sum(trace["x"][1] - trace["x"][0] for trace in shares) == pytest.approx(100, rel=1e-6)


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


def spans_of(trace: dict[str, object]) -> list[tuple[float, float]]:
    """Return from where to where each box of a trace goes, the empty one left out."""
    across = [*trace["x"], None]  # type: ignore[misc]
    return [(across[at], across[at + 1]) for at in range(0, len(across), 6) if across[at + 1] > across[at]]


def test_a_replayed_step_over_time_has_each_part_as_long_as_it_was_measured() -> None:
    run = replayed_run(ranks=8)
    drawn = replayed_step_figure(run)
    assert drawn is not None
    assert run.step is not None
    ms = 1e3
    lanes = {trace["name"]: spans_of(trace) for trace in drawn.figure["data"] if trace.get("showlegend", True)}
    lengths = {name: sum(end - begin for begin, end in spans) for name, spans in lanes.items()}
    computing, *calls, rest = lengths.values()
    # Gaps too short to be seen are drawn over: of each lane at most one in a thousand a call.
    assert computing == pytest.approx(run.step.compute_s * ms, rel=0.05)
    assert sum(calls) == pytest.approx(run.step.exposed_s * ms, rel=0.05)
    assert rest == pytest.approx((run.step.step_s - run.step.compute_s - run.step.exposed_s) * ms, rel=0.01)
    assert [name.split()[0] for name in lanes] == [str(number + 1) for number in range(len(lanes))]
    # What is hidden lies beside computing, and what is waited for does not.
    hidden = [span for trace in drawn.figure["data"] if trace.get("showlegend") is False for span in spans_of(trace)]
    assert hidden
    last = max(end for begin, end in next(iter(lanes.values())))
    assert all(end <= last + 1e-9 for _begin, end in hidden)
    shares = [trace for trace in drawn.share["data"] if trace.get("showlegend", True)]
    assert sum(end - begin for trace in shares for begin, end in spans_of(trace)) == pytest.approx(100, rel=0.01)


def test_a_page_of_sixty_four_ranks_shows_every_call_in_a_table_and_stays_small() -> None:
    run = replayed_run(ranks=64)
    subject = subjects(run)[0]
    section = section_of(subject, prefix="", level=2)
    values = section.values["step"]
    assert run.step is not None
    assert len(values["rows"]) == len(run.step.calls)
    assert set(section.figures) == {"step-over", "step-share", "ranks-figure"}
    boxes = sum(len(trace["x"]) for figure in section.figures.values() for trace in figure["data"])
    assert boxes < 60_000, "gaps that nobody sees are not drawn"
    page = report_html((subject,))
    assert page.index('id="step-over"') < page.index('id="findings"')
    assert 'id="curves"' not in page, "one size makes no curve"
    assert "what is expected of them here is not known" in page


def test_a_run_without_a_step_has_no_such_part_and_is_not_drawn_as_one(tmp_path: Path) -> None:
    run = replayed_run(ranks=8, replayed=False)
    assert replayed_step_figure(run) is None
    assert section_of(subjects(run)[0], prefix="", level=2).values["step"] is None
    done = warm_busbw("plot", "--step", "nothing-of-the-kind", "-o", str(tmp_path / "step.svg"))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) <= 4
    assert not (tmp_path / "step.svg").exists()
