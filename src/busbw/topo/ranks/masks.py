"""Everything about the CPUs of the local ranks of one node."""

from busbw.base.cpus import format_cpu_list, mask_bits
from busbw.model.platform import Platform
from busbw.model.topology import MaskForms, RankMasks, RankPlace, Topology
from busbw.topo.ranks.binding import parse_binding
from busbw.topo.ranks.readings import Cores, cores_of, rank_places, readings_of, sufficient_options


def mask_forms(places: tuple[RankPlace, ...], cores: Cores) -> tuple[MaskForms, ...]:
    """Return the forms for whole NUMA nodes, and, where ranks share nodes, for even shares of them.

    Nothing for ranks whose CPUs are not all known.
    """
    found = []
    if all(place.cpus for place in places):
        found.append(_forms(tuple((place, place.cpus or ()) for place in places), cores, whole=True))
    shared = len({place.numa for place in places}) < len(places)
    if shared and all(place.share for place in places):
        found.append(_forms(tuple((place, place.share or ()) for place in places), cores, whole=False))
    return tuple(found)


def cpus_beside_gpus(platform: Platform) -> tuple[str, ...]:
    """Return the CPUs of each GPU where each is on one chip with a processor of its own, as in a Grace Hopper; else ().

    Their cores are counted one processor after the other, as CSCS shows it of Alps (docs/running/slurm.md, affinity:
    `srun -n8 -N2 -c72` gives 0-71, 72-143, 144-215, 216-287); the processors have no hyperthreads.
    """
    cpu, gpus = platform.cpu, platform.gpu.count
    if platform.nvlink.c2c_Bps is None or gpus < 2 or cpu.sockets != gpus or not cpu.cores or cpu.cores != cpu.threads:
        return ()
    cores = cpu.cores // gpus
    return tuple(f"{place * cores}-{(place + 1) * cores - 1}" for place in range(gpus))


def srun_option(masks: tuple[tuple[int, ...], ...]) -> str:
    """Return srun's option for a list of masks: hexadecimal, no separators within one, as Slurm reads them."""
    return "--cpu-bind=mask_cpu:" + ",".join(f"{mask_bits(cpus):x}" for cpus in masks)


def _forms(given: tuple[tuple[RankPlace, tuple[int, ...]], ...], cores: Cores, *, whole: bool) -> MaskForms:
    lists = tuple(cpus for _place, cpus in given)
    number = {cpu: core for core, cpus in enumerate(cores.cores) for cpu in cpus}
    slots = tuple(format_cpu_list(tuple(number[cpu] for cpu in cpus)) for cpus in lists)
    overlap = sum(map(len, lists)) > len(set().union(*lists))
    return MaskForms(
        cpus="node" if whole else "share",
        srun=srun_option(lists),
        taskset=tuple(format_cpu_list(cpus) for cpus in lists),
        numactl=tuple(_numactl(place, cpus, whole=whole) for place, cpus in given),
        rankfile=tuple(f"rank {place.rank}=+n0 slot={slot}" for (place, _cpus), slot in zip(given, slots, strict=True)),
        rankfile_options=(
            ("Open MPI 4.1", "--rankfile FILE"),
            ("Open MPI 5.0", "--map-by rankfile:file=FILE" + (" --bind-to :overload-allowed" if overlap else "")),
        ),
    )


def _numactl(place: RankPlace, cpus: tuple[int, ...], *, whole: bool) -> str:
    if place.numa is None or place.numa < 0:
        # A machine without NUMA has one node that numactl does not know by NCCL's number.
        return f"--physcpubind={format_cpu_list(cpus)}"
    cpu_option = f"--cpunodebind={place.numa}" if whole else f"--physcpubind={format_cpu_list(cpus)}"
    return f"{cpu_option} --membind={place.numa}"


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
