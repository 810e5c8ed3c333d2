"""Everything about the CPUs of the local ranks of one node."""

from busbw.base.cpus import format_cpu_list
from busbw.model.binding import RankMasks
from busbw.model.topology import Topology
from busbw.topo.ranks.affinity import rank_places
from busbw.topo.ranks.binding import parse_binding
from busbw.topo.ranks.cores import Cores, cores_of
from busbw.topo.ranks.mask_forms import mask_forms
from busbw.topo.ranks.readings import readings_of, sufficient_options


def masks_of(
    topology: Topology,
    *,
    sockets: int | None = None,
    binding: str | None = None,
    ranks: int | None = None,
    ignores_affinity: bool = False,
    remarks: tuple[str, ...] = (),
) -> RankMasks:
    """Return which CPUs each local rank should have, in GPU order, and what `binding` would give it.

    `sockets`: of the node, where they are known. Raises InputError for a binding that no launcher knows, and for more
    ranks than GPUs.
    """
    asked = parse_binding(binding) if binding is not None else None
    cores = cores_of(topology, sockets)
    places = rank_places(topology, cores, ranks)
    return RankMasks(
        name=topology.name,
        ranks=places,
        forms=mask_forms(places, cores) if cores is not None else (),
        sufficient=sufficient_options(topology, cores, places),
        binding=binding,
        ignores_affinity=ignores_affinity,
        readings=readings_of(asked, topology, cores, places, ignores_affinity=ignores_affinity) if asked else (),
        remarks=(*remarks, *_remarks(cores, gpus=len(topology.gpus))),
        missing=_missing(topology, cores),
    )


def _remarks(cores: Cores | None, *, gpus: int) -> tuple[str, ...]:
    words = ["rank i drives GPU i in the order of bus ids: CUDA_DEVICE_ORDER=PCI_BUS_ID"]
    if not gpus:
        words = ["no GPUs: ranks fill the NUMA nodes in order"]
    if cores is None:
        return tuple(words)
    if cores.sibling_step is not None:
        words.append(f"CPUs c and c + {cores.sibling_step} are taken as one core, as their numbers suggest")
    else:
        words.append("every CPU is taken as a core: their numbers show no hyperthreads")
    if cores.elsewhere:
        words.append(f"CPUs {format_cpu_list(cores.elsewhere)} are in NUMA nodes that are not given")
    if not cores.numbered:
        words.append("no rankfile: the logical numbers of cores would take the CPUs of all NUMA nodes")
    return tuple(words)


def _missing(topology: Topology, cores: Cores | None) -> tuple[str, ...]:
    known = {node.id for node in topology.numa}
    by_bus = {device.bus_id: device.numa for device in topology.devices}
    words = [f"the NUMA node of GPU {gpu.bus_id}" for gpu in topology.gpus if by_bus.get(gpu.bus_id) not in known]
    if cores is None:
        words.append("the CPUs of each NUMA node")
    return tuple(words)
