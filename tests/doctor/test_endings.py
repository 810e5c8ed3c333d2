"""How jobs end: which process died, as launchers and the kernel say it, and what only looks like an end."""

import pytest

from .made import Job, to_do
from .test_diagnosis import codes, evidence, read

GONE = "socketProgress: Connection closed by remote peer 10.0.0.2<41234>"


def ended(job: Job) -> list[str]:
    """Return what rank 0 says when a peer is gone."""
    return [job.warn(0, GONE), job.head(0) + "misc/socket.cc:57 -> 6"]


def test_a_scheduler_that_says_twice_that_memory_ran_out_names_the_task():
    job = Job()
    lines = (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.",
        "srun: error: node01: task 3: Out Of Memory",
    )

    found = evidence(read(job.text(*lines, *ended(job))), "LOG030")

    assert "ran out of memory" in found
    assert "rank 3 on node01" in found
    assert "rank 0 only followed" in found
    assert "others with a cause" not in found


def test_torchruns_table_tells_rank_and_host_of_the_process():
    job = Job()
    lines = (
        "E1121 10:00:00.1 14 api.py:826] failed (exitcode: -9) local_rank: 2 (pid: 8123) of binary: /usr/bin/python3",
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2026-11-21_10:00:00",
        "  host      : node07",
        "  rank      : 10 (local_rank: 2)",
        "  exitcode  : -9 (pid: 8123)",
    )

    assert "rank 10 on node07: exitcode" in evidence(read(job.text(*ended(job), *lines)), "LOG030")


def test_hydras_frame_tells_the_host():
    job = Job()
    lines = (
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "=   PID 61234 RUNNING AT node01",
        "=   EXIT CODE: 9",
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
    )

    assert "on node01: YOUR APPLICATION" in evidence(read(job.text(*ended(job), *lines)), "LOG030")


def test_a_process_id_is_enough_where_one_process_has_it():
    job = Job()
    line = "[node01:1003:0:1099] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x18)"

    assert "rank 3 on node01: [node01:1003" in evidence(read(job.text(line, *ended(job))), "LOG030")


def test_of_two_lines_on_one_process_that_with_the_rank_counts():
    job = Job()
    lines = (
        "[node01:1003] Signal: Segmentation fault (11)",
        "mpirun noticed that process rank 3 with PID 1003 on node node01 exited on signal 11 (Segmentation fault).",
    )

    found = evidence(read(job.text(*lines)), "LOG030")

    assert "rank 3 on node01: mpirun" in found
    assert "others with a cause" not in found


@pytest.mark.parametrize(("xid", "is_hardware"), [(79, True), (43, False)])
def test_a_fault_of_the_gpu_is_told_from_that_of_a_program(xid, is_hardware):
    job = Job()
    lines = (
        "[ 910.1] NVRM: Xid (PCI:0000:1b:00): 45, pid=1003, name=python, Ch 00000008",
        f"[ 910.2] NVRM: Xid (PCI:0000:1b:00): {xid}, pid=1003, name=python, x",
        job.warn(3, "Cuda failure 'unspecified launch failure'"),
        job.head(3) + "init.cc:1 -> 1",
    )

    found = evidence(read(job.text(*lines)), "LOG030")

    assert ("Xid 79" in found) is is_hardware


def test_pytorchs_report_names_the_rank_that_did_not_come():
    waited = (
        "[rank0]:[E1121 10:00:00.1 x.cpp:607] [Rank 0] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=18, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600420 milliseconds"
    )
    lines = (
        waited,
        "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:",
        "\t     [2] finished collective #17, but didn't join collective #18 (count from 1)",
    )

    diagnosis = read("\n".join(lines) + "\n")

    assert codes(diagnosis) == {"LOG030", "LOG032"}
    assert "rank 2: " in evidence(diagnosis, "LOG030")
    assert "didn't join collective #18" in evidence(diagnosis, "LOG030")


def test_a_call_that_failed_is_explained_by_what_nccl_made_it_for():
    job = Job()
    lines = (
        job.warn(3, "Call to open failed: No such file or directory"),
        job.warn(
            3, "Error while attaching to shared memory segment /dev/shm/nccl-Ab1 (size 4096), error: No such file (2)"
        ),
        job.head(3) + "transport/shm.cc:1 -> 2",
    )

    assert "cannot open the shared memory of another" in evidence(read(job.text(*lines)), "LOG030")


