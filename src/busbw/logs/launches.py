"""Launches in one log: groups of ranks that were started one after the other and know nothing of each other."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from busbw.logs.state import Process, State


@dataclass(slots=True)
class Launch:
    """Processes that belong together, and the line where the first of them begins."""

    line: int
    names: set[str] = field(default_factory=set)
    # Line of the last communicator that one of them began or made.
    made: int = 0
    communicators: set[str] = field(default_factory=set)
    ranks: set[tuple[int, int]] = field(default_factory=set)

    def add(self, process: Process) -> None:
        """Take a process in."""
        self.names.add(process.name)
        self.made = max(self.made, process.made)
        self.communicators |= _communicators(process)
        self.ranks |= _ranks(process)


def launches_of(state: State) -> tuple[Launch, ...]:
    """Return the launches in one source, in the order of their first lines; one, where nothing tells them apart."""
    found: list[Launch] = []
    silent: list[Process] = []
    for process in sorted(state.processes.values(), key=lambda each: each.first):
        if not process.made:
            silent.append(process)
        elif found and not _is_another(process, found[-1]):
            found[-1].add(process)
        else:
            found.append(Launch(process.first))
            found[-1].add(process)
    for process in silent:
        _launch_at(found, process.first, Launch(process.first)).add(process)
    return tuple(found)


def launch_number(launches: Iterable[Launch], line: int) -> int:
    """Return which launch a line of a launcher is of: the last that had begun."""
    return max((number for number, launch in enumerate(launches) if launch.line <= line), default=0)


def _is_another(process: Process, launch: Launch) -> bool:
    """Whether a process begins after a launch had made all it made, and shares nothing with it."""
    own, ranks = _communicators(process), _ranks(process)
    if process.first <= launch.made or own & launch.communicators or not ranks:
        return False
    # Old versions give communicators no id: then only a rank that was there before tells.
    return bool(ranks & launch.ranks) or bool(own and launch.communicators)


def _launch_at(launches: list[Launch], line: int, otherwise: Launch) -> Launch:
    if not launches:
        launches.append(otherwise)
    return launches[launch_number(launches, line)]


def _communicators(process: Process) -> set[str]:
    return {name for seat in process.seats.values() for name, _rank, _size in seat.ranks if name is not None}


def _ranks(process: Process) -> set[tuple[int, int]]:
    """Return the ranks of a process with the sizes; who is alone may be one of many that were not joined."""
    return {(size, rank) for seat in process.seats.values() for _name, rank, size in seat.ranks if size > 1}
