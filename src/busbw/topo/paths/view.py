"""A topology with everything that follows from it."""

from collections.abc import Iterator

from busbw.model.paths import NodeView
from busbw.model.topology import Topology
from busbw.topo.paths.constants import DEFAULT_NCCL, Nccl
from busbw.topo.paths.graph import graph_of, merged_switches
from busbw.topo.paths.link_words import link_words
from busbw.topo.paths.nearest import gpu_spots, port_spots
from busbw.topo.paths.paths import paths_through
from busbw.topo.paths.rings import ring_ceilings

_AMD = "0x1002"


def view_of(topology: Topology, notes: tuple[str, ...] = (), nccl: Nccl = DEFAULT_NCCL) -> NodeView:
    """Return what follows from a topology; `notes` are what its reader has to say, and stand first."""
    graph = graph_of(topology, nccl)
    return NodeView(
        topology=topology,
        gpus=gpu_spots(topology, graph, paths_through(graph, nccl)),
        ports=port_spots(topology),
        ceilings=ring_ceilings(topology, nccl),
        notes=(*notes, *_doubts(topology)),
    )


def _doubts(topology: Topology) -> Iterator[str]:
    """Say what the topology leaves open and NCCL would ask the machine for."""
    if any(device.kind == "other" and device.device_class is None for device in topology.devices):
        yield "there are devices without a class: NCCL asks the machine what they are"
    own = tuple(dict.fromkeys(link.gpu for link in topology.nvlinks if link.target == link.gpu))
    if own:
        yield f"{link_words(topology)} that lead to the GPU itself count for nothing: {', '.join(own)}"
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
    if topology.gpus and not topology.nets:
        nics = any(device.kind == "nic" for device in topology.devices)
        yield "no ports are listed: NCCL finds them on the machine" + (", on the NICs that are" if nics else "")
