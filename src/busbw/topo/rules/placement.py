"""Which NUMA node of the right machine the parts of each node in the file belong to."""

from collections import defaultdict

from busbw.topo.addresses import card
from busbw.topo.reference import Reference
from busbw.topo.rules.subject import Device, Subject

# From the node in the file to the node it is in truth.
Moves = dict[int, int]


def true_node(device: Device, reference: Reference) -> int | None:
    """Return the NUMA node of a device in the right machine; None where it is not known."""
    if device.bus_id is None:
        return None
    if device.kind != "nic" and device.bus_id in reference.gpus:
        return reference.gpus[device.bus_id]
    return reference.nics.get(card(device.bus_id)) if device.kind != "gpu" else None


def moved_masks(subject: Subject, reference: Reference) -> Moves:
    """Return the nodes whose mask is that of another node of the right machine."""
    owners = {frozenset(cpus): number for number, cpus in reference.masks.items()}
    found: Moves = {}
    for node in subject.nodes:
        owner = owners.get(frozenset(node.cpus or ()))
        if node.id is not None and owner is not None and owner != node.id:
            found[node.id] = owner
    return found


def moved_devices(devices: list[Device], reference: Reference) -> Moves:
    """Return the nodes all of whose devices belong to one other node, where these nodes only change places."""
    truths: dict[int, set[int]] = defaultdict(set)
    for device in devices:
        truth = true_node(device, reference)
        if truth is not None and device.node.id is not None:
            truths[device.node.id].add(truth)
    whole = {node: next(iter(found)) for node, found in truths.items() if len(found) == 1}
    moved = {node: truth for node, truth in whole.items() if node != truth}
    # A node that goes where another stays, or where two go, has not changed places.
    while True:
        kept = {node: truth for node, truth in moved.items() if truth in moved}
        kept = {node: truth for node, truth in kept.items() if list(kept.values()).count(truth) == 1}
        if kept == moved:
            return moved
        moved = kept


def relabelled(subject: Subject, reference: Reference | None) -> frozenset[int]:
    """Return the nodes whose masks and devices are both those of one other node: only their numbers changed places."""
    if reference is None:
        return frozenset()
    masks = moved_masks(subject, reference)
    placed = moved_devices([device for device in subject.devices if device.kind in ("gpu", "nic")], reference)
    return frozenset(node for node, truth in placed.items() if masks.get(node) == truth)
