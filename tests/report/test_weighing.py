"""Findings stand by weight, and what disturbed a run is one line that says what it means."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.judge.factories import MiB, make_counters, make_measurement, make_outcome, make_plan, make_rates

from busbw import judge
from busbw.facts.rules import rules
from busbw.model.finding import Finding, Verdict
from busbw.model.run import Measurement, Run
from busbw.show.text.terminal import run_text
from busbw.show.weighing import by_weight, conditions_of, weighed

from .factories import make_run

CODES = tuple(rules())
Printed = Callable[[Run], list[str]]


def make_finding(code: str, severity: str = "warn", point: int | None = None) -> Finding:
    return Finding(code=code, severity=severity, title="t", evidence="e", point=point)  # type: ignore[arg-type]


def judged(*points: Measurement, before: float = 0.0, stolen_s: float = 0.0) -> Run:
    """Return a run of these points on two free cores of four, after a load, with so much time stolen of 40 s."""
    plan = make_plan(ranks=2)
    outcome = make_outcome(make_counters(load_average=before), make_counters(cpu_s=40.0, stolen_s=stolen_s))
    judgement = judge.judge(plan, outcome, (), make_rates(), points)
    return structs.replace(
        make_run(make_plan(ranks=2)),
        plan=plan,
        outcome=outcome,
        measurements=points,
        findings=judgement.findings,
        verdict=judgement.verdict,
    )


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    """Return what prints a run on a terminal of 80 columns without colours, and returns its lines."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")

    def lines(run: Run) -> list[str]:
        run_text(run, Path("r"))
        return capsys.readouterr().out.splitlines()

    return lines


def test_errors_come_before_what_the_verdict_rests_on_before_large_messages_before_small_ones() -> None:
    sizes = {1: 8, 2: MiB}
    small, large = make_finding("PERF011", point=1), make_finding("PERF011", point=2)
    decides, wrong, note = make_finding("PERF007"), make_finding("RUN001", "error"), make_finding("PERF005", "note")
    verdict = Verdict(outcome="slow", sentence="slow: x.", because=("PERF007",))

    ordered = by_weight([note, small, make_finding("RUN003"), large, decides, wrong], verdict, sizes)

    assert ordered == (wrong, decides, large, make_finding("RUN003"), small, note)


def test_a_named_part_comes_before_the_time_of_small_messages() -> None:
    latency, gpu = make_finding("PERF014"), make_finding("PERF013")

    assert by_weight([latency, gpu]) == (gpu, latency)


@given(st.lists(st.builds(make_finding, st.sampled_from(CODES), st.sampled_from(["note", "warn", "error"]))))
def test_no_finding_is_lost_and_none_stands_before_a_graver_one(findings: list[Finding]) -> None:
    ordered = by_weight(findings)

    assert sorted(one.code for one in ordered) == sorted(one.code for one in findings)
    severities = [("error", "warn", "note").index(one.severity) for one in ordered]
    assert severities == sorted(severities)


def test_every_finding_of_a_run_is_either_shown_or_folded() -> None:
    run = make_run(findings=tuple(make_finding(code) for code in CODES))
    folded = conditions_of(run)

    assert folded is not None
    assert {one.code for one in (*weighed(run), *folded.findings)} == set(CODES)
    assert len(weighed(run)) + len(folded.findings) == len(CODES)


def test_wrong_results_missing_points_and_unverified_results_are_never_folded() -> None:
    run = make_run(findings=tuple(make_finding(code) for code in ("RUN001", "RUN003", "RUN020", "RUN021", "PERF004")))

    assert conditions_of(run) is None


def test_conditions_say_how_well_the_medians_are_known() -> None:
    steady = make_measurement("all_reduce", 4 * MiB, 1e-3, point=1, low_s=0.99e-3, high_s=1.01e-3)
    shaky = make_measurement("all_reduce", 8, 1e-5, point=2, low_s=0.5e-5, high_s=2e-5)

    found = conditions_of(judged(steady, shaky, before=3.9, stolen_s=1.0))

    assert found is not None
    assert found.words == (
        "the hypervisor took 2.5 % of the processor time (RUN009), load 3.9 on 4 cores, wide intervals: "
        "times may read too long; medians known to ±5 %: 1 of 1 from 1 MiB on, 0 of 1 below"
    )
    assert found.severity == "warn"


def test_conditions_that_touch_no_number_say_so() -> None:
    found = conditions_of(judged(make_measurement("all_reduce", 4 * MiB, 1e-3, point=1), before=3.9))

    assert found is not None
    assert found.words.endswith("times may read too long; every median is known to ±1 %")
    assert found.fix is not None
    assert "`ps " in found.fix


def test_conditions_under_which_speed_cannot_be_judged_say_that_first() -> None:
    found = conditions_of(judged(make_measurement("all_reduce", 4 * MiB, 1e-3, point=1), stolen_s=8.0))

    assert found is not None
    assert ": speed cannot be judged; " in found.words


def test_the_verdict_is_the_first_and_the_last_word_and_nothing_is_wider_than_the_terminal(printed: Printed) -> None:
    run = make_run()

    lines = printed(run)

    verdict = lines[: lines.index("")]
    assert " ".join(" ".join(verdict).split()) == run.verdict.sentence
    assert lines[-1] == "run: r"
    assert lines[-1 - len(verdict) : -1] == verdict
    assert max(map(len, lines)) <= 80


def test_conditions_are_one_line_of_the_terminal_and_all_of_them_stay_in_the_run(printed: Printed) -> None:
    run = judged(make_measurement("all_reduce", 4 * MiB, 1e-3, point=1), before=3.9, stolen_s=1.0)

    lines = printed(run)

    assert sum(line.startswith("conditions: ") for line in lines) == 1
    assert not any(line.startswith(("note RUN010", "warn RUN009")) for line in lines)
    assert {"RUN009", "RUN010"} <= {one.code for one in run.findings}
