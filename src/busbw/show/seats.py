"""Where the ranks of each side of a comparison sat, as rows of a table and in words."""

from collections import Counter
from collections.abc import Sequence

from busbw.base.cpus import format_cpu_list
from busbw.base.text import counted, listed
from busbw.model.comparison import Comparison, RankSeat, Side

_UNKNOWN = "n/a"
_MOST_NAMED = 4
_BESIDE = {True: "beside", False: "apart", None: ""}


def seated(comparison: Comparison) -> tuple[Side, ...]:
    """Return the sides whose ranks tell where they sat, where not all of them sat alike; else ()."""
    told = tuple(side for side in comparison.sides if side.seats)
    places = {tuple((seat.rank, seat.host, seat.cpus) for seat in side.seats) for side in told}
    return told if len(told) > 1 and (len(places) > 1 or any(side.seats_vary for side in told)) else ()


def seat_columns(sides: Sequence[Side]) -> tuple[str, ...]:
    """Return the headings of `seat_rows`."""
    gpu = ("GPU's node",) if _has_gpus(sides) else ()
    of_sides = (word for side in sides for word in (f"{side.letter}: CPUs", "node", *(("GPU",) if gpu else ())))
    return ("rank", "host", *gpu, *of_sides)


def seat_rows(sides: Sequence[Side]) -> tuple[tuple[str, ...], ...]:
    """Return a row a rank: its host, its GPU's NUMA node, and of each side its CPUs and their NUMA nodes."""
    has_gpus = _has_gpus(sides)
    by_rank = [{seat.rank: seat for seat in side.seats} for side in sides]
    rows = []
    for rank in sorted(set().union(*by_rank)):
        own = [each.get(rank) for each in by_rank]
        known = [seat for seat in own if seat is not None]
        gpu = next((seat.gpu_numa for seat in known if seat.gpu_numa is not None), None)
        first = (str(rank), known[0].host, *((_UNKNOWN if gpu is None else str(gpu),) if has_gpus else ()))
        rows.append((*first, *(cell for seat in own for cell in _cells(seat, has_gpus=has_gpus))))
    return tuple(rows)


def _has_gpus(sides: Sequence[Side]) -> bool:
    return any(seat.gpu_numa is not None for side in sides for seat in side.seats)


def _cells(seat: RankSeat | None, *, has_gpus: bool) -> tuple[str, ...]:
    if seat is None:
        return (_UNKNOWN,) * (3 if has_gpus else 2)
    nodes = format_cpu_list(seat.numa) if seat.numa is not None else _UNKNOWN
    cells = (format_cpu_list(seat.cpus), nodes)
    return (*cells, _BESIDE[seat.is_beside]) if has_gpus else cells


def seat_words(side: Side) -> str:
    """Return what matters of where the ranks of a side sat: beside their GPUs or not, and which share CPUs."""
    known = [seat for seat in side.seats if seat.is_beside is not None]
    said = []
    if known:
        beside = sum(seat.is_beside is True for seat in known)
        said.append(f"{beside} of {counted(len(known), 'rank')} on the NUMA node of their GPU alone")
    groups = Counter((seat.host, seat.cpus) for seat in side.seats)
    crowded = [
        f"{ranks} ranks share CPU {format_cpu_list(cpus)}"
        for (_host, cpus), ranks in groups.items()
        if ranks > len(cpus)
    ]
    said += [listed(crowded, _MOST_NAMED)] if crowded else []
    said += ["launches differ: this is the first"] if side.seats_vary else []
    return f"{side.letter}: {'; '.join(said) or 'each rank has a CPU to itself, or as many as ranks share'}"
