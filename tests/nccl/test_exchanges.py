"""Every exchange of the core, among up to eight ranks, gives what its contract says: both checks agree on that."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.standin.build import StandIn

from busbw.base.collectives import DTYPE_BYTES, NCCL_IN_PLACE, OPERATIONS

from .harness import ROOT, VERSIONS
from .together import Shape, Together, cache_of, rows

Worlds = Callable[..., Together]
WITHOUT_SHAPE = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter",
                 "sendrecv")  # fmt: skip
ROOTED = ("broadcast", "reduce", "gather", "scatter")
# Sizes around a word, a page, and a block of threads; zero is what an alltoallv may send.
COUNTS = (1, 3, 257, 4097)
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def worlds(standin: StandIn) -> Iterator[Worlds]:
    made: dict[tuple[int, int, bool], Together] = {}

    def world(ranks: int, version: int = 22809, *, kernels: bool = True) -> Together:
        key = (version, ranks, kernels)
        if key not in made:
            made[key] = Together(standin, version, ranks, kernels=kernels)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        for name, value in cache_of(ROOT).items():
            patch.setenv(name, value)
        yield world


@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "host"])
# Eight ranks over one version: what versions differ in does not depend on the number.
@pytest.mark.parametrize(
    ("ranks", "version"), [*((ranks, version) for ranks in (2, 3) for version in VERSIONS), (8, 22809)]
)
def test_every_exchange_of_every_version_is_right(worlds: Worlds, ranks: int, version: int, kernels: bool):
    world = worlds(ranks, version, kernels=kernels)
    names = (*WITHOUT_SHAPE, *(("hypercube",) if ranks != 3 else ()))

    wrong = [
        words
        for name in names
        for in_place in {False, name in NCCL_IN_PLACE}
        for root in ({0, ranks - 1} if name in ROOTED else {0})
        for count in COUNTS[:: 1 if version == 22809 else 3]
        for shift in (0, 1)
        for words in world.wrong(
            Shape(kind=name, ranks=ranks, count=count, root=root, in_place=in_place), shift=shift, seed=count
        )
    ]

    assert wrong == []


@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "host"])
@pytest.mark.parametrize("dtype", [name for name in DTYPE_BYTES if name not in ("int16", "uint16")])
def test_every_operation_on_every_type_is_right(worlds: Worlds, dtype: str, kernels: bool):
    wrong = [
        words
        for ranks in (2, 3, 4)
        for kind in ("all_reduce", "reduce_scatter", "reduce", "all_gather")
        for op in OPERATIONS
        for words in worlds(ranks, kernels=kernels).wrong(
            Shape(kind=kind, ranks=ranks, count=257, dtype=dtype, op=op), shift=1
        )
    ]

    assert wrong == []


# The host checks the same bytes as the kernels: two groupings show that both agree.
@pytest.mark.parametrize(
    ("ranks", "group", "kernels"),
    [
        *((4, group, True) for group in (1, 2, 4)),
        *((6, group, True) for group in (1, 2, 3, 6)),
        *((8, group, True) for group in (2, 4)),
        (4, 2, False),
        (6, 3, False),
    ],
)
def test_a_two_level_alltoall_is_right_whatever_its_slices(worlds: Worlds, ranks: int, group: int, kernels: bool):
    wrong = [
        words
        for dtype in ("int8", "bfloat16", "float64")
        # Slices of 1 to 4097 elements: multiples of a word and not.
        for count in (*range(1, 10), 17, 4097)
        for shift in (0, 1)
        for words in worlds(ranks, kernels=kernels).wrong(
            Shape(kind="alltoall_2dh", ranks=ranks, count=count, dtype=dtype, group=group), shift=shift
        )
    ]

    assert wrong == []


@QUICK
@given(data=st.data(), ranks=st.sampled_from([2, 3, 5]), shift=st.integers(0, 3))
def test_any_alltoallv_is_right(worlds: Worlds, data: st.DataObject, ranks: int, shift: int):
    cell = st.one_of(st.just(0), st.integers(0, 600))
    matrix = data.draw(st.lists(st.lists(cell, min_size=ranks, max_size=ranks), min_size=ranks, max_size=ranks))
    dtype = data.draw(st.sampled_from(["uint8", "float16", "int64"]))

    shape = Shape(kind="alltoallv", ranks=ranks, count=0, dtype=dtype, matrix=rows(matrix))

    assert worlds(ranks).wrong(shape, shift=shift) == []


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_every_pair_of_ranks_exchanges_alone(worlds: Worlds, ranks: int):
    wrong = [
        words
        for left in range(ranks)
        for right in range(ranks)
        if left != right
        for words in worlds(ranks).wrong(Shape(kind="sendrecv_pair", ranks=ranks, count=1025, pair=(left, right)))
    ]

    assert wrong == []
