"""The CPUs of ranks in the forms that launchers read."""

from busbw.base.cpus import format_cpu_list, mask_bits
from busbw.model.binding import MaskForms, RankPlace
from busbw.topo.ranks.cores import Cores


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
