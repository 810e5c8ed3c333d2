"""Lines with several causes name all, the likeliest by what the log shows first; each with a job without the sign."""

import pytest

from busbw.facts.logs import log_patterns
from busbw.logs.troubles import Troubles
from busbw.model.finding import Diagnosis, Finding

from .made import Job, to_do, told
from .test_diagnosis import codes, read

# As NCCL 2.14 says it; and what newer versions and the transport over sockets say of the same.
MISMATCH = "NET/IB : req 0/1 tag 0 peer 10.0.0.2<58683> collective mismatch error, local size 496640 remote size 65536"
INCORRECT = "NET/IB : req 0/1 tag 5 peer 10.0.0.2<1> posted incorrect receive info: size 512 addr 0 rkeys[0]=0"
TRUNCATED = "NET/Socket : peer 10.0.0.2<1> message truncated : receiving 524288 bytes instead of 65536"
CAUSES = ("settings", "versions of NCCL", "a fault of the program", "relaxed ordering")
RETRIES = "NET/IB: Got completion from peer 10.0.0.2<4> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0 vendor_err=129"


def failed(job: Job, line: str, *more: str) -> Diagnosis:
    """Return what is said of a job whose rank 0 ends with a warning."""
    return read(job.text(job.warn(0, line), job.head(0) + "transport/net.cc:890 -> 5", *more))


def first_error(diagnosis: Diagnosis) -> Finding:
    (found,) = [each for each in diagnosis.findings if each.code == "LOG030"]
    return found


def likeliest(found: Finding) -> str:
    return told(found).split("(1) ", 1)[1].split("; (2)", 1)[0]


@pytest.mark.parametrize("line", [MISMATCH, INCORRECT, TRUNCATED])
def test_ends_that_disagree_have_four_causes_and_all_are_said(line: str):
    found = first_error(failed(Job(), line))

    assert len(found.causes) == len(CAUSES)
    assert all(cause in told(found) for cause in CAUSES)


def test_settings_that_differ_come_first_with_who_has_them():
    job = Job(of_rank={3: ("NCCL_BUFFSIZE set by environment to 8388608.",)})
    everywhere = Job(everywhere=("NCCL_BUFFSIZE set by environment to 8388608.",))

    found = first_error(failed(job, MISMATCH))

    assert "NCCL_BUFFSIZE" in likeliest(found)
    assert "rank 3" in likeliest(found)
    assert to_do(found).startswith("(1) set NCCL_BUFFSIZE alike on every rank")
    assert "NCCL_BUFFSIZE" not in likeliest(first_error(failed(everywhere, MISMATCH)))


def test_versions_that_differ_come_first():
    job = Job(version_of={2: "2.27.7+cuda12.9"})

    assert "2.27.7: rank 2" in likeliest(first_error(failed(job, INCORRECT)))
    assert "versions" not in likeliest(first_error(failed(Job(), INCORRECT)))


def test_relaxed_ordering_that_is_forced_comes_first_where_nothing_differs():
    job = Job(everywhere=("NCCL_IB_PCI_RELAXED_ORDERING set by environment to 1.",), absent=frozenset({3}))

    assert likeliest(first_error(failed(job, MISMATCH))) == 'relaxed ordering: NCCL_IB_PCI_RELAXED_ORDERING = "1"'
    assert "relaxed" not in likeliest(first_error(failed(Job(), MISMATCH)))


def test_over_sockets_no_ordering_of_pcie_can_be_at_fault():
    found = first_error(failed(Job(network="Socket", between="NET/Socket/0"), TRUNCATED))

    assert "not over sockets" in told(found)
    assert "mlxconfig" not in to_do(found)


def test_where_all_ranks_are_alike_the_program_comes_first_and_the_rest_is_said_to_be_alike():
    found = first_error(failed(Job(), MISMATCH))

    assert "fault of the program" in likeliest(found)
    assert "the log shows none" in told(found)
    assert "all that say it have 2.28.9" in told(found)


