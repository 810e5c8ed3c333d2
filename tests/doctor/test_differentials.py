"""Outcomes are told with the causes that makers named, those first that the log shows signs of."""

import pytest

from busbw.facts.differentials import outcomes, sign_regex
from busbw.facts.logs import log_patterns
from busbw.logs.troubles import Troubles

from .made import Job, told
from .test_causes import failed, likeliest
from .test_diagnosis import codes, read
from .test_mpi_logs import only

ASKED_FOR_BY_ID = {"peer-left", "unreachable", "crash-in-nccl", "first-call-waits"}
EVERY = [pytest.param(each, id=each.id) for each in outcomes()]


def test_outcomes_have_names_of_their_own_and_patterns_that_are_there():
    names = [each.id for each in outcomes()]
    known = {pattern.id for pattern in log_patterns()}

    assert len(set(names)) == len(names)
    assert {pattern for each in outcomes() for pattern in each.patterns} <= known
    assert {each.id for each in outcomes() if not each.patterns} >= ASKED_FOR_BY_ID


@pytest.mark.parametrize("outcome", EVERY)
def test_a_list_is_short_and_each_cause_has_a_test_of_its_own(outcome):
    common = [cause for cause in outcome.cause if not cause.rare]
    tests = [cause.test for cause in outcome.cause]

    assert 1 <= len(common) <= 5
    assert all(cause.words for cause in outcome.cause)
    assert all(tests)
    assert len(set(tests)) == len(tests)
    assert outcome.source


@pytest.mark.parametrize("outcome", EVERY)
def test_a_rare_cause_has_a_sign_and_every_sign_says_something(outcome):
    for cause in outcome.cause:
        assert cause.signs or not cause.rare
        for sign in (*cause.signs, *cause.against):
            assert sign.weight > 0
            assert (
                any(
                    each is not None
                    for each in (sign.line, sign.setting, sign.fact, sign.way, sign.pattern, sign.below, sign.since)
                )
                or sign.several_nodes is not None
            )
            # No sign is there in every log.
            assert sign.line is None or sign_regex(sign.line).search("node00:1000:2000 [0] NCCL INFO x\n") is None


SYSTEM = "RuntimeError: NCCL error in: a.cpp:1, unhandled system error, NCCL version 2.18.5\n"
CUDA = "RuntimeError: NCCL error in: a.cpp:1, unhandled cuda error, NCCL version 2.18.5\n"
INTERNAL = "n1: Test NCCL failure common.cu:959 'internal error - please report this issue to the NCCL developers / '\n"
ACCESS = "n1: Test CUDA failure common.cu:295 'an illegal memory access was encountered'\n"
INSUFFICIENT = "RuntimeError: CUDA driver version is insufficient for CUDA runtime version\n"
NO_INTERFACE = "n1:1:1 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found\n"
DEVICE = "n1: Test CUDA failure common.cu:892 'invalid device ordinal'\n"


@pytest.mark.parametrize(
    ("line", "sign", "word", "without"),
    [
        (SYSTEM, "docker run -it --gpus all image\n", "/dev/shm", None),
        (SYSTEM, "torchrun --nnodes=2 train.py\n", "cannot reach each other", "/dev/shm"),
        (CUDA, "accelerate launch --num_machines 4 train.py\n", "between hosts", "direct way"),
        (CUDA, "torch.OutOfMemoryError\n", "memory of the GPU", "direct way"),
        (INTERNAL, "export NCCL_SOCKET_IFNAME=enp4s0\n", "the interface", None),
        (INTERNAL, "NCCL_TOPO_FILE=/etc/topo.xml\n", "topology", "the interface"),
        (INSUFFICIENT, "apptainer run image.sif\n", "without the GPU's driver", "the driver of the host is older"),
        (NO_INTERFACE, "NCCL_SOCKET_IFNAME=^eth\n", "leaves out", "matches no interface"),
        (NO_INTERFACE, "NCCL_SOCKET_IFNAME: =eth9\n", "matches no interface", None),
        (DEVICE, "srun --gpus-per-task=1 ./all_reduce_perf\n", "sees fewer GPUs", "more ranks"),
    ],
)
def test_what_the_log_shows_comes_first(line: str, sign: str, word: str, without: str | None):
    def first(text: str) -> str:
        (found,) = [each for each in read(text).findings if each.code in {"LOG030", "LOG036"}]
        return likeliest(found)

    assert word in first(sign + line)
    assert "in the log" in first(sign + line)
    assert "in the log" not in first(line)
    assert without is None or without in first(line)


