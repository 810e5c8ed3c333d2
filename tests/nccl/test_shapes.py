"""Who exchanges with whom: pairs of ranks, the matrix of an alltoallv, the groups of a two-level alltoall."""

import json

import pytest

from busbw.base.collectives import distance_matrix, matrix_counts
from busbw.measure.backends.native_nccl import capabilities_of
from busbw.measure.plan.sweeps import sweeps_of
from busbw.model.request import Request

from .harness import BRIEF, NcclBusbw, assert_all_right, assert_refused

PAIRED = ("sendrecv", *BRIEF, "--ranks", 4, "-b", "1K", "-e", "1K", "--time-limit", 20)
VARIED = ("alltoallv", *BRIEF, "--ranks", 3, "-b", 999, "-e", "64K", "-f", 8, "--time-limit", 20)


# All pairs among processes and among threads of one; which pairs these are does not depend on it.
@pytest.mark.parametrize(
    ("asked", "pairs", "per_process"),
    [
        (("--pairs", "all"), {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}, 1),
        (("--pairs", "all"), {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}, 4),
        (("--pairs", "2-1,3-0"), {(2, 1), (3, 0)}, 1),
        (("--pairs", "rail", "--group", 2), {(0, 2), (1, 3)}, 4),
        (("--pairs", "cross", "--group", 2), {(0, 3), (1, 2)}, 1),
    ],
)
def test_pairs_of_ranks_are_measured_one_at_a_time(
    busbw: NcclBusbw, asked: tuple[object, ...], pairs: set[tuple[int, int]], per_process: int
):
    result = busbw.nccl(*PAIRED, *asked, "-g", per_process)

    assert {one.pair for one in assert_all_right(busbw, result)} == pairs


def test_pairs_of_the_gpus_of_one_host_are_judged_as_a_fabric(busbw: NcclBusbw):
    assert_all_right(busbw, busbw.nccl(*PAIRED, "--pairs", "all", "-g", 4))

    judged = json.loads(busbw("fabric", busbw.directory(), "--json").out)

    assert (judged["endpoints"], judged["tests"], judged["unanswered"]) == (4, 6, 0)
    rows = judged["views"]["matrix"]["lines"]
    assert {each["name"].partition(":")[2] for each in rows} == {"gpu0", "gpu1", "gpu2", "gpu3"}


def test_pairs_of_gpus_are_measured_and_judged_in_one_command(busbw: NcclBusbw):
    words = ("fabric", "--over", "nccl", "--launcher", "processes", "--ranks", 4, "-g", 4, "-b", "1K")

    result = busbw(*words, *busbw.libraries(), "--time-limit", 1.5, "--expect", "1B/s", "--json")

    judged, run = json.loads(result.out), busbw.run_of()
    measured = len(run.measurements)
    assert {one.pair for one in run.plan.sweeps} == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    assert (judged["metric"], judged["tests"], judged["unanswered"]) == ("bibandwidth", measured, 0)
    assert (f"{measured} of 6 pairs were measured" in result.err) == (measured < 6)
    assert judged["expected"]["value"] == 1.0
    assert result.out == busbw("fabric", busbw.directory(), "--expect", "1B/s", "--json").out


def over_gpus(count: int, *, seconds: int) -> tuple[object, ...]:
    """Return the words of a sweep over the GPUs of this host."""
    started = ("--launcher", "processes", "--ranks", count, "-g", count)
    return ("fabric", "--over", "nccl", *started, "-b", "1K", "--time-limit", seconds)


def test_a_slow_gpu_is_named(busbw: NcclBusbw):
    words = over_gpus(4, seconds=6)
    slow = {"STANDIN_LATENCY_US": "5000", "STANDIN_FAULT": "kind=gpusleep,rank=2,us=5000"}

    result = busbw(*words, *busbw.libraries(kernels=False), "--json", env=slow)

    judged = json.loads(result.out)
    assert result.code == 1, result
    assert [each["place"].partition(":")[2] for each in judged["answers"]] == ["gpu2"]


def test_other_work_on_a_gpu_stands_beside_the_judgement(busbw: NcclBusbw):
    words = over_gpus(3, seconds=1)

    result = busbw(*words, *busbw.libraries(), "--json", env={"STANDIN_BUSY_GPU": "1"})

    found = [each for each in json.loads(result.out)["findings"] if each["code"] == "RUN027"]
    assert result.code == 1, result
    assert [each["title"].partition(" on ")[0] for each in found] == ["GPU 1"]


