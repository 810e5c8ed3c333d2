"""The report of one run in a real browser: everything on one page, opened once."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser

from busbw.machine.named import node_view
from busbw.show.page.html import report_html
from busbw.show.page.pictures import Picture, ReportSubject

from .browsing import Tab, opened
from .factories import make_empty_run, make_run, subjects
from .valued import make_comparison, make_explained, make_scaling


@pytest.fixture(scope="module")
def tab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    run = make_run()
    picture = Picture(view=node_view("azure-nd-h100-v5"), whose="a platform")
    subject = ReportSubject(run=run, label="r", explained=make_explained(run), picture=picture)
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(report_html((subject,), make_comparison(), make_scaling()), encoding="utf-8")
    with opened(browser, file) as tab:
        yield tab


def test_every_figure_is_drawn_without_network_or_error(tab: Tab):
    tab.draw_all()

    assert tab.faults == []
    assert tab.page.locator("#curves .plot .scatterlayer path.js-line").count() >= 12
    assert tab.page.locator("#versus-1 .errorbar").count() == 10
    assert tab.page.locator("#scaling .plot .main-svg").count() >= 2
    assert tab.page.locator("img").evaluate_all("all => all.every((image) => image.naturalWidth > 0)")


@pytest.mark.parametrize("selector", [".verdict .sentence", "#summary .plot .main-svg", "#summary .matter"])
def test_the_first_screen_holds_the_verdict_one_figure_and_the_findings_that_matter(tab: Tab, selector: str):
    tab.page.set_viewport_size({"width": 1280, "height": 800})
    tab.page.evaluate("scrollTo(0, 0)")
    part = tab.page.locator(selector).first
    part.wait_for()

    box = part.bounding_box()
    tab.page.set_viewport_size({"width": 1200, "height": 900})

    assert box is not None
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 800


def test_a_name_in_the_first_legend_hides_its_curve_with_what_is_expected_of_it(tab: Tab):
    plot = tab.page.locator("#summary-busbw")
    plot.scroll_into_view_if_needed()
    plot.locator(".main-svg").first.wait_for()
    before = plot.locator(".scatterlayer .trace").count()

    plot.locator(".legendtoggle[aria-label='all_reduce']").focus()
    tab.page.keyboard.press("Enter")

    # The curve, its band, and the dashed line that is its own.
    tab.page.wait_for_function(
        "([plot, before]) => plot.querySelectorAll('.scatterlayer .trace').length === before - 3",
        arg=[plot.element_handle(), before],
    )
    tab.page.keyboard.press("Enter")


def test_pointing_at_a_curve_tells_its_numbers(tab: Tab):
    plot = tab.page.locator("#series-1-time")
    plot.scroll_into_view_if_needed()
    point = plot.locator(".scatterlayer .points path").nth(3)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    assert box is not None

    tab.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    plot.locator(".hoverlayer .hovertext").first.wait_for()
    assert "us" in (plot.locator(".hoverlayer .hovertext").first.text_content() or "")


def test_dragging_over_a_curve_zooms_with_labels_of_its_own_and_a_double_click_goes_back(tab: Tab):
    plot = tab.page.locator("#series-2-busbw")
    plot.scroll_into_view_if_needed()
    plot.locator(".main-svg").first.wait_for()
    box = plot.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    whole = plot.locator(".xtick text").all_text_contents()

    tab.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.2)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.8, steps=4)
    tab.page.mouse.up()

    labels = "plot => [...plot.querySelectorAll('.xtick text')].map((tick) => tick.textContent).join()"
    tab.page.wait_for_function(
        f"([plot, whole]) => ({labels})(plot) !== whole", arg=[plot.element_handle(), ",".join(whole)]
    )
    zoomed = plot.locator(".xtick text").all_text_contents()
    assert 2 <= len(zoomed) <= 6
    assert all(label.endswith((" KiB", " MiB")) for label in zoomed)

    # Clicks that follow too soon count as part of the drag, and two that a busy machine keeps apart as none.
    for _attempt in range(10):
        tab.page.wait_for_timeout(500)
        tab.page.mouse.dblclick(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
        tab.page.wait_for_timeout(500)
        if plot.locator(".xtick text").all_text_contents() == whole:
            break
    assert plot.locator(".xtick text").all_text_contents() == whole


def test_a_name_in_the_legend_hides_its_curve_by_mouse(tab: Tab):
    plot = tab.page.locator("#series-1-busbw")
    plot.scroll_into_view_if_needed()
    plot.locator(".main-svg").first.wait_for()
    before = plot.locator(".scatterlayer .trace").count()

    plot.locator(".legendtoggle").last.click()

    tab.page.wait_for_function(
        "([plot, before]) => plot.querySelectorAll('.scatterlayer .trace').length < before",
        arg=[plot.element_handle(), before],
    )


def test_a_name_in_the_legend_hides_its_curve_by_keyboard_and_keeps_the_focus(tab: Tab):
    plot = tab.page.locator("#series-1-time")
    plot.scroll_into_view_if_needed()
    name = plot.locator(".legendtoggle").last
    assert name.get_attribute("aria-label") == "median"
    assert name.get_attribute("aria-pressed") == "true"

    name.focus()
    tab.page.keyboard.press("Enter")

    tab.page.wait_for_function("() => document.activeElement.getAttribute('aria-pressed') === 'false'")
    assert tab.page.evaluate("document.activeElement.getAttribute('aria-label')") == "median"


def test_another_measurement_is_chosen_by_keyboard(tab: Tab):
    shown = tab.page.locator("#ranks-name").inner_text()
    tab.page.locator("#ranks-choice").focus()

    tab.page.keyboard.press("ArrowDown")

    tab.page.wait_for_function("shown => document.querySelector('#ranks-name').textContent !== shown", arg=shown)


def test_the_raw_data_are_saved_as_they_are(tab: Tab):
    with tab.page.expect_download() as saved:
        tab.page.locator("[data-raw]").click()

    content = json.loads(saved.value.path().read_text(encoding="utf-8"))
    assert content == json.loads(msgspec.json.encode(make_run()))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_in_the_light_of_the_reader(tab: Tab, scheme: str):
    tab.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    tab.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")

    assert (tab.accessibility_faults() if scheme == "light" else tab.faults_of_colours()) == []
    colour = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]) / 3
    assert (brightness > 127) == (scheme == "light")


def test_a_narrow_screen_scrolls_down_only(tab: Tab):
    tab.page.set_viewport_size({"width": 400, "height": 800})

    tab.page.wait_for_function("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")

    tab.page.set_viewport_size({"width": 1200, "height": 900})


def test_on_paper_figures_are_as_wide_as_two_beside_each_other_allow(tab: Tab):
    # What draws is loaded after the page, and soon enough for whoever prints.
    tab.page.wait_for_function("() => typeof Plotly !== 'undefined'")
    tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    widths = tab.page.locator("#curves .pair .main-svg").evaluate_all(
        "all => all.map((each) => Number(each.getAttribute('width')))"
    )
    tab.page.evaluate("dispatchEvent(new Event('afterprint'))")

    assert set(widths) == {340}


def test_nothing_went_wrong_in_all_of_this(tab: Tab):
    assert tab.faults == []


def test_a_run_that_measured_nothing_opens_without_error(browser: Browser, tmp_path: Path):
    file = tmp_path / "empty.html"
    file.write_text(report_html(subjects(make_empty_run())), encoding="utf-8")

    with opened(browser, file) as tab:
        tab.page.wait_for_timeout(300)

        assert tab.faults == []


def test_without_javascript_the_curves_stand_still(browser: Browser, tmp_path: Path):
    file = tmp_path / "still.html"
    file.write_text(report_html(subjects(make_run())), encoding="utf-8")

    with opened(browser, file, java_script_enabled=False) as tab:
        still = tab.page.locator("#curves img.still").first
        still.scroll_into_view_if_needed()

        # One at the beginning, and one for each sweep.
        assert tab.page.locator("img.still").count() == 7
        assert (still.bounding_box() or {}).get("width", 0) > 600
        assert not tab.page.locator(".plot").first.is_visible()
