"""A check of nodes as one HTML page: the verdict, every node, every stage, what to do. No script, no other file.

Alone because a check is no run: it has a page of its own.
"""

from busbw import __version__
from busbw.base.text import listed
from busbw.model.check.report import CheckReport, NodeAnswer
from busbw.model.check.screening import Measure, NodeReading
from busbw.show.check_words import not_screened, still_open
from busbw.show.page.html import environment, inlined

_WORDS = {"fit": "fit", "not_fit": "not fit", "failed": "failed", "cannot_tell": "cannot tell"}
_MEASURES: dict[Measure, str] = {
    "memory_copy": "memory copies",
    "noise": "noise",
    "send": "sends",
    "receive": "receives",
    "to_gpu": "to",
    "from_gpu": "from",
    "gpu_pair": "GPU pair",
    "nic": "NIC",
}
_ORDER = {"error": 0, "warn": 1, "cannot_tell": 2, "ok": 3}
# Findings whose evidence is printed; beyond them the table of nodes says which.
_MOST_FINDINGS = 500


def check_html(report: CheckReport) -> str:
    """Return the page."""
    nodes = sorted(report.nodes, key=lambda each: _ORDER[each.outcome])
    findings = [(node.host, each) for node in nodes for each in node.findings if each.is_serious]
    findings += [(stage.name, each) for stage in report.stages for each in stage.findings]
    template = environment().get_template("check.html.j2")
    return template.render(
        report=report,
        version=__version__,
        style=inlined("report.css"),
        word=_WORDS[report.outcome],
        nodes=[(node, _reached(node)) for node in nodes],
        findings=findings[:_MOST_FINDINGS],
        left=max(len(findings) - _MOST_FINDINGS, 0),
        open=still_open(nodes),
        notes=not_screened(nodes),
    )


def _reached(node: NodeAnswer) -> str:
    return listed([_reading(each) for each in node.readings if each.samples], 12)


def _reading(reading: NodeReading) -> str:
    best = max(reading.samples)
    whom = f" {reading.partner}" if reading.partner is not None else ""
    if reading.measure == "noise":
        middle = sorted(reading.samples)[len(reading.samples) // 2]
        return f"{_MEASURES[reading.measure]} {100 * middle:.2g} %"
    if reading.measure in ("send", "receive", "nic"):
        return f"{_MEASURES[reading.measure]}{whom} {best * 8 / 1e9:.3g} Gb/s"
    return f"{_MEASURES[reading.measure]}{whom} {best / 1e9:.3g} GB/s"
