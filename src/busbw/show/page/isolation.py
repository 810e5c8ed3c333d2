"""The part of a page about a search over groups of nodes: what its template reads, and its figures."""

from collections.abc import Iterator
from dataclasses import replace

from busbw.base.hostlist import compressed
from busbw.base.text import counted, listed
from busbw.base.units import format_in
from busbw.fabric.drawing import loss_words
from busbw.fabric.groups.isolation import Isolation, TestedGroup, name_of_search
from busbw.fabric.groups.nodes import NodeGroups, nodes_of
from busbw.show.figures.isolation import groups_figure, nodes_figure
from busbw.show.figures.series import Figure
from busbw.show.page.fabric import FabricPlot, FabricSection
from busbw.show.page.section import explained_findings
from busbw.show.words import OUTCOMES, verdict_rest

_MOST_NODES = 32
_MOST_GROUPS = 500
_MOST_CLEARED = 20


def isolation_section_of(found: Isolation, *, prefix: str = "", level: int = 2) -> FabricSection:
    """Return the part of a page about a search. `prefix` stands before every id, `level` is that of its headings."""
    plots = [(replace(plot, key=f"{prefix}{plot.key}"), figure) for plot, figure in _plots(found)]
    shown = [each for each in found.tests if each.state != "sound"]
    shown += [each for each in found.tests if each.state == "sound"]
    return FabricSection(
        values={
            "word": OUTCOMES[found.verdict.outcome],
            "sentence": verdict_rest(found.verdict),
            "answers": tuple(_answers(found)),
            "evidence": tuple((each.place, each.evidence) for each in found.answers),
            "plots": tuple(plot for plot, _ in plots),
            "groups": tuple(_group_row(each, found) for each in shown[:_MOST_GROUPS]),
            "more_groups": max(len(found.tests) - _MOST_GROUPS, 0),
            "findings": explained_findings(found.findings, {}),
            "facts": tuple(_facts(found)),
            "p": prefix,
            "h": level,
        },
        figures={plot.key: figure for plot, figure in plots},
    )


def _answers(found: Isolation) -> Iterator[tuple[str, ...]]:
    for each in found.answers:
        yield (each.place, loss_words(each.loss) or "-", each.confidence, each.otherwise, each.clears)


def _plots(found: Isolation) -> Iterator[tuple[FabricPlot, Figure]]:
    nodes = nodes_of(found)
    if nodes:
        more = f" Those of {len(nodes) - _MOST_NODES} more nodes are not drawn." if len(nodes) > _MOST_NODES else ""
        marked = " Marked with ▶: suspected." if any(each.suspect for each in nodes) else ""
        yield (
            FabricPlot(
                key="isolation-nodes",
                words="Nodes by their groups",
                caption=f"Groups that each node was in, suspects and the most bad groups first.{marked}{more}",
                headings=("node", "bad groups", "groups"),
                rows=tuple(_node_row(each) for each in nodes),
            ),
            nodes_figure(nodes[:_MOST_NODES]),
        )
    usual = [each for each in found.tests if each.purpose != "whole"]
    figure = groups_figure(usual) if found.plan.read.kind != "exit-code" else None
    if figure is not None:
        yield (
            FabricPlot(
                key="isolation-groups",
                words="Groups by what they lose",
                caption="What each group loses against its peers, by round; "
                f"slow from {100 * found.least_seen:.0f} % on.",
                headings=(),
                rows=(),
            ),
            figure,
        )


def _node_row(each: NodeGroups) -> tuple[str, ...]:
    return (each.host, str(each.bad), str(each.groups))


def _group_row(each: TestedGroup, found: Isolation) -> tuple[str, ...]:
    values = [format_in(value, found.plan.unit).rstrip() for value in each.values if value is not None]
    said = (*(() if found.plan.read.kind == "exit-code" else values), *each.failures)
    loss = loss_words(each.loss) if found.plan.read.kind != "exit-code" else None
    state = "-" if each.purpose == "whole" and each.state == "unclear" else each.state
    return (
        compressed(each.hosts),
        str(each.round + 1),
        each.purpose,
        state,
        loss or "-",
        "; ".join(said) or "exit code 0",
    )


def _facts(found: Isolation) -> Iterator[tuple[str, str]]:
    plan = found.plan
    yield "what", f"{name_of_search(plan)} on groups, {plan.isolation_id}"
    yield "nodes", f"{len(plan.hosts)}: {compressed(plan.hosts)} ({plan.how})"
    yield "groups", f"of {plan.group_nodes} nodes, each run {counted(plan.repeats, 'time')}"
    yield "measured", f"{counted(found.rounds, 'round')}, {counted(found.group_runs, 'group run')}"
    if plan.read.kind != "exit-code" and found.median is not None:
        yield "median", format_in(found.median, plan.unit).rstrip()
        yield "scatter", f"{100 * found.noise:.1f} % of one run"
    if plan.expected is not None:
        yield "expected", format_in(plan.expected, plan.unit).rstrip()
    if found.cleared:
        yield "not confirmed", listed(found.cleared, _MOST_CLEARED, between="; ")
    yield "command", " ".join(plan.command)
    yield "random numbers", f"seed {plan.seed}"
