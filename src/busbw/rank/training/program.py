"""The program of one process: who it is, whether it has what the plan needs, where it meets the others."""

import importlib
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from busbw.base.errors import BusbwError, InputError, RunError
from busbw.model import codec
from busbw.model.train.proxy import ProxyPlan
from busbw.rank.socket_world import RankIdentity, place_of

_MEETING_S = 120.0
_DEFAULT_PORT = "29500"
_INSTALL = "pip install 'busbw[train]'"
# GPUs from Ada (8.9) on multiply in FP8.
_FIRST_WITH_FP8 = (8, 9)


def main(arguments: Sequence[str]) -> int:
    """Train as the plan (the one argument, JSON) says. Returns the exit code."""
    plan = codec.decode(arguments[0].encode(), ProxyPlan, where="plan")
    identity: RankIdentity | None = None
    try:
        identity = _identity(plan)
        return _train(plan, identity)
    except BusbwError as error:
        # All processes find what is wrong with the input; one says it.
        if identity is None or identity.local_rank == 0 or not isinstance(error, InputError):
            sys.stderr.write(f"{error}\n")
        return int(error.exit_code)


def _identity(plan: ProxyPlan) -> RankIdentity:
    try:
        identity = place_of(os.environ)
    except RuntimeError as error:
        raise InputError(str(error), hint="torchrun, srun or mpirun starts a process a GPU; so does busbw") from error
    if identity.ranks != plan.ranks:
        raise InputError(
            f"{identity.ranks} processes were started, and the job has {plan.ranks}",
            where=plan.workload,
            hint=f"start {plan.ranks}, or say --gpus {identity.ranks} and a --layout that fits",
        )
    return identity


@dataclass(frozen=True, kw_only=True, slots=True)
class _Seat:
    """Where this process computes."""

    device: Any
    backend: str
    name: str


def _train(plan: ProxyPlan, identity: RankIdentity) -> int:
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise InputError(f"PyTorch cannot be imported: {error}", where=sys.executable, hint=_INSTALL) from error
    place = _place(plan, identity, torch)
    _meet(plan, identity, place, torch)
    try:
        # It needs PyTorch, which may not be there.
        from busbw.rank.training.steps import train  # noqa: PLC0415

        train(plan, identity.rank, place.device, place.name)
    except OSError as error:
        raise RunError(f"cannot write: {error.strerror or error}", where=plan.directory) from error
    except (RuntimeError, MemoryError) as error:
        # Of PyTorch: no memory, or another process has gone.
        cause = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        raise RunError(f"rank {identity.rank} failed: {cause}", where=_last_place(error)) from error
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    return 0


def _last_place(error: BaseException) -> str | None:
    """Return where in this package it happened."""
    found = [each for each in traceback.extract_tb(error.__traceback__) if "busbw" in each.filename]
    return f"{Path(found[-1].filename).name}:{found[-1].lineno}, {found[-1].name}" if found else None


def _place(plan: ProxyPlan, identity: RankIdentity, torch: Any) -> _Seat:  # noqa: ANN401
    """Return where this process computes. Raises InputError for what this machine does not have."""
    gpus = torch.cuda.device_count()
    if plan.device == "cpu" or (plan.device is None and not gpus):
        if plan.dtype == "fp8":
            raise InputError(
                "no GPU is seen, and CPUs do not multiply in FP8", where="--dtype fp8", hint="--dtype bf16"
            )
        torch.set_num_threads(1)
        return _Seat(device=torch.device("cpu"), backend="gloo", name=f"CPU ({torch.get_num_threads()} thread)")
    if gpus <= identity.local_rank:
        raise InputError(
            f"process {identity.local_rank} of this host has no GPU: PyTorch {torch.__version__} sees {gpus}",
            hint="as many processes a host as GPUs, or --device cpu",
        )
    torch.cuda.set_device(identity.local_rank)
    name = torch.cuda.get_device_name(identity.local_rank)
    if plan.dtype == "fp8" and torch.cuda.get_device_capability(identity.local_rank) < _FIRST_WITH_FP8:
        raise InputError(f"{name} does not multiply in FP8", where="--dtype fp8", hint="--dtype bf16")
    return _Seat(device=torch.device("cuda", identity.local_rank), backend="nccl", name=name)


def _meet(plan: ProxyPlan, identity: RankIdentity, place: _Seat, torch: Any) -> None:  # noqa: ANN401
    if plan.graph:
        # Else NCCL adds nodes to the graph for each call, which lengthen it. Calls of the graph and others are never
        # under way at the same time here, as what is left of one is waited for before the other.
        os.environ.setdefault("NCCL_GRAPH_MIXING_SUPPORT", "0")
    address, port = _address(os.environ, plan), os.environ.get("MASTER_PORT", _DEFAULT_PORT)
    try:
        torch.distributed.init_process_group(
            place.backend, init_method=f"tcp://{address}:{port}", rank=identity.rank, world_size=identity.ranks,
            timeout=timedelta(seconds=_MEETING_S),
            device_id=place.device if place.backend == "nccl" else None,
        )  # fmt: skip
    except (RuntimeError, ValueError) as error:
        raise RunError(
            f"rank {identity.rank} did not meet the others: {str(error).splitlines()[0][:200]}",
            where=f"{address}:{port}",
            hint="MASTER_ADDR is a name of rank 0's host that all reach, MASTER_PORT free there",
        ) from error


def _address(environment: Mapping[str, str], plan: ProxyPlan) -> str:
    """Return where ranks meet. Raises InputError where that is not said and they may be on several hosts."""
    if "MASTER_ADDR" in environment:
        return environment["MASTER_ADDR"]
    here = next(
        (
            environment[name]
            for name in ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")
            if name in environment
        ),
        "",
    )
    if here == str(plan.ranks) and environment.get("SLURM_STEP_NUM_NODES", "1") == "1":
        return "127.0.0.1"
    raise InputError(
        "where the processes meet is not said",
        where="MASTER_ADDR",
        hint="export MASTER_ADDR=NAME_OF_THE_FIRST_HOST MASTER_PORT=29500",
    )
