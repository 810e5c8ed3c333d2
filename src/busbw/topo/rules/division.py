"""NUMA nodes in another division than the platform's: firmware can be set to make several of them one (NPS, SNC)."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from busbw.facts.findings import finding
from busbw.model.finding import Finding
from busbw.topo.reference import Reference
from busbw.topo.rules.placement import true_node
from busbw.topo.rules.subject import Subject

# One node for the whole machine is how files are written by people who do not know better.
_LEAST_NODES = 2


def division(subject: Subject, reference: Reference) -> Iterator[Finding]:
    """Yield one note where each NUMA node of the file is several of the platform's, with all that belongs to them."""
    parts = _parts(subject, reference)
    if parts:
        first = next(node for node in subject.nodes if node.id in parts)
        shown = "; ".join(
            f"node {node} is {reference.name}'s {', '.join(map(str, sorted(truths)))}"
            for node, truths in sorted(parts.items())
        )
        yield finding(
            "TOP077",
            evidence=shown,
            fix="compare with lscpu on the machine",
            where=subject.where(first.element, "numaid"),
            confidence="likely",
            effect="right where the firmware is set so; NCCL obeys",
            count=len(parts),
            truth=len(reference.masks),
        )


def undivided(reference: Reference) -> Reference:
    """Return what holds whichever way the NUMA nodes are divided."""
    return replace(
        reference,
        gpus=dict.fromkeys(reference.gpus),
        nics=dict.fromkeys(reference.nics),
        masks={},
    )


def _parts(subject: Subject, reference: Reference) -> dict[int, set[int]]:
    """Return the platform's nodes that each node of the file holds whole; empty where that is not so.

    What a host says of itself is the division that it has.
    """
    if reference.kind == "host":
        return {}
    cpus = {node.id: frozenset(node.cpus or ()) for node in subject.nodes}
    parts: dict[int, set[int]] = defaultdict(set)
    for device in subject.devices:
        truth = true_node(device, reference)
        if truth is not None and device.node.id is not None:
            parts[device.node.id].add(truth)
    truths = [truth for own in parts.values() for truth in own]
    is_coarser = _LEAST_NODES <= len(parts) < len(truths) == len(set(truths))
    is_whole = all(
        truth in reference.masks and frozenset(reference.masks[truth]) <= cpus[node]
        for node, own in parts.items()
        for truth in own
    )
    return dict(parts) if is_coarser and is_whole else {}