def test_wrong_data_between_gpus_is_said_instead_of_a_judgement_of_speed(busbw: NcclBusbw):
    words = over_gpus(4, seconds=1)

    result = busbw(*words, *busbw.libraries(), env={"STANDIN_FAULT": "kind=wrong,rank=3,element=200"})

    assert result.code == 1, result
    assert "wrong" in result.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--over", "nccl", "--metric", "latency"), ("both ways at once, not latency", "--metric bibandwidth")),
        (("--over", "nccl", "--pairs", "sparse"), ("no sparse rounds", "--pairs all")),
        (("--over", "nccl", "--nics", "mlx5_0"), ("NCCL_IB_HCA",)),
        (("--over", "nccl", "--pair-time", 0.2), ("rounds of a sweep over MPI", "--pair-time")),
        (("--over", "nccl", "--expect", "2us"), ("'us' is not a unit of bibandwidth",)),
        (("--over", "nccl", "--topology", "nowhere.conf"), ("nowhere.conf",)),
        (("--over", "nccl", "--launcher", "sbatch"), ("not submitted as a job",)),
        (("--over", "nccl", "--size", "1K"), ("sizes of a stored run", "-b is what is measured")),
        (("--over", "nccl", "--simulate", "rail"), ("--simulate measures nothing",)),
        (("--over", "nccl", "pairs.csv"), ("results are given, and hosts to be measured",)),
        (("--hosts", "n0,n1", "-g", 2), ("--gpus: of pairs of GPUs alone", "--over nccl")),
    ],
)
def test_what_pairs_of_gpus_do_not_have_is_refused(
    busbw: NcclBusbw, arguments: tuple[object, ...], words: tuple[str, ...]
):
    assert_refused(busbw("fabric", *arguments), *words)


@pytest.mark.parametrize("mode", ["stream", "isolated", "graph"])
def test_the_time_of_a_pair_is_not_that_of_the_ranks_that_look_on(busbw: NcclBusbw, mode: str):
    paced = {"STANDIN_LATENCY_US": "3000"}
    result = busbw.nccl(*PAIRED, "--pairs", "1-2", "--mode", mode, "-g", 2, env=paced)

    (one,) = assert_all_right(busbw, result, paced)
    assert one.median_s >= 3e-3
    assert one.busbw_Bps <= 1024 / 3e-3


def test_a_wrong_element_of_a_pair_is_found(busbw: NcclBusbw):
    result = busbw.nccl(*PAIRED, "--pairs", "1-3", "-g", 4, env={"STANDIN_FAULT": "kind=wrong,rank=3,element=200"})

    assert result.code == 1, result
    (one,) = busbw.run_of().measurements
    assert one.wrong is not None
    assert (one.wrong.rank, one.wrong.mismatch.index) == (3, 200)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--pairs", "rail"), ("rails need to know how many ranks a node has", "--group 8")),
        (("--pairs", "rail", "--group", 3), ("rails need to know",)),
        (("--pairs", "cross", "--group", 1), ("no two ranks are left",)),
        (("--pairs", "0-4"), ("'0-4' is not two of the 4 ranks",)),
        (("--pairs", "1-1"), ("'1-1' is not two of",)),
        (("--pairs", "1"), ("'1' is not a pair of ranks",)),
        (("--pairs", "a-b"), ("'a-b' is not a pair of ranks",)),
    ],
)
def test_pairs_that_are_none_are_refused(busbw: NcclBusbw, arguments: tuple[object, ...], words: tuple[str, ...]):
    assert_refused(busbw.nccl(*PAIRED, *arguments), *words)


def test_alltoallv_has_a_pattern_of_its_own(busbw: NcclBusbw):
    result = busbw.nccl(*VARIED)

    assert_all_right(busbw, result)
    (sweep,) = busbw.run_of().plan.sweeps
    assert sweep.matrix == distance_matrix(3)


