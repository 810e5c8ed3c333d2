"""NCCL_ALGO and NCCL_PROTO: what they leave to each function, before and since 2.24."""

import pytest

from busbw.env.values_nccl import read_algorithms, read_protocols

OLD, NEW = (2, 23, 4), (2, 28, 9)
ALL_REDUCE = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree")


def test_a_list_holds_for_every_function() -> None:
    assert read_algorithms("ring", NEW).enabled == dict.fromkeys(
        ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"), ("Ring",)
    )


def test_trees_leave_nothing_to_all_but_all_reduce() -> None:
    read = read_algorithms("Tree", NEW)

    assert read.enabled["AllReduce"] == ("Tree",)
    assert [name for name, left in read.enabled.items() if not left] == [
        "AllGather",
        "ReduceScatter",
        "Broadcast",
        "Reduce",
    ]


def test_a_hat_excludes() -> None:
    assert read_algorithms("^NVLS,NVLSTree", NEW).enabled["AllReduce"] == ALL_REDUCE[:4]
    assert read_protocols("^LL128", NEW).enabled["Broadcast"] == ("LL", "Simple")


def test_single_functions_have_lists_of_their_own_since_2_24() -> None:
    read = read_algorithms("ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring", NEW)

    assert read.problem is None
    assert read.enabled["AllReduce"] == ("Tree", "CollNetDirect")
    assert read.enabled["AllGather"] == ("Ring", "CollNetDirect")


def test_a_list_for_one_function_leaves_the_others_alone() -> None:
    assert read_algorithms("allreduce:tree", NEW).enabled["AllGather"] == ("Ring", "CollNetDirect", "NVLS", "PAT")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Ring,Trees", "Trees"),
        ("Ring, Tree", " Tree"),
        ("CollNet", "CollNet"),
        ("all_reduce:ring", "all_reduce"),
        ("ring;tree", "tree"),
        (";ring", "ring"),
        ("allreduce:ring;allgather", "allgather"),
    ],
)
def test_what_nccl_does_not_know_ends_the_start_since_2_24(text: str, word: str) -> None:
    read = read_algorithms(text, NEW)

    assert read.kind == "fails"
    assert read.unknown == (word,)


def test_before_2_24_unknown_words_are_passed_over() -> None:
    read = read_algorithms("Ring,Trees", OLD)

    assert read.kind == "ignored"
    assert read.enabled["AllReduce"] == ("Ring",)
    assert read.unknown == ("Trees",)


def test_before_2_24_lists_for_functions_leave_everything_as_it_was() -> None:
    read = read_algorithms("allreduce:tree;broadcast:ring", OLD)

    assert read.problem is not None
    assert "as if it were unset" in read.problem


def test_an_algorithm_is_known_from_its_version_on() -> None:
    assert read_algorithms("PAT", (2, 22, 3)).unknown == ("PAT",)
    assert read_algorithms("PAT", (2, 24, 3)).enabled["AllGather"] == ("PAT",)


@pytest.mark.parametrize("text", ["", ";", "^"])
def test_an_empty_list_leaves_everything(text: str) -> None:
    assert read_algorithms(text, NEW).enabled["AllReduce"] == ALL_REDUCE


def test_a_series_of_two_numbers_stands_for_its_releases() -> None:
    assert read_algorithms("Foo", (2, 24)).kind == "fails"
    assert read_algorithms("Foo", (2, 23)).kind == "ignored"