def test_a_log_of_one_rank_excludes_nothing():
    job = Job(absent=frozenset({1, 2, 3}))

    found = first_error(failed(job, MISMATCH))

    assert "the log shows none" not in told(found)
    assert "settings" in likeliest(found)


@pytest.mark.parametrize(
    "line",
    [
        "[rank0]: RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: X, but Y",
        "Mismatched collective detected, please check your collective calls at and around rank 39.",
    ],
)
def test_who_has_compared_the_calls_names_the_program_alone(line: str):
    matched = Troubles().matched(line, shape=1)

    assert matched is not None
    assert (matched[0].id, matched[0].disagree) == ("collective-mismatch", "calls")


def test_only_ends_that_disagree_have_four_causes():
    assert "versions of NCCL that differ" not in told(first_error(failed(Job(), RETRIES)))


@pytest.mark.parametrize(
    "line",
    [
        "Cuda failure 802 'system not yet initialized'",
        "Cuda failure 401 'the operation cannot be performed in the present state'",
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152",
    ],
)
def test_after_a_restart_of_the_fabric_manager_gpus_are_reset_or_the_host_is(line: str):
    found = [each for each in failed(Job(hosts=1), line).findings if "abric" in to_do(each)]

    assert found
    assert all("nvidia-smi -r" in to_do(each) and "reboot" in to_do(each) for each in found)


@pytest.mark.parametrize("failure", ["1 'invalid argument'", "999 'unknown error'"])
def test_a_failure_while_nvlink_sharp_is_set_up_is_the_fabric_managers(failure: str):
    job = Job(hosts=1)
    line = job.warn(0, f"Cuda failure {failure}")

    within = first_error(
        read(job.text(line.replace("misc/x.cc:1", "transport/nvls.cc:244"), job.head(0) + "a.cc:1 -> 1"))
    )
    elsewhere = first_error(read(job.text(line, job.head(0) + "a.cc:1 -> 1")))

    assert "nvidia-smi -r" in to_do(within)
    assert "nvidia-smi -r" not in to_do(elsewhere)


def test_no_fix_says_to_restart_the_fabric_manager_and_no_more():
    for pattern in log_patterns():
        if "fabricmanager" in pattern.fix and pattern.id != "no-peer-access":
            assert "reboot" in pattern.fix, pattern.id


@pytest.mark.parametrize("line", ["NET/IB : No device found.", "Failed to open libibverbs.so[.1]"])
@pytest.mark.parametrize("job", [{"hosts": 1, "gpus": 4}, {"hosts": 2, "absent": frozenset({2, 3})}])
def test_no_device_with_sockets_after_it_is_never_ok(line: str, job: dict[str, int]):
    diagnosis = read(Job(network="Socket", between="NET/Socket/0", everywhere=(line,), **job).text())

    assert diagnosis.verdict.outcome in {"cannot_tell", "slow"}
    assert codes(diagnosis) & {"LOG001", "LOG046"}


def test_a_first_rank_alone_tells_of_the_missing_device():
    diagnosis = read(
        "n1:11:12 [0] NCCL INFO NET/IB : No device found.\n"
        "n1:11:12 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
        "n1:11:12 [0] NCCL INFO Using network Socket\n"
    )

    assert diagnosis.verdict.outcome == "cannot_tell"
    assert "RDMA device" in diagnosis.verdict.sentence


@pytest.mark.parametrize(
    "everywhere",
    [
        (),
        ("NCCL_NET set by environment to Socket", "NET/IB : No device found."),
        ("NCCL_IB_DISABLE set by environment to 1.",),
    ],
)
def test_sockets_that_were_asked_for_or_have_no_such_line_stay_ok_on_one_node(everywhere: tuple[str, ...]):
    diagnosis = read(Job(hosts=1, network="Socket", everywhere=everywhere).text())

    assert not codes(diagnosis)
    assert diagnosis.verdict.outcome == "ok"


def test_a_plugin_that_takes_over_needs_no_device_of_verbs():
    diagnosis = read(
        Job(
            network="AWS Libfabric", between="NET/AWS Libfabric/{nic}/GDRDMA", everywhere=("NET/IB : No device found.",)
        ).text()
    )

    assert diagnosis.verdict.outcome == "ok"


