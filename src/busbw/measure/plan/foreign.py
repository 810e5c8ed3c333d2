"""From a request to the plan of a run of foreign programs: nccl-tests and the OSU micro-benchmarks."""

import datetime as dt
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from busbw import __version__
from busbw.base.collectives import OPERATIONS
from busbw.base.errors import InputError
from busbw.machine.capture import allocation as batch_systems
from busbw.machine.capture import host as capture
from busbw.machine.capture.environment import environment
from busbw.machine.capture.programs import gpu_count
from busbw.measure.backends import nccl_tests, osu
from busbw.measure.backends.foreign import operations
from busbw.measure.launchers import registry as launchers
from busbw.measure.launchers.launcher import Launchers
from busbw.measure.plan import hosts
from busbw.measure.plan.foreign_steps import (
    AskedSizes,
    Found,
    StepStart,
    nccl_tests_programs,
    nccl_tests_steps,
    osu_programs,
    osu_steps,
)
from busbw.measure.plan.hosts import Chosen, gpus_of_hosts, ranks_of_hosts, said
from busbw.measure.plan.placing import check_one_node, need_of, reach_of, usual_ranks
from busbw.measure.plan.request import Request, run_id
from busbw.measure.plan.sweeps import Offer, asked_sizes, growth_of, names_of, nccl_tests_offer, osu_offer, sweeps_of
from busbw.model.launch import Allocation, Slurm
from busbw.model.machine import Host, MpiLibrary
from busbw.model.plan import MemoryNeed, Mode, Placement, Plan, Sampling, Step, Sweep


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
        return Chosen(launchers.find("mpirun" if around.mpi is not None else "direct"))
    if around.mpi is None:
        raise InputError(
            "these programs are built without MPI, and start on one host alone",
            where=next(iter(around.found.values())).program.path,
            hint="build them with MPI=1, and name their folder: --bin",
        )
    there = Launchers(slurm=around.slurm, on_path=tuple(around.launchers), settings=around.settings)
    return hosts.of_hosts(request, allocation, around.mpi, there)


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


_NOT_LOOKED_AT = "these programs do not compare the hosts before they measure, as busbw's own ranks do"


def plan(
    request: Request, host: Host, allocation: Allocation | None, directory: Path | None, base: Path
) -> tuple[Plan, Path]:
    """Return the plan of a request and its run directory. Finds the programs and asks them for their options.

    Raises InputError for what cannot be measured here, or not by these programs.
    """
    names = names_of(_usual(request), _offer(request, {}))
    as_root = os.geteuid() == 0
    mpi = None
    if request.backend == osu.name:
        mpi = capture.mpi(request.mpirun)
        found = osu_programs(request, names, mpi, as_root=as_root)
    else:
        found = nccl_tests_programs(request, names)
        if any(one.program.with_mpi for one in found.values()):
            mpi = capture.mpi(request.mpirun)
    around = ForeignSurroundings(
        host=host,
        mpi=mpi,
        found=found,
        gpus=gpu_count() if request.backend == nccl_tests.name else None,
        allocation=allocation,
        slurm=batch_systems.slurm() if allocation is not None else None,
        launchers=batch_systems.launchers(launchers.programs()) if allocation is not None else {},
        settings=tuple(environment()) if allocation is not None else (),
        python=sys.executable,
        as_root=as_root,
        created=dt.datetime.now(dt.UTC),
        token=secrets.token_hex(2),
    )
    return compose(request, around, directory, base)


def compose(request: Request, around: ForeignSurroundings, directory: Path | None, base: Path) -> tuple[Plan, Path]:
    """Return the plan of a request in the given surroundings, and its run directory. Touches nothing."""
    request = _usual(request)
    mode = _checked_mode(request)
    offer = _offer(request, around.found)
    counts = counts_of(request, around, names_of(request, offer))
    ranks = sum(counts)
    sweeps, notes = sweeps_of(request, ranks, offer)
    sweeps = tuple(_as_moved(request, sweep, around) for sweep in sweeps)
    name = run_id(request, around.created, around.token, ranks)
    where = (directory if directory is not None else base / name).absolute()
    placement = placement_of(request, around, counts)
    launcher = launcher_of(request, around)
    start = StepStart(
        found=around.found,
        mpi=around.mpi,
        placement=placement,
        per_process=per_process(request, around, ranks),
        directory=str(where),
        as_root=around.as_root,
        launcher=launcher.launcher if around.allocation is not None else None,
        launcher_program=around.launchers.get(launcher.launcher.name),
        slurm=around.slurm,
        settings=around.settings,
        python=around.python,
    )
    steps = _steps(request, start, sweeps, offer)
    looking = start.jobs(request, ())
    return (
        Plan(
            busbw_version=__version__,
            run_id=name,
            created=around.created.isoformat(timespec="seconds"),
            backend=request.backend,
            launcher=launcher.launcher.name
            if around.allocation is not None
            else launcher.launcher.name_here or launcher.launcher.name,
            sweeps=sweeps,
            sampling=_sampling(request, mode),
            placement=placement,
            reach=reach_of(request, around.allocation),
            host=around.host,
            mpi=around.mpi,
            memory=_memory(request, sweeps, ranks),
            job=steps[0].job,
            visit=looking.visit,
            visit_each=looking.visit_each,
            programs=tuple(one.program for one in around.found.values()),
            steps=steps,
            notes=(
                *(said(around.allocation, launcher) if around.allocation is not None else ()),
                *notes,
                _sample_note(request, steps[0]),
                *((_NOT_LOOKED_AT,) if around.allocation is not None else ()),
            ),
            tag=request.tag,
        ),
        where,
    )


