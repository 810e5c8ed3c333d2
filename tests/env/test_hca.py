"""Lists of devices: how NCCL splits them, which devices they take, and how they stand to a platform's NICs."""

import pytest

from busbw.env.hca import (
    choose,
    compare,
    compute_nics,
    device_names,
    device_problems,
    frontend_devices,
    in_words,
    lists_alike,
    parse_devices,
)
from busbw.facts.platforms import resolve

EIGHTEEN = tuple(f"mlx5_{number}" for number in range(18))
# The list that a blog gives for BM.GPU4.8, which is that of B4.8.
SWAPPED = (
    "=mlx5_5,mlx5_6,mlx5_7,mlx5_8,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_14,mlx5_15,mlx5_16,mlx5_17,mlx5_9,mlx5_10,mlx5_11,"
    "mlx5_12"
)


def kinds(text: str, name: str = "NCCL_IB_HCA", version: tuple[int, ...] | None = None) -> list[str]:
    return [problem.kind for problem in device_problems(parse_devices(text), name, version)]


def test_operators_count_at_the_beginning_in_one_order() -> None:
    devices = parse_devices("^=mlx5_0:1,mlx5_1")

    assert (devices.exclude, devices.exact) == (True, True)
    assert [(entry.name, entry.port, entry.offset) for entry in devices.entries] == [
        ("mlx5_0", 1, 2),
        ("mlx5_1", None, 11),
    ]


def test_a_value_may_begin_with_an_equals_sign_twice() -> None:
    assert parse_devices("==mlx5_0").entries[0].name == "=mlx5_0"


def test_rails_and_planes_stand_behind_the_port() -> None:
    entry = parse_devices("mlx5_0:1:2:3").entries[0]

    assert (entry.port, entry.rail, entry.plane) == (1, 2, 3)


def test_a_name_takes_all_that_begin_with_it() -> None:
    choice = choose(parse_devices("mlx5_1"), EIGHTEEN)

    assert choice.taken == ("mlx5_1", *(f"mlx5_{number}" for number in range(10, 18)))
    assert choice.prefixes == (("mlx5_1", tuple(f"mlx5_{number}" for number in range(10, 18))),)


def test_a_name_for_no_device_of_its_own_is_meant_as_a_beginning() -> None:
    assert choose(parse_devices("mlx5"), EIGHTEEN).prefixes == ()
    assert choose(parse_devices("mlx5"), EIGHTEEN).taken == EIGHTEEN


def test_others_that_are_listed_themselves_are_no_trap() -> None:
    assert choose(parse_devices(",".join(EIGHTEEN)), EIGHTEEN).prefixes == ()


def test_an_equals_sign_makes_names_whole() -> None:
    assert choose(parse_devices("=mlx5_1"), EIGHTEEN).taken == ("mlx5_1",)


def test_a_hat_takes_all_but_those_named() -> None:
    assert choose(parse_devices("^mlx5_an0:1"), ("mlx5_ib0", "mlx5_an0")).taken == ("mlx5_ib0",)


def test_a_port_takes_that_port_only() -> None:
    assert choose(parse_devices("mlx5_0:2"), ("mlx5_0:1", "mlx5_0:2")).taken == ("mlx5_0:2",)


def test_an_empty_list_takes_all_and_an_empty_exclusion_none() -> None:
    assert choose(parse_devices(""), EIGHTEEN).taken == EIGHTEEN
    assert choose(parse_devices("="), EIGHTEEN).taken == EIGHTEEN
    assert choose(parse_devices("^"), EIGHTEEN).taken == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("=mlx5_0,mlx5_1", []),
        ("ibp", []),
        ("^mlx5_an0:1", []),
        ("mlx5_0,mlx5_0", ["duplicate"]),
        ("mlx5_0,mlx5_0:1", ["duplicate"]),
        ("mlx5_0:1,mlx5_0:2", []),
        ("mlx5_0,=mlx5_1", ["operator"]),
        ("=^mlx5_0", ["operator"]),
        ("mlx5_0;mlx5_1", ["operator"]),
        ("mlx5_*", ["operator"]),
        ("mlx5_0, mlx5_1", ["space"]),
        ("mlx5_0 mlx5_1", ["space"]),
        ("mlx5_0:0", ["port"]),
        ("mlx5_0:one", ["port"]),
        ("mlx5_0:1:0", []),
        ("^", ["empty"]),
        ("x" * 64, ["too long"]),
    ],
)
def test_what_is_wrong_with_the_writing_of_a_list_is_found(text: str, found: list[str]) -> None:
    assert kinds(text) == found


def test_rails_came_with_2_30_5() -> None:
    assert kinds("mlx5_0:1:0", version=(2, 30, 4)) == ["field"]


def test_interfaces_have_no_ports() -> None:
    assert kinds("eth0:1", "NCCL_SOCKET_IFNAME") == ["field"]


def test_what_is_beyond_the_most_entries_is_told() -> None:
    names = ",".join(f"mlx5_{number}" for number in range(33))

    assert kinds(names) == ["too many"]
    assert kinds(names[: names.index(",mlx5_17")], version=(2, 18, 3)) == ["too many"]


def test_a_problem_says_where_it_stands() -> None:
    [problem] = device_problems(parse_devices("=mlx5_1,mlx5_2,mlx5_1"))

    assert (problem.written, problem.offset) == ("mlx5_1", 15)


def test_the_list_of_another_shape_is_known_by_its_devices() -> None:
    lists = {name: resolve(name, ()).platform.nic.hca_list or "" for name in ("oci-bm-gpu4-8", "oci-bm-gpu-b4-8")}

    assert lists_alike(SWAPPED, lists) == ("oci-bm-gpu-b4-8",)
    assert lists_alike(lists["oci-bm-gpu4-8"], lists) == ("oci-bm-gpu4-8",)


def test_a_list_for_another_shape_misses_nics_and_takes_the_front_end() -> None:
    platform = resolve("oci-bm-gpu4-8", ()).platform
    found = compare(parse_devices(SWAPPED), compute_nics(platform), frontend_devices(platform))

    assert found.missed == ("mlx5_0", "mlx5_13")
    assert found.foreign == ("mlx5_4", "mlx5_5")


def test_a_list_that_repeats_one_nic_loses_another() -> None:
    platform = resolve("oci-bm-gpu-b4-8", ()).platform
    repeated = SWAPPED.replace("mlx5_12", "mlx5_1")

    assert kinds(repeated) == ["duplicate"]
    assert compare(parse_devices(repeated), compute_nics(platform)).missed == ("mlx5_12",)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("mlx5_0, mlx5_3..6", ("mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6")),
        ("rdma0..rdma2", ("rdma0", "rdma1", "rdma2")),
        ("eth0; mlx5_2 and mlx5_11", ("eth0", "mlx5_2", "mlx5_11")),
        ("ibp24s0, ibp64s0", ("ibp24s0", "ibp64s0")),
        ("rdmap79s0 to rdmap201s0, four for each GPU", ()),
        ("two dual-port adapters", ()),
        (None, ()),
    ],
)
def test_the_devices_that_words_name_are_read(words: str | None, names: tuple[str, ...]) -> None:
    assert device_names(words) == names


def test_what_a_list_takes_is_said_in_words() -> None:
    assert in_words(parse_devices("=eth0"), "NCCL_SOCKET_IFNAME") == "interfaces named eth0"
    assert in_words(parse_devices("^docker,lo")) == "all devices but those whose names begin with docker, lo"
    assert in_words(parse_devices("")) == "all devices"
