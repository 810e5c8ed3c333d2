"""What a binding means for the ranks of a node, launcher by launcher."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from busbw.base.cpus import format_cpu_list
from busbw.base.errors import InputError
from busbw.model.topology import BindingReading, BoundRank, Fit, NumaNode, RankPlace, Topology
from busbw.topo.ranks.binding import Binding, CpuLists, MpirunOptions, RankFile, Slot, SrunOption


@dataclass(frozen=True, kw_only=True, slots=True)
class Cores:
    """Cores in logical order, each with its CPUs, and the NUMA nodes and sockets as ranges of them."""

    cores: tuple[tuple[int, ...], ...]
    # NUMA ids in logical order, and the logical numbers of each one's cores.
    numa_ids: tuple[int, ...]
    numa: tuple[tuple[int, ...], ...]
    # The same of sockets; empty: not known.
    sockets: tuple[tuple[int, ...], ...]
    # How far apart the numbers of two hyperthreads of a core are; None: a CPU is a core.
    sibling_step: int | None
    # CPUs that no NUMA node of the topology has, though the numbering says that the machine does.
    elsewhere: tuple[int, ...]
    # Whether the logical numbers hold for the whole machine.
    numbered: bool


def cores_of(topology: Topology, sockets: int | None = None) -> Cores | None:
    """Return the cores of a node; None where a NUMA node's CPUs are not known.

    Hyperthreads are told by their numbers: where the CPUs of every NUMA node are two blocks as far apart everywhere.
    NUMA nodes without CPUs (memory of GPUs) are left out. A file that names only the NUMA nodes with GPUs leaves gaps;
    the cores in them are counted, by number. `sockets` share the NUMA nodes evenly, in order.
    """
    nodes = _with_cpus(topology.numa)
    if not nodes:
        return None
    step = _sibling_step(tuple(cpus for cpus, _id in nodes))
    firsts = tuple(tuple(cpu for cpu in cpus if step is None or cpu - step not in cpus) for cpus, _id in nodes)
    known = {cpu for first in firsts for cpu in first}
    # Where hyperthreads are numbered after all cores, the step is the number of cores.
    gaps = sorted(set(range(max(*known, step or 0))) - known)
    # Blocks of neighbours follow each other as their NUMA nodes do; what is numbered in turns does not.
    numbered = not gaps or all(first[-1] - first[0] + 1 == len(first) for first in firsts)
    order = sorted(known | set(gaps)) if gaps and numbered else [cpu for first in firsts for cpu in first]
    place = {cpu: number for number, cpu in enumerate(order)}
    numa = tuple(tuple(place[cpu] for cpu in first) for first in firsts)
    return Cores(
        cores=tuple((cpu,) if step is None else (cpu, cpu + step) for cpu in order),
        numa_ids=tuple(id_ for _cpus, id_ in nodes),
        numa=numa,
        sockets=_sockets(numa, sockets) if not gaps else (),
        sibling_step=step,
        elsewhere=tuple(gaps),
        numbered=numbered,
    )


def _with_cpus(nodes: tuple[NumaNode, ...]) -> list[tuple[tuple[int, ...], int]]:
    """Return CPUs and ids of the NUMA nodes that have any, by CPUs; nothing where some node's are not known."""
    if any(node.cpus is None for node in nodes):
        return []
    return sorted((node.cpus, node.id) for node in nodes if node.cpus)


def _sibling_step(nodes: tuple[tuple[int, ...], ...]) -> int | None:
    """Return how far the second block of each NUMA node's CPUs is from the first; None where there are no two."""
    steps = set()
    for cpus in nodes:
        half, odd = divmod(len(cpus), 2)
        if odd:
            return None
        low, high = cpus[:half], cpus[half:]
        step = high[0] - low[0]
        # Even numbers here and odd ones there look like two blocks as well: they go on with the same stride.
        stride = cpus[1] - cpus[0] if half > 1 else 1
        if high != tuple(cpu + step for cpu in low) or high[0] - low[-1] == stride:
            return None
        steps.add(step)
    return steps.pop() if len(steps) == 1 else None


