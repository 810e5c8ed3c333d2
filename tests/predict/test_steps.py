"""The communication of a planned step: what is added, what is hidden, how intervals add up, and what is no plan."""

import json
from pathlib import Path

import pytest
from msgspec import structs
from tests.warm import warm_busbw

from busbw.api.predicting.workloads import read_plan
from busbw.api.training.planning import named_machine
from busbw.base.errors import InputError
from busbw.facts.platforms import find_platform
from busbw.model.train.plan import GroupPlace
from busbw.predict.steps import overlap_of, predicted_step
from busbw.train.predicting import Asked

PLAN = Path(__file__).parents[2] / "docs" / "data" / "step-plan.json"


def step(overlap: float):
    plan = read_plan(PLAN.read_bytes(), PLAN.name)
    return predicted_step(plan, find_platform(plan.platform).platform, overlap, PLAN.name)


def test_calls_add_up_and_only_what_may_overlap_is_hidden() -> None:
    none, half, full = (step(overlap) for overlap in (0.0, 0.5, 1.0))
    assert none.total == half.total == full.total == none.exposed
    assert none.total.time_s == pytest.approx(sum(term.total.time_s for term in none.terms if term.total))
    hidden = none.exposed.time_s - full.exposed.time_s
    assert 0 < hidden == pytest.approx(none.overlappable_s)
    assert half.exposed.time_s == pytest.approx(none.exposed.time_s - hidden / 2)


def test_errors_of_one_constant_add_up_and_those_of_several_less() -> None:
    found = step(0.0)
    longest = [term.total.high_s - term.total.time_s for term in found.terms if term.total]
    over = found.total.high_s - found.total.time_s
    assert max(longest) <= over < sum(longest)
    plan = read_plan(PLAN.read_bytes(), PLAN.name)
    told = next(place for place, term in enumerate(found.terms) if term.call is not None)
    twice = structs.replace(plan, collectives=(plan.collectives[told],) * 2)
    same = predicted_step(twice, find_platform(plan.platform).platform, 0.0, PLAN.name)
    assert same.total.high_s - same.total.time_s == pytest.approx(2 * longest[0])


def test_a_plan_takes_predicted_times_where_nobody_measured() -> None:
    answer = named_machine("azure-ndv4").answer
    place = GroupPlace(nodes=1, ranks_per_node=4, links="NVLink")
    small = answer(Asked(collective="all_reduce", size_bytes=2**14, ranks=4, place=place))
    assert small.basis == "predicted"
    assert "90 %" in small.words
    assert small.time_s > small.least_s


def test_the_command_prints_the_sum_and_what_is_in_none(tmp_path: Path) -> None:
    done = warm_busbw("predict", "--workload", str(PLAN), "--overlap", "0.5", cwd=tmp_path)
    assert done.returncode == 0
    assert "a step communicates" in done.stdout
    assert "may overlap 50 % is taken to be hidden" in " ".join(done.stdout.split())
    assert "neighbour" in done.stdout
    over_ethernet = warm_busbw("predict", "--workload", str(PLAN), "--platform", "gcp-a2", cwd=tmp_path)
    assert "cannot tell, and in no sum" in over_ethernet.stdout
    as_json = json.loads(warm_busbw("predict", "--workload", str(PLAN), "--json", cwd=tmp_path).stdout)
    assert as_json["overlap"] == 0.0


def test_a_plan_of_a_mixture_of_experts_is_predicted_with_its_alltoall(tmp_path: Path) -> None:
    asked = ("deepseek-v3-like", "--platform", "azure-nd-h100-v5", "--gpus", "2048")
    plan = warm_busbw("train", "plan", *asked, "--json", cwd=tmp_path)
    (tmp_path / "plan.json").write_text(plan.stdout)
    done = warm_busbw("predict", "--workload", "plan.json", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    terms = {term["collective"]: term for term in json.loads(done.stdout)["terms"]}
    # Experts on eight nodes: no document has that, and the interval says so.
    experts = terms["alltoall"]
    assert (experts["nodes"], experts["call"]["unmeasured"]) == (8, "no document has alltoall between nodes")
    assert experts["total"]["low_s"] < experts["total"]["time_s"] < experts["total"]["high_s"]
    assert terms["sendrecv"]["call"]["algorithm"] == "neighbour"


@pytest.mark.parametrize("text", ["", "half", "1.5", "-0.1", "nan", "0.\u0663", "1e-3", "00.5"])
def test_what_is_no_overlap_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no overlap"):
        overlap_of(text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("calls", -1), "-1 calls"),
        (("size_bytes", 2**60), "calls of"),
        (("size_bytes", "large"), "not a valid"),
        (("calls", 1e300), "not a valid"),
        (("group", "nothing"), "not a valid"),
    ],
)
def test_what_is_no_plan_is_refused(change: tuple[str, object], words: str, tmp_path: Path) -> None:
    plan = json.loads(PLAN.read_text())
    plan["collectives"][0][change[0]] = change[1]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    done = warm_busbw("predict", "--workload", "plan.json", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) <= 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--workload", "missing.json"), "missing.json"),
        (("--workload", str(PLAN), "--platform", "nonsense"), "nonsense"),
        (("--workload", str(PLAN), "--platform", "isambard-ai-phase2"), "GPUs a node"),
        (("all_reduce", "--workload", str(PLAN)), "a collective is not used with --workload"),
        (("all_reduce", "--platform", "aws-p5", "--overlap", "full"), "--overlap without a step"),
    ],
)
def test_what_cannot_be_asked_of_a_step_is_refused(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = warm_busbw("predict", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
