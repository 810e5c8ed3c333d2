"""What `busbw judge` prints: the verdict first and last, the largest size first, and no line too wide."""

import re

import pytest
from msgspec import structs

from busbw.base.units import format_size
from busbw.model.finding import Finding, Verdict
from busbw.model.verdict import ExplainedVerdict
from busbw.show.text.verdict import verdict_text

from .factories import make_plan_of, make_run
from .valued import make_explained

PAIRS = "busbw run sendrecv --backend native-nccl -b 64M -e 64M --pairs all"
SENTENCE = "slow: all_reduce 16 MiB: 11.3 GB/s, 25 % of the 46.0 GB/s to expect; 8 B takes 2.00 us, as it should."


def make_verdict(**changes: object) -> ExplainedVerdict:
    explained = make_explained(make_run(make_plan_of("all_reduce")))
    values = {
        "verdict": Verdict(outcome="slow", sentence=SENTENCE),
        "next_steps": (f"find the slow GPU: {PAIRS}; and busbw doctor --here",),
    }
    return structs.replace(explained, **(values | changes))


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Return what prints a verdict on a terminal of 80 columns without colours, and returns its lines."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")

    def printed(explained: ExplainedVerdict) -> list[str]:
        verdict_text(explained)
        return capsys.readouterr().out.splitlines()

    return printed


def test_the_verdict_is_the_first_and_the_last_that_is_said(lines) -> None:
    found = lines(make_verdict())

    first = found[: found.index("")]
    assert " ".join(" ".join(first).split()) == SENTENCE
    assert found[-len(first) :] == first


def test_the_table_begins_at_the_largest_size_and_ends_at_the_smallest(lines) -> None:
    explained = make_verdict()

    sizes = [match[0] for line in lines(explained) if (match := re.match(r"\s*(\d+ [KM]?i?B)(?=  )", line))]

    wanted = sorted((size.size_bytes for size in explained.series[0].sizes), reverse=True)
    assert [size.strip() for size in sizes] == [format_size(size_bytes) for size_bytes in wanted]


def test_figures_that_do_not_apply_are_counted(lines) -> None:
    found = "\n".join(lines(make_verdict()))

    assert "  1 other figure does not apply: --json lists why" in found
    assert "published for two nodes" not in found


def test_a_step_that_is_long_is_a_command_on_a_line_of_its_own(lines) -> None:
    found = lines(make_verdict())

    assert f"        {PAIRS}" in found
    assert max(map(len, found)) <= 80


def test_findings_stand_by_weight_and_a_fix_that_comes_next_is_said_once(lines) -> None:
    explained = make_verdict()
    step = explained.next_steps[0]
    small = Finding(code="PERF014", severity="warn", title="small", evidence="e", point=0)
    large = Finding(code="PERF011", severity="warn", title="large", evidence="e", point=7, fix=step)

    found = lines(structs.replace(explained, findings=(small, large)))

    heads = [line for line in found if line.startswith("warn ")]
    assert heads == ["warn PERF011 large: e", "warn PERF014 small: e"]
    assert sum("find the slow GPU" in line for line in found) == 1
