"""JUnit XML, as CI systems read it: a test case for each point of a run, each gate, or each node of a check.

Of a run a suite for each collective, and one for the verdict; gates are one suite, a check has two. wrong, slow and a
gate that fails are failures, what was not measured because the run failed is an error, and "cannot tell" is skipped,
with the reason.
Attributes and order of elements satisfy the strictest schema in use, that of Ant's task (windyroad's JUnit.xsd), and
are what Jenkins, GitLab and GitHub's actions read. `time` is the median of one exchange in seconds.
"""

import datetime as dt
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import NamedTuple

from busbw.base.moment import unix_s
from busbw.base.text import one_line
from busbw.base.units import format_in
from busbw.model.check.report import CheckReport, NodeAnswer, StageAnswer
from busbw.model.finding import Outcome
from busbw.model.gates import GateAnswer, GateAnswers, PointRow, point_name
from busbw.show.exports.rows import Export, PointOutcome, point_outcomes

_ELEMENTS = {"wrong": "failure", "slow": "failure", "fail": "failure", "failed": "error", "cannot_tell": "skipped"}
# Of the points of a gate, those that are listed.
_MOST_POINTS = 100


class _Case(NamedTuple):
    """One test: `kind` is its class, `reason` one line, `detail` as many as it takes."""

    name: str
    kind: str
    outcome: str
    reason: str
    seconds: float | None = None
    detail: str | None = None


class _About(NamedTuple):
    """What all suites of a document say of themselves; `made` as a run stores it."""

    made: str
    host: str
    properties: tuple[tuple[str, str], ...]
    sentence: str


def junit_xml(export: Export) -> bytes:
    """Return the document of a run. What comes from outside has its control characters written as escapes."""
    judged = list(zip(export.rows, point_outcomes(export), strict=True))
    suites: list[tuple[str, list[_Case]]] = [("run", _verdict_case(export))]
    suites += [
        (collective, [_case(row, each) for row, each in judged if row.collective == collective])
        for collective in dict.fromkeys(row.collective for row in export.rows)
    ]
    host = next((row.hosts.split(",")[0] for row in export.rows if row.hosts), "unknown")
    return _document(
        suites, _About(made=export.created, host=host, properties=_properties(export), sentence=export.sentence or "")
    )


def gates_junit_xml(gates: GateAnswers, *, subject: str, made: str, busbw_version: str) -> bytes:
    """Return the document of what gates came to; `subject` is what was held against them, `made` the time of it."""
    cases = [
        _Case(each.text, f"busbw.gates.{each.gate.requirement}", each.outcome, each.sentence, detail=_detail(each))
        for each in gates.answers
    ]
    baseline = gates.baseline.name if gates.baseline is not None else None
    known = (("result", subject), ("baseline", baseline), ("busbw_version", busbw_version))
    properties = tuple((name, value) for name, value in known if value)
    said = [gates.sentence, *(gates.baseline.notes if gates.baseline is not None else ()), *gates.notes]
    return _document(
        [("gates", cases)], _About(made=made, host="unknown", properties=properties, sentence="; ".join(said))
    )


def check_junit_xml(report: CheckReport) -> bytes:
    """Return the document of a check: a case for each stage, and one for each node."""
    stages = [
        _Case(each.name, "busbw.check.stage", _stage_outcome(each), each.because, each.wall_s) for each in report.stages
    ]
    nodes = [
        _Case(
            each.host,
            "busbw.check.node",
            _node_outcome(each, report.fail_on),
            each.because,
            detail="\n".join(one_line(f"{one.severity} {one.code}: {one.evidence}") for one in each.findings) or None,
        )
        for each in report.nodes
    ]
    host = report.nodes[0].host if len(report.nodes) == 1 else "unknown"
    known = (
        ("check_id", report.check_id), ("profile", report.profile), ("platform", report.platform),
        ("busbw_version", report.busbw_version),
    )  # fmt: skip
    properties = tuple((name, value) for name, value in known if value)
    about = _About(made=report.created, host=host, properties=properties, sentence=report.sentence)
    return _document([("stages", stages), ("nodes", nodes)], about)


