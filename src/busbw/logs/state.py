"""What is kept while a log goes by: little for each process, equal texts once."""

from collections.abc import Collection
from dataclasses import dataclass, field
from sys import intern

from busbw.logs.lines import AnyEffect, CommunicatorStart, Effect, Layout, Trace, Wait

# More processes than any job has; a log that names more is damaged or hostile.
_MOST_PROCESSES = 2**17
_MOST_FACTS = 256
_MOST_COMMUNICATORS = 2**16
_MOST_SEATS_OF_ONE = 64
_MOST_MEMBERS = 2**21
_MOST_TORN = 16
_MOST_MODELS = 16


@dataclass(slots=True)
class Seat:
    """One GPU of one process: what NCCL says where a rank is."""

    device: str
    facts: dict[str, str] = field(default_factory=dict)
    # Communicators in the order they were begun, with the rank in each; how many were begun and made.
    ranks: list[tuple[str | None, int, int]] = field(default_factory=list)
    started: int = 0
    done: int = 0
    # Size of the communicator that is being made, and of the one whose channels are kept: the largest.
    latest: int = 0
    channels_of: int = 0
    # In the bootstrap of the first of its largest communicators.
    wait: Wait | None = None


@dataclass(slots=True)
class Process:
    """One process that logs."""

    host: str
    pid: str
    seats: dict[str, Seat] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    # As a launcher's tag says.
    tagged_rank: int | None = None
    # Results that NCCL handed up.
    traced: bool = False
    # Line where it begins, and where it last began or made a communicator; 0: not yet.
    first: int = 0
    made: int = 0
    # Ranks and nodes of its largest communicator, as NCCL counts them.
    layout: tuple[int, int] | None = None
    # Processes before it on this host that had its id: containers give every launch the same.
    before: int = 0

    @property
    def name(self) -> str:
        """`host:pid`, with a number where that is not the first of its name."""
        return f"{self.host}:{self.pid}" if not self.before else f"{self.host}:{self.pid} ({self.before + 1})"


