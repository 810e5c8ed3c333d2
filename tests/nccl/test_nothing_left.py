"""What Python begins and the driver or NCCL refuses leaves nothing behind, and what it lends stays while it is used."""

import ctypes
import mmap
from collections.abc import Iterator

import pytest
from tests.standin.build import StandIn

from busbw import _core
from busbw.base import layout

from .harness import ROOT
from .together import Shape, Together, cache_of

VERSION = 22809
SHAPE = Shape(kind="all_reduce", ranks=2, count=64)
COUNTED = ("Contexts", "Streams", "CapturingStreams", "Graphs", "Modules", "Allocations")


@pytest.fixture(scope="module")
def world(standin: StandIn) -> Iterator[Together]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cache_of(ROOT).items():
            patch.setenv(name, value)
        yield Together(standin, VERSION, SHAPE.ranks, kernels=True)


@pytest.fixture
def driver(standin: StandIn, world: Together) -> Iterator[ctypes.CDLL]:
    """Return the stand-in that the core has open; afterwards it refuses nothing."""
    opened = ctypes.CDLL(str(standin.cuda))
    yield opened
    opened.standinRefuse(b"")


def held(driver: ctypes.CDLL) -> dict[str, int]:
    """Return how much of what the driver gave out was not given back."""
    return {name: driver[f"standin{name}"]() for name in COUNTED}


def function_of(refused: str) -> str:
    """Return how errors name the function that is refused."""
    return refused.partition("=")[0].removesuffix("_v2")


@pytest.mark.parametrize("refused", ["cuStreamBeginCapture_v2=2", "cuStreamEndCapture=1", "cuGraphUpload=2"])
def test_a_graph_that_fails_leaves_streams_that_can_be_used(world: Together, driver: ctypes.CDLL, refused: str):
    exchange = world.exchange(SHAPE)
    before = held(driver)
    driver.standinRefuse(refused.encode())

    with pytest.raises(RuntimeError, match=function_of(refused)):
        _core.NcclGraph(exchange, calls=2)

    assert held(driver) == before
    assert before["CapturingStreams"] == 0
    (first, second) = _core.NcclGraph(exchange, calls=2).replay(world.bench, count=3)
    assert len(first.duration_ns) == len(second.duration_ns) == 3


@pytest.mark.parametrize("refused", ["cuCtxSetCurrent=1", "cuStreamCreate=2", "cuMemGetInfo_v2=1"])
def test_a_gpu_that_fails_leaves_no_context(world: Together, driver: ctypes.CDLL, standin: StandIn, refused: str):
    cuda = _core.Cuda(str(standin.cuda))
    before = held(driver)
    driver.standinRefuse(refused.encode())

    with pytest.raises(RuntimeError, match=function_of(refused)):
        _core.Gpu(cuda, 0, code=b"")

    assert held(driver) == before
    assert world.wrong(SHAPE) == []


def test_memory_of_a_heartbeat_stays_while_it_is_counted_in():
    gate = _core.no_gate()
    memory = mmap.mmap(-1, layout.HEARTBEAT_BYTES)

    bench = _core.nccl_bench(gate, heartbeats=[memory], step_ns=1)

    with pytest.raises(BufferError):
        memory.close()
    del bench
    memory.close()


def test_memory_is_let_go_when_another_is_no_heartbeat():
    gate = _core.no_gate()
    memory = mmap.mmap(-1, layout.HEARTBEAT_BYTES)

    with pytest.raises(ValueError, match="64 aligned bytes"):
        _core.nccl_bench(gate, heartbeats=[memory, bytearray(8)], step_ns=1)
    with pytest.raises(BufferError):
        _core.nccl_bench(gate, heartbeats=[memory, b"read only"], step_ns=1)

    memory.close()
