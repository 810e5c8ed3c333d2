"""Parts that are no multiple of 16 bytes: what nccl-tests never measures is right over NCCL as well."""

import pytest

from busbw.base.collectives import COLLECTIVES, NCCL_COLLECTIVES

from .harness import BRIEF, NcclBusbw, assert_all_right

SPLIT = tuple(name for name in NCCL_COLLECTIVES if COLLECTIVES[name].splits)


@pytest.mark.parametrize("group", [1, 2, 4])
def test_parts_of_any_number_of_bytes_verify_right(busbw: NcclBusbw, group: int):
    result = busbw.nccl(
        *(SPLIT if group == 2 else ("alltoall_2dh",)), *BRIEF, "--ranks", 4, "-g", 4, "--group", group, "-d", "int8",
        "--unaligned", "-b", 4, "-e", 124, "-i", 24, "--time-limit", 20,
    )  # fmt: skip

    measurements = assert_all_right(busbw, result)
    assert {one.count for one in measurements} == {1, 7, 13, 19, 25, 31}
    assert {one.group for one in measurements if one.collective == "alltoall_2dh"} == {group}