def test_a_version_is_a_sign_where_the_fault_is_known_and_none_elsewhere():
    known = Job(hosts=1, version="2.26.2+cuda12.2")
    mended = Job(hosts=1, version="2.28.9+cuda12.9")

    assert "fault of this NCCL" in likeliest(only(known.text(ACCESS), "LOG030"))
    assert "NCCL 2.26.2" in likeliest(only(known.text(ACCESS), "LOG030"))
    assert "NCCL 2.28" not in told(only(mended.text(ACCESS), "LOG030"))


def test_messages_of_the_bootstrap_have_other_causes_than_those_of_collectives():
    truncated = "Message truncated : received 1024 bytes instead of 256"
    in_bootstrap = Job().warn(0, truncated).replace("misc/x.cc:1", "bootstrap.cc:77")
    old = Job(version="2.20.5+cuda12.4")

    def found(job: Job, line: str):
        return only(job.text(line, job.head(0) + "bootstrap.cc:554 -> 3"), "LOG030")

    assert "fault of NCCL 2.19 or 2.20" in likeliest(found(old, in_bootstrap))
    assert "fault of NCCL" not in told(found(Job(), in_bootstrap))
    assert "relaxed ordering" in told(found(Job(), Job().warn(0, truncated)))


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("free(): invalid next size (fast)", "overwritten"),
        ("double free or corruption (!prev)", "overwritten"),
        ("corrupted size vs. prev_size", "overwritten"),
        ("python: malloc.c:2379: sysmalloc: Assertion `(old_top == initial_top (av)' failed.", "overwritten"),
    ],
)
def test_a_heap_that_was_overwritten_is_no_reason_that_mpi_gives(line: str, word: str):
    found = only(f"{line}\nn1:77 Aborted\n", "LOG030")

    assert word in found.title
    assert "MPI" not in found.title


def test_words_about_memory_are_no_heap_that_was_overwritten():
    assert Troubles().matched("the helper calls free() and malloc() for every buffer", shape=1) is None
    assert Troubles().matched("MPIR_Init_thread(192): free slots are gone", shape=1) is not None


def test_an_absurd_size_follows_from_something_before():
    absurd = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.\n"
    usual = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"

    assert "LOG030" not in codes(read(absurd))
    assert "out of GPU memory" in only(usual, "LOG030").title


def test_a_crash_in_nccl_has_more_than_one_cause_and_one_in_ucx_has_its_own():
    crash = (
        "[n1:77] *** Process received signal ***\n[n1:77] Signal: Segmentation fault (11)\n"
        "[n1:77] [ 0] /lib64/libc.so.6(+0x3e6f0)[0x7f0000000000]\n"
        "[n1:77] [ 1] /usr/lib64/{}(+0x3533c)[0x7f0000000001]\n"
    )

    assert "fault of this NCCL" in likeliest(only(crash.format("libnccl.so.2"), "LOG030"))
    assert "a transport of this UCX" in likeliest(only(crash.format("libucp.so.0"), "LOG030"))


def test_a_communicator_without_marks_may_be_of_another_copy_of_nccl():
    corrupted = failed(Job(), "Error: corrupted comm object detected")
    destroyed = failed(Job(), "comm 0x1 has already been destroyed")

    assert any("two copies of NCCL" in told(each) for each in corrupted.findings)
    assert not any("two copies of NCCL" in told(each) for each in destroyed.findings)


def test_one_host_of_a_job_is_not_a_job_on_one_host():
    part = "n1:7:7 [0] NCCL INFO NET/Socket : Using [0]ib0:10.0.0.1<0>\nn1:7:7 [0] NCCL INFO rank 0 nranks 8\n"

    assert "cannot reach each other" in told(only(part + SYSTEM, "LOG036"))
    assert "cannot reach each other" not in told(only(Job(hosts=1).text(SYSTEM), "LOG036"))


def test_an_address_that_every_host_has_for_itself_comes_before_a_firewall():
    line = (
        "n1:7:9 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to {}<45763> failed : "
        "Software caused connection abort\n"
    )

    assert "each host has for itself" in likeliest(only(line.format("169.254.8.1"), "LOG037"))
    assert "firewall" in likeliest(only(line.format("10.0.0.7"), "LOG037"))
    assert "each host has for itself" not in told(only(line.format("10.0.0.7"), "LOG037"))


