"""A workload with every kind of group on eight ranks, and runs of steps that are replayed."""

from msgspec import structs
from tests.judge.factories import make_hello, make_measurement, make_plan
from tests.report.factories import make_run

from busbw.model.record import StepsTaken
from busbw.model.run import Run
from busbw.model.train.replay import StepAsked
from busbw.train.planning import job_of
from busbw.train.replaying import RankRate, result_of, step_of
from busbw.train.workloads import read_workload

EIGHT = """\
id = "eight"
title = "Two of each on eight ranks"
dtypes = ["bf16"]

[model]
layers = 4
hidden = 128
heads = 4
key_value_heads = 2
ffn = 256
vocabulary = 512
experts = { number = 4, top_k = 2, ffn = 256 }

[[configuration]]
gpus = 8
sequence = 64
micro_batch = 2
global_batch = 8
parallelism = { tp = 2, pp = 2, ep = 2, sequence_parallel = true, zero = 1, overlap = ["tp", "pp", "dp"] }
"""
SIXTY_FOUR = EIGHT.replace("gpus = 8", "gpus = 64").replace("global_batch = 8", "global_batch = 64")


def replayed_run(ranks: int, *, replayed: bool = True) -> Run:
    """Return a run over 8 or 64 ranks as if each call took 1 ms, a third of it exposed where it is overlapped."""
    workload = read_workload(EIGHT if ranks == 8 else SIXTY_FOUR, "stepping.toml")
    rate = RankRate(flops=1e9, words="of the test")
    step, sweeps = step_of(job_of(workload, None, None), StepAsked(workload="stepping.toml"), rate, 10.0, 16)
    busy_ns = tuple(call.calls * 1_000_000 for call in step.calls)
    exposed_ns = tuple(
        ns // 3 if call.overlaps else ns for ns, call in zip(busy_ns, step.calls, strict=True)
    )  # fmt: skip
    compute_ns = round(step.compute_s * 1e9)
    taken = StepsTaken(
        step_ns=(compute_ns + sum(exposed_ns) + 5_000_000,) * 8, compute_ns=(compute_ns,) * 8, busy_ns=(busy_ns,) * 8,
        exposed_ns=(exposed_ns,) * 8, checked=(None,) * len(step.calls),
    )  # fmt: skip
    alone = tuple(
        make_measurement(call.collective, call.size_bytes, 4e-4, point=number)
        for number, call in enumerate(step.calls)
    )  # fmt: skip
    found = result_of(step, {rank: [taken] for rank in range(ranks)}, ranks, alone)
    assert found is not None
    plan = structs.replace(make_plan(*sweeps, ranks=ranks), step=step)
    return make_run(
        plan, measurements=alone, ranks=tuple(make_hello(rank) for rank in range(ranks)),
        step=found if replayed else None,
    )  # fmt: skip