def _stage_outcome(stage: StageAnswer) -> str:
    if stage.state != "done":
        return "failed" if stage.state == "failed" else "cannot_tell"
    return stage.verdict.outcome if stage.verdict is not None else "ok"


def _node_outcome(node: NodeAnswer, fail_on: str) -> str:
    if node.outcome in ("error", "warn"):
        return "fail" if node.outcome == "error" or fail_on == "warn" else "ok"
    return node.outcome


def _detail(answer: GateAnswer) -> str:
    """Return every point of a gate that is not met, a line each."""
    lines = [
        f"{point.collective} {point.name}: {point.outcome.replace('_', ' ')}"
        + (f", {point.why}" if point.why is not None else "")
        + (f", {format_in(point.value, point.unit)}" if point.value is not None else "")
        for point in answer.points
        if point.outcome != "pass"
    ]
    more = [f"and {len(lines) - _MOST_POINTS} more"] if len(lines) > _MOST_POINTS else []
    return "\n".join([one_line(answer.sentence), *map(one_line, lines[:_MOST_POINTS]), *more])


def _document(suites: Sequence[tuple[str, Sequence[_Case]]], about: _About) -> bytes:
    root = ET.Element("testsuites")
    for number, (name, cases) in enumerate(suites):
        _suite(root, number, name, cases, about)
    ET.indent(root, " ")
    content: bytes = ET.tostring(root, encoding="UTF-8", xml_declaration=True)
    return content + b"\n"


def _verdict_case(export: Export) -> list[_Case]:
    outcome: Outcome | str = export.verdict or "cannot_tell"
    reason = export.sentence or ("imports are not judged" if export.verdict is None else outcome)
    return [_Case("verdict", "busbw.run", outcome, reason)]


def _case(row: PointRow, judged: PointOutcome) -> _Case:
    return _Case(point_name(row), f"busbw.{row.collective}", judged.outcome, judged.reason, row.time_s)


def _suite(root: ET.Element, number: int, name: str, cases: Sequence[_Case], about: _About) -> None:
    elements = [_ELEMENTS.get(case.outcome) for case in cases]
    made = unix_s(about.made)
    attributes = {
        "name": name,
        "package": "busbw",
        "id": str(number),
        "timestamp": dt.datetime.fromtimestamp(made or 0, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        "hostname": about.host,
        "tests": str(len(cases)),
        "failures": str(elements.count("failure")),
        "errors": str(elements.count("error")),
        "skipped": str(elements.count("skipped")),
        "time": _seconds(sum(case.seconds or 0 for case in cases)),
    }
    suite = ET.SubElement(root, "testsuite", _shown(attributes))
    properties = ET.SubElement(suite, "properties")
    for key, value in about.properties:
        ET.SubElement(properties, "property", _shown({"name": key, "value": value}))
    for case, element in zip(cases, elements, strict=True):
        attributes = {"name": case.name, "classname": case.kind, "time": _seconds(case.seconds)}
        one = ET.SubElement(suite, "testcase", _shown(attributes))
        if element == "skipped":
            ET.SubElement(one, element, _shown({"message": case.reason}))
        elif element is not None:
            result = ET.SubElement(one, element, _shown({"type": case.outcome, "message": case.reason}))
            result.text = case.detail or one_line(case.reason)
    ET.SubElement(suite, "system-out").text = one_line(about.sentence)
    ET.SubElement(suite, "system-err")


def _properties(export: Export) -> tuple[tuple[str, str], ...]:
    first = export.rows[0] if export.rows else None
    known = (
        ("run_id", export.run_id),
        ("busbw_version", export.busbw_version),
        ("tag", export.tag),
        ("hosts", first.hosts if first is not None else None),
        ("backend", first.backend if first is not None else None),
        ("libraries", first.libraries if first is not None else None),
    )
    return tuple((name, value) for name, value in known if value)


def _shown(attributes: dict[str, str]) -> dict[str, str]:
    return {name: one_line(value) for name, value in attributes.items()}


def _seconds(value: float | None) -> str:
    """Return seconds as a decimal without an exponent, which not every reader takes."""
    return f"{value or 0:.9f}"
