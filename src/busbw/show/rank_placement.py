"""Where the ranks of each side of a comparison ran, as rows of a table and in words."""

from collections import Counter
from collections.abc import Sequence

from busbw.base.cpus import format_cpu_list
from busbw.base.text import counted, listed
from busbw.model.comparison import Comparison, RankPlacement, Side

_UNKNOWN = "n/a"
_MOST_NAMED = 4
_BESIDE = {True: "beside", False: "apart", None: ""}


def with_placements(comparison: Comparison) -> tuple[Side, ...]:
    """Return the sides whose ranks tell their placement, where it is not the same in all; else ()."""
    told = tuple(side for side in comparison.sides if side.rank_placements)
    places = {tuple((place.rank, place.host, place.cpus) for place in side.rank_placements) for side in told}
    return told if len(told) > 1 and (len(places) > 1 or any(side.placements_vary for side in told)) else ()


def placement_columns(sides: Sequence[Side]) -> tuple[str, ...]:
    """Return the headings of `placement_rows`."""
    gpu = ("GPU's node",) if _has_gpus(sides) else ()
    of_sides = (word for side in sides for word in (f"{side.letter}: CPUs", "node", *(("GPU",) if gpu else ())))
    return ("rank", "host", *gpu, *of_sides)


def placement_rows(sides: Sequence[Side]) -> tuple[tuple[str, ...], ...]:
    """Return a row a rank: its host, its GPU's NUMA node, and of each side its CPUs and their NUMA nodes."""
    has_gpus = _has_gpus(sides)
    by_rank = [{place.rank: place for place in side.rank_placements} for side in sides]
    rows = []
    for rank in sorted(set().union(*by_rank)):
        own = [each.get(rank) for each in by_rank]
        known = [place for place in own if place is not None]
        gpu = next((place.gpu_numa for place in known if place.gpu_numa is not None), None)
        first = (str(rank), known[0].host, *((_UNKNOWN if gpu is None else str(gpu),) if has_gpus else ()))
        rows.append((*first, *(cell for place in own for cell in _cells(place, has_gpus=has_gpus))))
    return tuple(rows)


def _has_gpus(sides: Sequence[Side]) -> bool:
    return any(place.gpu_numa is not None for side in sides for place in side.rank_placements)


def _cells(place: RankPlacement | None, *, has_gpus: bool) -> tuple[str, ...]:
    if place is None:
        return (_UNKNOWN,) * (3 if has_gpus else 2)
    nodes = format_cpu_list(place.numa) if place.numa is not None else _UNKNOWN
    cells = (format_cpu_list(place.cpus), nodes)
    return (*cells, _BESIDE[place.is_beside]) if has_gpus else cells


def rank_placement_words(side: Side) -> str:
    """Return what matters of where the ranks of a side were placed: beside their GPUs or not, and which share CPUs."""
    known = [place for place in side.rank_placements if place.is_beside is not None]
    said = []
    if known:
        beside = sum(place.is_beside is True for place in known)
        said.append(f"{beside} of {counted(len(known), 'rank')} on the NUMA node of their GPU alone")
    groups = Counter((place.host, place.cpus) for place in side.rank_placements)
    crowded = [
        f"{ranks} ranks share CPU {format_cpu_list(cpus)}"
        for (_host, cpus), ranks in groups.items()
        if ranks > len(cpus)
    ]
    said += [listed(crowded, _MOST_NAMED)] if crowded else []
    said += ["launches differ: this is the first"] if side.placements_vary else []
    return f"{side.letter}: {'; '.join(said) or 'each rank has a CPU to itself, or as many as ranks share'}"
