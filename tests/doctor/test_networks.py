"""Outcomes of networks and of ranks that wait: the causes, those first for which the log speaks."""

import pytest

from .made import Job, told
from .test_causes import RETRIES, failed, first_error
from .test_diagnosis import codes, read

TIMEOUT = (
    "[rank{0}]:[E816 01:45:40 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={1}, OpType={2}, NumelIn=5056, NumelOut=5056, Timeout(ms)=600000) ran for 600026 milliseconds "
    "before timing out.\n"
)
BARRIER = (
    "[W404 00:15:21 ProcessGroupNCCL.cpp:4561] [PG ID 0 PG GUID 0 Rank 0]  using GPU 0 to perform barrier as devices "
    "used by this process are currently unknown. This can potentially cause a hang if this rank to GPU mapping is "
    "incorrect.\n"
)


def waiting(*lines: str) -> str:
    (found,) = [each for each in read("".join(lines)).findings if each.code == "LOG032"]
    return f"{found.title}: {told(found)}"


def test_ranks_that_wait_in_one_call_have_several_causes():
    found = waiting(TIMEOUT.format(0, 80, "ALLREDUCE"), TIMEOUT.format(1, 80, "ALLREDUCE"))

    assert "(1) ranks call something else" in found
    assert "a rank that failed" in found


def test_calls_that_differ_are_the_cause():
    assert "(1)" not in waiting(TIMEOUT.format(0, 80, "ALLREDUCE"), TIMEOUT.format(1, 80, "BROADCAST"))


def test_a_checkpoint_before_ranks_wait_is_named_first():
    lines = ("INFO Saving DeepSpeed Model and Optimizer\n", TIMEOUT.format(0, 80, "ALLREDUCE"))

    assert "(1) one rank is still at work of its own" in waiting(*lines)


def test_a_barrier_that_guesses_its_gpu_is_a_cause_of_waiting_and_no_fault_alone():
    sound = read(Job().text() + BARRIER)

    assert sound.verdict.outcome == "ok"
    assert "(1) ranks do not use the GPU" in waiting(BARRIER, TIMEOUT.format(0, 80, "ALLREDUCE"))
    assert "do not use the GPU" not in waiting(TIMEOUT.format(0, 80, "ALLREDUCE"))


def test_a_driver_of_nics_that_nobody_has_is_no_failure():
    line = (
        "libibverbs: Warning: couldn't load driver 'lib{0}-rdmav25.so': lib{0}-rdmav25.so: cannot open shared object "
        "file: No such file or directory\n"
    )

    assert read(Job().text() + line.format("ipathverbs")).verdict.outcome == "ok"
    assert read(Job().text() + line.format("mlx5")).verdict.outcome == "slow"
    assert "LOG030" not in codes(read(line.format("ipathverbs")))


@pytest.mark.parametrize(
    ("gpu", "first"), [("NVIDIA GeForce RTX 3090", "this GPU has no"), ("NVIDIA H100 80GB HBM3", "the module that")]
)
def test_memory_that_cannot_be_registered_is_the_gpus_where_it_has_no_gpudirect(gpu: str, first: str):
    listed = f"#  Rank  0 Group  0 Pid   5950 on n0 device  0 [0x34] {gpu}\n"
    job = Job()
    line = job.warn(0, "Call to ibv_reg_mr_iova2 failed with error Bad address")
    found = first_error(read(listed + job.text(line, job.head(0) + "transport/net.cc:890 -> 5")))

    assert f"(1) {first}" in told(found)


def test_rails_come_with_crossing_nics():
    crossing = failed(Job(everywhere=("NCCL_CROSS_NIC set by environment to 1.",), nics="[0]mlx5_0:1/RoCE"), RETRIES)

    assert 'NCCL_CROSS_NIC = "1"' in told(first_error(crossing))


def test_a_link_local_address_is_told_over_roce_and_is_usual_over_infiniband():
    gids = RETRIES + " localGid fe80::e42:a1ff:fe5d:1 remoteGidsfe80::e42:a1ff:fe5d:2"
    over_roce = Job(nics="[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE")

    assert "(1) the RoCE address that the NIC uses is link-local" in told(first_error(failed(over_roce, gids)))
    assert "link-local" not in told(first_error(failed(Job(), gids)))


def test_a_list_with_commas_is_the_whole_value_of_a_setting():
    line = RETRIES.replace("IBV_WC_RETRY_EXC_ERR(12)", "IBV_WC_REM_ACCESS_ERR(10)")
    one, both = (
        first_error(failed(Job(), line, f"export NCCL_IB_HCA={value}")) for value in ("mlx5_0", "mlx5_0,mlx5_1")
    )

    assert 'NCCL_IB_HCA = "mlx5_0"' in told(one)
    assert "NCCL_IB_HCA =" not in told(both)
