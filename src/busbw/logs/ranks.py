"""Who is who: from processes that log to the ranks they are, and lists of ranks in words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from busbw.logs.lines import NAMELESS_HOST
from busbw.logs.state import Process, Seat, State

# A rank of the largest communicator, or, where that is not known, `host:pid`.
Member = int | str
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class People:
    """The ranks of the largest communicator."""

    ranks: int | None
    # Rank to the process and the seat that it is.
    seats: Mapping[int, tuple[Process, Seat]]
    by_process: Mapping[str, tuple[int, ...]]

    def of_process(self, process: Process) -> tuple[Member, ...]:
        """Return the ranks of a process, or its name."""
        return self.by_process.get(process.name) or (process.name,)

    def of_seat(self, process: Process, seat: Seat) -> tuple[Member, ...]:
        """Return the rank at a seat; where that is not known, what the process is."""
        rank = _world_rank(seat, self.ranks)
        return (rank,) if rank is not None else self.of_process(process)

    def of_name(self, name: str, device: str | None) -> tuple[Member, ...]:
        """Return the ranks of `host:pid`: that on the device, if there is one."""
        every = self.by_process.get(name, ())
        on_device = [rank for rank in every if self.seats[rank][1].device == device]
        return tuple(on_device) or every or (name,)


def people_of(state: State) -> People:
    """Return who the ranks are; a launcher's tag tells where NCCL does not."""
    sizes = [size for process in state.processes.values() for seat in process.seats.values() for *_, size in seat.ranks]
    most = max(sizes, default=None)
    seats: dict[int, tuple[Process, Seat]] = {}
    by_process: dict[str, list[int]] = {}
    for process in state.processes.values():
        for seat in process.seats.values():
            ranks = [rank for _communicator, rank, size in seat.ranks if size == most]
            # A process has one rank; lines that have lost their process may be of many.
            for rank in ranks if process.host == NAMELESS_HOST else ranks[:1]:
                seats.setdefault(rank, (process, seat))
                by_process.setdefault(process.name, []).append(rank)
        if process.name not in by_process and process.tagged_rank is not None:
            by_process[process.name] = [process.tagged_rank]
            seat = next(iter(process.seats.values()), Seat("-1"))
            seats.setdefault(process.tagged_rank, (process, seat))
    return People(most, seats, {name: tuple(sorted(set(ranks))) for name, ranks in by_process.items()})


def words(members: Iterable[Member]) -> str:
    """Return who it is: `ranks 0-3, 7`, and processes by their names, at most eight places."""
    every = set(members)
    ranks = sorted(each for each in every if isinstance(each, int))
    names = sorted(each for each in every if isinstance(each, str))
    parts = list(_spans(ranks))
    shown = ", ".join(parts[:_MOST_NAMED])
    if len(parts) > _MOST_NAMED:
        shown += f" and more ({len(ranks)} in all)"
    text = f"rank{'s' if len(ranks) > 1 else ''} {shown}" if ranks else ""
    if names:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        text += (", " if text else "") + ", ".join(names[:_MOST_NAMED]) + more
    return text


def _spans(ranks: list[int]) -> Iterable[str]:
    start = previous = None
    for rank in [*ranks, None]:
        if start is not None and previous is not None and (rank is None or rank != previous + 1):
            yield str(start) if start == previous else f"{start}-{previous}"
            start = None
        start = rank if start is None else start
        previous = rank


def _world_rank(seat: Seat, most: int | None) -> int | None:
    return next((rank for _communicator, rank, size in seat.ranks if size == most), None)