def test_a_platform_whose_fabric_is_ethernet_has_no_device_to_find():
    text = Job(hosts=1, network="Socket", everywhere=("NET/IB : No device found.",)).text()

    assert "LOG046" in codes(read(text))
    assert "LOG046" not in codes(read(text, platform="gcp-a2"))


@pytest.mark.parametrize(
    "line",
    [
        RETRIES,
        "NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129",
        "NET/IBP : Got completion from peer 7.6.13.83<36315> with status=12 opcode=32698 len=32696 vendor err 129",
    ],
)
def test_no_answer_after_all_retries_names_the_gid_the_mtu_and_the_link(line: str):
    found = first_error(failed(Job(), line))

    assert all(word in to_do(found) for word in ("GID", "MTU", "link"))
    assert "GID index" in found.title


def test_over_roce_the_gid_comes_first_with_the_value_that_is_set():
    nics = "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE"
    job = Job(nics=nics, everywhere=("NCCL_IB_GID_INDEX set by environment to 1.",))

    over_roce = first_error(failed(job, RETRIES))
    over_ib = first_error(failed(Job(), RETRIES))

    assert to_do(over_roce).startswith("(1) show_gids at both ends")
    assert 'NCCL_IB_GID_INDEX = "1"' in told(over_roce)
    assert to_do(over_ib).startswith("(1) the link at both ends")


def test_a_timeout_that_was_shortened_is_told_first_and_else_not_at_all():
    shortened = failed(Job(everywhere=("NCCL_IB_TIMEOUT set by environment to 5.",)), RETRIES)

    assert "(1) the NIC waits less long" in told(first_error(shortened))
    assert "waits less long" not in told(first_error(failed(Job(), RETRIES)))
    lengthened = failed(Job(everywhere=("NCCL_IB_TIMEOUT set by environment to 22.",)), RETRIES)
    assert "waits less long" not in told(first_error(lengthened))


def test_memory_that_a_nic_may_not_reach_is_no_fault_of_gpudirect_where_it_is_off():
    line = "NET/IB : Got completion from peer 10.0.0.2<1> with error 4, opcode 1, len 0, vendor err 81"
    off = failed(Job(everywhere=("NCCL_NET_GDR_LEVEL set by environment to LOC",), between="NET/IB/0"), line)

    assert "(1) PCIe ACS" in told(first_error(failed(Job(), line)))
    assert "ACS" not in told(first_error(off)).split("(2)")[0] or "in the log" not in told(first_error(off))


def test_another_status_names_neither():
    found = first_error(failed(Job(), RETRIES.replace("IBV_WC_RETRY_EXC_ERR(12)", "IBV_WC_REM_ACCESS_ERR(10)")))

    assert "MTU" not in to_do(found)


def test_ucx_says_the_same_in_its_own_words():
    job = Job()
    line = (
        "[node01:1003 :0:1003] ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_0:1/RoCE "
        "(synd 0x15 vend 0x81 hw_synd 0/0)"
    )

    found = first_error(read(job.text(line)))

    assert "no answer after all retries" in found.title
    assert "UCX_IB_GID_INDEX" in to_do(found)


def test_the_line_with_the_status_counts_and_not_the_one_before_it():
    job = Job()
    text = job.text(
        job.warn(0, "NET/IB: ncclIbTest: Got CQE with error (devIndex=0, req=0x1, comm=0x2 (send), wr_id=3, qp_num=9)"),
        job.warn(0, RETRIES),
        job.head(0) + "transport/net.cc:890 -> 6",
    )

    assert "status 12" in first_error(read(text)).title


@pytest.mark.parametrize(
    "line",
    [
        "node1: Test CUDA failure common.cu:892 'CUDA driver version is insufficient for CUDA runtime version'",
        "[rank0]: RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver",
        "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        "node1: Test CUDA failure common.cu:892 'forward compatibility was attempted on non supported HW'",
    ],
)
def test_a_driver_that_is_too_old_is_answered_by_that(line: str):
    found = first_error(read(Job().text(line)))

    assert "the driver is older than this CUDA needs" in found.title
    assert "update the driver" in to_do(found)
    assert "fewer GPUs" not in to_do(found)


