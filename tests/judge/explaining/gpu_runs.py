"""Runs over NCCL as busbw stores them, made by hand: the figures are given, everything else is as on such a host."""

from collections.abc import Sequence

from msgspec import structs
from tests.judge.factories import make_hello, make_measurement, make_outcome, make_plan

from busbw.base.collectives import COLLECTIVES
from busbw.judge import judge
from busbw.model.machine import GpuDevice, GpuHost, GpuSetup, Library
from busbw.model.record import GpuHello, Hello, NcclChoice, NcclPoint
from busbw.model.run import Measurement, Rates, Run

LIBRARY = Library(path="/l", version="2.28.9", origin="system")


def make_gpu_run(
    points: Sequence[Measurement], *, ranks: int = 4, hosts: Sequence[str] = ("node1",), model: str = "NVIDIA H200"
) -> Run:
    """Return a run of `ranks` GPUs on these hosts, as many on each, multicast off."""
    each = ranks // len(hosts)
    plan = structs.replace(
        make_plan(ranks=ranks),
        backend="native-nccl",
        mpi=None,
        gpus=GpuHost(
            devices=tuple(make_device(number, model) for number in range(each)),
            driver=LIBRARY,
            nccl=LIBRARY,
            nvrtc=None,
            config_fields=(),
            dtypes=("float32",),
        ),
        gpu_setup=GpuSetup(
            per_process=1,
            buffers="plain",
            nccl_memory=True,
            cache="cold",
            config=(),
            multicast_off=True,
            profiler=True,
            load_side=2048,
        ),
    )
    plan = structs.replace(plan, placement=structs.replace(plan.placement, hosts=tuple(hosts)))
    hellos = tuple(make_gpu_hello(rank, hosts[rank // each], rank % each, ranks, model) for rank in range(ranks))
    outcome = make_outcome()
    judgement = judge(plan, outcome, hellos, Rates(), tuple(points))
    return Run(
        plan=plan,
        outcome=outcome,
        ranks=hellos,
        rates=Rates(),
        measurements=tuple(points),
        ceilings=judgement.ceilings,
        findings=judgement.findings,
        verdict=judgement.verdict,
        unreadable=(),
    )


def make_device(ordinal: int, model: str) -> GpuDevice:
    return GpuDevice(
        ordinal=ordinal,
        model=model,
        bus_id=f"0000:0{ordinal}:00.0",
        memory_bytes=2**37,
        free_bytes=2**37,
        l2_bytes=2**25,
        multiprocessors=132,
        capability=90,
    )


def make_gpu_hello(rank: int, host: str, ordinal: int, ranks: int, model: str) -> Hello:
    gpu = GpuHello(
        ordinal=ordinal,
        model=model,
        bus_id=f"0000:0{ordinal}:00.0",
        free_bytes=2**37,
        nccl="2.28.9",
        nccl_path="/l",
        driver=13000,
        driver_path="/d",
        nvrtc_path=None,
        environment=(("NCCL_NVLS_ENABLE", "0"),),
    )
    return make_hello(rank, host=host, ranks=ranks, gpu=gpu)


def make_point(
    number: int,
    size_bytes: int,
    time_s: float,
    *,
    collective: str = "all_reduce",
    ranks: int = 4,
    pair: tuple[int, int] | None = None,
    chosen: tuple[str, str] | None = ("RING", "SIMPLE"),
) -> Measurement:
    """Return a measurement of `time_s`, with what NCCL says that it chose."""
    choices = (
        ()
        if chosen is None
        else (NcclChoice(function="AllReduce", algorithm=chosen[0], protocol=chosen[1], channels=24),)
    )
    factor = COLLECTIVES[collective].factor(ranks)
    return structs.replace(
        make_measurement(collective, size_bytes, time_s, point=number, ranks=ranks),
        pair=pair,
        per_rank=(),
        busbw_Bps=factor * size_bytes / time_s,
        algbw_Bps=size_bytes / time_s,
        nccl=NcclPoint(slots=1, footprint_bytes=1, graph_calls=0, product_ns=None, choices=choices, checked_by="gpu"),
    )
