"""The report is one file that shows untrusted words and runs none of them."""

import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from msgspec import structs
from tests.judge.factories import make_counters, make_outcome, make_rates

from busbw import judge
from busbw.base.units import format_size
from busbw.model.comparison import ComparedBand
from busbw.model.finding import Verdict
from busbw.show.page.html import action_html, report_html
from busbw.show.page.pictures import ReportSubject
from busbw.show.weighing import weighed

from .factories import make_empty_run, make_full_plan, make_hostile_run, make_plan_of, make_run, subjects
from .valued import make_comparison, make_explained

_MOST_BYTES = 6 * 10**6


class Page(HTMLParser):
    """What a browser would make of the page: its elements, and the text of its scripts by id."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: dict[str, str] = {}
        self._script: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._script = (dict(attrs).get("id") or "code") if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data
        else:
            self.text.append(data)


def test_untrusted_words_make_no_element_and_no_script():
    clean, hostile = Page(report_html(subjects(make_run()))), Page(report_html(subjects(make_hostile_run())))

    assert [tag for tag, _ in hostile.elements if tag == "script"] == [
        tag for tag, _ in clean.elements if tag == "script"
    ]
    assert not any(name.startswith("on") for _, attributes in hostile.elements for name in attributes)
    assert "<script>window.injected=1</script>" in "".join(hostile.text)


def test_control_characters_and_reversed_writing_are_shown_not_sent():
    shown = "".join(Page(report_html(subjects(make_hostile_run()))).text)

    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "\u202e" not in shown
    assert "\\x1b[31m" in shown


def test_the_run_is_embedded_as_it_is():
    run = make_hostile_run()

    embedded = Page(report_html(subjects(run))).scripts["raw-1"]

    assert json.loads(embedded) == json.loads(msgspec.json.encode(run))


def test_the_page_needs_no_network_and_stays_small():
    html = report_html(subjects(make_run()))

    assert len(html.encode()) < _MOST_BYTES
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    for tag, attributes in Page(html).elements:
        assert not str(attributes.get("src") or "").startswith(("http", "//")), tag
        assert tag != "link" or not str(attributes.get("href")).startswith(("http", "//"))


@pytest.mark.parametrize("outcome", ["ok", "slow", "wrong", "failed", "cannot_tell"])
def test_the_verdict_comes_first_in_words_and_with_a_sign(outcome: str):
    run = make_run(verdict=Verdict(outcome=outcome, sentence=f"{outcome}: the sentence."))  # type: ignore[arg-type]

    text = " ".join("".join(Page(report_html(subjects(run))).text).split())

    assert "the sentence." in text
    assert text.index("the sentence.") < text.index("Machine")
    assert outcome.replace("_", " ") in text


def test_a_run_that_measured_nothing_has_a_page_too():
    text = "".join(Page(report_html(subjects(make_empty_run()))).text)

    assert "cannot tell" in text


def test_every_measurement_is_in_a_table():
    run = make_run()

    page = Page(report_html(subjects(run)))

    rows = "".join(page.text)
    for measurement in run.measurements:
        assert str(measurement.size_bytes) in rows


def test_tables_begin_at_the_largest_size():
    run = make_run(make_plan_of("all_reduce"))
    html = report_html((ReportSubject(run=run, label="r", explained=make_explained(run)),))

    sizes = [
        int(found) for found in re.findall(r'<tr><th scope="row">(\d+)</th>', html.split('id="series-1-table"')[1])
    ]
    explained = re.findall(r'<tr><th scope="row">([\d.]+ [KMG]?i?B)</th><td class="text tone', html)

    assert sizes[: len(run.measurements)] == sorted((item.size_bytes for item in run.measurements), reverse=True)
    assert explained == [format_size(size_bytes) for size_bytes in sizes[: len(run.measurements)]]


def test_the_first_finding_on_the_page_is_the_one_that_weighs_most():
    run = make_run()

    page = report_html(subjects(run))

    assert page.index('id="summary"') < page.index('id="findings"') < page.index('id="machine"')
    first = re.search(r'href="#finding-(\w+)"', page.split('id="summary"')[1])
    assert first is not None
    assert first[1] == weighed(run)[0].code


def test_what_disturbed_a_run_is_one_line_at_the_beginning_and_a_finding_each_below():
    counters = make_counters(cpu_s=40.0, stolen_s=1.0)
    plan = make_full_plan()
    outcome = make_outcome(make_counters(load_average=8.0), counters)
    run = make_run(plan, outcome=outcome, findings=judge.judge(plan, outcome, (), make_rates(), ()).findings)

    page = report_html(subjects(run))

    assert page.count("<b>conditions:</b>") == 1
    assert 'id="finding-RUN009"' in page
    assert 'id="finding-RUN010"' in page


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("look: `ibstat`", "look: <code>ibstat</code>"),
        ("<b>", "&lt;b&gt;"),
        (
            "see `a b c d`, <again>",
            'see <code class="command"><span>a</span> <span>b</span> <span>c</span> <span>d</span></code>&lt;again&gt;',
        ),
        ("run busbw doctor --here, then again", "run <code>busbw doctor --here</code>, then again"),
        ("a\x1b[31m `b\x1bc`", "a\\x1b[31m <code>b\\x1bc</code>"),
    ],
)
def test_a_command_in_what_to_do_is_code_and_everything_else_is_text(text: str, html: str):
    assert action_html(text) == html


def test_a_comparison_begins_with_its_verdict_and_has_both_sides_and_their_bands():
    comparison = make_comparison()
    versus = comparison.versus[0]
    band = ComparedBand(
        collective="all_reduce",
        in_place=False,
        band="large",
        measure="bandwidth",
        sizes_bytes=(1 << 23, 1 << 24),
        first=1e9,
        other=2e9,
        estimate=versus.points[0].estimate,
    )
    page = report_html((), structs.replace(comparison, versus=(structs.replace(versus, bands=(band,)),)))

    assert '<div class="verdict slow">' in page
    assert "B faster by (%)" in page
    assert "large: bandwidth" in page
    assert 'aria-label="Parts of this page"' not in page