def test_what_the_log_says_of_both_versions_of_cuda_stands_beside_it():
    found = first_error(failed(Job(), "Cuda failure 35 'CUDA driver version is insufficient for CUDA runtime version'"))

    assert "the driver supports CUDA 12.9; this NCCL was built for CUDA 12.9" in found.evidence


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("node1: Test CUDA failure common.cu:892 'initialization error'", "cuda-init"),
        ("node1: Test CUDA failure common.cu:1021 'uncorrectable ECC error encountered'", "gpu-unusable"),
        ("node1: Test CUDA failure common.cu:941 'out of memory'", "nccl-tests-cuda"),
        ("[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered", "kernel-fault"),
        ("[rank1]: RuntimeError: shape mismatch", "program-error"),
    ],
)
def test_cudas_words_mean_the_same_whoever_prints_them(line: str, name: str):
    matched = Troubles().matched(line, shape=1)

    assert matched is not None
    assert matched[0].id == name


DRIVER = "Cuda failure 35 'CUDA driver version is insufficient for CUDA runtime version'"
OF_PROGRAM = "app: Test CUDA failure common.cu:1000 'CUDA driver version is insufficient for CUDA runtime version'"


def test_the_same_cause_said_by_another_program_is_not_one_of_its_own():
    found = first_error(failed(Job(), DRIVER, OF_PROGRAM))

    assert f"the same is said by {OF_PROGRAM[:80]}..." in found.evidence
    assert "cause of their own" not in found.evidence


def test_another_cause_is_named_as_it_is_printed():
    line = "[ 1210.112345] NVRM: Xid (PCI:0000:1b:00): 74, pid='<unknown>'"
    found = first_error(failed(Job(), "Cuda failure 802 'system not yet initialized'", line))

    assert f"others with a cause of their own: {line} (" in found.evidence
    assert "the same is said" not in found.evidence


# What a program passes on without NCCL's own words.


@pytest.mark.parametrize(
    ("result", "word"),
    [
        ("RuntimeError: NCCL error in: a.cpp:1, invalid usage, NCCL version 2.7.8", "two ranks use one GPU"),
        ("ncclInvalidArgument: Invalid value for an argument.", "not on this rank's GPU"),
        ("RuntimeError: NCCL error in: a.cpp:1, unhandled cuda error, NCCL version 2.7.8", "this driver or GPU"),
        ("RuntimeError: NCCL error in: a.cpp:1, unhandled system error, NCCL version 2.7.8", "/dev/shm"),
        ("n1: Test NCCL failure common.cu:997 'internal error'", "differ between ranks"),
    ],
)
def test_a_result_alone_is_told_with_what_it_mostly_comes_from(result: str, word: str):
    found = [each for each in read(f"{result}\n").findings if each.code == "LOG036"]

    assert len(found) == 1
    assert word in told(found[0])
    assert (found[0].fix or "").startswith("run again with NCCL_DEBUG=INFO")


def test_a_result_below_a_warning_of_nccl_is_told_by_the_warning():
    text = Job().text(
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
        "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000"
    )

    assert "LOG036" not in {each.code for each in read(text).findings}


@pytest.mark.parametrize(("size", "told"), [(4 * 2**20, False), (512 * 2**20, True)])
def test_memory_that_runs_out_is_told_with_the_buffers_that_take_it(size: int, told: bool):
    job = Job(everywhere=(f"NCCL_BUFFSIZE set by environment to {size}.",))
    line = job.warn(0, "Call to ibv_reg_mr failed with error Cannot allocate memory")

    found = first_error(read(job.text(line, job.head(0) + "a.cc:1 -> 2")))

    assert ("NCCL_BUFFSIZE" in found.evidence) is told
    assert ((found.fix or "").startswith("unset NCCL_BUFFSIZE")) is told
