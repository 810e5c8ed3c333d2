"""Messages that launchers box in dashes, stacks of crashes, and words that count only at a job's end."""

import pytest

from busbw.logs.boxes import Boxes

from .made import Job, to_do
from .test_diagnosis import codes, read
from .test_mpi_logs import only

RULE = "-" * 74 + "\n"
MESSAGE = (
    "A file of places was provided that contains multiple definitions\nof the seat count for at least one node:\n\n"
    "  node:      n1\n\nMixing the two methods is not supported.\n"
)
BOX = f"{RULE}{MESSAGE}{RULE}"
CRASH = "[n1:77:0:77] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x10)\n"
STACK = (
    "==== backtrace (tid:     77) ====\n"
    " 0  /opt/ucx/lib/libucs.so.0(ucs_handle_error+0x2fd) [0x7f0000000001]\n"
    " 1  /opt/ucx/lib/libuct.so.0(uct_rc_ep_connect_to_ep+0x2c) [0x7f0000000002]\n"
    " 2  /opt/ompi/lib/libmpi.so.40(MPI_Init+0x7b) [0x7f0000000003]\n"
)
# A rank that waits, as a debugger shows it.
WAITS = "#0  0x00007f0000000001 in uct_rc_ep_progress () from /opt/ucx/lib/libuct.so.0\n"
SHARE = "slurmstepd: error: Some words that nobody knows\n"


def test_a_message_in_dashes_that_nobody_knows_is_said_as_a_whole():
    found = only(f"{BOX}{RULE}An internal error has occurred in ORTE:\nFORCE-TERMINATE AT (null):1\n{RULE}", "LOG030")

    assert "A file of places was provided that contains multiple definitions of the seat count" in found.title


def test_a_message_with_a_launchers_tags_is_the_same():
    tagged = "".join(f"[1,3]<stderr>:{line}\n" for line in BOX.splitlines())

    assert "multiple definitions" in only(tagged, "LOG030").title


def test_a_message_that_says_that_the_job_goes_on_is_none():
    warning = MESSAGE.replace("Mixing", "WARNING: this will be ignored. Mixing")

    assert "LOG030" not in codes(read(f"{RULE}{warning}{RULE}{Job().text()}"))


def test_a_message_before_a_job_that_went_well_is_no_failure():
    assert "LOG030" not in codes(read(BOX + Job().text()))


def test_a_message_of_which_a_line_is_known_is_said_once_and_by_what_is_known():
    text = (
        f"{RULE}There are not enough slots available in the system to satisfy the 4\nslots that cannot be had\n{RULE}"
    )

    assert "more ranks than it has slots" in only(text, "LOG030").title


def test_a_message_may_stand_in_several_blocks_of_a_file():
    boxes = Boxes()
    lines = BOX.encode().splitlines(keepends=True)

    found = [box for number in range(len(lines)) for box in boxes.feed(lines[number])]

    assert [box.lines for box in found] == [range(2, 8)]
    assert [box.lines for box in Boxes().feed(BOX.encode())] == [range(2, 8)]


def test_lines_of_dashes_that_never_end_hold_no_memory():
    boxes = Boxes()
    boxes.feed(RULE.encode())

    assert not [box for _ in range(200) for box in boxes.feed(b"x cannot y\n" * 1000)]
    assert not boxes.feed(RULE.encode())


def test_a_crash_is_told_with_the_library_that_its_stack_shows_first():
    found = only(CRASH + STACK, "LOG030")

    assert found.title.endswith("segmentation fault (signal 11), in UCX")
    assert "UCX_TLS" in to_do(found)


def test_a_stack_of_a_process_that_waits_is_no_crash():
    assert "LOG030" not in codes(read(Job().text() + WAITS))


def test_a_rank_that_was_killed_is_not_blamed_on_a_library():
    killed = "mpirun noticed that process rank 3 with PID 77 on node n1 exited on signal 9 (Killed).\n"

    assert "UCX" not in only(Job().text() + WAITS + killed, "LOG030").title


def test_words_of_slurms_daemon_count_where_the_job_ended_and_not_where_it_went_on():
    failed = SHARE + "srun: error: n1: task 0: Exited with exit code 1\n"

    assert "nobody knows" in only(failed, "LOG030").title
    assert "LOG030" not in codes(read(SHARE + "Hello from a program\n" * 8 + Job().text()))


