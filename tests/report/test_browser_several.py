"""The report of several runs in a real browser: 200 of them stay usable, and none can inject anything."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from playwright.sync_api import Browser

from busbw.model.run import Run
from busbw.show.page.html import report_html

from .browsing import Tab, opened
from .factories import HOSTILE, make_hostile_run, make_plan_of, make_run, subjects
from .valued import make_comparison, make_explained, make_scaling

RUNS = 200
_FIGURES = "performance.getEntriesByName('figure').length"


def small_run(run: Run, number: int) -> Run:
    plan = structs.replace(run.plan, run_id=f"run-{number:03}")
    items = tuple(
        structs.replace(
            item, median_s=item.median_s * (1 + number / RUNS), busbw_Bps=item.busbw_Bps / (1 + number / RUNS)
        )
        for item in run.measurements
    )
    return structs.replace(run, plan=plan, measurements=items)


@pytest.fixture(scope="module")
def tab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    file = tmp_path_factory.mktemp("report") / "report.html"
    run = make_run(make_plan_of("all_reduce", "alltoall"))
    file.write_text(report_html(subjects(*(small_run(run, number) for number in range(RUNS)))), encoding="utf-8")
    with opened(browser, file) as tab:
        yield tab


def test_200_runs_have_a_row_each_and_only_what_is_in_sight_is_drawn(tab: Tab):
    tab.page.locator("#joint-1-time").scroll_into_view_if_needed()
    tab.page.locator("#joint-1-time .main-svg").first.wait_for()

    assert tab.page.locator("#overview tbody tr").count() == RUNS
    assert tab.page.evaluate(_FIGURES) <= 4
    assert tab.page.locator("details.run .inside *").count() == 0


def test_a_link_in_the_overview_opens_its_run_and_draws_it(tab: Tab):
    tab.page.locator("#overview tbody a").nth(150).click()

    tab.page.locator("#run-151 .verdict").wait_for()
    tab.page.locator("#run-151-series-1-time").scroll_into_view_if_needed()
    tab.page.locator("#run-151-series-1-time .main-svg").first.wait_for()

    assert tab.page.locator("details.run[open]").count() == 1
    assert "run-150" in tab.page.locator("#run-151 summary").first.inner_text()
    assert tab.page.locator("#run-151-ranks-choice").count() == 1


def test_axe_finds_no_fault_with_a_run_open(tab: Tab):
    assert tab.accessibility_faults("header", "#overview", "#together", "#run-151") == []
    assert tab.faults == []


def test_hostile_words_run_nowhere(browser: Browser, tmp_path: Path):
    run = make_hostile_run()
    hostile, usual = subjects(run, make_run())
    hostile = replace(hostile, explained=make_explained(run, HOSTILE))
    file = tmp_path / "hostile.html"
    file.write_text(report_html((hostile, usual), make_comparison(HOSTILE), make_scaling(HOSTILE)), encoding="utf-8")

    with opened(browser, file, place="#run-1") as tab:
        tab.page.locator("#run-1 .verdict").wait_for()
        tab.draw_all()
        tab.page.locator("#joint-1-time .scatterlayer .points path").first.hover(force=True)

        assert tab.page.evaluate("window.injected") is None
        assert tab.page.locator("img:not([src^='data:image/svg+xml;base64,'])").count() == 0
        assert "<script>" in tab.page.locator("#run-1 .verdict").inner_text()
        assert tab.faults == []

        # Were a word to become markup after all, the page's policy would still not run it.
        tab.page.evaluate(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.injected = 1\">')"
        )
        for _attempt in range(150):
            tab.page.wait_for_timeout(200)
            if tab.faults:
                break
        assert tab.page.evaluate("window.injected") is None
        assert "Content Security Policy" in tab.faults[0]