def _sockets(numa: tuple[tuple[int, ...], ...], sockets: int | None) -> tuple[tuple[int, ...], ...]:
    if len(numa) == 1:
        return numa
    if sockets is None or sockets < 1 or len(numa) % sockets:
        return ()
    each = len(numa) // sockets
    return tuple(
        tuple(core for node in numa[place : place + each] for core in node) for place in range(0, len(numa), each)
    )


def cpus_of(cores: Cores, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the CPUs of cores by their logical numbers, ascending."""
    return tuple(sorted(cpu for number in numbers for cpu in cores.cores[number]))


MOST_RANKS = 4096


def rank_places(topology: Topology, cores: Cores | None, ranks: int | None = None) -> tuple[RankPlace, ...]:
    """Return where each local rank belongs: rank i beside GPU i; without GPUs spread over the NUMA nodes in order.

    Raises InputError for more ranks than GPUs: with NCCL each has one of its own.
    """
    nodes = _gpu_nodes(topology) if topology.gpus else _spread(topology, ranks)
    count = len(nodes) if ranks is None else ranks
    if not 1 <= count <= MOST_RANKS:
        raise InputError(f"{count} ranks of one node", hint=f"from 1 to {MOST_RANKS}")
    if topology.gpus and count > len(nodes):
        raise InputError(
            f"{count} ranks for {len(nodes)} GPUs", hint=f"with NCCL a rank has a GPU of its own: --ranks {len(nodes)}"
        )
    nodes = nodes[:count]
    return tuple(
        RankPlace(
            rank=rank,
            gpu=gpu,
            numa=numa,
            cpus=_cpus_of_node(topology, numa),
            share=_share(cores, [other for _gpu, other in nodes], rank),
        )
        for rank, (gpu, numa) in enumerate(nodes)
    )


def _gpu_nodes(topology: Topology) -> list[tuple[str | None, int | None]]:
    by_bus = {device.bus_id: device.numa for device in topology.devices}
    known = {node.id for node in topology.numa}
    numas = [(gpu.bus_id, by_bus.get(gpu.bus_id)) for gpu in topology.gpus]
    return [(bus_id, numa if numa in known else None) for bus_id, numa in numas]


def _spread(topology: Topology, ranks: int | None) -> list[tuple[str | None, int | None]]:
    ids = [node.id for node in sorted(topology.numa, key=lambda node: node.cpus or (node.id,)) if node.cpus != ()]
    if not ids:
        raise InputError("neither GPUs nor NUMA nodes are known", hint="capture a host: busbw probe -o host.tar")
    count = len(ids) if ranks is None else min(max(ranks, 0), MOST_RANKS + 1)
    return [(None, ids[rank * len(ids) // count]) for rank in range(count)]


def _cpus_of_node(topology: Topology, numa: int | None) -> tuple[int, ...] | None:
    return next((node.cpus or None for node in topology.numa if node.id == numa), None)


def _share(cores: Cores | None, nodes: list[int | None], rank: int) -> tuple[int, ...] | None:
    """Return an even share of the cores of a rank's NUMA node: neighbours, whole cores, the first ranks one more."""
    numa = nodes[rank]
    if cores is None or numa not in cores.numa_ids:
        return None
    own = cores.numa[cores.numa_ids.index(numa)]
    sharing, place = Counter(nodes)[numa], nodes[:rank].count(numa)
    if sharing > len(own):
        return None
    each, more = divmod(len(own), sharing)
    first = place * each + min(place, more)
    return cpus_of(cores, own[first : first + each + (place < more)])


def bound_rank(
    place: RankPlace, cpus: tuple[int, ...] | None, topology: Topology, *, ignores_affinity: bool
) -> BoundRank:
    """Return what follows for a rank that runs on `cpus`.

    NCCL's threads run where the process may run and its GPU's NUMA node is; with NCCL_IGNORE_CPU_AFFINITY=1 on that
    node alone. Where nothing is left it changes nothing (facts: NCCL's topology format, section 5).
    """
    nodes = tuple(node.id for node in topology.numa if node.cpus and cpus and not set(node.cpus).isdisjoint(cpus))
    if cpus is None or place.cpus is None:
        return BoundRank(rank=place.rank, cpus=cpus, numa=nodes, fit="unknown", nccl_cpus=None, nccl_applies=None)
    allowed = place.cpus if ignores_affinity else tuple(sorted(set(cpus) & set(place.cpus)))
    return BoundRank(
        rank=place.rank,
        cpus=cpus,
        numa=nodes,
        fit=_fit(cpus, place.cpus),
        nccl_cpus=allowed or cpus,
        nccl_applies=bool(allowed),
    )


def _fit(cpus: tuple[int, ...], own: tuple[int, ...]) -> Fit:
    inside = len(set(cpus) & set(own))
    return "right" if inside == len(set(cpus)) else "partly" if inside else "wrong"


Logical = tuple[int, ...]


class RefusedError(Exception):
    """The launcher would refuse, or what it does cannot be told; the text says why."""


@dataclass(slots=True)
class _Node:
    """The objects of one node and how many ranks are bound to each; all by logical core numbers."""

    cores: Cores
    bound: dict[Logical, int] = field(default_factory=dict)

    def objects(self, kind: str) -> tuple[Logical, ...]:
        if kind == "core":
            return tuple((core,) for core in range(len(self.cores.cores)))
        if kind in ("numa", "socket") and self.cores.elsewhere:
            raise RefusedError(f"CPUs {format_cpu_list(self.cores.elsewhere)} are in NUMA nodes that are not given")
        if kind == "numa":
            return self.cores.numa
        if kind == "socket":
            if not self.cores.sockets:
                raise RefusedError("which NUMA nodes share a socket is not known")
            return self.cores.sockets
        return (tuple(range(len(self.cores.cores))),)


def placed_by_4_1(options: MpirunOptions, cores: Cores, ranks: int) -> tuple[Logical | None, ...]:
    """Return the cores of each rank under Open MPI 4.1; None: not bound. Raises RefusedError."""
    node = _Node(cores=cores)
    few = ranks <= 2
    map_by = options.map_by or ("core" if few else "numa")
    bind_to = options.bind_to or _binding_of_4_1(options, map_by, few=few)
    objects = node.objects(map_by)
    if options.ppr is not None:
        where = [each for each in objects for _rank in range(options.ppr)]
        _check_count(len(where), ranks)
    else:
        where = [objects[rank % len(objects)] for rank in range(ranks)]
    if bind_to == "none":
        return (None,) * ranks
    return tuple(_bind_4_1(node, locale, bind_to, options.cores_per_rank or 1) for locale in where[:ranks])


def _binding_of_4_1(options: MpirunOptions, map_by: str, *, few: bool) -> str:
    if options.cores_per_rank is not None:
        return "core"
    if options.map_by is not None and options.ppr is None and map_by in ("core", "numa", "socket"):
        return map_by
    return "core" if few else "numa"


def _bind_4_1(node: _Node, locale: Logical, kind: str, cores_per_rank: int) -> Logical:
    """Return the object with the fewest ranks that meets `locale`, and the next ones as cores are asked for."""
    objects = node.objects(kind)
    within = set(locale)
    reachable = [place for place, each in enumerate(objects) if not within.isdisjoint(each)]
    place = min(reachable, key=lambda place: (node.bound.get(objects[place], 0), place))
    taken: list[int] = []
    while not taken or len(taken) < cores_per_rank:
        if place == len(objects):
            raise RefusedError("mpirun refuses: not enough cores for every rank")
        chosen = objects[place]
        node.bound[chosen] = node.bound.get(chosen, 0) + 1
        if node.bound[chosen] > len(chosen):
            raise RefusedError(f"mpirun refuses: more ranks than cores on one {kind}")
        taken += chosen
        place += 1
    return tuple(taken)


def placed_by_5_0(options: MpirunOptions, cores: Cores, ranks: int) -> tuple[Logical | None, ...]:
    """Return the cores of each rank under Open MPI 5.0; None: not bound. Raises RefusedError."""
    node = _Node(cores=cores)
    map_by = options.map_by or _mapping_of_5_0(options)
    bind_to = options.bind_to or _binding_of_5_0(options, map_by, few=ranks <= 2)
    objects = node.objects(map_by)
    if bind_to == "none":
        return (None,) * ranks
    if _RANK_OF_KIND[bind_to] > _RANK_OF_KIND[map_by]:
        raise RefusedError(f"mpirun refuses: it maps by {map_by} and would bind to {bind_to}, which is larger")
    if options.ppr is not None:
        where = [each for each in objects for _rank in range(options.ppr)]
        _check_count(len(where), ranks)
    else:
        where = _filled(objects, ranks)
    return tuple(_bind_5_0(node, locale, bind_to, options.cores_per_rank or 1) for locale in where[:ranks])


_RANK_OF_KIND = {"core": 0, "numa": 1, "socket": 2, "node": 3, "slot": 3}


def _mapping_of_5_0(options: MpirunOptions) -> str:
    if options.bind_to in ("numa", "socket"):
        return options.bind_to
    if options.bind_to == "none" or options.cores_per_rank is not None:
        return "slot"
    return "core"


def _binding_of_5_0(options: MpirunOptions, map_by: str, *, few: bool) -> str:
    if options.cores_per_rank is not None:
        return "core"
    if map_by == "slot":
        return "none"
    if map_by == "node":
        return "core" if few else "numa"
    return map_by


def _filled(objects: tuple[Logical, ...], ranks: int) -> list[Logical]:
    each, more = divmod(ranks, len(objects))
    return [locale for place, locale in enumerate(objects) for _rank in range(each + (place < more))]


def _bind_5_0(node: _Node, locale: Logical, kind: str, cores_per_rank: int) -> Logical:
    """Bind one rank to the first object within `locale`; cores are given to one rank only."""
    if kind != "core":
        within = set(locale)
        return next(each for each in node.objects(kind) if within.issuperset(each))
    free = [core for core in locale if (core,) not in node.bound]
    if len(free) < cores_per_rank:
        raise RefusedError("mpirun refuses: not enough cores for every rank")
    taken = tuple(free[:cores_per_rank])
    node.bound |= {(core,): 1 for core in taken}
    return taken


def _check_count(places: int, ranks: int) -> None:
    if places < ranks:
        raise RefusedError(f"mpirun refuses: {places} places for {ranks} ranks")


_SOURCE_4_1 = "rmaps of Open MPI 4.1.6"
_SOURCE_HPC_X = "contrib/platform/mellanox/optimized.conf of Open MPI 4.1.6: hwloc_base_binding_policy = core"
_SOURCE_5_0 = "the map that Open MPI 5.0.11 displays; other releases of 5.0 may differ"
_SOURCE_RANKFILE = "mpirun(1): numbers are logical cores; CPUs in the order of NUMA nodes"
_SOURCE_SRUN = "srun(1), --cpu-bind"


def _placed_by_hpc_x(options: MpirunOptions, cores: Cores, ranks: int) -> tuple[Logical | None, ...]:
    """Return the cores of each rank under HPC-X: Open MPI 4.1 with one core a rank where nothing is said."""
    return placed_by_4_1(replace(options, bind_to=options.bind_to or "core"), cores, ranks)


_OF_MPIRUN: tuple[tuple[str, str, Callable[[MpirunOptions, Cores, int], tuple[Logical | None, ...]]], ...] = (
    ("HPC-X 2", _SOURCE_HPC_X, _placed_by_hpc_x),
    ("Open MPI 4.1", _SOURCE_4_1, placed_by_4_1),
    ("Open MPI 5.0", _SOURCE_5_0, placed_by_5_0),
)
INTEL_MPI = "Intel MPI"
_SOURCE_INTEL = (
    "Intel MPI Library Developer Reference for Linux, Process Pinning: I_MPI_PIN_DOMAIN=auto:compact, "
    "I_MPI_PIN_ORDER=bunch"
)
_SOURCE_MPICH = "MPICH 4.3.2, src/pm/hydra: nothing is bound without -bind-to or HYDRA_BINDING"


def _placed_by_intel(_options: MpirunOptions, cores: Cores, ranks: int) -> tuple[Logical | None, ...]:
    """Return the cores of each rank under Intel MPI where nothing is said: even shares of neighbours, in order.

    Raises RefusedError where shares do not fit NUMA nodes: which rank then goes where is not published.
    """
    if cores.elsewhere:
        raise RefusedError(_NOT_NUMBERED)
    order = [core for node in cores.numa for core in node]
    each, left = divmod(len(order), ranks)
    if left or (ranks % len(cores.numa) and len(cores.numa) % ranks) or len({len(node) for node in cores.numa}) > 1:
        raise RefusedError(f"{ranks} ranks do not share the cores of {len(cores.numa)} NUMA nodes evenly")
    return tuple(tuple(order[rank * each : (rank + 1) * each]) for rank in range(ranks))


def _placed_by_mpich(_options: MpirunOptions, _cores: Cores, ranks: int) -> tuple[Logical | None, ...]:
    """Return that no rank is bound, as MPICH's Hydra leaves it where nothing is said."""
    return (None,) * ranks


# What they do where nothing is said; options of Open MPI are not theirs.
_BY_DEFAULT = ((INTEL_MPI, _SOURCE_INTEL, _placed_by_intel), ("MPICH", _SOURCE_MPICH, _placed_by_mpich))
OTHER_MPIS = tuple(name for name, _source, _placed in _BY_DEFAULT)
_NOT_NUMBERED = "the CPUs of all NUMA nodes would have to be known"
_WHOLE_NODE = "Slurm takes such a list only where the job has the whole node"
_SLURM_DEFAULT = (
    "srun's default depends on TaskPluginParam and SelectType of the cluster, and on how tasks fit the allocation"
)

CpuSets = tuple[tuple[int, ...] | None, ...]


def readings_of(
    binding: Binding, topology: Topology, cores: Cores | None, places: tuple[RankPlace, ...], *, ignores_affinity: bool
) -> tuple[BindingReading, ...]:
    """Return what `binding` means to each launcher that it may be meant for; those that agree are one reading."""

    def reading(launcher: str, source: str, cpus: CpuSets | None, why: str | None, *notes: str) -> BindingReading:
        given = cpus if cpus is not None else (None,) * len(places)
        ranks = (
            bound_rank(place, own, topology, ignores_affinity=ignores_affinity)
            for place, own in zip(places, given, strict=True)
        )
        return BindingReading(
            launcher=launcher, ranks=tuple(ranks) if why is None else (), cannot_tell=why, source=source, notes=notes
        )

    if isinstance(binding, CpuLists):
        sets = tuple(binding.lists[place.rank % len(binding.lists)] for place in places)
        fewer = f"{len(binding.lists)} lists for {len(places)} ranks: they are used again from the first"
        notes = [fewer] if len(binding.lists) not in (1, len(places)) else []
        notes += _foreign(sets, topology)
        if binding.launcher == "srun":
            return (reading("srun", _SOURCE_SRUN, sets, None, _WHOLE_NODE, *notes),)
        return (reading("taskset", "taskset(1)", sets, None, *notes),)
    if isinstance(binding, SrunOption):
        why = f"--cpu-bind={binding.kind} leaves the choice to Slurm, which goes by its own numbering of the node"
        return (reading("srun", _SOURCE_SRUN, None, why),)
    if isinstance(binding, RankFile):
        sets_or_none, reason = _rankfile_sets(binding, cores, places)
        hosts = (f"the first of {binding.hosts} hosts",) if binding.hosts > 1 else ()
        return (reading("Open MPI", _SOURCE_RANKFILE, sets_or_none, reason, *hosts),)
    options = binding if isinstance(binding, MpirunOptions) else MpirunOptions()
    found = [
        reading(name, source, *_of_mpirun(placed, options, cores, len(places)), *_few_words(places))
        for name, source, placed in _OF_MPIRUN
    ]
    if options is not binding:
        found += [
            reading(name, source, *_of_mpirun(placed, options, cores, len(places)))
            for name, source, placed in _BY_DEFAULT
        ]
        found.append(reading("srun", _SOURCE_SRUN, None, _SLURM_DEFAULT))
    return _merged(found)


def _few_words(places: tuple[RankPlace, ...]) -> tuple[str, ...]:
    if len(places) > 2:
        return ()
    return ("for a job of one such node: with more than two ranks in all Open MPI's defaults are others",)


def _of_mpirun(
    placed: Callable[[MpirunOptions, Cores, int], tuple[Logical | None, ...]],
    options: MpirunOptions,
    cores: Cores | None,
    ranks: int,
) -> tuple[CpuSets | None, str | None]:
    if options.unclear:
        return None, f"{', '.join(options.unclear)[:200]}: it goes by more of the machine than is known here"
    if cores is None or not cores.numbered:
        return None, _NOT_NUMBERED
    everything = cpus_of(cores, tuple(range(len(cores.cores))))
    try:
        numbers = placed(options, cores, ranks)
    except RefusedError as refused:
        return None, str(refused)
    return tuple(everything if each is None else cpus_of(cores, each) for each in numbers), None


def _foreign(sets: tuple[tuple[int, ...], ...], topology: Topology) -> list[str]:
    if any(node.cpus is None for node in topology.numa):
        return []
    known = {cpu for node in topology.numa for cpu in node.cpus or ()}
    missing = sorted(set().union(*sets) - known)
    if not missing:
        return []
    return [f"CPUs that no NUMA node of this topology has, from {missing[0]}: the launcher may refuse the list"]


def _rankfile_sets(
    file: RankFile, cores: Cores | None, places: tuple[RankPlace, ...]
) -> tuple[CpuSets | None, str | None]:
    if cores is None or not cores.numbered:
        return None, _NOT_NUMBERED
    slots = [slots for _rank, slots in file.ranks]
    if len(slots) < len(places):
        return None, f"the rankfile has {len(slots)} ranks for the first host, and {len(places)} are asked about"
    found: list[tuple[int, ...]] = []
    for own in slots[: len(places)]:
        numbers: set[int] = set()
        for slot in own:
            chosen = _slot_cores(slot, cores)
            if isinstance(chosen, str):
                return None, chosen
            numbers.update(chosen)
        found.append(cpus_of(cores, tuple(sorted(numbers))))
    return tuple(found), None


def _slot_cores(slot: Slot, cores: Cores) -> tuple[int, ...] | str:
    """Return the logical cores of a slot, or why they cannot be told."""
    if slot.socket is None:
        within: tuple[int, ...] = tuple(range(len(cores.cores)))
    elif not cores.sockets:
        return "which NUMA nodes share a socket is not known"
    elif slot.socket >= len(cores.sockets):
        return f"there is no socket {slot.socket}"
    else:
        within = cores.sockets[slot.socket]
    if slot.cores and slot.cores[-1] >= len(within):
        return f"there is no core {slot.cores[-1]} among {len(within)}"
    return tuple(within[core] for core in slot.cores) if slot.cores else within


def _merged(found: list[BindingReading]) -> tuple[BindingReading, ...]:
    """Join neighbouring readings of the same ranks."""
    joined: list[BindingReading] = []
    for each in found:
        last = joined[-1] if joined else None
        if last is not None and (last.ranks, last.cannot_tell) == (each.ranks, each.cannot_tell):
            joined[-1] = BindingReading(
                launcher=f"{last.launcher}, {each.launcher}",
                ranks=last.ranks,
                cannot_tell=last.cannot_tell,
                source=f"{last.source}; {each.source}",
                notes=last.notes,
            )
        else:
            joined.append(each)
    return tuple(joined)


_CANDIDATES = ("--map-by numa --bind-to numa", "--map-by ppr:{each}:numa --bind-to numa", "--bind-to numa")


def sufficient_options(
    topology: Topology, cores: Cores | None, places: tuple[RankPlace, ...]
) -> tuple[tuple[str, str], ...]:
    """Return options of mpirun that put every rank on its GPU's NUMA node, one a version that has any."""
    if cores is None or not cores.numbered or not places:
        return ()
    each = -(-len(places) // len(cores.numa))
    found = []
    for name, _source, placed in _OF_MPIRUN:
        # With --bind-to HPC-X is Open MPI 4.1.
        if placed is _placed_by_hpc_x:
            continue
        for text in _CANDIDATES:
            options = MpirunOptions(
                map_by="numa" if "map-by" in text else None, ppr=each if "ppr" in text else None, bind_to="numa"
            )
            sets, _why = _of_mpirun(placed, options, cores, len(places))
            if sets is not None and all(
                bound_rank(place, own, topology, ignores_affinity=False).fit == "right"
                for place, own in zip(places, sets, strict=True)
            ):
                found.append((name, text.format(each=each)))
                break
    return tuple(found)
