"""JUnit XML, as CI systems read it: a suite for each collective with a case for each point, and one for the verdict.

wrong and slow are failures, what was not measured because the run failed is an error, and "cannot tell" is skipped,
with the reason. Attributes and order of elements satisfy the strictest schema in use, that of Ant's task (windyroad's
JUnit.xsd), and are what Jenkins, GitLab and GitHub's actions read. `time` is the median of one exchange in seconds.
"""

import datetime as dt
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from busbw.exports.plain import shown
from busbw.exports.point_outcomes import PointOutcome, point_outcomes
from busbw.exports.rows import Export
from busbw.model.finding import Outcome
from busbw.model.moment import unix_s
from busbw.model.point_row import PointRow, point_name

# (name, class, outcome, reason, seconds)
_Case = tuple[str, str, str, str, float | None]
_ELEMENTS: dict[str, str] = {"wrong": "failure", "slow": "failure", "failed": "error", "cannot_tell": "skipped"}


def junit_xml(export: Export) -> bytes:
    """Return the document. What comes from outside has its control characters written as escapes."""
    judged = list(zip(export.rows, point_outcomes(export), strict=True))
    root = ET.Element("testsuites")
    suites: list[tuple[str, list[_Case]]] = [("run", _verdict_case(export))]
    suites += [
        (collective, [_case(row, each) for row, each in judged if row.collective == collective])
        for collective in dict.fromkeys(row.collective for row in export.rows)
    ]
    for number, (name, cases) in enumerate(suites):
        _suite(root, number, name, cases, export)
    ET.indent(root, " ")
    content: bytes = ET.tostring(root, encoding="UTF-8", xml_declaration=True)
    return content + b"\n"


def _verdict_case(export: Export) -> list[_Case]:
    outcome: Outcome | str = export.verdict or "cannot_tell"
    reason = export.sentence or ("imports are not judged" if export.verdict is None else outcome)
    return [("verdict", "busbw.run", outcome, reason, None)]


def _case(row: PointRow, judged: PointOutcome) -> _Case:
    return point_name(row), f"busbw.{row.collective}", judged.outcome, judged.reason, row.time_s


def _suite(root: ET.Element, number: int, name: str, cases: Sequence[_Case], export: Export) -> None:
    elements = [_ELEMENTS.get(outcome) for _, _, outcome, _, _ in cases]
    made = unix_s(export.created)
    attributes = {
        "name": name,
        "package": "busbw",
        "id": str(number),
        "timestamp": dt.datetime.fromtimestamp(made or 0, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        "hostname": next((row.hosts.split(",")[0] for row in export.rows if row.hosts), "unknown"),
        "tests": str(len(cases)),
        "failures": str(elements.count("failure")),
        "errors": str(elements.count("error")),
        "skipped": str(elements.count("skipped")),
        "time": _seconds(sum(seconds or 0 for *_, seconds in cases)),
    }
    suite = ET.SubElement(root, "testsuite", _shown(attributes))
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(export):
        ET.SubElement(properties, "property", _shown({"name": key, "value": value}))
    for (title, kind, outcome, reason, seconds), element in zip(cases, elements, strict=True):
        case = ET.SubElement(suite, "testcase", _shown({"name": title, "classname": kind, "time": _seconds(seconds)}))
        if element == "skipped":
            ET.SubElement(case, element, _shown({"message": reason}))
        elif element is not None:
            ET.SubElement(case, element, _shown({"type": outcome, "message": reason})).text = shown(reason)
    ET.SubElement(suite, "system-out").text = shown(export.sentence or "")
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
    return {name: shown(value) for name, value in attributes.items()}


def _seconds(value: float | None) -> str:
    """Return seconds as a decimal without an exponent, which not every reader takes."""
    return f"{value or 0:.9f}"
