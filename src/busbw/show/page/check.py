"""A check of nodes as one HTML page: the verdict, every node, every stage, what to do. No script, no other file.

Alone because a check is no run: it has a page of its own.
"""

from collections import Counter
from collections.abc import Sequence

from busbw import __version__
from busbw.model.check.report import CheckReport, NodeAnswer, NodeOutcome
from busbw.model.check.screening import Measure, NodeReading
from busbw.show.check_words import not_screened, still_open
from busbw.show.page.html import environment, inlined

_WORDS = {"fit": "fit", "not_fit": "not fit", "failed": "failed", "cannot_tell": "cannot tell"}
# Of one part or partner, and of several.
_MEASURES: dict[Measure, tuple[str, str]] = {
    "memory_copy": ("memory copies", "memory copies"),
    "noise": ("noise", "noise"),
    "send": ("sends to", "sends to {} partners"),
    "receive": ("receives from", "receives from {} partners"),
    "to_gpu": ("copies to", "copies to {} GPUs"),
    "from_gpu": ("copies from", "copies from {} GPUs"),
    "gpu_pair": ("GPU pair", "{} GPU pairs"),
    "nic": ("NIC", "{} NICs"),
}
_ORDER: dict[NodeOutcome, int] = {"error": 0, "warn": 1, "cannot_tell": 2, "ok": 3}
# Findings whose evidence is printed; beyond them the table of nodes says which.
_MOST_FINDINGS = 500
# Sound nodes beyond these are folded: what needs a look comes first.
_MOST_SOUND = 24


def check_html(report: CheckReport) -> str:
    """Return the page."""
    nodes = sorted(report.nodes, key=lambda each: _ORDER[each.outcome])
    folds = sum(each.outcome == "ok" for each in nodes) > _MOST_SOUND
    findings = [(node.host, each) for node in nodes for each in node.findings if each.is_serious]
    findings += [(stage.name, each) for stage in report.stages for each in stage.findings]
    template = environment().get_template("check.html.j2")
    return template.render(
        report=report,
        version=__version__,
        style=inlined("report.css"),
        word=_WORDS[report.outcome],
        counts=_counts(nodes),
        nodes=[(node, _reached(node)) for node in nodes if node.outcome != "ok" or not folds],
        folded=[(node, _reached(node)) for node in nodes if node.outcome == "ok" and folds],
        findings=findings[:_MOST_FINDINGS],
        left=max(len(findings) - _MOST_FINDINGS, 0),
        open=still_open(nodes),
        notes=not_screened(nodes),
    )


def _counts(nodes: Sequence[NodeAnswer]) -> str:
    """Return how many nodes have each answer."""
    counts = Counter(each.outcome for each in nodes)
    return ", ".join(f"{each.replace('_', ' ')} {counts[each]}" for each in _ORDER if counts[each])


def _reached(node: NodeAnswer) -> str:
    by_measure: dict[Measure, list[NodeReading]] = {}
    for each in node.readings:
        if each.samples:
            by_measure.setdefault(each.measure, []).append(each)
    return ", ".join(_range(measure, readings) for measure, readings in by_measure.items())


def _range(measure: Measure, readings: Sequence[NodeReading]) -> str:
    """Return what a measure reached; of several parts or partners the least and the most."""
    one, several = _MEASURES[measure]
    if measure == "noise":
        middle = sorted(readings[0].samples)[len(readings[0].samples) // 2]
        return f"{one} {100 * middle:.2g} %"
    scale, unit = (8 / 1e9, "Gb/s") if measure in ("send", "receive", "nic") else (1 / 1e9, "GB/s")
    best = [max(each.samples) * scale for each in readings]
    if len(best) == 1:
        whom = f" {readings[0].partner}" if readings[0].partner is not None else ""
        return f"{one}{whom} {best[0]:.3g} {unit}"
    return f"{several.format(len(best))} {min(best):.3g} to {max(best):.3g} {unit}"
