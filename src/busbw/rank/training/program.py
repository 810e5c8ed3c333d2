"""The program of one process: who it is, its device, the steps, the log that `busbw train read` reads, the result.

Rank 0 alone writes, and nothing before every rank has found what it needs.
"""

import importlib
import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from busbw.base.errors import BusbwError, InputError, RunError
from busbw.model import codec
from busbw.model.train.proxy import LOG_NAME, PLAN_NAME, RESULT_NAME, ProxyCall, ProxyPlan, ProxyResult
from busbw.rank.socket_world import RankIdentity, place_of
from busbw.stats.distributions import median

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
class _Place:
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
        _loop(plan, identity, place, torch)
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


def _place(plan: ProxyPlan, identity: RankIdentity, torch: Any) -> _Place:  # noqa: ANN401
    """Return where this process computes. Raises InputError for what this machine does not have."""
    gpus = torch.cuda.device_count()
    if plan.device == "cpu" or (plan.device is None and not gpus):
        if plan.dtype == "fp8":
            raise InputError("CPUs do not multiply in FP8", where="--dtype fp8", hint="--dtype bf16")
        torch.set_num_threads(1)
        return _Place(device=torch.device("cpu"), backend="gloo", name=f"CPU ({torch.get_num_threads()} thread)")
    if gpus <= identity.local_rank:
        raise InputError(
            f"process {identity.local_rank} of this host has no GPU: PyTorch {torch.__version__} sees {gpus}",
            hint="as many processes a host as GPUs, or --device cpu",
        )
    torch.cuda.set_device(identity.local_rank)
    name = torch.cuda.get_device_name(identity.local_rank)
    if plan.dtype == "fp8" and torch.cuda.get_device_capability(identity.local_rank) < _FIRST_WITH_FP8:
        raise InputError(f"{name} does not multiply in FP8", where="--dtype fp8", hint="--dtype bf16")
    return _Place(device=torch.device("cuda", identity.local_rank), backend="nccl", name=name)


def _meet(plan: ProxyPlan, identity: RankIdentity, place: _Place, torch: Any) -> None:  # noqa: ANN401
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


def _loop(plan: ProxyPlan, identity: RankIdentity, place: _Place, torch: Any) -> None:  # noqa: ANN401
    # They need PyTorch, which may not be there.
    from busbw.rank.training.communication import CallKind, CallTally, Groups, Meter  # noqa: PLC0415
    from busbw.rank.training.transformer import Transformer  # noqa: PLC0415
    from busbw.rank.training.updating import Updater  # noqa: PLC0415

    on_gpu = place.backend == "nccl"
    meter = Meter(has_events=on_gpu)
    groups = Groups(plan, identity.rank, meter)
    model = Transformer.drawn(plan, groups, place.device)
    updater = Updater(model, plan, groups)
    names: list[Any] = [None] * plan.ranks
    torch.distributed.all_gather_object(names, place.name)
    log = _Log(plan, place) if identity.rank == 0 else None
    tallies: list[dict[CallKind, CallTally]] = []
    columns: list[tuple[float, float, float, float]] = []
    for step in range(1, plan.steps + 1):
        batches = _tokens(plan, identity.rank, step, torch)
        torch.distributed.barrier()
        if on_gpu:
            torch.cuda.synchronize()
        meter.taken()
        begin_s = time.perf_counter()
        loss = torch.zeros(1, device=place.device)
        for batch in batches:
            part = model.loss(batch.to(place.device))
            part.backward()
            loss += part.detach()
            updater.add()
        norm = updater.finish(plan.global_batch * plan.sequence)
        if on_gpu:
            torch.cuda.synchronize()
        step_s = time.perf_counter() - begin_s
        tallies.append(meter.taken())
        # Each rank of TP has the whole loss of its tokens.
        torch.distributed.all_reduce(loss)
        mean = float(loss) / (plan.tp * plan.global_batch * plan.sequence)
        columns.append((step_s, sum(each.time_s for each in tallies[-1].values()), mean, norm))
        if log is not None:
            log.step(step, *columns[-1])
    if plan.keep_weights:
        kept = {name: weight.values.detach().cpu() for name, weight in model.weights.items()}
        torch.save(kept, Path(plan.directory) / f"weights-{identity.rank}.pt")
    if log is not None:
        log.finish(_result(plan, place, str(torch.__version__), names, columns, tallies, groups))