def test_a_call_that_nothing_explains_is_the_cause_itself():
    job = Job()
    lines = (job.warn(3, "Call to epoll_wait failed : Bad file descriptor"), job.head(3) + "x.cc:1 -> 2")

    (found,) = [each for each in read(job.text(*lines)).findings if each.code == "LOG030"]

    assert found.fix is not None
    assert found.fix.startswith("man 2 epoll_wait")


def test_sharp_that_cannot_be_used_ends_no_job():
    job = Job()
    lines = (
        job.warn(1, "NET/IB : SHARP coll init error: Cannot create SHARP job(-11)"),
        job.head(1) + "transport.cc:291 -> 2",
        job.head(1) + "init.cc:670 -> 2",
        job.warn(0, "Cannot initialize CollNet, using point-to-point network instead"),
    )

    diagnosis = read(job.text(*lines))

    assert codes(diagnosis) == {"LOG040"}
    assert diagnosis.verdict.outcome == "slow"


def test_the_way_an_error_takes_up_may_be_a_warning():
    job = Job()
    lines = (job.warn(2, "Something that no version prints"), job.warn(2, "proxy.cc:979 -> 3 [Progress Thread]"))

    diagnosis = read(job.text(*lines))

    assert codes(diagnosis) == {"LOG030"}
    assert "rank 2 on node01: Something" in evidence(diagnosis, "LOG030")


def test_on_gpus_of_amd_what_to_do_is_for_gpus_of_amd():
    lines = (
        "node01:7:8 [0] /src/rccl/build/hipify/src/transport/p2p.cc:256 NCCL WARN hipIpcGetMemHandle failed : invalid",
        "node01:7:8 [0] NCCL INFO /src/rccl/build/hipify/src/transport/p2p.cc:730 -> 1",
    )

    (found,) = read("\n".join(lines) + "\n").findings

    assert "nvidia-smi" not in to_do(found)
    assert "iommu=pt" in to_do(found)


def test_ray_names_the_process_that_a_signal_ended():
    job = Job()

    assert "rank 3" in evidence(read(job.text("(W pid=1003) *** SIGSEGV received at time=17 on cpu 1 ***")), "LOG030")


def test_ranks_that_never_reached_each_other_are_told_from_those_that_left():
    job = Job()
    text = job.text(
        job.warn(3, "socketStartConnect: Connect to 10.0.0.1<4711> failed : Software caused connection abort"),
        job.head(3) + "misc/socket.cc:564 -> 2",
    )

    (found,) = [each for each in read(text).findings if each.code == "LOG037"]

    assert "rank 3: no connection to 10.0.0.1<4711> could be made; ranks give addresses of eth0" in found.evidence
    assert "NCCL_SOCKET_IFNAME" in (found.fix or "")


@pytest.mark.parametrize(
    ("interface", "address", "fix"),
    [
        ("eth0", "10.0.0.7", "nothing listens"),
        # Docker's bridge, by the address alone and by its name.
        ("eth0", "172.17.0.1", "bridge"),
        ("docker0", "10.0.0.7", "NCCL_SOCKET_IFNAME"),
    ],
)
def test_who_is_refused_may_have_the_wrong_address(interface, address, fix):
    job = Job()
    refused = f"socketPollConnect: connect to {address}<4711> returned Connection refused, exceeded error retry count"
    text = job.text(job.warn(3, refused), job.head(3) + "misc/socket.cc:564 -> 6").replace("eth0", interface)

    (found,) = [each for each in read(text).findings if each.code == "LOG037"]

    assert f"no connection to {address}<4711>" in found.evidence
    assert fix in (found.fix or "")


@pytest.mark.parametrize(
    ("file", "fix"),
    [
        ("transport/nvls.cc:254", "NCCL_NVLS_ENABLE=0"),
        ("/src/transport/p2p.cc:275", "NCCL_P2P_DISABLE=1"),
        ("proxy.cc:9", "dmesg"),
    ],
)
def test_the_file_that_warns_tells_what_nccl_was_about(file, fix):
    job = Job()
    lines = (job.warn(2, "Cuda failure 1 'invalid argument'").replace("misc/x.cc:1", file), job.head(2) + "x.cc:1 -> 1")

    (found,) = [each for each in read(job.text(*lines)).findings if each.code == "LOG030"]

    assert fix in to_do(found)


