"""The page of a swept fabric in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.fabric.made import made_report

from busbw.show.page.html import report_html

from .browsing import Tab, opened

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("fabric") / "fabric.html"
    file.write_text(report_html((), fabrics=(made_report(),)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def tab(browser: Browser, page_file: Path) -> Iterator[Tab]:
    with opened(browser, page_file) as tab:
        yield tab


def test_every_view_is_drawn_without_network_or_error(tab: Tab):
    tab.draw_all()

    assert tab.faults == []
    assert tab.page.locator(".plot .main-svg").count() >= 6
    assert tab.page.locator("#fabric-matrix .heatmaplayer image").count() == 1
    assert tab.page.locator("img").evaluate_all("all => all.every((image) => image.naturalWidth > 0)")


def test_the_first_screen_holds_the_verdict_the_evidence_and_the_fabric(tab: Tab):
    tab.page.evaluate("scrollTo(0, 0)")
    for selector in (".verdict .sentence", "#evidence-caption", ".picture img"):
        box = tab.page.locator(selector).first.bounding_box()
        assert box is not None
        assert 0 <= box["y"] < 800


def test_pointing_at_a_cell_tells_sender_receiver_and_numbers(tab: Tab):
    plot = tab.page.locator("#fabric-matrix")
    plot.scroll_into_view_if_needed()
    box = plot.locator(".nsewdrag").first.bounding_box()
    assert box is not None

    tab.page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.1)

    plot.locator(".hoverlayer .hovertext").first.wait_for()
    said = plot.locator(".hoverlayer .hovertext").first.text_content() or ""
    assert "n0 to n1" in said
    assert "11.0 %" in said


def test_every_figure_has_its_numbers_in_a_table_that_the_keyboard_opens(tab: Tab):
    details = tab.page.locator("figure details").first
    details.locator("summary").focus()
    tab.page.keyboard.press("Enter")

    assert details.locator("table").is_visible()
    assert tab.page.locator("figure:has(.plot) details").count() >= 5


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 390)])
def test_a_page_is_accessible_and_no_wider_than_its_window(browser: Browser, page_file: Path, scheme: str, width: int):
    with opened(browser, page_file, color_scheme=scheme, viewport={"width": width, "height": 900}) as tab:
        tab.draw_all()
        tab.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")

        assert tab.accessibility_faults() == []
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.faults == []


def test_names_are_shown_and_never_run(browser: Browser, tmp_path: Path):
    names = tuple(f"{EVIL}{number}" for number in range(4))
    made = made_report(names, f"node {names[1]}", rails=(EVIL, f"{EVIL}b"), title=EVIL)
    file = tmp_path / "evil.html"
    file.write_text(report_html((), fabrics=(made, made)), encoding="utf-8")
    with opened(browser, file) as tab:
        tab.draw_all()
        tab.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")

        assert tab.faults == []
        assert tab.page.locator("img[src=x]").count() == 0
        assert tab.page.locator("nav a").count() == 2
        assert EVIL in (tab.page.locator(".verdict .sentence").first.text_content() or "")


def test_without_javascript_words_tables_and_the_drawing_are_there(browser: Browser, page_file: Path):
    with opened(browser, page_file, java_script_enabled=False) as tab:
        assert tab.page.locator(".plot").first.is_hidden()
        assert tab.page.locator(".picture img").is_visible()
        assert tab.page.locator("#tests-caption").is_visible()
