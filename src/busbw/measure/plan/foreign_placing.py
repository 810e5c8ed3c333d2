"""Where the ranks of foreign programs run: how many on which host, and who starts them."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from busbw.base.errors import InputError
from busbw.measure.backends import nccl_tests, osu
from busbw.measure.launchers import mpirun
from busbw.measure.plan import choosing
from busbw.measure.plan.choosing import Chosen
from busbw.measure.plan.foreign_programs import Found
from busbw.measure.plan.hosts import gpus_of_hosts, ranks_of_hosts
from busbw.measure.plan.placing import check_one_node, usual_ranks
from busbw.measure.plan.request import Request
from busbw.model.launch import Allocation, Slurm
from busbw.model.machine import Host, MpiLibrary
from busbw.model.plan import Placement


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignSurroundings:
    """What the plan depends on beside the request: the machine, the programs found on it, and who asks."""

    host: Host
    # None where one process drives every GPU.
    mpi: MpiLibrary | None
    # By collective.
    found: Mapping[str, Found]
    # GPUs that a program sees on this host; None where that cannot be told.
    gpus: int | None
    # None: this host alone.
    allocation: Allocation | None = None
    slurm: Slurm | None = None
    # Paths of other launchers of batch systems that are on PATH, by name.
    launchers: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    python: str = ""
    as_root: bool
    created: dt.datetime
    token: str


def launcher_of(request: Request, around: ForeignSurroundings) -> Chosen:
    """Return who starts the ranks. Raises InputError where that cannot be done."""
    allocation = around.allocation
    if allocation is None:
        return Chosen(mpirun.LOCAL if around.mpi is not None else "direct")
    if around.mpi is None:
        raise InputError(
            "these programs are built without MPI, and start on one host alone",
            where=next(iter(around.found.values())).program.path,
            hint="build them with MPI=1, and name their folder: --bin",
        )
    there = choosing.Launchers(slurm=around.slurm, on_path=tuple(around.launchers), settings=around.settings)
    return choosing.launcher_of(request, allocation, around.mpi, there)


def counts_of(request: Request, around: ForeignSurroundings, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the ranks of each host. Raises InputError."""
    if around.allocation is None:
        check_one_node(request)
        return (_ranks_here(request, around, names),)
    pairs = _pairs(request, names)
    usual = 1 if pairs else usual_ranks(around.host) if request.backend == osu.name else around.gpus or 0
    if not usual and request.ranks is None and request.ranks_per_node is None:
        raise InputError("cannot tell how many GPUs a host has", hint="say how many to use: --ranks-per-node 8")
    of_hosts = gpus_of_hosts if request.backend == nccl_tests.name else ranks_of_hosts
    counts = of_hosts(request, around.allocation, usual)
    if pairs and sum(counts) != 2:
        raise InputError(
            f"OSU's {pairs[0]} is between two ranks, and these are {sum(counts)}",
            hint="name two hosts and --ranks-per-node 1, or one host and --ranks 2",
        )
    for count in counts:
        _check_parts(request, count)
    return counts


def _ranks_here(request: Request, around: ForeignSurroundings, names: tuple[str, ...]) -> int:
    if request.backend == osu.name:
        pairs = _pairs(request, names)
        if pairs and request.ranks not in (None, 2):
            raise InputError(f"OSU's {pairs[0]} is between two ranks", where=f"--ranks {request.ranks}")
        return request.ranks or (2 if pairs else usual_ranks(around.host))
    ranks = request.ranks or (request.gpus_per_process if around.mpi is None and request.gpus_per_process > 1 else None)
    ranks = ranks or around.gpus
    if ranks is None or ranks < 1:
        raise InputError("cannot tell how many GPUs there are", hint="say how many to use: --ranks 8")
    if around.gpus is not None and ranks > around.gpus:
        raise InputError(f"{ranks} GPUs asked for, {around.gpus} here", hint=f"--ranks {around.gpus}")
    _check_parts(request, ranks)
    return ranks


def _pairs(request: Request, names: tuple[str, ...]) -> list[str]:
    """Return the programs that want exactly two ranks."""
    return [name for name in names if name in osu.TWO_RANKS] if request.backend == osu.name else []


def _check_parts(request: Request, ranks: int) -> None:
    if request.gpus_per_process < 1 or ranks % request.gpus_per_process:
        raise InputError(f"{ranks} GPUs are not equal parts of {request.gpus_per_process}", where="-g")


def per_process(request: Request, around: ForeignSurroundings, ranks: int) -> int:
    """Return how many of the ranks one process drives."""
    if request.backend == osu.name:
        return 1
    return request.gpus_per_process if around.mpi is not None else ranks


def placement_of(request: Request, around: ForeignSurroundings, counts: tuple[int, ...]) -> Placement:
    """Return where the ranks run."""
    processes = max(counts) // per_process(request, around, sum(counts))
    oversubscribed = processes > around.host.cores
    on_gpus = request.backend == nccl_tests.name or request.gpu_buffers
    allocation = around.allocation
    return Placement(
        ranks=sum(counts),
        hosts=tuple(host.name for host in allocation.hosts) if allocation is not None else (around.host.name,),
        ranks_of_hosts=counts if allocation is not None else (),
        # NCCL moves its threads to the cores beside their GPU, unless somebody bound them elsewhere.
        binding=request.binding or ("none" if oversubscribed or on_gpus else "core"),
        oversubscribed=oversubscribed,
    )
