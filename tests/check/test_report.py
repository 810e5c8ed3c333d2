"""The whole of a check: its sentence and exit code, and the same in JUnit, on the page and in the terminal."""

import msgspec
import pytest
from tests.exports.test_junit import checked
from tests.report.test_html import Page

from busbw.check.deciding import decided
from busbw.facts.rules import finding
from busbw.model.check.report import CheckPlan, NodeAnswer, StageAnswer
from busbw.model.check.screening import NodeReading, Screening
from busbw.model.finding import Verdict
from busbw.show.exports.junit import check_junit_xml
from busbw.show.page.check import check_html
from busbw.show.text.check import check_text

from .made import profile

HOSTILE = "<script>alert(1)</script>\x1b[2J\n& \"x\" 'y' \u202e"
SCREENED = StageAnswer(name="screening", state="done", because="all answered", wall_s=1.5)


def plan(spares=()):
    return CheckPlan(
        busbw_version="0.1.0", check_id="c", created="2026-11-24T10:00:00+00:00", profile="site.toml", profile_text="x",
        hosts=("n0", "n1"), here="n0", spares=spares,
        screening=Screening(parts=("memory",), time_limit_s=30.0),
    )  # fmt: skip


def node(host, outcome, evidence="seen"):
    findings = ()
    if outcome in ("error", "warn"):
        findings = (
            msgspec.structs.replace(finding("CHK005", host=host, evidence=evidence, fix="look"), severity=outcome),
        )
    readings = (
        NodeReading(measure="send", samples=(1e9, 2e9), partner="n1"),
        NodeReading(measure="noise", samples=(0.1,)),
    )
    opened = ("noise: it did not end",) if outcome == "cannot_tell" else ()
    return NodeAnswer(
        host=host, outcome=outcome, because=f"{evidence}", findings=findings, open=opened, readings=readings
    )


def report(*nodes, stages=(SCREENED,), **head):
    asked = msgspec.structs.replace(profile(), **head)
    return decided(plan(), asked, stages, nodes)


OPEN = StageAnswer(name="fabric", state="not_measured", because="one host has no pairs")
FAILED = StageAnswer(name="suite", state="failed", because="the launcher ended")
FABRIC = StageAnswer(
    name="fabric", state="done", because="slow", verdict=Verdict(outcome="slow", sentence="slow"), suspects=("n1",),
    findings=(msgspec.structs.replace(finding("FAB001", what="node n1", evidence="6 of 6 tests"), severity="error"),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "stages", "head", "outcome", "code"),
    [
        ([("n0", "ok"), ("n1", "ok")], [], {}, "fit", 0),
        ([("n0", "ok"), ("n1", "warn")], [], {}, "fit", 0),
        ([("n0", "ok"), ("n1", "warn")], [], {"fail_on": "warn"}, "not_fit", 1),
        ([("n0", "ok"), ("n1", "error")], [], {}, "not_fit", 1),
        ([("n0", "ok"), ("n1", "cannot_tell")], [], {}, "cannot_tell", 4),
        ([("n0", "ok"), ("n1", "cannot_tell")], [], {"when_cannot_tell": "pass"}, "cannot_tell", 0),
        ([("n0", "error"), ("n1", "cannot_tell")], [FAILED], {}, "not_fit", 1),
        ([("n0", "ok")], [OPEN], {}, "cannot_tell", 4),
        ([("n0", "ok")], [FAILED, OPEN], {}, "failed", 3),
        ([("n0", "ok"), ("n1", "ok")], [FABRIC], {}, "not_fit", 1),
    ],
)
def test_what_is_bad_goes_first_then_what_failed_then_what_is_open(nodes, stages, head, outcome, code):
    found = report(*(node(*each) for each in nodes), stages=(SCREENED, *stages), **head)

    assert (found.outcome, found.exit_code) == (outcome, code)


def test_the_sentence_names_the_nodes_as_slurm_lists_them():
    found = report(*(node(f"n{number}", "error" if number in (3, 4, 5) else "ok") for number in range(8)))

    assert found.sentence == "not fit: 3 nodes of 8: n[3-5]"


def test_what_the_fabric_names_is_drained_if_it_is_an_error():
    found = report(node("n0", "ok"), node("n1", "ok"), stages=(FABRIC,))
    assert [(each.host, each.reason) for each in found.drain] == [
        ("n1", "busbw check: fabric: FAB001 node n1 is slower than the others")
    ]
    # Its line says so too, though it found nothing wrong with itself.
    assert [each.outcome for each in found.nodes] == ["ok", "error"]
    weak = msgspec.structs.replace(
        FABRIC, findings=tuple(msgspec.structs.replace(each, severity="warn") for each in FABRIC.findings)
    )
    found = report(node("n1", "ok"), stages=(weak,))
    assert (found.drain, found.outcome) == ((), "fit")


@pytest.mark.parametrize("words", ["seen", HOSTILE])
def test_junit_keeps_to_the_schema_with_a_case_a_node_and_a_stage(words):
    found = report(
        node("n0", "ok", words),
        node("n1", "error", words),
        node("n2", "cannot_tell", words),
        stages=(SCREENED, FAILED, FABRIC),
    )

    root = checked(check_junit_xml(found))

    kinds = {case.attrib["name"]: [child.tag for child in case] for case in root.iter("testcase")}
    assert kinds == {
        "screening": [], "suite": ["error"], "fabric": ["failure"], "n0": [], "n1": ["failure"], "n2": ["skipped"],
    }  # fmt: skip


def test_warnings_fail_in_junit_where_the_profile_stops_at_them():
    def failing(**head):
        root = checked(check_junit_xml(report(node("n0", "warn"), **head)))
        return [case.attrib["name"] for case in root.iter("testcase") if len(case)]

    assert (failing(), failing(fail_on="warn")) == ([], ["n0"])


def test_the_page_shows_untrusted_words_and_runs_nothing():
    page = Page(check_html(report(node("n0", "error", HOSTILE), node("n1", "cannot_tell"), stages=(SCREENED, FABRIC))))

    tags = {tag for tag, _attributes in page.elements}
    assert "script" not in tags
    assert "alert(1)" in " ".join(page.text)
    assert "\x1b" not in check_html(report(node("n0", "error", HOSTILE)))


def test_the_terminal_has_the_verdict_first_and_bad_nodes_before_sound_ones(capsys):
    nodes = [node(f"n{number:03}", "error" if number == 77 else "ok", HOSTILE) for number in range(100)]
    check_text(report(*nodes, stages=(SCREENED, FABRIC)), "/tmp/x")

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "not fit: 2 nodes of 100: n[077,1]; fabric: slow"
    assert lines[2].startswith("n077  error")
    assert "and 60 nodes more, 0 of them not ok; --json has all" in lines
    assert not any("\x1b" in line for line in lines)
