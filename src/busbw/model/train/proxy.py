"""A small transformer that is trained for real: what every process of it does, and what came of it."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.train.plan import GroupKind
from busbw.model.train.workload import DataType, ModelShape

ProxyDevice = Literal["cpu", "gpu"]
# The names of its files, in the folder that it is given.
PLAN_NAME, LOG_NAME, RESULT_NAME = "plan.json", "train.log", "result.json"

# With a graph so many steps go before it: communicators and libraries have to be there when it is taken.
EAGER_STEPS = 3


class ProxyGroups(Value, kw_only=True, frozen=True):
    """The groups of one kind, by their ranks; every rank is in one of them."""

    kind: GroupKind
    ranks: tuple[tuple[Integer, ...], ...]


class ProxyPlan(Value, kw_only=True, frozen=True):
    """What every process is told."""

    schema: Integer = 1
    workload: str
    title: str
    model: ModelShape
    layers: Integer
    dtype: DataType
    # None: GPUs where there are any, else CPUs.
    device: ProxyDevice | None
    ranks: Integer
    tp: Integer
    ep: Integer
    dp: Integer
    expert_dp: Integer
    zero: Integer
    sequence: Integer
    micro_batch: Integer
    global_batch: Integer
    accumulation: Integer
    gradient_bytes: Integer
    groups: tuple[ProxyGroups, ...]
    steps: Integer
    # Whether a step is launched as one CUDA graph; then experts follow from a token's place, and are evenly loaded.
    graph: bool = False
    # How far Adam goes in a step.
    step_factor: float
    seed: Integer
    directory: str


class ProxyCall(Value, kw_only=True, frozen=True):
    """One kind of call of rank 0: what it is for, and what it took in the median step."""

    name: str
    group: GroupKind
    ranks: Integer
    collective: str
    # Of one step.
    calls: Integer
    # Of one call, as nccl-tests counts it: the mean, where experts are not evenly loaded.
    size_bytes: float
    # Of one step, on rank 0; and of it what is left once all ranks of the group are there: call by call the shortest
    # time of them. None: of a result that was written before it was taken.
    time_s: float
    transfer_s: float | None = None


class ProxyResult(Value, kw_only=True, frozen=True):
    """What rank 0 measured. Nothing runs beside a collective, so that all communication is exposed."""

    schema: Integer = 1
    plan: ProxyPlan
    torch: str
    backend: str
    devices: tuple[str, ...]
    # Variables of NCCL, PyTorch and the like that every process had.
    settings: tuple[tuple[str, str], ...]
    # How a collective's time was taken.
    clock: str
    # A place for each step: seconds, of them in collectives, and the loss of the whole batch.
    step_s: tuple[float, ...]
    communication_s: tuple[float, ...]
    losses: tuple[float, ...]
    gradient_norms: tuple[float, ...]
    # The first step, from 1, that the figures below are taken over: the second half of them. Medians.
    counted_from: Integer
    median_step_s: float
    communication: float
    calls: tuple[ProxyCall, ...]
