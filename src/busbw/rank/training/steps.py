"""The steps of one process: data, forward, backward, update; the log that `busbw train read` reads, and the result.

Rank 0 alone writes, and nothing before every rank has found what it needs.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from busbw.base.errors import InputError
from busbw.model import codec
from busbw.model.train.proxy import EAGER_STEPS, LOG_NAME, PLAN_NAME, RESULT_NAME, ProxyCall, ProxyPlan, ProxyResult
from busbw.rank.training.communication import CallKind, CallTally, CallTimes, Meter, ProcessGroups
from busbw.rank.training.transformer import Transformer
from busbw.rank.training.updating import Updater
from busbw.stats.distributions import median

_SETTINGS = ("NCCL_", "TORCH_", "NVSHMEM_", "GLOO_", "UCX_", "CUDA_", "OMP_")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a process computes, and the settings that it was given."""

    device: str
    settings: tuple[tuple[str, str], ...]


def _settings() -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(_SETTINGS)))


@dataclass(frozen=True, slots=True)
class _Step:
    """What one step took, and what it came to."""

    step_s: float
    tallies: dict[CallKind, CallTally]
    loss: float
    norm: float

    @property
    def communication_s(self) -> float:
        """All collectives of it."""
        return sum(each.time_s for each in self.tallies.values())


