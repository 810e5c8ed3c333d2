"""The page of scaling says what the terminal says: the verdict first, then findings with what to do, then figures."""

import html
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.api.scaling_reports import ScalingRequest, scaling
from busbw.cli.command import busbw
from busbw.show.page.html import report_html

SAMPLES = Path(__file__).parent / "samples"
TOGETHER = str(SAMPLES / "together-b200.csv")
TWO_SYSTEMS = str(SAMPLES / "grok1-two-systems.csv")


def text_of(page: str) -> str:
    """Return what a reader sees, without the script and the packed data."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([TOGETHER], ScalingRequest(sources=(TOGETHER,))),
        (["--published", "azure-nd-h100-v5"], ScalingRequest(published="azure-nd-h100-v5")),
        ([TWO_SYSTEMS, "--weak"], ScalingRequest(sources=(TWO_SYSTEMS,), kind="weak")),
    ],
    ids=["warns", "notes", "differs"],
)
def test_verdict_findings_fixes_and_differences_of_the_terminal_are_on_the_page(
    arguments: list[str], asked: ScalingRequest
) -> None:
    report = scaling(asked)
    assert report.verdict is not None
    shown = text_of(report_html((), None, report))
    printed = " ".join(CliRunner().invoke(busbw, ["scaling", *arguments]).stdout.split())
    said = [report.verdict.sentence]
    said += [words for each in report.findings for words in (each.title, each.evidence, each.fix) if words]
    said += [words for view in report.views for each in view.differences for words in (each.words, each.meaning)]
    for words in said:
        assert " ".join(words.split()) in shown
        assert " ".join(words.split()) in printed


def test_the_verdict_is_first_on_the_page_and_first_and_last_in_the_terminal() -> None:
    report = scaling(ScalingRequest(sources=(TOGETHER,)))
    assert report.verdict is not None
    shown = text_of(report_html((), None, report))
    assert shown.index(report.verdict.sentence) < shown.index("SCAL002 all_reduce") < shown.index("388")
    lines = CliRunner().invoke(busbw, ["scaling", TOGETHER]).stdout.strip().splitlines()
    assert lines[0] == lines[-1] == f"slower: {report.verdict.sentence}"
    assert "<title>slower: busbw scaling</title>" in report_html((), None, report)


def test_every_point_has_its_number_of_results_and_columns_without_a_word_are_left_out() -> None:
    page = report_html((), None, scaling(ScalingRequest(sources=(TWO_SYSTEMS,), kind="weak")))
    assert '<th scope="col">results</th>' in page
    assert "limit (GB/s)" not in page
    with_limit = ScalingRequest(published="azure-nd-h100-v5", platform="azure-nd-h100-v5")
    assert "limit (GB/s)" in report_html((), None, scaling(with_limit))
