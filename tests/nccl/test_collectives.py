"""Every collective over NCCL gives right results, element for element, however its ranks lie in processes."""

import pytest

from busbw.base.collectives import COLLECTIVES, NCCL_COLLECTIVES, NCCL_IN_PLACE

from .harness import BRIEF, EVERYWHERE, NcclBusbw, assert_all_right


@pytest.mark.parametrize(
    ("ranks", "per_process", "names"),
    [(2, 1, NCCL_COLLECTIVES), (3, 1, EVERYWHERE), (4, 1, NCCL_COLLECTIVES), (4, 2, NCCL_COLLECTIVES),
     (4, 4, NCCL_COLLECTIVES)],
)  # fmt: skip
def test_every_collective_in_and_out_of_place_verifies_right(
    busbw: NcclBusbw, ranks: int, per_process: int, names: tuple[str, ...]
):
    # 1532 bytes: not a multiple of 16 for what is not split, of 16 for each rank for what is.
    result = busbw.nccl(
        *names, *BRIEF, "--ranks", ranks, "-g", per_process, "--group", ranks // 2, "-b", 1532, "-e", 1532,
        "--in-place", "both", "--time-limit", 20,
    )  # fmt: skip

    measurements = assert_all_right(busbw, result)
    assert {one.samples for one in measurements} == {1}
    places = {(one.collective, one.in_place) for one in measurements}
    assert places == {(name, place) for name in names for place in {False, name in NCCL_IN_PLACE}}
    assert {one.nccl.checked_by for one in measurements if one.nccl is not None} == {"gpu"}


@pytest.mark.parametrize("per_process", [1, 3])
def test_rooted_collectives_verify_right_from_every_root(busbw: NcclBusbw, per_process: int):
    rooted = [name for name in NCCL_COLLECTIVES if COLLECTIVES[name].rooted]

    result = busbw.nccl(
        *rooted, *BRIEF, "--ranks", 3, "-g", per_process, "-r", "all", "-b", 4100, "-e", 4100, "--in-place", "both",
        "--time-limit", 20,
    )  # fmt: skip

    measurements = assert_all_right(busbw, result)
    assert {(one.collective, one.root) for one in measurements} == {
        (name, root) for name in rooted for root in range(3)
    }


@pytest.mark.parametrize(("version", "types"), [(21803, 10), (22809, 12)])
def test_every_data_type_that_a_version_has_is_measured(busbw: NcclBusbw, version: int, types: int):
    result = busbw.nccl(
        "reduce_scatter", *BRIEF, "--ranks", 2, "-g", 2, "-d", "all", "--op", "avg,mulsum", "-b", 800, "-e", 800,
        "--time-limit", 20, version=version,
    )  # fmt: skip

    measurements = assert_all_right(busbw, result)
    assert len({(one.dtype, one.op) for one in measurements}) == 2 * types