@pytest.mark.parametrize(
    ("text", "matrix", "per_process"),
    [
        ("0 4096 128\n512 0 64\n1 1 1\n", ((0, 4096, 128), (512, 0, 64), (1, 1, 1)), 1),
        ("0 4096 128\n512 0 64\n1 1 1\n", ((0, 4096, 128), (512, 0, 64), (1, 1, 1)), 3),
        ("# all from rank 1\n\n0,0,0\n10, 0, 10 # itself not\n0,0,0\n", ((0, 0, 0), (10, 0, 10), (0, 0, 0)), 1),
        ("1 2 3 4\n5 6 7 8\n9 10 11 12\n13 14 15 16\n", ((1, 2, 3), (5, 6, 7), (9, 10, 11)), 3),
        ("7 0 0\n0 7 0\n0 0 7\n", ((7, 0, 0), (0, 7, 0), (0, 0, 7)), 3),
    ],
    ids=["uneven", "uneven, in one process", "empty rows and columns", "larger than the ranks", "nothing to others"],
)  # fmt: skip
def test_alltoallv_moves_what_a_matrix_says(
    busbw: NcclBusbw, text: str, matrix: tuple[tuple[int, ...], ...], per_process: int
):
    path = busbw.folder / "matrix.txt"
    path.write_text(text)

    result = busbw.nccl(*VARIED, "--matrix", path, "-g", per_process)

    assert_all_right(busbw, result)
    assert [sweep.matrix for sweep in busbw.run_of().plan.sweeps] == [matrix]


@pytest.mark.parametrize("asked", [999, 8000, 65_536])
def test_the_size_of_an_alltoallv_is_what_its_busiest_rank_moves(asked: int):
    matrix = ((0, 4096, 128), (512, 0, 64), (1, 1, 1))
    request = Request(collectives=("alltoallv",), matrix=matrix, smallest_bytes=asked, largest_bytes=asked)

    ((sweep,), _notes) = sweeps_of(request, 3, capabilities_of(("float32",)))

    moved = matrix_counts(sweep.matrix, sweep.scales_bytes[0], "float32")
    rows = [moved[rank * 3 : rank * 3 + 3] for rank in range(3)]
    busiest = max(*(sum(row) for row in rows), *(sum(column) for column in zip(*rows, strict=True)))
    assert sweep.sizes_bytes == (4 * busiest,)
    assert asked - 3 * 16 < 4 * busiest <= asked


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("0 rows for 3 ranks",)),
        ("1 2 3\n1 2 3\n", ("2 rows for 3 ranks",)),
        ("1 2 3\n1 2\n1 2 3\n", ("row 1 has 2 numbers",)),
        ("1 2 3\n1 x 3\n1 2 3\n", ("'x' is not a number of bytes", "matrix.txt:2")),
        ("1 2 3\n1 -2 3\n1 2 3\n", ("'-2' is not a number of bytes",)),
        ("1 2 3\n1 2.5 3\n1 2 3\n", ("'2.5' is not a number of bytes",)),
        (f"1 2 3\n1 {'9' * 400} 3\n1 2 3\n", ("is not a number of bytes",)),
        ("0 0 0\n" * 3, ("no rank sends anything",)),
        ("0 0 0 1\n" * 4, ("no rank sends anything",)),
    ],
)
def test_a_matrix_that_is_none_is_refused(busbw: NcclBusbw, text: str, words: tuple[str, ...]):
    path = busbw.folder / "matrix.txt"
    path.write_text(text)

    assert_refused(busbw.nccl(*VARIED, "--matrix", path), *words)


@pytest.mark.parametrize(("ranks", "group"), [(4, 1), (4, 2), (4, 4), (6, 3)])
def test_a_two_level_alltoall_verifies_right_in_any_groups(busbw: NcclBusbw, ranks: int, group: int):
    six = {"STANDIN_GPUS": "6"}
    # Slices of 48 bytes: parts are multiples of 16 and not of 32.
    size = 48 * ranks
    result = busbw.nccl(
        "alltoall_2dh", *BRIEF, "--ranks", ranks, "-g", ranks // 2, "--group", group, "-b", size, "-e", size,
        "--time-limit", 0.5, env=six,
    )  # fmt: skip

    (one,) = assert_all_right(busbw, result, six)
    assert (one.group, one.size_bytes) == (group, size)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("alltoall_2dh",), ("needs to know how many ranks a node has", "--group 2")),
        (("alltoall_2dh", "--group", 3), ("4 ranks are not equal groups of 3",)),
        (("alltoall_2dh", "--group", 0), ("not equal groups of 0",)),
        (("hypercube", "--ranks", 3), ("a power of two of ranks",)),
        (("latency",), ("latency is not measured over NCCL",)),
        (("all_reduce", "-r", 4), ("root 4 is not one of the 4 ranks",)),
    ],
)
def test_shapes_that_cannot_be_are_refused(busbw: NcclBusbw, arguments: tuple[object, ...], words: tuple[str, ...]):
    assert_refused(busbw.nccl("--ranks", 4, *arguments), *words)
