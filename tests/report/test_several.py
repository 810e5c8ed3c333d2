"""Several runs, comparisons and scaling on one page, without a browser."""

import gzip
import json
import re
from base64 import b64decode

import pytest
from msgspec import structs
from tests.preflight.made import node

from busbw.show.figures.series import MOST_DISTINCT
from busbw.show.page import html as page
from busbw.show.page.html import report_html
from busbw.show.page.overview import overview_of
from busbw.show.page.pictures import ReportSubject, labels_of

from .factories import make_plan_of, make_run, subjects
from .valued import make_comparison, make_explained, make_scaling


def payload(html: str, name: str) -> dict[str, object]:
    """Return what a script of the page holds."""
    found = re.search(rf'id="{name}">([^<]*)<', html)
    assert found is not None
    return json.loads(gzip.decompress(b64decode(found[1])))


def some_runs(number: int):
    run = make_run(make_plan_of("all_reduce"))
    return tuple(structs.replace(run, plan=structs.replace(run.plan, run_id=f"r{each}")) for each in range(number))


def test_each_run_is_packed_with_its_figures_and_words():
    html = report_html(subjects(*some_runs(3)))

    second = payload(html, "run-2-payload")

    assert set(second["figures"]) == {f"run-2-series-1-{kind}" for kind in ("time", "busbw", "spread")} | {
        "run-2-ranks-figure",
        "run-2-summary-busbw",
    }
    assert 'id="run-2-verdict-heading"' in second["html"]
    assert html.count('<details class="run"') == 3


def test_ids_are_there_once_even_with_every_run_open():
    html = report_html(subjects(*some_runs(3)), make_comparison(), make_scaling())
    whole = html + "".join(str(payload(html, f"run-{place}-payload")["html"]) for place in (1, 2, 3))

    ids = re.findall(r'\sid="([^"]+)"', whole)

    assert sorted(set(ids)) == sorted(ids)


def test_every_link_within_a_page_leads_somewhere():
    for html in (
        report_html(subjects(*some_runs(2)), make_comparison(), make_scaling()),
        report_html(subjects(make_run())),
    ):
        whole = html + "".join(str(payload(html, name)["html"]) for name in re.findall(r'id="(run-\d+-payload)"', html))
        assert set(re.findall(r'href="#([^"]+)"', whole)) <= set(re.findall(r'\sid="([^"]+)"', whole))


def test_the_gravest_runs_are_told_apart_when_there_are_many():
    runs = list(some_runs(20))
    runs[13] = structs.replace(runs[13], verdict=structs.replace(runs[13].verdict, outcome="wrong"))

    joint = overview_of(subjects(*runs)).joints[0]

    assert "r13" in joint.labels
    assert len(joint.labels) == MOST_DISTINCT
    assert joint.others == 20 - MOST_DISTINCT
    assert joint.time["data"][0]["name"] == f"{joint.others} other runs"


def test_raw_data_that_do_not_fit_are_named(monkeypatch: pytest.MonkeyPatch):
    runs = subjects(*some_runs(2))
    size_bytes = len(report_html(runs).encode())
    monkeypatch.setattr(page, "_LARGEST_BYTES", size_bytes - 1000)

    html = report_html(runs)

    assert "Left out, as this file would become too large: r1" in html
    assert html.count('type="application/json"') == 1


def test_the_hosts_of_a_run_are_drawn_and_listed_with_what_they_differ_in():
    hosts = ("n0", "n1", "n2")
    run = make_run(make_plan_of("all_reduce"))
    placement = structs.replace(run.plan.placement, hosts=hosts, ranks_of_hosts=(2, 1, 1))
    run = structs.replace(
        run,
        plan=structs.replace(run.plan, placement=placement),
        nodes=tuple(node(number, kernel=f"6.{number // 2}") for number in range(3)),
        ranks=tuple(structs.replace(hello, host=hosts[max(hello.rank - 1, 0)]) for hello in run.ranks),
    )

    html = report_html(subjects(run))

    assert "Each of the 3 hosts" in html
    assert "3 hosts, n[0-2], that differ in:" in html
    drawn = b64decode(re.findall(r'<div [^>]*><img src="data:image/svg\+xml;base64,([^"]+)"', html)[0]).decode()
    assert drawn.count('class="numa"') == 3
    assert drawn.count(">rank ") == 4


def test_runs_of_one_name_are_told_apart():
    run = make_run(make_plan_of("all_reduce"))
    tagged = structs.replace(run, plan=structs.replace(run.plan, tag="before"))

    assert labels_of((run, tagged)) == ("r", "before")
    assert labels_of((run, run)) == ("r (1)", "r (2)")


def test_explained_sizes_have_expectation_ceiling_and_budget_on_the_page():
    run = make_run(make_plan_of("all_reduce"))

    html = report_html((ReportSubject(run=run, label="r", explained=make_explained(run)),))

    assert "40.0 GB/s to 46.0 GB/s" in html
    # One for each of the eight sizes, folded.
    assert html.count("1 other figure does not apply") == 8
    assert re.search(r"<details>\s*<summary>1 other figure .*?published for two nodes.*?</details>", html, re.DOTALL)
    names = [trace["name"] for trace in payload(html, "payload")["figures"]["series-1-busbw"]["data"]]
    assert "expected" in names
    times = [trace["name"] for trace in payload(html, "payload")["figures"]["series-1-time"]["data"]]
    assert "expected" in times
    assert "physical ceiling" in names


def test_a_page_may_be_of_a_comparison_alone():
    html = report_html((), make_comparison())

    assert "</span> mixed</strong>" in html
    assert "NCCL_PROTO=LL is faster" in html
    assert set(payload(html, "payload")["figures"]) == {"versus-1"}
