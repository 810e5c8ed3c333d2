"""What the core says must come out of an exchange is what a plain model of each collective makes of its inputs."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .harness import ROOT, without
from .model import ALL_RANKS, given_elements, received_elements
from .together import Shape, rows

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "alltoallv", "gather",
         "scatter", "sendrecv", "sendrecv_pair", "hypercube", "alltoall_2dh")  # fmt: skip
IN_PLACE = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter", "hypercube")
MOST_RANKS = 12
QUICK = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass(frozen=True)
class Rules:
    """The contract of one rank."""

    input_count: int
    in_receive: bool
    input_at: int
    footprint: tuple[int, int, int]
    segments: tuple[tuple[int, int, int, int], ...]


Ask = Callable[[Shape, int], Rules | None]


@pytest.fixture(scope="session")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    if shutil.which("g++") is None:
        without("the core's contracts are opened with g++")
    library = tmp_path_factory.mktemp("contract") / "door.so"
    sources = [Path(__file__).with_name("contract_door.cpp"), ROOT / "core" / "nccl_shape.cpp"]
    command = [
        "g++",
        "-std=c++20",
        "-O1",
        "-shared",
        "-fPIC",
        "-Wl,--no-undefined",
        f"-I{ROOT / 'core'}",
        *map(str, sources),
    ]
    subprocess.run([*command, "-o", str(library)], check=True)
    function = ctypes.CDLL(str(library)).busbw_contract
    function.restype = ctypes.c_long
    function.argtypes = [ctypes.c_int] * 3 + [ctypes.c_size_t] + [ctypes.c_int] * 4 + [
        ctypes.POINTER(ctypes.c_size_t), ctypes.c_int, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_long)
    ]  # fmt: skip

    def ask(shape: Shape, rank: int) -> Rules | None:
        told = (ctypes.c_size_t * 6)()
        segments = (ctypes.c_long * (4 * MOST_RANKS))()
        matrix = (ctypes.c_size_t * len(shape.matrix))(*shape.matrix) if shape.matrix else None
        count = function(
            KINDS.index(shape.kind), shape.ranks, shape.root, shape.count, shape.in_place, *shape.pair, shape.group,
            matrix, rank, told, segments,
        )  # fmt: skip
        if count < 0:
            return None
        parts = tuple(tuple(segments[4 * number : 4 * number + 4]) for number in range(count))
        return Rules(told[0], bool(told[1]), told[2], tuple(told[3:]), parts)

    return ask


@st.composite
def shapes(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> Shape:
    """Return any shape that can be measured, among two to twelve ranks."""
    kind = draw(st.sampled_from(kinds))
    ranks = draw(st.sampled_from((2, 4, 8) if kind == "hypercube" else tuple(range(2, MOST_RANKS + 1))))
    cells = st.lists(st.integers(0, 50), min_size=ranks, max_size=ranks)
    divisors = [group for group in range(1, ranks + 1) if ranks % group == 0]
    left = draw(st.integers(0, ranks - 1))
    return Shape(
        kind=kind,
        ranks=ranks,
        count=0 if kind == "alltoallv" else draw(st.integers(1, 200)),
        root=draw(st.integers(0, ranks - 1)),
        in_place=kind in IN_PLACE and draw(st.booleans()),
        pair=(left, draw(st.integers(0, ranks - 1).filter(lambda right: right != left))),
        group=draw(st.sampled_from(divisors)),
        matrix=rows(draw(st.lists(cells, min_size=ranks, max_size=ranks))) if kind == "alltoallv" else (),
    )


@QUICK
@given(shape=shapes())
def test_the_core_expects_what_the_model_makes(contract: Ask, shape: Shape):
    expected = received_elements(shape)
    for rank in range(shape.ranks):
        rules = contract(shape, rank)
        assert rules is not None
        ordered = sorted(segment for segment in rules.segments if segment[1] > 0)
        got = [(source, first + place) for _at, count, source, first in ordered for place in range(count)]
        assert got == expected[rank]


@QUICK
@given(shape=shapes())
def test_everything_lies_within_its_buffer_and_apart(contract: Ask, shape: Shape):
    for rank in range(shape.ranks):
        rules = contract(shape, rank)
        assert rules is not None
        send, receive, _scratch = rules.footprint
        assert rules.input_count == given_elements(shape, rank)
        assert rules.input_at + rules.input_count <= (receive if rules.in_receive else send)
        ends = 0
        for at, count, source, first in sorted(rules.segments):
            assert ends <= at
            ends = at + count
            owners = range(shape.ranks) if source == ALL_RANKS else (source,)
            assert all(first + count <= given_elements(shape, owner) for owner in owners)
        assert ends <= receive
        # In place NCCL finds a rank's own part where it lies in the whole: at count * rank.
        if shape.in_place and shape.kind in ("all_gather", "hypercube", "gather") and rules.in_receive:
            assert rules.input_at == rank * shape.count
        if shape.in_place and shape.kind == "reduce_scatter":
            assert rules.segments[0][0] == rank * shape.count


@QUICK
@given(shape=shapes(("alltoallv",)))
def test_what_an_alltoallv_sends_is_what_it_receives(contract: Ask, shape: Shape):
    rules = [contract(shape, rank) for rank in range(shape.ranks)]

    sent = sum(one.input_count for one in rules if one is not None)
    received = [
        (source, first + place)
        for one in rules if one is not None
        for _at, count, source, first in one.segments
        for place in range(count)
    ]  # fmt: skip
    assert sent == len(received) == len(set(received)) == sum(shape.matrix)


@pytest.mark.parametrize(
    "shape",
    [
        Shape(kind="hypercube", ranks=6, count=1),
        Shape(kind="alltoall_2dh", ranks=4, count=1, group=3),
        Shape(kind="alltoall_2dh", ranks=4, count=1, group=0),
        Shape(kind="sendrecv_pair", ranks=4, count=1, pair=(1, 1)),
        Shape(kind="sendrecv_pair", ranks=4, count=1, pair=(1, 4)),
        Shape(kind="sendrecv_pair", ranks=4, count=1, pair=(-1, 2)),
        Shape(kind="alltoallv", ranks=2, count=1),
        *(Shape(kind=kind, ranks=4, count=1, in_place=True) for kind in ("alltoall", "alltoall_2dh", "sendrecv")),
    ],
)
def test_a_shape_that_cannot_be_is_refused(contract: Ask, shape: Shape):
    assert contract(shape, 0) is None
