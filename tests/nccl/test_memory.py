"""What a plan says that GPUs must hold is what ranks then allocate, and what does not fit is refused beforehand."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.standin.build import StandIn

from busbw import _core
from busbw.base.collectives import NCCL_COLLECTIVES
from busbw.base.errors import InputError
from busbw.measure.backends.native_nccl import capabilities_of, check_gpus_fit, gpu_need_of
from busbw.measure.plan.sweeps import sweeps_of
from busbw.model.machine import GpuDevice, GpuHost, GpuSetup, Library
from busbw.model.plan import MemoryNeed
from busbw.model.request import Request
from busbw.rank.nccl.buffers import Libraries, NcclBuffers

from .harness import ROOT, NcclBusbw, assert_refused
from .together import cache_of

GiB = 2**30
L2_BYTES = 4 << 20
LIBRARY = Library(path="lib", version="2.28.9", origin="named")
SETUP = GpuSetup(
    per_process=1, buffers="plain", nccl_memory=False, cache="cold", config=(), multicast_off=False, profiler=False,
    load_side=4,
)  # fmt: skip


def host_of(*free_bytes: int) -> GpuHost:
    devices = (
        GpuDevice(
            ordinal=number, model="GPU", bus_id=str(number), memory_bytes=GiB, free_bytes=free, l2_bytes=L2_BYTES,
            multiprocessors=4, capability=90,
        )
        for number, free in enumerate(free_bytes)
    )  # fmt: skip
    return GpuHost(
        devices=tuple(devices), driver=LIBRARY, nccl=LIBRARY, nvrtc=None, config_fields=(), dtypes=("float32", "int8")
    )


@pytest.fixture(scope="module")
def opened(standin: StandIn) -> Iterator[tuple[Libraries, _core.Gpu]]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cache_of(ROOT).items():
            patch.setenv(name, value)
        cuda = _core.Cuda(str(standin.cuda))
        libraries = Libraries(cuda=cuda, nccl=_core.Nccl(str(standin.nccl())), nvrtc=None)
        yield libraries, _core.Gpu(cuda, 0, code=b"")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.sampled_from(NCCL_COLLECTIVES), min_size=1, max_size=4, unique=True),
    ranks=st.sampled_from([2, 4, 8]),
    largest=st.sampled_from([200, 5000, 70_000, 3 << 20, 40 << 20]),
    cache=st.sampled_from(["cold", "warm"]),
    placement=st.sampled_from(["in", "out", "both"]),
)
def test_ranks_allocate_no_more_than_was_planned(
    opened: tuple[Libraries, _core.Gpu], names: list[str], ranks: int, largest: int, cache: str, placement: str
):
    libraries, gpu = opened
    request = Request(
        collectives=tuple(names), smallest_bytes=min(largest, 4096), largest_bytes=largest, factor=16, group=2,
        placement=placement,
    )  # fmt: skip
    sweeps, _notes = sweeps_of(request, ranks, capabilities_of(("float32",)))
    setup = GpuSetup(**{name: getattr(SETUP, name) for name in SETUP.__struct_fields__} | {"cache": cache})

    need = gpu_need_of(sweeps, ranks, setup, host_of(*[GiB] * ranks))
    made = NcclBuffers(libraries, [gpu], setup, sweeps, ranks)

    allocated = sum(memories[0].size for memories in (made.send, made.receive, made.scratch))
    assert allocated <= need.buffers_bytes // ranks


def test_only_gpus_that_are_used_must_have_room():
    need = MemoryNeed(buffers_bytes=2 * GiB // 2, overhead_bytes=0, scratch_bytes=0)

    assert check_gpus_fit(need, 2, host_of(GiB, GiB, 7)) is None
    with pytest.raises(InputError, match="GPU 1 has 7 B free"):
        check_gpus_fit(need, 2, host_of(GiB, 7, GiB))


def test_buffers_that_several_collectives_share_are_counted_together(busbw: NcclBusbw):
    # Each of the two alone would fit: one needs a large buffer to send from, the other one to receive into.
    result = busbw.nccl(
        "all_gather", "reduce_scatter", "--ranks", 2, "-b", "512M", "-e", "512M",
        env={"STANDIN_MEMORY_BYTES": str(900 << 20)},
    )  # fmt: skip

    assert_refused(result, "each GPU needs", "900 MiB free")
