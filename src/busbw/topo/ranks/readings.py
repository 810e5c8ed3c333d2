"""What a binding means for the ranks of a node, launcher by launcher."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from busbw.base.cpus import format_cpu_list
from busbw.model.topology import BindingReading, RankPlace, Topology
from busbw.topo.ranks.binding import Binding, CpuLists, MpirunOptions, RankFile, Slot, SrunOption
from busbw.topo.ranks.cores import Cores, bound_rank, cpus_of

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
