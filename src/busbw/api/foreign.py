"""From a request to the plan of a run of foreign programs: nccl-tests and the OSU micro-benchmarks."""

import datetime as dt
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from busbw import __version__
from busbw.api.foreign_programs import Found, nccl_tests_programs, osu_programs
from busbw.api.foreign_steps import Asked, Start, nccl_tests_steps, osu_steps
from busbw.api.memory import need_of
from busbw.api.naming import run_id
from busbw.api.offer import OSU_OFFER, Offer, nccl_tests_offer
from busbw.api.request import Request
from busbw.api.sweeps import asked_sizes, growth_of, names_of, sweeps_of
from busbw.backends import nccl_tests, osu
from busbw.backends.usage import operations
from busbw.collectives import OPERATIONS
from busbw.errors import InputError
from busbw.model.machine import Host, MpiLibrary
from busbw.model.plan import MemoryNeed, Placement, Plan, Step
from busbw.model.sweep import Mode, Sampling, Sweep
from busbw.probe.capture import machine as capture
from busbw.probe.capture.programs import gpu_count

# On a larger machine more ranks are asked for by name.
_MOST_DEFAULT_RANKS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignSurroundings:
    """What the plan depends on beside the request: the machine, the programs found on it, and who asks."""

    host: Host
    # None where one process drives every GPU.
    mpi: MpiLibrary | None
    # By collective.
    found: Mapping[str, Found]
    # GPUs that a program sees; None where that cannot be told.
    gpus: int | None
    as_root: bool
    created: dt.datetime
    token: str


def plan(request: Request, host: Host, directory: Path | None, base: Path) -> tuple[Plan, Path]:
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
    ranks = _ranks(request, around, names_of(request, offer))
    sweeps, notes = sweeps_of(request, ranks, offer)
    sweeps = tuple(_as_moved(request, sweep, around) for sweep in sweeps)
    name = run_id(request, around.created, around.token, ranks)
    where = (directory if directory is not None else base / name).absolute()
    placement = _placement(request, around, ranks)
    start = Start(
        found=around.found,
        mpi=around.mpi,
        placement=placement,
        per_process=_per_process(request, around, ranks),
        directory=str(where),
        as_root=around.as_root,
    )
    steps = _steps(request, start, sweeps, offer)
    return (
        Plan(
            busbw_version=__version__,
            run_id=name,
            created=around.created.isoformat(timespec="seconds"),
            backend=request.backend,
            launcher="local" if around.mpi is not None else "direct",
            sweeps=sweeps,
            sampling=_sampling(request, mode),
            placement=placement,
            host=around.host,
            mpi=around.mpi,
            memory=_memory(request, sweeps, ranks),
            job=steps[0].job,
            programs=tuple(one.program for one in around.found.values()),
            steps=steps,
            notes=(*notes, _sample_note(request, steps[0])),
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
        return OSU_OFFER
    reducing = [operations(one.usage) for one in found.values()]
    return nccl_tests_offer(reducing[0] if reducing else OPERATIONS)


def _checked_mode(request: Request) -> Mode:
    """Return the mode. Raises InputError for what only busbw's own ranks can do."""
    for option, is_given in (
        ("--pairs", request.pairs is not None),
        ("--matrix", request.matrix is not None),
        ("--unaligned", request.unaligned),
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


def _ranks(request: Request, around: ForeignSurroundings, names: tuple[str, ...]) -> int:
    if request.backend == osu.name:
        pairs = [name for name in names if name in osu.TWO_RANKS]
        if pairs and request.ranks not in (None, 2):
            raise InputError(f"OSU's {pairs[0]} is between two ranks", where=f"--ranks {request.ranks}")
        usual = 2 if pairs else min(max(around.host.cores, 2), _MOST_DEFAULT_RANKS)
        return request.ranks or usual - usual % 2
    ranks = request.ranks or (request.gpus_per_process if around.mpi is None and request.gpus_per_process > 1 else None)
    ranks = ranks or around.gpus
    if ranks is None or ranks < 1:
        raise InputError("cannot tell how many GPUs there are", hint="say how many to use: --ranks 8")
    if around.gpus is not None and ranks > around.gpus:
        raise InputError(f"{ranks} GPUs asked for, {around.gpus} here", hint=f"--ranks {around.gpus}")
    if request.gpus_per_process < 1 or ranks % request.gpus_per_process:
        raise InputError(f"{ranks} GPUs are not equal parts of {request.gpus_per_process}", where="-g")
    return ranks


def _per_process(request: Request, around: ForeignSurroundings, ranks: int) -> int:
    if request.backend == osu.name:
        return 1
    return request.gpus_per_process if around.mpi is not None else ranks


def _as_moved(request: Request, sweep: Sweep, around: ForeignSurroundings) -> Sweep:
    """Return a sweep with the type that the program really moves."""
    if request.backend != osu.name:
        return sweep
    dtype = osu.dtype_of(sweep.collective, sweep.dtype, around.found[sweep.collective].usage)
    return msgspec.structs.replace(sweep, dtype=dtype)


def _placement(request: Request, around: ForeignSurroundings, ranks: int) -> Placement:
    processes = ranks // _per_process(request, around, ranks)
    oversubscribed = processes > around.host.cores
    on_gpus = request.backend == nccl_tests.name or request.gpu_buffers
    return Placement(
        ranks=ranks,
        hosts=(around.host.name,),
        # NCCL moves its threads to the cores beside their GPU, unless somebody bound them elsewhere.
        binding="none" if oversubscribed or on_gpus else "core",
        oversubscribed=oversubscribed,
    )


def _steps(request: Request, start: Start, sweeps: tuple[Sweep, ...], offer: Offer) -> tuple[Step, ...]:
    if request.backend == osu.name:
        return osu_steps(request, start, sweeps)
    factor, step_bytes = growth_of(request, offer)
    asked = Asked(sizes_bytes=asked_sizes(request, offer), factor=factor, step_bytes=step_bytes)
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
