"""What a binding means for the ranks of a node, launcher by launcher."""

from collections.abc import Callable
from dataclasses import replace

from busbw.model.binding import RankPlace, Reading
from busbw.model.topology import Topology
from busbw.topo.ranks.affinity import bound_rank
from busbw.topo.ranks.binding import Binding, MpirunOptions, SrunOption
from busbw.topo.ranks.binding_lists import CpuLists, RankFile, Slot
from busbw.topo.ranks.cores import Cores, cpus_of
from busbw.topo.ranks.open_mpi import Logical, RefusedError, placed_by_4_1, placed_by_5_0

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
) -> tuple[Reading, ...]:
    """Return what `binding` means to each launcher that it may be meant for; those that agree are one reading."""

    def reading(launcher: str, source: str, cpus: CpuSets | None, why: str | None, *notes: str) -> Reading:
        given = cpus if cpus is not None else (None,) * len(places)
        ranks = (
            bound_rank(place, own, topology, ignores_affinity=ignores_affinity)
            for place, own in zip(places, given, strict=True)
        )
        return Reading(
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


def _merged(found: list[Reading]) -> tuple[Reading, ...]:
    """Join neighbouring readings of the same ranks."""
    joined: list[Reading] = []
    for each in found:
        last = joined[-1] if joined else None
        if last is not None and (last.ranks, last.cannot_tell) == (each.ranks, each.cannot_tell):
            joined[-1] = Reading(
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
