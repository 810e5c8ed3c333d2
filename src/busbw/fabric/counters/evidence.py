"""What counters of ports add to the answers of a sweep: evidence beside the statistics, never instead of them.

An answer about a host gets a line with what its ports counted and what all others did. Link errors of the suspect alone
make a possible answer likely; congestion alone makes a likely one possible. Ports with errors and no slow test, and
congestion, are notes. What ports counted while a suspect was tested again stands below it with the test and the time.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Container, Sequence

from msgspec import structs

from busbw.base.text import counted, listed
from busbw.base.value import Integer, Value
from busbw.fabric.answers import FabricAnswer
from busbw.fabric.counters.ports import ERRORS, PortChange, PortChanges, by_port, counted_words, owner_of
from busbw.fabric.places import endpoint_of
from busbw.fabric.report import FabricReport
from busbw.facts.port_counters import CounterKind
from busbw.facts.rules import finding
from busbw.model.finding import Finding

# What so many of all ports counted, or more, tells nothing about one of them.
_COMMON = 0.25
# Ports with errors that get a note of their own.
_MOST_NOTES = 8
_PARTS = ("node", "nic", "nic_send", "nic_receive", "unsteady", "unanswered")


def weighed(answers: Sequence[FabricAnswer], found: PortChanges) -> tuple[FabricAnswer, ...]:
    """Return the answers with what counters say of the hosts that each is about."""
    return tuple(_weighed(each, found) for each in answers)


def _weighed(answer: FabricAnswer, found: PortChanges) -> FabricAnswer:
    readable = [node for node in answer.nodes if node in found.hosts]
    if not readable:
        once = [f"counters of {node} were read once only" for node in answer.nodes if node in found.unpaired]
        return structs.replace(answer, evidence=(*answer.evidence, *once))
    own = _of_answer(answer, found.changes)
    link = [each for each in own if each.kind == "link_error" and _is_of_fabric(each, found)]
    errors = [each for each in own if each.kind in ERRORS]
    congestion = [each for each in own if each.kind == "congestion"]
    ports = sorted(by_port(errors or own).items(), key=lambda item: item[1][0].host not in answer.nodes)
    lines = [_line(place, each, found, dict(ports)) for place, each in ports[:2]]
    lines += [f"{place}: no such port any more {found.when}".rstrip() for place in found.gone
              if place.split(" ", 1)[0] in answer.nodes]  # fmt: skip
    lines += [
        f"{stuck}: what they count is not seen" for stuck in found.stuck if stuck.split(" ", 1)[0] in answer.nodes
    ]
    lines += [f"{host} started again in between" for host in found.restarted if host in answer.nodes]
    if not lines:
        lines = [f"the ports of {listed(readable)} counted no error and no congestion {found.when}".rstrip()]
    otherwise, confidence = answer.otherwise, answer.confidence
    if link and confidence == "possible" and answer.kind in _PARTS and not _is_common(found, answer, "link_error"):
        confidence = "likely"
    elif congestion and not errors and answer.kind in _PARTS and not _is_common(found, answer, "congestion"):
        otherwise = f"congestion on the way, which its ports counted; {otherwise}"
        confidence = "possible" if confidence == "likely" else confidence
    elif congestion and not link and answer.kind == "congestion" and confidence == "possible":
        confidence = "likely"
    return structs.replace(answer, evidence=(*answer.evidence, *lines), otherwise=otherwise, confidence=confidence)


def _of_answer(answer: FabricAnswer, found: Sequence[PortChange]) -> list[PortChange]:
    """Return the changes at ports of an answer's hosts, at both ends of their cables; of one NIC where it names one."""
    rails = {end.rail for part in answer.parts if (end := endpoint_of(part)).node in answer.nodes and end.rail}
    # A rail may be a number: then nobody knows which device it is. A node has all of its NICs.
    devices = rails if answer.kind != "node" and not any(rail.isdecimal() for rail in rails) else set()
    return [each for each in found if any(_concerns(each, node, devices) for node in answer.nodes)]


def _concerns(change: PortChange, node: str, devices: set[str]) -> bool:
    """Whether a change is at a port of a node or at the other end of its cable. `devices`: of these; none: of any."""
    far_host, _space, far_port = (change.linked or "").partition(" ")
    if far_host == node:
        return not devices or far_port.split(" ")[0] in devices
    return change.host == node and (not devices or change.port.partition("/")[0] in devices)


def _line(place: str, own: Sequence[PortChange], found: PortChanges, told: Container[str]) -> str:
    """Return what one port counted, and how many of the ports counted as much that are not `told` beside it.

    `node07 mlx5_3 port 1: symbol errors +412 in 41 s; the other 15 ports none`.
    """
    kinds = {each.kind for each in own}
    others = {each.place for each in found.changes if each.kind in kinds and each.place not in told}
    far = f" (to {own[0].linked})" if own[0].linked is not None else ""
    line = f"{place}{far}: {counted_words(own)} {found.when}".rstrip()
    many = found.ports - 1
    if others:
        return f"{line}; {len(others)} of the other {many} ports too"
    return f"{line}; the other {many} ports none" if many > 1 else line


def _is_of_fabric(change: PortChange, found: PortChanges) -> bool:
    """Whether a port is one of the fabric: the ordinary interfaces of a host with adapters of a fabric are hardly."""
    return owner_of(change.port) != "net" or change.host in found.plain


def _is_common(found: PortChanges, answer: FabricAnswer, kind: CounterKind) -> bool:
    """Whether ports of other hosts counted such things as often, so that they tell nothing about this one."""
    own = {each.place for each in _of_answer(answer, found.changes)}
    others = {each.place for each in found.changes if each.kind == kind and _is_of_fabric(each, found)} - own
    return len(others) >= _COMMON * max(found.ports - len(own), 1)


