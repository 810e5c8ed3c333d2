"""Small valid values, each with what a test changes as arguments."""

from typing import Any

from busbw.base.collectives import COLLECTIVES, busbw_Bps
from busbw.model.machine import Host, HostCounters, MpiLibrary
from busbw.model.plan import Job, MemoryNeed, Placement, Plan, Sampling, Sweep
from busbw.model.record import Hello, Mismatch
from busbw.model.run import CopyRate, Measurement, Outcome, RankView, Rates, StreamRate, WrongResult

MiB = 2**20
HOST = "node1"


def make_host(**changes: Any) -> Host:
    values: dict[str, Any] = {
        "name": HOST,
        "kernel": "6.1",
        "os_name": None,
        "cpu_model": None,
        "cpus": (0, 1, 2, 3),
        "cores": 4,
        "numa_nodes": 1,
        "memory_bytes": 2**34,
        "memory_available_bytes": 2**33,
        "hypervisor": None,
        "container": None,
        "governor": None,
        "huge_pages": None,
        "cpu_quota": None,
    }
    return Host(**(values | changes))


def make_sweep(collective: str = "all_gather", sizes_bytes: tuple[int, ...] = (MiB,), **changes: Any) -> Sweep:
    values: dict[str, Any] = {"dtype": "float32", "op": "sum", "root": 0, "in_place": False}
    return Sweep(collective=collective, sizes_bytes=sizes_bytes, **(values | changes))


def make_plan(
    *sweeps: Sweep, ranks: int = 4, family: str = "Open MPI", oversubscribed: bool = False, **host: Any
) -> Plan:
    """Return a plan of `sweeps`; without any, of nothing, so that no point can be missing."""
    return Plan(
        busbw_version="0.1.0",
        run_id="r",
        created="2026-01-01T00:00:00Z",
        backend="native-mpi",
        launcher="local",
        sweeps=sweeps,
        sampling=Sampling(mode="isolated", time_limit_s=60.0),
        placement=Placement(ranks=ranks, hosts=(HOST,), binding="core", oversubscribed=oversubscribed),
        host=make_host(**host),
        mpi=MpiLibrary(family=family, version="5", mpirun="/m", library="/l", origin="site"),  # type: ignore[arg-type]
        memory=MemoryNeed(buffers_bytes=1, overhead_bytes=1, scratch_bytes=1),
        job=Job(argv=("mpirun",), env=(), timeout_s=60.0, stall_s=10.0),
    )


def make_counters(**changes: Any) -> HostCounters:
    values: dict[str, Any] = {
        "stolen_s": 0.0,
        "cpu_s": 0.0,
        "quota_stops": 0,
        "throttle_events": 0,
        "memory_kills": 0,
        "load_average": 0.0,
    }
    return HostCounters(**(values | changes))


def make_outcome(before: HostCounters | None = None, after: HostCounters | None = None, **changes: Any) -> Outcome:
    values: dict[str, Any] = {"ended": "complete", "cause": None, "culprit": None, "exit_code": 0, "wall_s": 10.0}
    return Outcome(
        counters_before=before or make_counters(),
        counters_after=after or make_counters(cpu_s=40.0),
        **(values | changes),
    )


def make_hello(rank: int = 0, **changes: Any) -> Hello:
    values: dict[str, Any] = {
        "ranks": 4,
        "host": HOST,
        "process_id": 100 + rank,
        "cpus": (rank,),
        "mpi_version": "4.0",
        "mpi_library": "Open MPI v5",
        "handle_bytes": 8,
        "thread_level": "single",
        "interposed": (),
        "small_float_reductions": "mpi",
        "clock_cost_ns": 20.0,
        "clock_step_ns": 1,
    }
    return Hello(rank=rank, **(values | changes))


def make_rates(copy_Bps: float = 40e9, stream_Bps: float | None = None) -> Rates:
    """Return one copy rate for every size, and one stream rate for both patterns."""
    return Rates(
        copies=(
            CopyRate(size_bytes=2**16, rate_Bps=copy_Bps, kernel="memcpy"),
            CopyRate(size_bytes=2**24, rate_Bps=copy_Bps, kernel="memcpy"),
        ),
        streams=()
        if stream_Bps is None
        else (StreamRate(pattern="ring", rate_Bps=stream_Bps), StreamRate(pattern="pairs", rate_Bps=stream_Bps)),
    )


def make_views(ranks: int = 4, blamed: dict[int, int] | None = None, losses: int = 0) -> tuple[RankView, ...]:
    return tuple(
        RankView(
            rank=rank,
            host=HOST,
            median_s=1e-4,
            p99_s=None,
            max_s=1e-3,
            blamed=(blamed or {}).get(rank, 0),
            involuntary_switches=losses,
        )
        for rank in range(ranks)
    )


def make_wrong(**changes: Any) -> WrongResult:
    mismatch = Mismatch(wrong=1, index=7, got="1.5", expected="2")
    return WrongResult(**({"rank": 2, "host": HOST, "mismatch": mismatch} | changes))


def make_measurement(
    collective: str = "all_gather",
    size_bytes: int = MiB,
    median_s: float = 1e-4,
    *,
    spread: float = 0.005,
    ranks: int = 4,
    **changes: Any,
) -> Measurement:
    """Return a good measurement; `spread` is half the width of its interval as a share of the median."""
    values: dict[str, Any] = {
        "point": 0,
        "count": size_bytes // 4,
        "dtype": "float32",
        "op": "sum",
        "root": 0,
        "in_place": False,
        "mode": "isolated",
        "samples": 1000,
        "missed": 0,
        "calls_per_sample": 1,
        "low_s": median_s * (1 - spread),
        "high_s": median_s * (1 + spread),
        "confidence": 0.95,
        "min_s": median_s * 0.9,
        "max_s": median_s * 2,
        "mean_s": median_s,
        "percentiles": ((50.0, median_s), (99.0, median_s * 1.5)),
        "busbw_Bps": busbw_Bps(COLLECTIVES[collective], size_bytes, ranks, median_s),
        "algbw_Bps": size_bytes / median_s,
        "clock_error_s": 0.0,
        "warmup_calls": 10,
        "warmup_stable": True,
        "autocorrelation": 0.0,
        "drift": 0.0,
        "slow_samples": 0,
        "slow_excess_s": None,
        "wrong": None,
        "verified": True,
        "ended": "interval",
        "tcp_share": (),
        "per_rank": make_views(ranks),
        "attribution": (),
        "source": "rank-00000.0.jsonl:3",
    }
    return Measurement(
        collective=collective, size_bytes=size_bytes, median_s=median_s, ranks=ranks, **(values | changes)
    )
