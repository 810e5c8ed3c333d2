"""Runs for the reports: measured values in every place, and as much of it hostile as a test wants."""

from typing import Any

from msgspec import structs
from tests.judge.factories import (
    MiB,
    make_hello,
    make_measurement,
    make_outcome,
    make_plan,
    make_rates,
    make_sweep,
    make_views,
)

from busbw import judge
from busbw.env.layers import layers
from busbw.model.finding import Finding, Verdict
from busbw.model.plan import Plan
from busbw.model.run import Run
from busbw.model.settings import JobEnvironment
from busbw.model.visit import Autopsy
from busbw.show.page.pictures import ReportSubject, labels_of

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv")
SIZES = tuple(8 * 8**step for step in range(8))
HOSTILE = (
    "<script>window.injected=1</script><img src=x onerror=window.injected=1>\"'&"
    "\x1b[31m\x9b31m\u202e</script><!--${7*7}"
)


def make_full_plan(**host: Any) -> Plan:
    return make_plan_of(*COLLECTIVES, **host)


def make_plan_of(*collectives: str, **host: Any) -> Plan:
    return make_plan(*(make_sweep(name, SIZES) for name in collectives), **host)


def make_run(plan: Plan | None = None, **changes: Any) -> Run:
    """Return a judged run of six collectives over eight sizes, with one rank that delays the others."""
    plan = make_full_plan() if plan is None else plan
    measurements = tuple(
        make_measurement(
            sweep.collective,
            size_bytes,
            2e-6 + size_bytes / 8e9,
            point=8 * place + step,
            percentiles=((50.0, 2e-6 + size_bytes / 8e9), (99.0, 9e-6 + size_bytes / 4e9)),
            per_rank=make_views(blamed={2: 40}),
            slow_samples=50,
            slow_excess_s=2e-4,
        )
        for place, sweep in enumerate(plan.sweeps)
        for step, size_bytes in enumerate(sweep.sizes_bytes)
    )
    hellos = tuple(make_hello(rank, **changes.pop(f"hello_{rank}", {})) for rank in range(plan.placement.ranks))
    outcome = make_outcome()
    judgement = judge.judge(plan, outcome, hellos, make_rates(), measurements)
    values: dict[str, Any] = {
        "plan": plan,
        "outcome": outcome,
        "ranks": hellos,
        "rates": make_rates(),
        "measurements": measurements,
        "ceilings": judgement.ceilings,
        "findings": judgement.findings,
        "verdict": judgement.verdict,
        "unreadable": (),
    }
    return Run(**(values | changes))


def make_empty_run(**changes: Any) -> Run:
    """Return a run that measured nothing and was cut off."""
    plan = make_plan(make_sweep("all_reduce", (MiB,)))
    judgement = judge.judge(plan, None, (), make_rates(), ())
    values: dict[str, Any] = {
        "outcome": None,
        "ranks": (),
        "measurements": (),
        "ceilings": (),
        "findings": judgement.findings,
        "verdict": judgement.verdict,
    }
    return make_run(plan, **(values | changes))


def make_hostile_run() -> Run:
    """Return a run whose host, tag, notes, settings, findings, hosts and log lines hold markup and control codes."""
    surroundings = JobEnvironment(where=HOSTILE, environment={f"NCCL_{HOSTILE}": HOSTILE}, unseen=(HOSTILE,))
    plan = structs.replace(
        make_full_plan(name=HOSTILE, cpu_model=HOSTILE), tag=HOSTILE, notes=(HOSTILE,), surroundings=surroundings
    )
    autopsy = Autopsy(
        culprit=None, because=HOSTILE, compared=False, ranks=(), hosts=(), silent=(), ras=HOSTILE, words=(HOSTILE,)
    )
    return make_run(
        plan,
        findings=(
            Finding(code="RUN001", severity="error", title=HOSTILE, evidence=HOSTILE, fix=HOSTILE, source=HOSTILE),
        ),
        verdict=Verdict(outcome="slow", sentence=f"slow: {HOSTILE}", because=("RUN001",)),
        unreadable=(HOSTILE,),
        autopsy=autopsy,
        hello_1={"host": HOSTILE, "mpi_library": HOSTILE},
    )


def subjects(*runs: Run) -> tuple[ReportSubject, ...]:
    return tuple(
        ReportSubject(
            run=run,
            label=label,
            settings=layers(run.plan.surroundings) if run.plan.surroundings is not None else None,
            unseen=run.plan.surroundings.unseen if run.plan.surroundings is not None else (),
        )
        for run, label in zip(runs, labels_of(runs), strict=True)
    )