def test_multicast_is_why_a_job_waits_only_where_it_is_in_use():
    waiting = Job(hosts=1, unfinished=frozenset(range(2)))
    multicast = "node00:1000:2000 [0] NCCL INFO NVLS Bind mem 0xac UC handle 0x7f MC handle 0x7e size 1073741824\n"
    connected = "node00:1000:2000 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n"

    assert "NVLink SHARP" in likeliest(only(waiting.text(connected, multicast), "LOG033"))
    assert "NVLink SHARP" not in told(only(waiting.text(connected), "LOG033"))
    assert "ACS" in likeliest(only(waiting.text(connected), "LOG033"))


def test_a_job_that_went_well_has_no_differential():
    assert not any(each.causes for each in read(Job().text()).findings)
    assert "why, the likeliest first" not in "".join(
        told(each) for each in failed(Job(), "Duplicate GPU detected").findings
    )


def test_a_plug_in_goes_on_where_only_nccls_own_part_is_turned_off():
    way = "n1:7:9 [0] ibvwrap.c:160 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out\n"
    off = "mpirun -x NCCL_IB_DISABLE=1 ./all_reduce_perf\n"
    plug_in = "n1:7:9 [0] NCCL INFO Using network IBext_v8\n"
    own = "n1:7:9 [0] NCCL INFO Using network IB\n"

    assert "external plug-in" in likeliest(only(off + plug_in + way, "LOG030"))
    assert "external plug-in" not in told(only(plug_in + way, "LOG030"))
    assert "external plug-in" not in told(only(off + own + way, "LOG030"))
    assert "external plug-in" not in told(only(off.replace("=1", "=0") + plug_in + way, "LOG030"))


def test_a_stranger_at_the_port_is_a_cause_only_where_the_start_failed_and_nccls_release_minds_it():
    closed = "misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by remote peer 10.10.1.3<36138>\n"
    at_start = "n1:7:9 [0] NCCL INFO bootstrap.cc:701 -> 6\n"
    later = "n1:7:9 [0] NCCL INFO proxy.cc:701 -> 6\n"
    version = "n1:7:9 [0] NCCL INFO NCCL version {}+cuda12.9\n"

    def causes(*lines: str) -> str:
        return told(only("".join((lines[0], "n1:7:9 [0] " + closed, *lines[1:])), "LOG031"))

    assert "opened NCCL's port" in causes("", at_start)
    assert "opened NCCL's port" in causes(version.format("2.26.2"), at_start)
    assert "opened NCCL's port" not in causes(version.format("2.28.9"), at_start)
    assert "opened NCCL's port" not in causes("", later)


def test_nccls_monitor_is_a_cause_of_a_crash_in_it_only():
    crash = "[n1:77:0:79] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x48)\n"
    frame = " 1  /opt/nccl/lib/libnccl.so.2({}+0x122927) [0x7ff1c18c1057]\n"

    assert "RAS" in likeliest(only(crash + frame.format("rasMsgHandlePeersUpdate"), "LOG030"))
    assert "RAS" not in told(only(crash + frame.format("ncclLaunchPrepare"), "LOG030"))
    assert "RAS" not in told(
        only(
            "n1:77:79 [0] NCCL INFO NCCL version 2.27.7+cuda12.4\n" + crash + frame.format("ncclLaunchPrepare("),
            "LOG030",
        )
    )


def test_words_of_libfabric_on_the_other_end_say_whether_it_ended_or_was_never_reached():
    failed = (
        "n1:7:9 [0] process_err_completion:15 NCCL WARN NET/OFI Request 0x7f completed with error. RC: 5. Error: {}\n"
    )
    ended = only(
        failed.format("Invalid receiver queue pair number (QPN) My EFA addr: fi_addr_efa://[fe80::1]:0:6"), "LOG030"
    )
    in_pod = only("kubectl logs pod/n1\n" + failed.format("Invalid receiver queue pair number (QPN)"), "LOG030")
    never = only(failed.format("Unreachable remote (never received a response)"), "LOG030")

    assert "has ended" in likeliest(ended)
    assert "lack of memory" in told(ended)
    assert "lack of memory" in likeliest(in_pod)
    assert "security group" in likeliest(never)
    assert "security group" not in told(ended)


def test_a_setting_of_one_program_alone_is_a_cause_where_that_program_is_there():
    refused = "n1:7:9 [0] transport/p2p.cc:298 NCCL WARN Cuda failure 'invalid argument'\n"

    assert "NCCL_CUMEM_ENABLE" in likeliest(only("INFO vllm serve /models\n" + refused, "LOG030"))
    assert "NCCL_CUMEM_ENABLE" not in likeliest(only(refused, "LOG030"))
