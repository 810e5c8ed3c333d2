"""Hosts that are not alike: those whose numbers are of a mixture, and those that only differ."""

from busbw.facts.findings import finding
from busbw.judge.phrases import counted, listed
from busbw.model.finding import Finding
from busbw.model.preflight import Difference, differences, sentences
from busbw.model.record import Node

_PORT = "port "


def node_findings(nodes: tuple[Node, ...]) -> tuple[Finding, ...]:
    """Return what a reader must know about the hosts of a run."""
    found = differences(nodes) if nodes else ()
    mixed = _mixed(found)
    ports = [difference for difference in found if difference.what.startswith(_PORT)]
    others = [difference for difference in found if not difference.stops and difference not in ports]
    findings = []
    if mixed:
        findings.append(
            finding(
                "RUN023",
                what=listed([difference.what for difference in mixed]),
                evidence=sentences(mixed),
                fix="make the hosts alike, or measure those that are alike: --hosts",
            )
        )
    if ports:
        findings.append(
            finding(
                "RUN025",
                ports=counted(len(ports), "network port"),
                evidence=sentences(ports),
                fix="see `ibstat` and `ip -br link` on the hosts named",
            )
        )
    if others:
        what = listed([difference.what for difference in others])
        findings.append(finding("RUN024", what=what, evidence=sentences(others)))
    return tuple(findings)


def mixture_words(nodes: tuple[Node, ...]) -> str | None:
    """Return why the numbers of a run are of a mixture, and not to be held against those of another; None else."""
    mixed = _mixed(differences(nodes)) if nodes else ()
    if not mixed:
        return None
    return f"the hosts differ in {listed([difference.what for difference in mixed])}: the numbers are of a mixture"


def _mixed(found: tuple[Difference, ...]) -> tuple[Difference, ...]:
    return tuple(difference for difference in found if difference.stops)
