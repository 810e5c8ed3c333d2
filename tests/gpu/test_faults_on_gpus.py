"""A planted fault of each kind is caught, on real GPUs and with the real NCCL behind it."""

from pathlib import Path

QUICK = ("all_reduce", "-b", "64K", "-e", "64K", "--time-limit", "6", "--stall-timeout", "20")


def test_a_corrupted_output_is_named_by_rank_and_place(run, faulty_nccl: Path) -> None:
    found = run(*QUICK, "--nccl", str(faulty_nccl), code=(1,), BUSBW_FAULT="wrong", BUSBW_FAULT_RANK="1")
    assert found.run["verdict"]["outcome"] == "wrong"
    wrong = found.points[0]["wrong"]
    assert (wrong["rank"], wrong["mismatch"]["index"], wrong["mismatch"]["wrong"]) == (1, 1, 1)
    assert wrong["mismatch"]["got"] != wrong["mismatch"]["expected"]
    assert found.points[0]["samples"] == 0


def test_a_result_that_is_wrong_only_later_is_found_too(run, faulty_nccl: Path) -> None:
    found = run(
        *QUICK, "--nccl", str(faulty_nccl), code=(1,), BUSBW_FAULT="wrong", BUSBW_FAULT_RANK="0", BUSBW_FAULT_CALL="500"
    )
    assert found.run["verdict"]["outcome"] == "wrong"


def test_a_rank_that_sleeps_is_seen_in_the_tail_and_named(run, faulty_nccl: Path) -> None:
    found = run(*QUICK, "--mode", "isolated", "--nccl", str(faulty_nccl), BUSBW_FAULT="sleep", BUSBW_FAULT_RANK="1")
    point = found.points[0]
    assert dict(point["percentiles"])[99.0] > point["median_s"] + 150e-6
    assert any(one["code"] == "PERF004" and "rank 1" in one["title"] for one in found.run["findings"])


def test_a_rank_that_exits_ends_the_run_and_is_named(run, faulty_nccl: Path) -> None:
    found = run(
        *QUICK, "--nccl", str(faulty_nccl), code=(3,), BUSBW_FAULT="exit", BUSBW_FAULT_RANK="1", BUSBW_FAULT_CALL="50"
    )
    culprit = found.run["outcome"]["culprit"]
    assert culprit["rank"] == 1
    assert "all_reduce 64 KiB" in culprit["step"]


def test_a_rank_that_hangs_ends_the_run_and_is_named(run, faulty_nccl: Path) -> None:
    found = run(
        *QUICK, "--nccl", str(faulty_nccl), code=(3,), BUSBW_FAULT="hang", BUSBW_FAULT_RANK="1", BUSBW_FAULT_CALL="50"
    )
    assert found.run["outcome"]["culprit"]["rank"] == 1
    assert "all_reduce 64 KiB" in found.run["outcome"]["culprit"]["step"]