def test_a_connection_that_failed_before_others_broke_is_the_cause():
    job = Job()
    failed = [
        job.warn(3, "socketStartConnect: Connect to 10.0.0.1<4711> failed : Software caused connection abort"),
        job.head(3) + "misc/socket.cc:564 -> 2",
    ]

    assert "LOG037" in codes(read(job.text(*failed, *ended(job))))
    assert "LOG031" in codes(read(job.text(*ended(job), *failed)))


def waiting(rank: int, operation: str = "ALLREDUCE", elements: int = 4096) -> str:
    return (
        f"[rank{rank}]:[E1121 10:00:00.1 x.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum=10, OpType={operation}, NumelIn={elements}, NumelOut={elements}, Timeout(ms)=600000) ran"
    )


def test_ranks_that_wait_in_different_collectives_called_different_ones():
    found = evidence(read("\n".join([waiting(0, "BROADCAST"), waiting(1), waiting(2)]) + "\n"), "LOG032")

    assert "ranks 1-2 in ALLREDUCE number 10; rank 0 in BROADCAST number 10" in found
    assert "another collective on different ranks" in found


def test_ranks_that_wait_with_different_sizes_are_found():
    assert "different sizes" in evidence(read(f"{waiting(0)}\n{waiting(1, elements=2048)}\n"), "LOG032")
    assert "different sizes" not in evidence(read(f"{waiting(0)}\n{waiting(1)}\n"), "LOG032")


def test_an_exception_that_ended_a_rank_is_the_cause():
    lines = (
        "[rank3]: Traceback (most recent call last):",
        "[rank3]: ValueError: batch is empty",
        waiting(0),
        waiting(1),
    )

    found = evidence(read("\n".join(lines) + "\n"), "LOG030")

    assert "the program failed: ValueError" in found
    assert "rank 3: [rank3]: ValueError: batch is empty" in found


@pytest.mark.parametrize(
    "line",
    [
        "[rank3]: torch.distributed.DistBackendError: NCCL error in: x.cpp:93, unhandled cuda error",
        "[rank3]: RuntimeError: NCCL communicator was aborted on rank 3",
        "[rank3]: RuntimeError: [gloo/pair.cc:553] Connection closed by peer [10.0.0.2]:4711",
        "3: ImportError: no module named flash_attn, going on without",
        "ValueError: batch is empty",
    ],
)
def test_what_nobody_marks_as_the_end_of_a_rank_is_no_cause(line):
    assert "LOG030" not in codes(read(Job().text(line)))


def test_a_program_that_ran_out_of_memory_is_told_from_nccl_that_did():
    own = read(Job().text("[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."))

    assert "the program ran out of GPU memory: rank 2" in evidence(own, "LOG030").replace("the job failed: ", "")


def test_gpus_that_nvlinks_join_and_that_may_not_reach_each_other_are_found_in_info_lines():
    job = Job(hosts=1)
    line = job.head(0) + "P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case"

    assert "the driver does not let GPUs with NVLinks reach each other" in evidence(read(job.text(line)), "LOG040")


def test_what_a_framework_repeats_of_a_rank_is_no_cause_of_its_own():
    job = Job()
    said = "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 18000"
    lines = (
        job.warn(0, said),
        job.head(0) + "init.cc:1 -> 5",
        "[rank0]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
        "[rank0]: Last error:",
        f"[rank0]: {said}",
    )

    assert "others with a cause" not in evidence(read(job.text(*lines)), "LOG030")


WAITED = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds"
)
THROWN = "terminate called after throwing an instance of 'std::runtime_error'"
EXCEPTION = "ValueError: batch 7 has no rows"


@pytest.mark.parametrize("line", [THROWN, EXCEPTION])
def test_what_a_program_throws_after_waiting_in_vain_is_no_cause_and_before_it_is(line: str):
    waited = "\n".join(WAITED.format(rank=rank) for rank in (1, 3))

    assert codes(read(f"{waited}\n{line}\n")) == {"LOG032"}
    assert "LOG030" in codes(read(f"{line}\n{waited}\n"))
