"""Where mpirun of Open MPI puts the ranks of one node.

Open MPI 4.1 goes by rmaps_base_map_job.c, rmaps_rr_mappers.c and rmaps_base_binding.c of its release 4.1.6: objects
are given to ranks in turn, and a rank is bound to the object with the fewest ranks that meets where it was mapped.
Open MPI 5.0 goes by what release 5.0.11 displays for simulated nodes: neighbouring ranks fill an object, and a rank is
bound to the first free object within where it was mapped.
"""

from dataclasses import dataclass, field

from busbw.base.cpus import format_cpu_list
from busbw.topo.ranks.binding import MpirunOptions
from busbw.topo.ranks.cores import Cores

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