def test_what_the_container_says_itself_is_preferred_to_that_it_could_not_be_started():
    text = (
        "slurmstepd: error: pyxis: container start failed with error code: 1\n"
        "slurmstepd: error: pyxis: printing enroot log file:\n"
        "slurmstepd: error: pyxis:     [ERROR] Could not process JSON input\n"
        "slurmstepd: error: pyxis: couldn't start container\n"
    )

    assert "Could not process JSON input" in only(text, "LOG030").title


def test_each_rank_that_is_a_world_of_its_own_says_so_in_intels_benchmarks():
    assert "LOG035" in codes(read("# !! Benchmark PingPong invalid for 1 processes !! \n" * 2))
    assert "LOG035" not in codes(read("# !! Benchmark PingPong invalid for 1 processes !! \n" + Job().text()))


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("Bootstrap : no socket interface found", "no network interface is left"),
        ("No interface found in the same subnet as remote address 10.0.0.7<0>", "no interface is left"),
        ("peer mapping resources exhausted", "more GPUs than CUDA maps"),
        ("Multiple Ranks are using the same GPU", "two ranks use one GPU"),
        ("XML Import Channel : dev 1 not found.", "graph file"),
        ("Bootstrap Root : rank 3 of 8 ranks has already checked in", "job"),
    ],
)
def test_nccls_last_error_is_read_without_its_head_and_below_an_empty_line(words: str, title: str):
    text = (
        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, "
        "invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.27.3\n\n"
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n\nLast error:\n\n"
    )
    (found,) = [each for each in read(text + words + "\n").findings if each.code in {"LOG030", "LOG036"}]

    assert found.code == "LOG030"
    assert title in found.title
    assert not read("step 7: the same GPU as before, all ranks checked in, XML Import of the mesh\n").findings


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1805320 milliseconds", "in ALLREDUCE"),
        ("WorkNCCL(OpType=ALLREDUCE, SeqNum=458) ran for 1800600 ms", "in ALLREDUCE number 458"),
        ("WorkNCCL(... OpType=BROADCAST ...)", "in BROADCAST"),
        ("WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1) ran for 1800668 ms", "in ALLREDUCE number 3"),
        ("", "in a collective"),
    ],
)
def test_a_timeout_is_read_in_the_forms_of_older_releases_and_shortened(line: str, call: str):
    (found,) = read(f"[Rank 1] Watchdog caught collective operation timeout: {line}\n").findings

    assert found.code == "LOG032"
    assert call in found.evidence
    assert found.causes


def test_a_gpu_of_amd_that_is_not_there_is_looked_for_with_its_own_tools():
    amd = only("RuntimeError: No HIP GPUs are available\n", "LOG030")
    nvidia = only("RuntimeError: No CUDA GPUs are available\n", "LOG030")

    assert "/dev/kfd" in (amd.fix or "")
    assert "nvidia-smi" not in (amd.fix or "")
    assert "nvidia-smi" in (nvidia.fix or "")


def test_gloos_loopback_is_read_from_a_line_that_was_wrapped_and_is_no_failure_where_work_goes_on():
    warning = "[rank8] Warning: Unable to resolve hostname to a (local) address. Using the loopback\n"
    failed = warning + "RuntimeError: Gloo connectFullMesh failed ...\n"

    assert "loopback" in only(failed, "LOG030").title
    assert [each.code for each in read(warning + "step 1 loss 0.3\nstep 2 loss 0.2\n").findings] == ["LOG047"]


def test_a_nic_that_cannot_be_opened_is_left_out_and_no_failure():
    left_out = (
        "n1:7:9 [0] misc/ibvwrap.cc:212 NCCL WARN Call to ibv_open_device failed\n"
        "n1:7:9 [0] transport/net_ib.cc:148 NCCL WARN NET/IB : Unable to open device mlx5_bond_0\n"
    )
    sockets = "n1:7:9 [0] NCCL INFO NET/IB : No device found.\nn1:7:9 [0] NCCL INFO Using network Socket\n"

    assert [each.code for each in read(left_out + sockets).findings] == ["LOG040", "LOG046"]
    assert [each.code for each in read("ibv_open_device failed! errno: 2\n").findings] == ["LOG040"]


def test_kernels_that_are_too_large_for_a_gpu_are_of_an_old_nccl():
    assert "shared memory" in only("ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856\n", "LOG030").title
