"""The page of a search over groups of nodes, in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from busbw.api.reports import page_of
from busbw.base.errors import InputError
from busbw.fabric.groups import isolation
from busbw.fabric.groups.isolation import GroupAnswer, Isolation, IsolationPlan, ReadRule
from busbw.fabric.groups.nodes import nodes_of
from busbw.facts.rules import finding
from busbw.model.finding import Verdict
from busbw.show.page.html import report_html
from busbw.store import isolations

from .browsing import opened

EVIL = "<img src=x onerror=alert(1)>"
HOSTS = tuple(f"n{number}" for number in range(8))


def group(*hosts: int, at: int, loss: float | None, failure: str | None = None, purpose: str = "first"):
    return isolation.TestedGroup(
        hosts=tuple(HOSTS[each] for each in hosts),
        purpose=purpose,
        round=at,
        values=(None,) if failure else (4e9 * (1 - (loss or 0.0)),),
        failures=(failure,) if failure else (),
        state="failed" if failure else "slow" if (loss or 0.0) > 0.1 else "sound",
        loss=loss,
    )


def search(*, number: bool = True) -> Isolation:
    """Return a search in which n2 slows its groups and n7 fails; without numbers by exit code alone."""
    plan = IsolationPlan(
        busbw_version="0",
        isolation_id="20261124-isolate-step-ab12",
        created="2026-11-24T09:00:00+00:00",
        hosts=HOSTS,
        how="--hosts n[0-7]",
        group_nodes=2,
        repeats=1,
        most_rounds=12,
        whole=True,
        timeout_s=60.0,
        seed=5,
        command=("step.sh", "{hosts}", EVIL),
        read=ReadRule(kind="last-number" if number else "exit-code", higher_is_better=True),
        unit="",
    )
    answer = GroupAnswer(
        kind="node", place="node n2", hosts=("n2",), loss=0.31, confidence="likely",
        evidence=("3 of 3 groups with n2 are slow", EVIL), otherwise="its cable", clears="busbw doctor --here on n2",
    )  # fmt: skip
    tests = (
        group(*range(8), at=0, loss=None, purpose="whole"), group(0, 1, at=1, loss=0.004), group(2, 3, at=1, loss=0.31),
        group(4, 5, at=1, loss=-0.01), group(6, 7, at=1, loss=None, failure=EVIL), group(1, 2, at=2, loss=0.3),
    )  # fmt: skip
    return Isolation(
        plan=plan, tests=tests, rounds=3, group_runs=6, noise=0.004, least_seen=0.05, median=4e9, answers=(answer,),
        cleared=("group n[4-5]: sound again",),
        findings=(finding("FAB030", evidence="31 % slower", fix="busbw doctor --here", what="node n2"),),
        verdict=Verdict(outcome="slow", sentence="slow: node n2 slows every group it is in", because=("FAB030",)),
    )  # fmt: skip


def test_nodes_are_told_by_their_groups_with_suspects_first_and_runs_of_all_left_out() -> None:
    assert [(each.host, each.groups, each.bad, each.suspect) for each in nodes_of(search())[:4]] == [
        ("n2", 2, 2, True), ("n3", 1, 1, False), ("n6", 1, 1, False), ("n7", 1, 1, False),
    ]  # fmt: skip


def test_a_search_that_has_not_ended_says_how_to_go_on(tmp_path: Path) -> None:
    isolations.create(tmp_path / "it", search().plan)
    with pytest.raises(InputError, match="has not come to its end"):
        page_of([str(tmp_path / "it")])
    isolations.write(tmp_path / "it", search())
    assert page_of([str(tmp_path / "it")]).isolations == (search(),)


@pytest.mark.parametrize(("scheme", "width", "number"), [("light", 1200, True), ("dark", 390, False)])
def test_its_page_is_drawn_accessible_and_no_wider_than_its_window(
    browser: Browser, tmp_path: Path, scheme: str, width: int, number: bool
) -> None:
    file = tmp_path / "search.html"
    file.write_text(report_html((), isolations=(search(number=number),)), encoding="utf-8")
    with opened(browser, file, color_scheme=scheme, viewport={"width": width, "height": 900}) as tab:
        tab.draw_all()
        tab.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")

        assert tab.page.locator("h1").text_content() == "busbw isolate"
        assert tab.page.locator(".plot .main-svg").count() >= (2 if number else 1)
        assert EVIL in (tab.page.locator("#runs-caption ~ *, table").nth(2).text_content() or "")
        assert tab.accessibility_faults() == []
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.faults == []