def _tokens(plan: ProxyPlan, rank: int, step: int, torch: Any) -> list[Any]:  # noqa: ANN401
    """Return this process's micro-batches of a step: sequences that count on by 1 to 3, drawn by their number."""
    dp = next(each for each in plan.groups if each.kind == "DP")
    place = next(ranks.index(rank) for ranks in dp.ranks if rank in ranks)
    found = []
    for number in range(plan.accumulation):
        first = (number * plan.dp + place) * plan.micro_batch
        rows = []
        for sequence in range(first, first + plan.micro_batch):
            generator = torch.Generator().manual_seed(plan.seed * 2**40 + step * plan.global_batch + sequence)
            start, stride = torch.randint(1, 2**30, (2,), generator=generator).tolist()
            rows.append((start + torch.arange(plan.sequence + 1) * (1 + stride % 3)) % plan.model.vocabulary)
        found.append(torch.stack(rows))
    return found


class _Log:
    """The files of rank 0."""

    def __init__(self, plan: ProxyPlan, place: _Place) -> None:
        self._folder = Path(plan.directory)
        self._plan = plan
        try:
            self._folder.mkdir(parents=True)
        except FileExistsError as error:
            raise InputError(
                "it is there already", where=plan.directory, hint="-o a folder that is not there"
            ) from error
        except OSError as error:
            raise InputError(f"cannot make it: {error.strerror}", where=plan.directory, hint="-o DIR") from error
        (self._folder / PLAN_NAME).write_bytes(codec.encode_pretty(plan))
        self._file = (self._folder / LOG_NAME).open("w", encoding="utf-8")
        # In the words in which Megatron-LM prints its settings.
        for name, value in (
            ("seq_length", plan.sequence), ("global_batch_size", plan.global_batch), ("world_size", plan.ranks),
            ("tensor_model_parallel_size", plan.tp), ("expert_model_parallel_size", plan.ep), ("dtype", plan.dtype),
        ):  # fmt: skip
            self._say(f"  {name} {'.' * (48 - len(name))} {value}")
        self._say(f"  device {'.' * 42} {place.name}")

    def step(self, step: int, step_s: float, communication_s: float, loss: float, norm: float) -> None:
        """Write the line of a step."""
        self._say(
            f"busbw proxy step {step}/{self._plan.steps} | step time (ms): {step_s * 1e3:.6f} | communication (ms): "
            f"{communication_s * 1e3:.6f} | loss: {loss:.6f} | gradient norm: {norm:.4f}"
        )

    def _say(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def finish(self, result: ProxyResult) -> None:
        """Write the result."""
        self._file.close()
        (self._folder / RESULT_NAME).write_bytes(codec.encode_pretty(result))


def _result(
    plan: ProxyPlan, place: _Place, version: str, names: list[Any], columns: list[Any], tallies: list[Any], groups: Any
) -> ProxyResult:
    counted = tallies[len(tallies) // 2 :]
    kinds = dict.fromkeys(kind for tally in counted for kind in tally)
    calls = []
    for kind in kinds:
        found = [tally[kind] for tally in counted if kind in tally]
        number = found[-1].calls
        calls.append(
            ProxyCall(
                name=kind.name,
                group=kind.group,
                ranks=groups.size(kind.group),
                collective=kind.collective,
                calls=number,
                size_bytes=sum(each.size_bytes for each in found) / sum(each.calls for each in found),
                time_s=median(sorted(each.time_s for each in found)),
            )  # fmt: skip
        )
    step_s, communication_s, losses, norms = (tuple(column) for column in zip(*columns, strict=True))
    shares = [part / whole for whole, part in zip(step_s, communication_s, strict=True)][len(tallies) // 2 :]
    return ProxyResult(
        plan=plan, torch=version, backend=place.backend,
        devices=tuple(names),
        clock="two events around each collective in the stream that computes" if place.backend == "nccl"
        else "the time in each call",
        # As printed, so that the log and this say the same.
        step_s=tuple(round(each, 9) for each in step_s),
        communication_s=tuple(round(each, 9) for each in communication_s), losses=losses, gradient_norms=norms,
        counted_from=len(tallies) // 2 + 1, median_step_s=median(sorted(step_s[len(tallies) // 2 :])),
        communication=median(sorted(shares)), calls=tuple(sorted(calls, key=lambda each: -each.time_s)),
    )  # fmt: skip
