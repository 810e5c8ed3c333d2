"""Records of ranks as the native backend writes them, each with what a test changes as arguments."""

from typing import Any

from busbw.measure.backends.backend import Parsed
from busbw.measure.backends.native_mpi import parse
from busbw.model.machine import Host, MpiLibrary
from busbw.model.plan import Job, MemoryNeed, Placement, Plan, Sampling, Sweep
from busbw.model.record import AnyRecord, Copied, Hello, Measured
from busbw.model.run import Measurement

SIZE_BYTES = 2**20
US = 1000


def make_sweep(collective: str = "all_reduce", sizes_bytes: tuple[int, ...] = (SIZE_BYTES,), **changes: Any) -> Sweep:
    values: dict[str, Any] = {"dtype": "float32", "op": "sum", "root": 0, "in_place": False}
    return Sweep(collective=collective, sizes_bytes=sizes_bytes, **(values | changes))


def make_plan(*sweeps: Sweep, ranks: int = 4, mode: Any = "isolated") -> Plan:
    return Plan(
        busbw_version="0.1.0",
        run_id="r",
        created="2026-01-01T00:00:00Z",
        backend="native-mpi",
        launcher="local",
        sweeps=sweeps or (make_sweep(),),
        sampling=Sampling(mode=mode, time_limit_s=60.0),
        placement=Placement(ranks=ranks, hosts=("node1",), binding="core", oversubscribed=False),
        host=Host(
            name="node1",
            kernel="6.1",
            os_name=None,
            cpu_model=None,
            cpus=(0, 1, 2, 3),
            cores=4,
            numa_nodes=1,
            memory_bytes=2**34,
            memory_available_bytes=2**33,
            hypervisor=None,
            container=None,
            governor=None,
            huge_pages=None,
            cpu_quota=None,
        ),
        mpi=MpiLibrary(family="Open MPI", version="5", mpirun="/m", library="/l", origin="site"),
        memory=MemoryNeed(buffers_bytes=1, overhead_bytes=1, scratch_bytes=1),
        job=Job(argv=("mpirun",), env=(), timeout_s=60.0, stall_s=10.0),
    )


def make_hello(rank: int, **changes: Any) -> Hello:
    values: dict[str, Any] = {
        "ranks": 4,
        "host": "node1",
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


def make_measured(duration_ns: tuple[int, ...] = (100 * US,) * 40, **changes: Any) -> Measured:
    values: dict[str, Any] = {
        "point": 0,
        "sweep": 0,
        "size_bytes": SIZE_BYTES,
        "calls_per_sample": 1,
        "warmup_calls": 10,
        "warmup_stable": True,
        "lateness_ns": (0,) * len(duration_ns),
        "off_processor_ns": (0,) * len(duration_ns),
        "missed": (),
        "clock_offset_ns": 0,
        "clock_error_ns": 1,
        "clock_shared": True,
        "mismatch": None,
        "verified_elements": 1,
        "voluntary_switches": 0,
        "involuntary_switches": 0,
        "tcp_bytes": (),
        "attribution": (),
        "ended": "interval",
        "started_unix_s": 1.0,
        "ended_unix_s": 2.0,
    }
    return Measured(duration_ns=duration_ns, **(values | changes))


def make_copied(duration_ns: tuple[int, ...], kernel: Any = "loop", size_bytes: int = 2**16) -> Copied:
    return Copied(kernel=kernel, size_bytes=size_bytes, duration_ns=duration_ns)


def placed(*by_rank: list[AnyRecord], attempt: int = 0) -> dict[int, list[tuple[str, AnyRecord]]]:
    """Return the records of ranks 0, 1, ... as the store gives them, each with its place."""
    return {
        rank: [(f"raw/rank-{rank:05d}.{attempt}.jsonl:{line}", record) for line, record in enumerate(records, start=1)]
        for rank, records in enumerate(by_rank)
    }


def parsed(plan: Plan, *measured: Measured) -> Parsed:
    """Return what is made of one record of each rank."""
    return parse(plan, placed(*([make_hello(rank), record] for rank, record in enumerate(measured))))


def measurement(plan: Plan, *measured: Measured) -> Measurement:
    """Return the one measurement that is made of one record of each rank."""
    (found,) = parsed(plan, *measured).measurements
    return found
