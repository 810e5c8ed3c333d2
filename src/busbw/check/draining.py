"""Nodes that should take no jobs, as lists and as commands for a person to read and to run. Nothing is executed."""

import re
import shlex
from collections.abc import Sequence
from typing import Literal, get_args

from busbw.base.hostlist import compressed
from busbw.base.text import one_line
from busbw.fabric.groups.isolation import Isolation
from busbw.model.check.report import NodeAnswer, NodeToDrain, StageAnswer
from busbw.model.finding import Finding

DrainForm = Literal["all", "hosts", "list", "scontrol", "kubectl"]
FORMS: tuple[DrainForm, ...] = get_args(DrainForm)
# Slurm keeps a reason in a column of a table, and shows 20 to 64 characters of it; longer ones are kept.
_LONGEST_REASON = 160
_OF_ONE_NODE = ("node", "failing", "unsteady")


def nodes_to_drain(
    nodes: Sequence[NodeAnswer], stages: Sequence[StageAnswer], spares: Sequence[str]
) -> tuple[NodeToDrain, ...]:
    """Return the nodes with an error, then those that a stage names, each with a reason, and a spare if any is left.

    A warning drains nothing. A spare that is among the nodes to drain is none.
    """
    reasons: dict[str, str] = {}
    for node in nodes:
        errors = [each for each in node.findings if each.severity == "error"]
        if errors:
            reasons[node.host] = "; ".join(f"{each.code} {each.title}" for each in errors)
    for stage in stages:
        for host in stage.suspects:
            said = "; ".join(f"{each.code} {each.title}" for each in about(stage, host) if each.severity == "error")
            if said:
                reasons.setdefault(host, f"{stage.name}: {said}")
    free = iter([each for each in dict.fromkeys(spares) if each not in reasons])
    return tuple(
        NodeToDrain(host=host, reason=_cut(f"busbw check: {one_line(said)}"), spare=next(free, None))
        for host, said in reasons.items()
    )


def isolated_nodes(found: Isolation, spares: Sequence[str]) -> tuple[NodeToDrain, ...]:
    """Return the nodes that a search over groups names as slow, failing or unsteady, each with a reason and a spare.

    What is bad only together, or among others, is no node's own.
    """
    reasons = {
        each.hosts[0]: f"{each.evidence[0]}"
        for each in found.answers
        if each.kind in _OF_ONE_NODE and len(each.hosts) == 1
    }
    free = iter([each for each in dict.fromkeys(spares) if each not in reasons])
    return tuple(
        NodeToDrain(host=host, reason=_cut(f"busbw isolate: {one_line(said)}"), spare=next(free, None))
        for host, said in reasons.items()
    )


def about(stage: StageAnswer, host: str) -> tuple[Finding, ...]:
    """Return what a stage found of one host: the findings that name it."""
    return tuple(each for each in stage.findings if host in re.split(r"[\s,:]+", each.title))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 3]}..."


def drain_text(drain: Sequence[NodeToDrain], form: DrainForm) -> str:
    """Return the list in a form; of `all`, a file that busbw and MPI read as hosts, the rest of it in comments."""
    if form == "hosts":
        return "".join(f"{each.host}\n" for each in drain)
    if form == "list":
        return f"{compressed([each.host for each in drain])}\n" if drain else ""
    if form == "scontrol":
        return "".join(f"{line}\n" for line in _scontrol(drain))
    if form == "kubectl":
        return "".join(f"{line}\n" for line in _kubectl(drain))
    if not drain:
        return "# no node to drain\n"
    spares = [each.spare for each in drain if each.spare is not None]
    lines = [
        "# Nodes to drain. Nothing was executed.",
        *(f"{each.host}" for each in drain),
        f"# as a list: {compressed([each.host for each in drain])}",
        *(f"# {line}" for line in (*_scontrol(drain), *_kubectl(drain))),
        *(f"# in the place of {each.host}: {each.spare or 'no spare is left'}" for each in drain if spares),
    ]
    return "".join(f"{line}\n" for line in lines)


def _scontrol(drain: Sequence[NodeToDrain]) -> list[str]:
    return [
        shlex.join(("scontrol", "update", f"nodename={_node_name(each.host)}", "state=drain", f"reason={each.reason}"))
        for each in drain
    ]


def _node_name(host: str) -> str:
    """Return what Slurm calls a host where its configuration says nothing else: the name up to the first dot."""
    first = host.partition(".")[0]
    return host if first.isdecimal() else first


def _kubectl(drain: Sequence[NodeToDrain]) -> list[str]:
    made = []
    for each in drain:
        made.append(shlex.join(("kubectl", "cordon", each.host)))
        # cordon takes no reason: it goes beside, where `kubectl describe node` shows it.
        made.append(
            shlex.join(("kubectl", "annotate", "node", each.host, "--overwrite", f"busbw/reason={each.reason}"))
        )
    return made
