"""Every exchange gives right results on real GPUs, with every NCCL there is, and says what NCCL did."""

import os

import pytest

SHORT = ("--time-limit", "4", "--min-samples", "30")


@pytest.mark.parametrize("form", ["out", "in"])
def test_every_collective_is_right(run, form: str) -> None:
    names = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter", "hypercube"]
    names += ["alltoall", "alltoallv", "sendrecv", "alltoall_2dh"] if form == "out" else []
    found = run(*names, "--group", "2", "-b", "48", "-e", "3M", "-f", "16", "--in-place", form, "--time-limit", "12")
    assert {point["collective"] for point in found.points} == set(names)
    assert all(point["wrong"] is None and point["verified"] for point in found.points)
    assert {point["nccl"]["checked_by"] for point in found.points} == {"gpu"}


def test_every_type_and_operation_is_right(run) -> None:
    found = run(
        "all_reduce", "reduce_scatter", "-d", "all", "-o", "all", "-b", "6400", "-e", "6400", "--time-limit", "20"
    )
    combinations = {(point["collective"], point["dtype"], point["op"]) for point in found.points}
    assert len(combinations) == 2 * 12 * 6
    assert all(point["wrong"] is None and point["verified"] for point in found.points)


@pytest.mark.parametrize("mode", ["stream", "isolated", "graph", "loaded"])
def test_every_mode_measures_and_is_recorded(run, mode: str) -> None:
    found = run("all_reduce", "-b", "1K", "-e", "4M", "-f", "64", "--mode", mode, "--load-side", "1024", *SHORT)
    assert [point["mode"] for point in found.points] == [mode] * 3
    assert all((point["nccl"]["graph_calls"] > 0) == (mode == "graph") for point in found.points)


def test_several_gpus_of_one_process_and_ranks_without_mpi(run) -> None:
    together = run("all_reduce", "alltoall", "-g", "2", "-b", "64K", "-e", "64K", *SHORT)
    alone = run("all_reduce", "--launcher", "processes", "-b", "64K", "-e", "64K", *SHORT)
    assert len(together.points) == 2
    assert len(alone.points) == 1
    assert alone.run["plan"]["mpi"] is None


def test_nccl_says_what_it_chose(run) -> None:
    ring = run("all_reduce", "-b", "64M", "-e", "64M", *SHORT, NCCL_ALGO="Ring", NCCL_PROTO="Simple")
    (choice,) = ring.points[0]["nccl"]["choices"]
    assert (choice["function"], choice["algorithm"], choice["protocol"]) == ("AllReduce", "RING", "SIMPLE")
    assert choice["channels"] > 0


def test_symmetric_windows_use_symmetric_kernels(run) -> None:
    found = run("all_reduce", "-b", "1K", "-e", "1K", "-R", "2", *SHORT)
    assert [choice["algorithm"] for choice in found.points[0]["nccl"]["choices"]] == ["SYMMETRIC"]


def test_every_pair_is_measured(run) -> None:
    found = run("sendrecv", "--pairs", "all", "-b", "64M", "-e", "64M", "--time-limit", "8")
    ranks = found.run["plan"]["placement"]["ranks"]
    assert len({tuple(point["pair"]) for point in found.points}) == ranks * (ranks - 1) // 2


@pytest.mark.parametrize("library", os.environ.get("NCCL_LIBRARIES", "").split(":"))
def test_another_version_of_nccl_works_with_the_same_binary(run, library: str) -> None:
    if not library:
        pytest.skip("no other libnccl.so.2 named with NCCL_LIBRARIES")
    found = run("all_reduce", "sendrecv", "--nccl", library, "-b", "64K", "-e", "16M", "-f", "256", *SHORT)
    assert found.run["plan"]["gpus"]["nccl"]["origin"] == "named"
    assert len(found.points) == 4
    assert all(point["wrong"] is None and point["verified"] for point in found.points)
    versions = {hello["gpu"]["nccl"] for hello in found.run["ranks"]}
    print(f"NCCL {versions}: {[round(point['median_s'] * 1e6, 2) for point in found.points]} us")
