"""A topology with everything that follows from it."""

from collections.abc import Iterator

from busbw.base.text import listed
from busbw.model.limit import Bound
from busbw.model.topology import (
    NodeView,
    PairPath,
    Topology,
)
from busbw.topo.paths.ceilings import ring_ceilings
from busbw.topo.paths.graph import (
    DEFAULT_NCCL,
    Graph,
    Nccl,
    graph_of,
    link_words,
    merged_switches,
    release_name,
)
from busbw.topo.paths.paths import (
    NO_PATH,
    Paths,
    gpu_spots,
    nccl_paths,
    paths_through,
    port_spots,
)
from busbw.topo.search.channels import Planned

_AMD = "0x1002"


def view_of(
    topology: Topology,
    notes: tuple[str, ...] = (),
    nccl: Nccl = DEFAULT_NCCL,
    bounds: tuple[Bound, ...] = (),
    plan: Planned | None = None,
) -> NodeView:
    """Return what follows from a topology; `notes` are what its reader has to say, and stand first.

    `bounds` are what line rates allow. Where they rest on NVLinks that the topology lacks, NCCL's count and `plan` are
    left out.
    """
    graph, detours = graph_of(topology, nccl), nccl_paths(topology, nccl)
    has_hidden = not topology.nvlinks and any(line.part == "nvlink" for bound in bounds for line in bound.lines)
    doubts = [_HIDDEN_LINKS] if has_hidden else list(_doubts(topology))
    if plan is not None and plan.gap is not None and not has_hidden:
        doubts.append(f"what NCCL plans is not known: {plan.gap}")
    return NodeView(
        release=release_name(nccl),
        topology=topology,
        gpus=gpu_spots(topology, graph, paths_through(graph, nccl)),
        ports=port_spots(topology),
        ceilings=() if has_hidden else ring_ceilings(topology, nccl),
        bounds=bounds,
        plans=plan.plans if plan is not None and not has_hidden else (),
        pairs=tuple(_pairs(graph, detours)),
        notes=(*notes, *doubts),
    )


def _pairs(graph: Graph, paths: Paths) -> Iterator[PairPath]:
    ends = (*graph.gpus, *graph.ports)
    gpus = frozenset(graph.gpus)
    for source in ends:
        for target in ends:
            if source != target and (source in gpus or target in gpus):
                path = paths[source].get(target, NO_PATH)
                yield PairPath(source=source, target=target, type=path.type, bandwidth_Bps=path.bandwidth_Bps)


_HIDDEN_LINKS = (
    "which GPUs the NVLinks join is not known, so paths between GPUs are shown without them, and what NCCL would count "
    "for a ring or tree cannot be told"
)


def _doubts(topology: Topology) -> Iterator[str]:
    """Say what the topology leaves open and NCCL would ask the machine for."""
    if any(device.kind == "other" and device.device_class is None for device in topology.devices):
        yield "there are devices without a class: NCCL asks the machine what they are"
    own = tuple(dict.fromkeys(link.gpu for link in topology.nvlinks if link.target == link.gpu))
    if own:
        yield f"{link_words(topology)} that lead to the GPU itself are not counted: {', '.join(own)}"
    if merged_switches(topology.devices):
        yield "Broadcom switches of two levels are in it: NCCL makes one of both, and ways through them are PIX"
    if any(device.kind == "gpu" and device.vendor == _AMD for device in topology.devices):
        if not topology.nvlinks:
            yield "no XGMI links are listed: where the machine has some, RCCL finds them, and GPUs are nearer"
    elif len(topology.gpus) > 1 and not topology.nvlinks:
        yield "no NVLinks are listed: where the machine has some, NCCL finds them, and ways between GPUs are better"
    kinds = {link.kind for link in topology.nvlinks}
    if "nvlink" in kinds and any(gpu.sm is None for gpu in topology.gpus):
        yield "the GPUs' compute capability (sm) is not given: an NVLink counts as 20 GB/s, as of A100"
    if "xgmi" in kinds and any(gpu.gcn is None for gpu in topology.gpus):
        yield "the GPUs' processor (gcn) is not given: an XGMI link counts as 24 GB/s, as of MI60 and MI100"
    yield from _open_ports(topology)


def _open_ports(topology: Topology) -> Iterator[str]:
    if topology.gpus and not topology.nets:
        nics = any(device.kind == "nic" for device in topology.devices)
        yield "no ports are listed: NCCL finds them on the machine" + (", on the NICs that are" if nics else "")
    slow = [net.name for net in topology.nets if net.speed_Mbps is None]
    if slow:
        yield f"no speed is given of {listed(slow)}: 10 Gb/s are counted; on the machine NCCL asks the driver for it"