def _usual(request: Request) -> Request:
    """Return the request with the suite that each backend measures when it is asked for nothing."""
    if request.collectives or request.suite is not None:
        return request
    return msgspec.structs.replace(request, suite="p2p" if request.backend == osu.name else "six")


def _offer(request: Request, found: Mapping[str, Found]) -> Offer:
    if request.backend == osu.name:
        return osu_offer()
    reducing = [operations(one.usage) for one in found.values()]
    return nccl_tests_offer(reducing[0] if reducing else OPERATIONS)


def _checked_mode(request: Request) -> Mode:
    """Return the mode. Raises InputError for what only busbw's own ranks can do."""
    for option, is_given in (
        ("--pairs", request.pairs is not None),
        ("--matrix", request.matrix is not None),
        ("--unaligned", request.unaligned),
        ("--container", request.container is not None),
        ("--bind-to masks", request.binding == "masks"),
        ("--config", bool(request.config)),
        ("--cache warm", request.cache == "warm"),
        ("--gpu-buffers", request.gpu_buffers and request.backend != osu.name),
        ("-R", request.buffers != "plain" and request.backend == osu.name),
    ):
        if is_given:
            raise InputError(f"{request.backend} has no {option}", hint="leave it out, or another --backend")
    graph = request.mode == "graph" or request.graphs > 0
    if request.mode not in (None, "stream", "graph") or (graph and request.backend == osu.name):
        raise InputError(f"{request.backend} has no {request.mode} mode", where=f"--mode {request.mode}")
    if request.launches is not None and not 1 <= request.launches <= 1000:
        raise InputError("a program is started once to a thousand times", where=f"--launches {request.launches}")
    return "graph" if graph else "stream"


def _as_moved(request: Request, sweep: Sweep, around: ForeignSurroundings) -> Sweep:
    """Return a sweep with the type that the program really moves."""
    if request.backend != osu.name:
        return sweep
    dtype = osu.dtype_of(sweep.collective, sweep.dtype, around.found[sweep.collective].usage)
    return msgspec.structs.replace(sweep, dtype=dtype)


def _steps(request: Request, start: StepStart, sweeps: tuple[Sweep, ...], offer: Offer) -> tuple[Step, ...]:
    if request.backend == osu.name:
        return osu_steps(request, start, sweeps)
    factor, step_bytes = growth_of(request, offer)
    asked = AskedSizes(sizes_bytes=asked_sizes(request, offer), factor=factor, step_bytes=step_bytes)
    return nccl_tests_steps(request, start, sweeps, asked)


def _sampling(request: Request, mode: Mode) -> Sampling:
    return Sampling(
        mode=mode,
        min_samples=request.min_samples,
        calls=request.calls,
        warmup_calls=request.warmup_calls,
        verify=request.verify,
        time_limit_s=request.time_limit_s,
    )


def _memory(request: Request, sweeps: tuple[Sweep, ...], ranks: int) -> MemoryNeed:
    if request.backend == osu.name and not request.gpu_buffers:
        return need_of(sweeps, ranks)
    # On GPUs, and the programs look themselves.
    return MemoryNeed(buffers_bytes=0, overhead_bytes=0, scratch_bytes=0)


def _sample_note(request: Request, step: Step) -> str:
    if step.report is not None:
        return "a sample is one call, timed by CUDA events, on the GPU where it took longest"
    if request.backend == osu.name:
        return (
            "a sample is the mean that one start of an OSU program prints; its collectives wait in a barrier between "
            "calls, and where a rank has a part for each rank, OSU's size is one part and busbw's all of them"
        )
    return "a sample is the mean over iterations and ranks that nccl-tests prints in one row"
