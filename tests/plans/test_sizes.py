"""Which sizes are measured when others are asked for."""

from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, counted_size
from busbw.base.errors import InputError
from busbw.base.units import parse_size
from busbw.measure.backends.native_mpi import OFFER, need_of
from busbw.measure.plan.sweeps import sweeps_of
from busbw.model.request import Request
from busbw.show.reproduce import command_of

from .test_golden import LIBRARIES, composed

MiB = 2**20


@given(
    st.sampled_from(sorted(name for name, one in COLLECTIVES.items() if one.splits)),
    st.integers(1, 2**34),
    st.integers(1, 100),
    st.sampled_from(sorted(DTYPE_BYTES)),
    st.sampled_from([1, 16]),
)
def test_parts_are_equal_and_as_large_as_their_alignment_allows(
    name: str, size_bytes: int, ranks: int, dtype: str, alignment_bytes: int
):
    counted = counted_size(COLLECTIVES[name], size_bytes, ranks, dtype, alignment_bytes)

    step_bytes = ranks * lcm(alignment_bytes, DTYPE_BYTES[dtype])
    assert counted % step_bytes == 0
    assert counted <= size_bytes < counted + step_bytes


@pytest.mark.parametrize(("unaligned", "sizes"), [(False, (96, 192)), (True, (96, 108, 132, 144, 168, 180, 204))])
def test_only_who_asks_for_it_gets_parts_that_are_no_multiple_of_16_bytes(unaligned: bool, sizes: tuple[int, ...]):
    request = Request(
        collectives=("alltoall",), smallest_bytes=100, largest_bytes=210, step_bytes=18, dtype="int16",
        unaligned=unaligned,
    )  # fmt: skip

    (sweep,), _notes = sweeps_of(request, 6, OFFER)

    assert sweep.sizes_bytes == sizes
    assert sweep.part_alignment_bytes == (1 if unaligned else 16)


@pytest.mark.parametrize(("unaligned", "least"), [(False, 64), (True, 16)])
def test_the_least_size_that_is_named_is_the_least_that_works(unaligned: bool, least: int):
    def asked(largest_bytes: int) -> Request:
        return Request(
            collectives=("alltoall",), smallest_bytes=1, largest_bytes=largest_bytes, dtype="float32",
            unaligned=unaligned,
        )  # fmt: skip

    with pytest.raises(InputError, match=f"at least -e {least}$"):
        sweeps_of(asked(least - 1), 4, OFFER)
    (sweep,), _notes = sweeps_of(asked(least), 4, OFFER)
    assert sweep.sizes_bytes == (least,)


@pytest.mark.parametrize(("ranks", "group"), [(2, 1), (5, 1), (6, 3), (9, 3), (12, 6)])
def test_the_group_that_is_named_makes_equal_groups(ranks: int, group: int):
    with pytest.raises(InputError, match=f"--group {group} for {ranks // group} nodes"):
        sweeps_of(Request(collectives=("alltoall_2dh",)), ranks, OFFER)

    (sweep,), _notes = sweeps_of(Request(collectives=("alltoall_2dh",), group=group), ranks, OFFER)
    assert sweep.group == group


@pytest.mark.parametrize("group", [-1, 0, 4, 7])
def test_unequal_groups_are_refused(group: int):
    with pytest.raises(InputError, match=f"6 ranks are not equal groups of {group}"):
        sweeps_of(Request(collectives=("alltoall_2dh",), group=group), 6, OFFER)


def test_a_level_carries_no_more_elements_than_mpi_counts():
    # Eight ranks in two groups: a message within a group holds two slices, one between groups four.
    def asked(slice_elements: int) -> Request:
        size_bytes = 8 * slice_elements
        return Request(
            collectives=("alltoall_2dh",), group=4, dtype="int8", smallest_bytes=size_bytes, largest_bytes=size_bytes,
            unaligned=True,
        )  # fmt: skip

    (sweep,), _notes = sweeps_of(asked(2**29 - 1), 8, OFFER)
    assert sweep.sizes_bytes == (8 * (2**29 - 1),)
    with pytest.raises(InputError, match="more than the 2147483647 elements"):
        sweeps_of(asked(2**29), 8, OFFER)


def test_a_two_level_alltoall_holds_a_copy_of_its_input():
    def buffers_bytes(name: str) -> int:
        request = Request(collectives=(name,), group=2, smallest_bytes=4 * MiB, largest_bytes=4 * MiB)
        return need_of(sweeps_of(request, 4, OFFER)[0], 4).buffers_bytes

    assert buffers_bytes("alltoall") == 4 * 2 * 4 * MiB
    assert buffers_bytes("alltoall_2dh") == 4 * 3 * 4 * MiB


@pytest.mark.parametrize("growth", [{"factor": 2}, {"factor": 5}, {"step_bytes": 37}, {"step_bytes": 64}])
@pytest.mark.parametrize(("smallest_bytes", "unaligned"), [(8, True), (7, True), (11, True), (96, False), (100, False)])
def test_the_command_that_makes_a_plan_again_says_groups_and_alignment(
    smallest_bytes: int, unaligned: bool, growth: dict[str, int]
):
    request = Request(
        collectives=("alltoall", "alltoall_2dh"), ranks=6, group=2, unaligned=unaligned, dtype="int8",
        smallest_bytes=smallest_bytes, largest_bytes=700, **growth,
    )  # fmt: skip

    words = (command_of(composed(request, LIBRARIES["open-mpi"])) or "").split()

    assert words[:4] == ["busbw", "run", "alltoall", "alltoall_2dh"]
    assert _after(words, "--group") == 2
    assert ("--unaligned" in words) == unaligned
    again = Request(
        collectives=("alltoall", "alltoall_2dh"), group=2, dtype="int8", unaligned="--unaligned" in words,
        smallest_bytes=_after(words, "-b"), largest_bytes=_after(words, "-e"), factor=_after(words, "-f"),
        step_bytes=_after(words, "-i"),
    )  # fmt: skip
    assert sweeps_of(again, 6, OFFER)[0] == sweeps_of(request, 6, OFFER)[0]


def _after(words: list[str], option: str) -> int | None:
    return parse_size(words[words.index(option) + 1]) if option in words else None
