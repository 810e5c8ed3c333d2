"""What is written is JUnit XML by the strictest schema in use, and says of each point what the run says.

The rules are those of the schema of Ant's task (JUnit.xsd by Windy Road, 2011) and of Jenkins' xUnit plug-in
(junit-10.xsd): attributes and their form, elements and their order.
"""

import re
import xml.etree.ElementTree as ET
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from busbw.model.finding import Finding, Verdict
from busbw.show.exports.junit import junit_xml
from busbw.show.exports.rows import Export, export_of_import, export_of_run

from .factories import HOSTILE, make_import, make_reading, make_right_run, make_run

NUMBER, DECIMAL = re.compile(r"\d+"), re.compile(r"\d+\.\d+")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
WORD = re.compile(r"\S(?:.*\S)?")
SUITE = {
    "name": WORD, "package": WORD, "id": NUMBER, "timestamp": MOMENT, "hostname": WORD, "tests": NUMBER,
    "failures": NUMBER, "errors": NUMBER, "skipped": NUMBER, "time": DECIMAL,
}  # fmt: skip
CASE = {"name": WORD, "classname": WORD, "time": DECIMAL}


def checked(content: bytes) -> ET.Element:
    """Return the root of a document that keeps every rule."""
    root = ET.fromstring(content)
    assert root.tag == "testsuites"
    assert root.attrib == {}
    for number, suite in enumerate(root):
        assert suite.tag == "testsuite"
        assert_attributes(suite, SUITE)
        assert suite.attrib["id"] == str(number)
        cases = suite.findall("testcase")
        order = ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
        assert [child.tag for child in suite] == order
        for each in suite.findall("properties/property"):
            assert_attributes(each, {"name": WORD, "value": re.compile(r".*")})
        for case in cases:
            assert_attributes(case, CASE)
            assert len(case) <= 1
            for child in case:
                wanted = {"message": re.compile(r".+")}
                assert child.tag in {"failure", "error", "skipped"}
                assert_attributes(child, wanted if child.tag == "skipped" else wanted | {"type": WORD})
        counts = Counter(child.tag for case in cases for child in case)
        told = {name: int(suite.attrib[f"{name}s"]) for name in ("test", "failure", "error")}
        assert told == {"test": len(cases), "failure": counts["failure"], "error": counts["error"]}
        assert int(suite.attrib["skipped"]) == counts["skipped"]
    return root


def assert_attributes(element: ET.Element, wanted: dict[str, re.Pattern[str]]) -> None:
    assert element.attrib.keys() == wanted.keys()
    for name, form in wanted.items():
        assert form.fullmatch(element.attrib[name]), (element.tag, name, element.attrib[name])


def outcomes(export: Export) -> dict[str, str]:
    """Return by each case what it has inside: failure, error, skipped, or ok."""
    return {
        f"{case.attrib['classname']}: {case.attrib['name']}": next((child.tag for child in case), "ok")
        for case in checked(junit_xml(export)).iter("testcase")
    }


def test_a_case_for_each_point_and_one_for_the_verdict():
    found = outcomes(export_of_run(make_right_run()))
    assert next(iter(found)) == "busbw.run: verdict"
    assert len(found) == 7
    assert set(found.values()) == {"ok"}


def test_wrong_is_a_failure_and_what_cannot_be_told_is_skipped():
    found = outcomes(export_of_run(make_run()))
    assert found["busbw.run: verdict"] == "failure"
    assert found["busbw.all_reduce: 4 KiB, float32, sum, in place, 4 ranks"] == "failure"
    assert found["busbw.all_reduce: 4 KiB, float32, sum, out of place, 4 ranks"] == "skipped", "nobody verified it"
    assert found["busbw.all_reduce: 1 KiB, float32, sum, out of place, 4 ranks"] == "ok"
    assert found["busbw.broadcast: 64 KiB, float32, root 2, out of place, 4 ranks"] == "skipped", "not measured"


def test_what_a_failed_run_did_not_measure_is_an_error():
    failed = Verdict(outcome="failed", sentence="failed: rank 1 died.", because=("RUN002",))
    found = outcomes(export_of_run(make_run(verdict=failed)))
    assert found["busbw.run: verdict"] == "error"
    assert found["busbw.broadcast: 64 KiB, float32, root 2, out of place, 4 ranks"] == "error"


def test_a_slow_point_is_a_failure_with_its_evidence_and_the_others_pass():
    slow = Verdict(outcome="slow", sentence="slow: it is.", because=("PERF001",))
    finding = Finding(code="PERF001", severity="error", title="slower", evidence="3 times what memory allows", point=2)
    export = export_of_run(make_right_run(verdict=slow, findings=(finding,)))
    root = checked(junit_xml(export))
    (case,) = [
        case
        for case in root.iter("testcase")
        if case.find("failure") is not None and case.attrib["time"] != "0.000000000"
    ]
    assert case.attrib["name"].startswith("16 KiB")
    assert case.find("failure").text == "PERF001 slower: 3 times what memory allows"
    assert Counter(outcomes(export).values()) == {"ok": 5, "failure": 2}


def test_points_of_a_run_that_could_not_be_judged_are_skipped():
    unsure = Verdict(outcome="cannot_tell", sentence="cannot tell: too small.")
    assert set(outcomes(export_of_run(make_right_run(verdict=unsure))).values()) == {"skipped"}


def test_an_import_is_not_judged_but_what_is_wrong_in_it_fails():
    export = export_of_import(make_import(), [make_reading(), make_reading(wrong=3, size_bytes=64)])
    assert sorted(outcomes(export).values()) == ["failure", "skipped", "skipped"]


def test_words_that_mean_harm_stay_words():
    run = make_run(tag=HOSTILE)
    run = replace(run, plan=replace(run.plan, placement=replace(run.plan.placement, hosts=(f'n">{HOSTILE}',))))
    content = junit_xml(export_of_run(run))
    checked(content)
    assert b"\x1b" not in content
    assert "\u202e".encode() not in content


@given(st.text(min_size=1))
def test_any_text_can_be_written_and_read_back(text: str):
    run = make_right_run(verdict=Verdict(outcome="slow", sentence=text))
    checked(junit_xml(export_of_run(replace(run, plan=replace(run.plan, tag=text)))))


def test_points_that_were_judged_by_themselves_have_that_outcome():
    judged = (
        (0, Verdict(outcome="ok", sentence="ok: it is.")),
        (1, Verdict(outcome="slow", sentence="slow: half of what the links carry.")),
        (2, Verdict(outcome="cannot_tell", sentence="cannot tell: nothing is published.")),
    )
    unsure = Verdict(outcome="cannot_tell", sentence="cannot tell: as a whole.")
    export = replace(export_of_run(make_right_run(verdict=unsure)), judged=judged)
    assert list(outcomes(export).values()) == ["skipped", "ok", "failure", *["skipped"] * 4]
    messages = [case[0].attrib["message"] for case in checked(junit_xml(export)).iter("testcase") if len(case)]
    assert messages[1:3] == ["half of what the links carry.", "nothing is published."]


def test_no_judgement_makes_a_wrong_or_unverified_result_pass():
    judged = tuple((number, Verdict(outcome="ok", sentence="ok: it is.")) for number in range(9))
    found = list(outcomes(replace(export_of_run(make_run()), judged=judged)).values())
    assert found.count("failure") == 2
    assert found.count("skipped") == 2
