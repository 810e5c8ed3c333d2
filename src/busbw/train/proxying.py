"""The plan of a small transformer that is trained for real: which workloads it can be, and who is in which group."""

from collections.abc import Sequence

from busbw.base.errors import InputError
from busbw.model.train.plan import GroupKind
from busbw.model.train.proxy import EAGER_STEPS, ProxyDevice, ProxyGroups, ProxyPlan
from busbw.train.layout import RankLayout, group_of, layout_of, members
from busbw.train.planning import TrainJob
from busbw.train.shape import head_width

MOST_RANKS = 1024
MOST_STEPS = 100_000
# Adam's, for models that learn to count: less for wider ones, as sums over more weights move further.
_STEP_FACTOR, _OF_WIDTH = 3e-3, 128
_SEED = 1
_KINDS: tuple[GroupKind, ...] = ("TP", "EP", "DP", "expert-DP", "all")
_FP8_MULTIPLE = 16
LEAST_GRAPH_STEPS = 4 * EAGER_STEPS


def proxy_plan(
    job: TrainJob, *, steps: int, device: ProxyDevice | None, directory: str, graph: bool = False
) -> ProxyPlan:
    """Return what every process does.

    Raises InputError for a job that cannot be, and for one that this transformer is not made for.
    """
    model, configuration = job.workload.model, job.configuration
    layout = layout_of(model, configuration, job.order)
    _check(job, layout, steps, device)
    if graph:
        _check_graph(job, steps, device)
    p = configuration.parallelism
    return ProxyPlan(
        workload=job.workload.id, title=job.workload.title, model=model, layers=job.layers, dtype=job.dtype,
        device=device, ranks=layout.gpus, tp=layout.tp, ep=layout.ep, dp=layout.dp, expert_dp=layout.expert_dp,
        zero=p.zero, sequence=configuration.sequence, micro_batch=configuration.micro_batch,
        global_batch=configuration.global_batch, accumulation=layout.accumulation, gradient_bytes=p.gradient_bytes,
        groups=tuple(ProxyGroups(kind=kind, ranks=_ranks(layout, kind)) for kind in _KINDS), steps=steps, graph=graph,
        step_factor=_STEP_FACTOR * _OF_WIDTH / model.hidden, seed=_SEED, directory=directory,
    )  # fmt: skip


def _ranks(layout: RankLayout, kind: GroupKind) -> tuple[tuple[int, ...], ...]:
    """Return the groups of a kind, each by its ranks in order."""
    group = group_of(layout, kind)
    found: list[tuple[int, ...]] = []
    seen: set[int] = set()
    for rank in range(layout.gpus):
        if rank not in seen:
            found.append(tuple(sorted(members(group.sizes, group.strides, rank))))
            seen.update(found[-1])
    return tuple(found)


def _check(job: TrainJob, layout: RankLayout, steps: int, device: ProxyDevice | None) -> None:
    """Raise InputError for what the transformer does not do, with what it does."""
    model, p = job.workload.model, job.configuration.parallelism
    if not 1 <= steps <= MOST_STEPS:
        raise InputError(f"{steps} steps", where="--steps", hint=f"1 to {MOST_STEPS}")
    if layout.gpus > MOST_RANKS:
        raise InputError(f"{layout.gpus} ranks", hint=f"the proxy runs on {MOST_RANKS} at most")
    lacks: Sequence[tuple[bool, str, str]] = (
        (p.pp > 1 or p.cp > 1, f"PP {p.pp} and CP {p.cp}", "--layout pp=1,cp=1,vp=1"),
        (p.zero > 1, f"ZeRO {p.zero}", "--layout zero=1"),
        (p.sequence_parallel and p.tp > 1, "sequence parallelism", "sequence_parallel = false in the workload's file"),
        (p.recompute == "full", "full recomputation", 'recompute = "selective" in the workload\'s file'),
        (model.latent is not None, "attention through compressed keys and values", "another workload"),
        (model.tied, "a head that is the embedding", "tied = false"),
        (model.key_value_heads % p.tp > 0, f"{model.key_value_heads} key_value_heads over TP {p.tp}", "--layout tp=1"),
        (model.vocabulary % p.tp > 0, f"a vocabulary of {model.vocabulary} over TP {p.tp}", "--layout tp=1"),
        (head_width(model) % 2 > 0, f"heads of {head_width(model)} columns", "an even head_width"),
        (model.experts is not None and not model.experts.tensor_parallel and p.tp > 1,
         "whole experts beside TP", "tensor_parallel = true in experts"),
        (job.dtype == "fp16", "fp16, which needs its loss scaled", "--dtype bf16"),
    )  # fmt: skip
    for is_so, what, instead in lacks:
        if is_so:
            raise InputError(f"the proxy does not do {what}", where=job.workload.id, hint=instead)
    if job.dtype == "fp8":
        if device == "cpu":
            raise InputError("CPUs do not multiply in FP8", where="--dtype fp8", hint="--dtype bf16")
        _check_fp8(job, layout)


def _check_graph(job: TrainJob, steps: int, device: ProxyDevice | None) -> None:
    """Raise InputError for what cannot be launched as one graph."""
    if device == "cpu":
        raise InputError("CPUs have no CUDA graphs", where="--graph", hint="--device gpu, or without --graph")
    if steps < LEAST_GRAPH_STEPS:
        raise InputError(
            f"{steps} steps, and the first {EAGER_STEPS} are not launched as a graph",
            where="--steps",
            hint=f"--steps {LEAST_GRAPH_STEPS} or more",
        )
    experts, configuration = job.workload.model.experts, job.configuration
    chosen = configuration.micro_batch * configuration.sequence * (experts.top_k if experts is not None else 0)
    if experts is not None and chosen % experts.number:
        raise InputError(
            f"a graph has evenly loaded experts, and {chosen} choices of a micro-batch do not divide by "
            f"{experts.number} experts",
            where=job.workload.id,
            hint="another sequence or --layout micro_batch=N",
        )


def _check_fp8(job: TrainJob, layout: RankLayout) -> None:
    """Raise InputError for matrices that FP8 products cannot take: all sides are multiples of 16."""
    model = job.workload.model
    width, experts = head_width(model), model.experts
    sides = {
        "hidden": model.hidden,
        "queries of a rank": model.heads * width // layout.tp,
        "keys and values of a rank": 2 * model.key_value_heads * width // layout.tp,
        "ffn of a rank": model.ffn // layout.tp,
        "an expert's ffn on a rank": (experts.ffn if experts is not None else _FP8_MULTIPLE) // layout.tp,
        "shared ffn of a rank": (experts.shared_ffn if experts is not None else 0) // layout.tp,
    }
    wrong = next((f"{name} {side}" for name, side in sides.items() if side % _FP8_MULTIPLE), None)
    if wrong is not None:
        raise InputError(
            f"products in FP8 take sides that are multiples of {_FP8_MULTIPLE}: {wrong}",
            where=job.workload.id,
            hint="--dtype bf16",
        )