def train(plan: ProxyPlan, rank: int, device: torch.device, device_name: str) -> None:
    """Train as planned, with every other process. Raises InputError where the folder is there already."""
    on_gpu = device.type == "cuda"
    groups = ProcessGroups(plan, rank, Meter(has_events=on_gpu))
    model = Transformer.drawn(plan, groups, device)
    updater = Updater(model, plan, groups)
    places: list[_Place] = [_Place("", ())] * plan.ranks
    dist.all_gather_object(places, _Place(device_name, _settings()))
    log = _Log(plan, device_name) if rank == 0 else None
    steps = []
    launch = _Launch(model, updater)
    for number in range(1, plan.steps + 1):
        if plan.graph and number == EAGER_STEPS + 1:
            launch.capture(_tokens(plan, rank, number))
        steps.append(_step(launch, _tokens(plan, rank, number)))
        if log is not None:
            log.step(number, steps[-1])
    counted = steps[len(steps) // 2 :]
    of_ranks: list[list[CallTimes]] = [[] for _ in range(plan.ranks)]
    dist.all_gather_object(of_ranks, [{kind: each.times_s for kind, each in step.tallies.items()} for step in counted])
    if log is not None:
        log.finish(_result(plan, places, steps, groups, of_ranks, on_gpu=on_gpu))


class _Launch:
    """Starts the kernels of a step: one by one, or, once captured, all of them as one CUDA graph."""

    def __init__(self, model: Transformer, updater: Updater) -> None:
        self.model = model
        self._updater = updater
        self._graph: Any = None
        self._batches: list[torch.Tensor] = []
        # What is captured later has to have run in the stream that it is captured in.
        self._stream = torch.cuda.Stream() if model.plan.graph else None
        self._loss = self._norm = torch.zeros(1)

    def start(self, batches: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Start a step; return its loss, of this process's tokens, and the norm of its gradient."""
        if self._graph is not None:
            for place, batch in zip(self._batches, batches, strict=True):
                place.copy_(batch)
            self._graph.replay()
        elif self._stream is not None:
            with torch.cuda.stream(self._stream):
                self._loss, self._norm = self._all(batches)
        else:
            self._loss, self._norm = self._all(batches)
        return self._loss, self._norm

    def capture(self, batches: list[torch.Tensor]) -> None:
        """Capture a step, without doing it: from here on it is launched as one graph."""
        meter = self.model.groups.meter
        self._batches = [batch.to(self.model.device) for batch in batches]
        torch.cuda.synchronize()
        meter.in_graph = True
        graph = torch.cuda.CUDAGraph()
        # Threads of NCCL's watchdog ask for events meanwhile.
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            self._loss, self._norm = self._all(self._batches)
        self._graph = graph

    def _all(self, batches: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        plan = self.model.plan
        loss = torch.zeros(1, device=self.model.device)
        for batch in batches:
            part = self.model.loss(batch.to(self.model.device))
            part.backward()
            loss += part.detach()
            self._updater.add()
        return loss, self._updater.finish(plan.global_batch * plan.sequence)


def _step(launch: _Launch, batches: list[torch.Tensor]) -> _Step:
    """Do one step, from when all processes are there until this one's device is done."""
    model = launch.model
    plan, meter, on_gpu = model.plan, model.groups.meter, model.groups.meter.has_events
    dist.barrier()
    if on_gpu:
        torch.cuda.synchronize()
    begin_s = time.perf_counter()
    loss, norm = launch.start(batches)
    if on_gpu:
        torch.cuda.synchronize()
    step_s = time.perf_counter() - begin_s
    # Each rank of TP has the whole loss of its tokens.
    total = loss.clone()
    dist.all_reduce(total)
    return _Step(step_s, meter.taken(), float(total) / (plan.tp * plan.global_batch * plan.sequence), float(norm))


def _tokens(plan: ProxyPlan, rank: int, step: int) -> list[torch.Tensor]:
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

    def __init__(self, plan: ProxyPlan, device: str) -> None:
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
        self._say(f"  device {'.' * 42} {device}")

    def step(self, number: int, step: _Step) -> None:
        """Write the line of a step."""
        self._say(
            f"busbw proxy step {number}/{self._plan.steps} | step time (ms): {step.step_s * 1e3:.6f} | communication "
            f"(ms): {step.communication_s * 1e3:.6f} | loss: {step.loss:.6f} | gradient norm: {step.norm:.4f}"
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
    plan: ProxyPlan,
    places: list[_Place],
    steps: list[_Step],
    groups: ProcessGroups,
    of_ranks: list[list[CallTimes]],
    *,
    on_gpu: bool,
) -> ProxyResult:
    first = len(steps) // 2
    counted = steps[first:]
    kinds = dict.fromkeys(kind for step in counted for kind in step.tallies)
    calls = [
        _call(
            kind,
            [step.tallies[kind] for step in counted if kind in step.tallies],
            groups,
            [_shortest(kind, [of_ranks[rank][place] for rank in groups.members(kind.group)])
             for place, step in enumerate(counted) if kind in step.tallies],
        )
        for kind in kinds
    ]  # fmt: skip
    return ProxyResult(
        plan=plan,
        torch=str(torch.__version__),
        backend=str(dist.get_backend()),
        devices=tuple(each.device for each in places),
        settings=tuple(each for each in places[0].settings if all(each in other.settings for other in places)),
        clock="two events around each in the stream that computes" if on_gpu else "the time in each call",
        # As printed, so that the log and this say the same.
        step_s=tuple(round(step.step_s, 9) for step in steps),
        communication_s=tuple(round(step.communication_s, 9) for step in steps),
        losses=tuple(step.loss for step in steps),
        gradient_norms=tuple(step.norm for step in steps),
        counted_from=first + 1,
        median_step_s=median(sorted(step.step_s for step in counted)),
        communication=median(sorted(step.communication_s / step.step_s for step in counted)),
        calls=tuple(sorted(calls, key=lambda each: -each.time_s)),
    )


def _shortest(kind: CallKind, of_group: list[CallTimes]) -> float:
    """Return what the calls of a step take once all ranks are there: of each the shortest that a rank of its group saw.

    The last rank to come waits for none.
    """
    return sum(map(min, zip(*(times[kind] for times in of_group), strict=True)))


def _call(kind: CallKind, tallies: list[CallTally], groups: ProcessGroups, transfer_s: list[float]) -> ProxyCall:
    return ProxyCall(
        name=kind.name,
        group=kind.group,
        ranks=groups.size(kind.group),
        collective=kind.collective,
        calls=tallies[-1].calls,
        size_bytes=sum(each.size_bytes for each in tallies) / sum(each.calls for each in tallies),
        time_s=median(sorted(each.time_s for each in tallies)),
        transfer_s=median(sorted(transfer_s)),
    )