class CountedAgain(Value, kw_only=True, frozen=True):
    """What the ports of one host counted while its pairs were tested again."""

    host: str
    # From 0.
    round: Integer
    # Sender and receiver of each test, as an answer's `parts` name endpoints.
    tests: tuple[tuple[str, str], ...]
    changes: tuple[PortChange, ...]
    # The end of the tests; None: not known.
    unix_s: float | None = None


def with_retests(answers: Sequence[FabricAnswer], again: Sequence[CountedAgain]) -> tuple[FabricAnswer, ...]:
    """Return the answers with what the ports of both ends counted in retests of exactly those pairs."""
    return tuple(_with_retests(each, again) for each in answers)


def _with_retests(answer: FabricAnswer, again: Sequence[CountedAgain]) -> FabricAnswer:
    ends = {part for part in answer.parts if endpoint_of(part).node in answer.nodes}
    own = [each for each in again if any(ends & {*test} for test in each.tests)]
    rose: dict[str, list[tuple[CountedAgain, PortChange]]] = defaultdict(list)
    for each in own:
        # Of a partner any port that counted meanwhile: it is the other end.
        of_answer = _of_answer(answer, each.changes) if each.host in answer.nodes else each.changes
        for change in of_answer:
            rose[change.place].append((each, change))
    if not rose:
        return answer
    others = {each.host for each in again if each not in own and each.changes} - {each.host for each in own}
    ports = sorted(rose.values(), key=lambda found: found[0][0].host not in answer.nodes)
    lines = [_again_line(found, sum(each.host == found[0][0].host for each in own), ends) for found in ports[:2]]
    if others:
        lines[-1] += f"; in other retests ports of {counted(len(others), 'more host')} counted too"
    return structs.replace(answer, evidence=(*answer.evidence, *lines))


def _again_line(found: Sequence[tuple[CountedAgain, PortChange]], retests: int, ends: set[str]) -> str:
    """Return what one port counted in retests.

    `n7 eth0: carrier changes +4 in 2 of its 6 retests: n3 -> n7 (round 6, 23:18:05 UTC), n7 -> n2 (round 7, ...)`.
    """
    words = list(dict.fromkeys(change.words for _, change in found))
    sums = [f"{each} +{sum(change.change for _, change in found if change.words == each)}" for each in words]
    tests: dict[str, None] = {}
    for each, _change in found:
        pairs = [f"{one} -> {other}" for one, other in each.tests if ends & {one, other}]
        at = "" if each.unix_s is None else f", {dt.datetime.fromtimestamp(each.unix_s, dt.UTC):%H:%M:%S} UTC"
        tests[f"{' and '.join(pairs)} (round {each.round + 1}{at})"] = None
    return (
        f"{found[0][1].place}: {listed(sums, most=3)} in {len(tests)} of its {retests} retests: {listed(tests, most=3)}"
    )


def counter_notes(answers: Sequence[FabricAnswer], found: PortChanges) -> tuple[Finding, ...]:
    """Return what counters show beside the answers: ports with errors, ports that went, and congestion."""
    told = {each.place for answer in answers for each in _of_answer(answer, found.changes)}
    errors = by_port([each for each in found.changes if each.kind in ERRORS])
    made = [_error_note(place, each, found) for place, each in errors.items() if place not in told]
    shown = made[:_MOST_NOTES]
    if len(made) > _MOST_NOTES:
        rest = [place for place in errors if place not in told][_MOST_NOTES:]
        shown.append(_note("FAB011", counted(len(rest), "more port"), f"errors on {listed(rest)}", found, None))
    gone = [
        _note("FAB011", place, "the port is gone", found, "dmesg; is its driver still loaded?") for place in found.gone
    ]
    congestion = by_port([each for each in found.changes if each.kind == "congestion"])
    if congestion:
        places = sorted(congestion, key=lambda place: -max(each.change for each in congestion[place]))
        lines = [f"{place}: {counted_words(congestion[place])}" for place in places[:3]]
        title = places[0] if len(places) == 1 else f"{len(places)} of {found.ports} ports"
        fix = "a sweep of an idle fabric tells whose traffic it is; RoCE: flow control and ECN at the switches"
        shown.append(_note("FAB012", title, "; ".join(lines), found, fix))
    return (*shown, *gone)


def set_beside(report: FabricReport, findings: Sequence[Finding]) -> FabricReport:
    """Return a report with what links and counters show; its sentence says what of that is more than a note."""
    links = [each for each in findings if each.code == "FAB013"]
    said = f"; {counted(len(links), 'link')} below {'its' if len(links) == 1 else 'their'} neighbours' width or speed"
    verdict = report.verdict
    if links:
        verdict = structs.replace(verdict, sentence=verdict.sentence + said, because=(*verdict.because, "FAB013"))
    return structs.replace(report, findings=(*report.findings, *findings), verdict=verdict)


def _error_note(place: str, own: Sequence[PortChange], found: PortChanges) -> Finding:
    lost = all(each.kind == "loss" for each in own)
    fix = (
        "packets were lost on the way: by a link further away, or by congestion; look at the switches' ports"
        if lost
        else "look at cable and transceiver (mlxlink -d DEVICE -m, ethtool -m); read the counters again after a job"
    )
    return _note("FAB011", place, _line(place, own, found, {place}), found, fix)


def _note(code: str, port: str, evidence: str, found: PortChanges, fix: str | None) -> Finding:
    when = f" {found.when}" if found.when else ""
    return finding(code, port=port, when=when, evidence=evidence, fix=fix, confidence="possible")
