"""The report in a real browser, from a file, without a network."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from busbw.report.html import report_html

from .factories import make_empty_run, make_run, subjects

_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium is not None, "no chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        yield started
        started.close()


class Opened:
    """A report in a tab, and everything that went wrong in it."""

    def __init__(self, browser: Browser, file: Path, **options: object) -> None:
        self.context = browser.new_context(offline=True, **options)
        self.page: Page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda asked: None if asked.url.startswith("file:") else self.faults.append(asked.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_function("document.readyState === 'complete'")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(report_html(subjects(make_run())), encoding="utf-8")
    return file


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Opened]:
    tab = Opened(browser, report, viewport={"width": 1200, "height": 900})
    tab.page.locator("#curves .plot").first.scroll_into_view_if_needed()
    tab.page.wait_for_selector("#curves .plot .main-svg")
    yield tab
    tab.context.close()


def test_it_loads_from_a_file_without_network_or_error(opened: Opened):
    for plot in opened.page.locator("#curves .plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()

    assert opened.faults == []
    assert opened.page.locator("#curves .plot .scatterlayer path.js-line").count() >= 12


def test_pointing_at_a_curve_tells_its_numbers(opened: Opened):
    point = opened.page.locator("#curves .plot").first.locator(".scatterlayer .points path").nth(3)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    assert box is not None

    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    opened.page.wait_for_selector("#curves .hoverlayer .hovertext")
    assert "us" in opened.page.locator("#curves .hoverlayer .hovertext").first.text_content()


def test_a_name_in_the_legend_hides_its_curve(opened: Opened):
    plot = opened.page.locator("#curves .plot").first
    before = plot.locator(".scatterlayer .trace").count()
    plot.scroll_into_view_if_needed()

    plot.locator(".legendtoggle").last.click()

    opened.page.wait_for_function(
        "([plot, before]) => plot.querySelectorAll('.scatterlayer .trace').length < before",
        arg=[plot.element_handle(), before],
    )


def test_another_measurement_is_chosen_by_keyboard(opened: Opened):
    choice = opened.page.locator("#ranks-choice")
    shown = opened.page.locator("#ranks-name").inner_text()
    choice.focus()

    opened.page.keyboard.press("ArrowDown")

    opened.page.wait_for_function("shown => document.querySelector('#ranks-name').textContent !== shown", arg=shown)
    assert opened.faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_light_of_the_reader(browser: Browser, report: Path, scheme: str):
    tab = Opened(browser, report, color_scheme=scheme)

    colour = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]) / 3

    assert (brightness > 127) == (scheme == "light")
    tab.context.close()


def test_a_narrow_screen_scrolls_down_only(browser: Browser, report: Path):
    tab = Opened(browser, report, viewport={"width": 400, "height": 800})

    wide = tab.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    assert wide <= 0
    tab.context.close()


def test_every_figure_and_table_has_a_name(opened: Opened):
    assert opened.page.locator("[role=img]:not([aria-label])").count() == 0
    assert opened.page.locator("table:not(:has(caption))").count() == 0
    assert opened.page.locator("html[lang]").count() == 1


def test_a_run_that_measured_nothing_opens_without_error(browser: Browser, tmp_path: Path):
    file = tmp_path / "empty.html"
    file.write_text(report_html(subjects(make_empty_run())), encoding="utf-8")

    tab = Opened(browser, file)
    tab.page.wait_for_timeout(300)

    assert tab.faults == []
    tab.context.close()
