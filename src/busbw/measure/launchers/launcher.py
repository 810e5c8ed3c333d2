"""What every launcher is: the value that its module gives, and what it is asked about a request.

A launcher of another package is such a value too, with its entry point in the group `busbw.launchers`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, NamedTuple

from busbw.model.launch import Allocation, AllocationKind, LaunchRequest, Slurm, Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job
from busbw.model.request import Request

# How the processes that it starts find each other: through the MPI that it introduces them to; by variables that it
# sets; or there is one process, which drives every GPU.
Joining = Literal["mpi", "variables", "one process"]


class BatchSystem(NamedTuple):
    """The batch system that a launcher is part of."""

    kind: AllocationKind
    title: str
    # How somebody comes into an allocation of it.
    hint: str


class Launchers(NamedTuple):
    """What there is to choose from."""

    # None: no srun on PATH.
    slurm: Slurm | None
    # Programs of other launchers that are on PATH.
    on_path: Collection[str]
    # Names of the variables that ranks will have.
    settings: Collection[str] = ()


def _no_reason(_request: Request, _allocation: Allocation, _mpi: MpiLibrary, _there: Launchers) -> str | None:
    return None


def _anything(_request: Request, _allocation: Allocation) -> None:
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchWords:
    """What `busbw launch` needs of a launcher for somebody's own program."""

    job: Callable[[Start, LaunchRequest], Job]
    # Who knows the hosts where nobody names them: nobody; the batch system; they are pods, which it names itself.
    hosts_of: Literal["nobody", "batch system", "pods"] = "batch system"
    # Options for srun that are recommended for a platform are for it too.
    takes_words_of_srun: bool = False
    # The MPI where nobody says.
    usual_mpi: str = "open-mpi-4"


def words_of_job(job: Callable[[Start], Job], *, usual_mpi: str = "open-mpi-4") -> LaunchWords:
    """Return the words of a launcher of a batch system that starts any program as it starts the ranks of busbw."""
    return LaunchWords(job=lambda start, _request: job(start), usual_mpi=usual_mpi)


@dataclass(frozen=True, kw_only=True, slots=True)
class RankLauncher:
    """A launcher: a `Start` in, a complete `Job` out. It starts nothing and looks at nothing else."""

    name: str
    # Raises InputError for what it cannot do.
    job: Callable[[Start], Job]
    joining: Joining = "mpi"
    # Whether `busbw run` may have it start ranks on hosts that were named, or that a batch system gave; and on this
    # host alone.
    on_hosts: bool = True
    here: bool = False
    # What plans of this host alone call it; None: by its name, and they name this host.
    name_here: str | None = None
    # Once asked for by name, it starts ranks in an allocation of this system only; where the hosts are such a one's it
    # is taken by itself.
    system: BatchSystem | None = None
    # Nobody has to be told why it was taken there.
    is_expected: bool = False
    # Its own program, which must be on PATH and comes as `Start.launcher_program`; None: it has none.
    program: str | None = None
    # Whether it is there, where that is another question than whether `program` is on PATH.
    is_there: Callable[[Launchers], bool] | None = None
    # Whether it can give each rank CPUs of its own.
    binds: bool = True
    # Whether its words have been seen at work.
    is_tried: bool = True
    # Why it is not taken by itself, in words that go on from "not by NAME: ".
    why_not: Callable[[Request, Allocation, MpiLibrary, Launchers], str | None] = _no_reason
    # Raises InputError where it cannot be told these hosts, whoever chose it.
    check: Callable[[Request, Allocation], None] = _anything
    # One process on each host beside the ranks, to look after them; None: not on all hosts at once.
    visit: Callable[[Start], Job] | None = None
    # The same on the one host of a placement; None: as `visit`, or not at all.
    visit_one: Callable[[Start], Job] | None = None
    # Who starts a container's runtime, as containers know it; None: it starts no containers.
    of_containers: Literal["mpirun", "srun"] | None = None
    # None: not for `busbw launch`.
    words: LaunchWords | None = None

    def is_among(self, there: Launchers) -> bool:
        """Whether it is there."""
        if self.is_there is not None:
            return self.is_there(there)
        return self.program is None or self.program in there.on_path