@dataclass(slots=True)
class State:
    """Everything that is kept of the lines read so far, but troubles and connections."""

    processes: dict[str, Process] = field(default_factory=dict)
    # Rank to host, of each communicator that has an id.
    communicators: dict[str, dict[int, str]] = field(default_factory=dict)
    members: int = 0
    # Whether whoever wrote the log left out lines that several processes have.
    leaves_out: bool = False
    # What torn lines are called, and what they belong to; and the last of several processes with one name.
    _aliases: dict[str, str] = field(default_factory=dict)
    # Whether RCCL wrote it.
    is_amd: bool = False
    # Models of GPUs, as nccl-tests lists them.
    gpu_models: set[str] = field(default_factory=set)
    # A version that was printed without saying by whom.
    bare_version: str | None = None
    # Lines in which a test program of MPI says hello as number 0 of 1.
    greeted_alone: int = 0
    # Processes of nccl-tests that ran beside each other, and each listed itself as rank 0.
    listed_alone: int = 0

    def process(self, host: str, pid: str) -> Process | None:
        """Return a process, a new one where it has not been seen; None when there are too many."""
        name = f"{host}:{pid}"
        name = self._aliases.get(name, name)
        found = self.processes.get(name)
        if found is None and len(self.processes) < _MOST_PROCESSES:
            found = self.processes[intern(name)] = Process(intern(host), pid)
        return found

    def renewed(self, process: Process) -> Process:
        """Return the process that has the name of another now, which begins anew."""
        after = Process(process.host, process.pid, before=process.before + 1)
        if len(self.processes) >= _MOST_PROCESSES:
            return process
        after.tagged_rank = process.tagged_rank
        self.processes[after.name] = after
        self._aliases[f"{process.host}:{process.pid}"] = after.name
        return after

    def part(self, names: Collection[str]) -> "State":
        """Return what is kept of some of the processes."""
        processes = {name: process for name, process in self.processes.items() if name in names}
        used = {entry[0] for process in processes.values() for seat in process.seats.values() for entry in seat.ranks}
        return State(
            processes=processes,
            communicators={name: hosts for name, hosts in self.communicators.items() if name in used},
            leaves_out=self.leaves_out,
            is_amd=self.is_amd,
            gpu_models=self.gpu_models,
            bare_version=self.bare_version,
            greeted_alone=self.greeted_alone,
            listed_alone=self.listed_alone,
            _aliases=self._aliases,
        )

    def known(self, host: str, pid: str) -> Process | None:
        """Return a process that has been seen; None where it has not."""
        name = f"{host}:{pid}"
        return self.processes.get(self._aliases.get(name, name))

    def nodes(self, ranks: int | None) -> int | None:
        """Return on how many nodes NCCL counts the communicator of so many ranks, or the largest; None: not said."""
        layouts = [process.layout for process in self.processes.values() if process.layout is not None]
        most = ranks if ranks is not None else max((layout[0] for layout in layouts), default=None)
        return max((nodes for size, nodes in layouts if size == most), default=None)

    def settle(self) -> None:
        """Drop processes that are others whose name had a piece of another line before it."""
        by_pid: dict[str, list[Process]] = {}
        for process in self.processes.values():
            by_pid.setdefault(process.pid, []).append(process)
        for alike in by_pid.values():
            # In containers every process may have the same id; those are on hosts of like names, and are left alone.
            shortest = min(alike, key=lambda process: len(process.host))
            for process in alike if len(alike) <= _MOST_TORN else ():
                if process is not shortest and process.host.endswith(shortest.host) and not _is_settled(process):
                    self._aliases[process.name] = shortest.name
                    del self.processes[process.name]

    def take(self, process: Process, device: str, effect: AnyEffect) -> None:
        """Keep what one message tells."""
        if isinstance(effect, Trace):
            process.traced = True
        elif isinstance(effect, Layout):
            process.layout = max(process.layout or (0, 0), (effect.ranks, effect.nodes))
        elif isinstance(effect, Wait):
            seat = seat_of(process, device)
            seat.wait = effect if seat.wait is None or effect.ranks > seat.wait.ranks else seat.wait
        elif isinstance(effect, CommunicatorStart):
            self._start(process, seat_of(process, device), effect)
        elif effect.of == "setting":
            _keep(process.settings, effect)
        elif effect.of == "process":
            _keep(process.facts, effect)
        else:
            _keep_of_seat(seat_of(process, device), effect)

    def see_gpu(self, model: str) -> None:
        """Keep the model of a GPU that a benchmark lists."""
        if len(self.gpu_models) < _MOST_MODELS:
            self.gpu_models.add(model)

    def _start(self, process: Process, seat: Seat, start: CommunicatorStart) -> None:
        if start.done:
            seat.done += 1
            # Some versions print the end only.
            if seat.started >= seat.done:
                return
        seat.started += 1
        seat.latest = start.ranks
        entry = (intern(start.communicator) if start.communicator else None, start.rank, start.ranks)
        if len(seat.ranks) < _MOST_SEATS_OF_ONE and entry not in seat.ranks:
            seat.ranks.append(entry)
        if start.communicator is None or self.members >= _MOST_MEMBERS:
            return
        if start.communicator not in self.communicators and len(self.communicators) >= _MOST_COMMUNICATORS:
            return
        self.communicators.setdefault(intern(start.communicator), {})[start.rank] = process.host
        self.members += 1


def _is_settled(process: Process) -> bool:
    """Whether a process said more than one torn line can."""
    return any(seat.started for seat in process.seats.values()) or len(process.facts) > 1


def seat_of(process: Process, device: str) -> Seat:
    """Return the seat of a process for a device; one is shared by what is too many."""
    if device not in process.seats and len(process.seats) >= _MOST_SEATS_OF_ONE:
        device = next(iter(process.seats))
    return process.seats.setdefault(intern(device), Seat(intern(device)))


def _keep_of_seat(seat: Seat, effect: Effect) -> None:
    if effect.name == "channels":
        if seat.latest < seat.channels_of:
            return
        seat.channels_of = seat.latest
    _keep(seat.facts, effect)


def _keep(facts: dict[str, str], effect: Effect) -> None:
    # What is said more than once about one thing: the worse, where one is.
    if effect.name in facts and facts[effect.name] == "Disabled":
        return
    if effect.name in facts or len(facts) < _MOST_FACTS:
        facts[intern(effect.name)] = intern(effect.value)
