"""Logs of programs that never come to NCCL: what MPI, UCX and PyTorch's store print when they cannot start."""

import pytest

from busbw.api.diagnoses import doctor_logs
from busbw.base.errors import InputError
from busbw.logs.reader import LogReader
from busbw.logs.troubles import Troubles

from .made import Job, to_do, told
from .test_diagnosis import codes, evidence, read
from .test_patterns import LINES

NO_PMI = """\
0: --------------------------------------------------------------------------
0: The application appears to have been direct launched using "srun",
0: but OMPI was not built with SLURM's PMI support and therefore cannot
0: execute. There are several options for building PMI support under
0: --------------------------------------------------------------------------
"""
LOCKED = (
    "[1700000000.1] [n7:81 :0]  ib_iface.c:946  UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory\n"
)
NOT_STARTED = "*** An error occurred in MPI_Init\n*** on a NULL communicator\n"
MPICH = """\
Abort(138537231) on node 3: Fatal error in internal_Init_thread: Other MPI error, error stack:
internal_Init_thread(71)......: MPI_Init_thread(argc=(nil), argv=(nil), required=3, provided=0x7ffd) failed
init_worker(48)...............:  ucx function returned with failed status(ucx_init.c 48 init_worker {why})
"""
RETRY = (
    "[W1121 10:00:0{n} socket.cpp:697] [c10d] The client socket has failed to connect to [n1]:29500 (errno: {errno}).\n"
)
WAITS = (
    "[rank{rank}]:[E x.cpp:1537] [PG 0 Rank {rank}] Timeout at NCCL work: 19, last enqueued NCCL work: 19, "
    "last completed NCCL work: 18.\n"
)
TIMED_OUT = (
    "[rank2]:[E x.cpp:563] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=19, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800093 milliseconds before timing out.\n"
)


def only(text: str, code: str):
    (found,) = [each for each in read(text).findings if each.code == code]
    return found


@pytest.mark.parametrize(
    "name", [name for name in LINES if name.startswith(("mpi-", "ucx-", "ssh-", "cxi-u", "no-code", "store", "ofi-u"))]
)
def test_a_line_that_nccl_does_not_write_reaches_its_pattern(name: str):
    reader = LogReader()
    reader.feed(LINES[name].encode() + b"\n")
    reader.end_source()

    assert [event.kind for event in reader.troubles.events.values()] == [name]


def test_a_message_that_ends_with_a_null_byte_is_text(tmp_path):
    log = tmp_path / "out.txt"
    log.write_bytes(b"There are not enough slots available in the system to satisfy the 64\nslots\0\n")

    diagnosis = doctor_logs([str(log)])

    assert "more ranks than it has slots" in diagnosis.verdict.sentence


def test_a_line_of_a_traceback_that_names_the_store_is_no_timeout():
    text = (
        "    store = TCPStore(result.hostname, result.port, world_size, start_daemon, timeout)\n"
        "RuntimeError: Address already in use\n"
    )

    assert "a port or an address cannot be had" in only(text, "LOG030").title


def test_ucx_that_was_asked_for_a_transport_that_is_not_there_is_told_of_the_setting():
    text = "[179547.8] [n1:59:0] ucp_context.c:1643 UCX  ERROR no usable transports/devices (asked rc on all devices)\n"

    assert "unset UCX_TLS" in (only(text + MPICH.format(why="No such device"), "LOG030").fix or "")


def test_a_program_that_srun_starts_without_a_pmi_is_told_what_to_give_srun():
    found = only(NO_PMI, "LOG030")

    assert "finds no PMI" in found.title
    assert "srun --mpi=pmix" in to_do(found)
    assert "mpirun of another MPI" in told(found)


def test_locked_memory_that_is_missing_is_a_warning_while_mpi_goes_on():
    diagnosis = read(LOCKED)

    assert codes(diagnosis) == {"LOG040"}
    assert diagnosis.verdict.outcome == "slow"
    assert "ulimit -l unlimited" in (only(LOCKED, "LOG040").fix or "")
    assert "IPC_LOCK" in (only(LOCKED, "LOG040").fix or "")


@pytest.mark.parametrize("text", [LOCKED + NOT_STARTED, NOT_STARTED + LOCKED])
def test_locked_memory_that_is_missing_is_the_cause_where_mpi_could_not_start(text: str):
    assert codes(read(text)) == {"LOG030"}
    assert "gets no locked memory" in only(text, "LOG030").title


def test_a_start_of_mpi_that_failed_for_no_known_reason_names_none():
    assert codes(read(NOT_STARTED)) == {"LOG036"}
    assert "NCCL_DEBUG" not in (only(NOT_STARTED, "LOG036").fix or "")


def test_mpich_without_resources_is_told_of_shared_memory():
    text = MPICH.format(why="No resources are available to initiate the operation")

    assert "/dev/shm" in (only(text, "LOG030").fix or "")
    assert only(MPICH.format(why="Invalid parameter"), "LOG030").title.endswith("init_worker Invalid parameter)")


def test_processes_that_each_are_number_0_of_1_do_not_know_of_each_other():
    hello = "Hello world from n1 running process 0 of 1\nHello world from n2 running process 0 of 1\n"

    found = only(hello, "LOG035")

    assert "2 processes each say hello" in found.evidence
    assert "mpirun --version" in (found.fix or "")


@pytest.mark.parametrize(
    "text",
    [
        "Hello world from n1 running process 0 of 1\n",
        "Hello world from n1 running process 0 of 16\nHello world from n1 running process 1 of 16\n",
        "step 0 of 1 done\nstep 0 of 1 done\n",
        "export UCX_TLS=self,sm,tcp\n",
        "ucx_info: UCX_TLS=all\n# daemon started\n",
        "The MPI process count is 8\n",
    ],
)
def test_what_says_nothing_of_a_fault_is_no_log(text: str, tmp_path):
    log = tmp_path / "out.txt"
    log.write_text(text)

    with pytest.raises(InputError, match="is of NCCL, or an error of MPI"):
        doctor_logs([str(log)])


def test_a_store_that_is_not_reached_is_a_matter_of_its_address():
    text = "".join(RETRY.format(n=n, errno="110 - Connection timed out") for n in range(3))

    found = only(text, "LOG037")

    assert "MASTER_ADDR" in (found.fix or "")
    assert "NCCL_SOCKET_IFNAME" not in (found.fix or "")


def test_a_store_that_is_reached_after_a_while_is_no_matter():
    job = Job()
    text = RETRY.format(n=1, errno="111 - Connection refused") + job.text()

    assert read(text).verdict.outcome == "ok"


def test_a_store_without_ipv6_is_no_fault():
    line = RETRY.format(n=1, errno="97 - Address family not supported by protocol")

    assert Troubles().matched(line, shape=1) is None


def test_ranks_that_say_their_number_alone_wait_in_the_call_that_another_names():
    found = only(TIMED_OUT + "".join(WAITS.format(rank=rank) for rank in (1, 2, 3)), "LOG032")

    assert "ranks 1-3 in ALLREDUCE number 19; rank 0 did not report" in found.evidence
    assert "fewer steps" in (found.fix or "")


def test_one_rank_that_waits_does_not_accuse_those_below_it():
    assert "did not report" not in evidence(read(TIMED_OUT), "LOG032")


def test_a_watchdog_that_ends_after_a_timeout_is_no_rank_that_left():
    ended = "  what():  [PG 0 Rank 2] Process group watchdog thread terminated with exception: " + TIMED_OUT[29:]

    assert codes(read(TIMED_OUT + ended)) == {"LOG032"}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("NET/OFI Unable to insert remote address into address vector for device 0. RC: -22", "security group"),
        ("Call to ibv_modify_qp failed with error No such device", "host's network"),
        ("Call to ibv_modify_qp failed with 19 No such device, on dev mlx5_0:1, curr state INIT", "show_gids"),
        ("Call to ibv_reg_dmabuf_mr failed with error Operation not supported", "NCCL_DMABUF_ENABLE=0"),
        ("NET/IB : mlx5_0:1 Got async event : local access violation work queue error", "active_mtu"),
        ("ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2)", "NCCL_SOCKET_IFNAME"),
        ("Cuda failure 217 'peer access is not supported between these two devices'", "NCCL_CUMEM_HOST_ENABLE=0"),
        ("Socket creation failed : Address family not supported by protocol", "--network=host"),
    ],
)
def test_what_maintainers_named_is_named(line: str, word: str):
    job = Job()
    diagnosis = read(job.text(job.warn(0, line), job.head(0) + "transport/net.cc:890 -> 2"))
    (found,) = [each for each in diagnosis.findings if each.code == "LOG030"]

    assert word in f"{told(found)} {to_do(found)}"


DAEMONS = "ORTE was unable to reliably start one or more daemons.\n"


def test_an_sshd_that_refuses_is_the_cause_where_daemons_could_not_start():
    refused = "ssh_exchange_identification: Connection closed by remote host\n"

    assert "sshd closed" in evidence(read(refused + DAEMONS), "LOG030")
    assert "sshd" not in evidence(read(DAEMONS), "LOG030")
    assert codes(read(refused)) == {"LOG040"}


@pytest.mark.parametrize(
    ("address", "is_bridge"),
    [("172.17.0.1", True), ("192.168.122.1", True), ("169.254.170.23", True), ("10.17.0.1", False)],
)
def test_a_connection_to_the_bridge_of_every_host_accuses_no_rank(address: str, is_bridge: bool):
    line = f"[1.2] [n1:7:0]  sock.c:323  UCX  ERROR   connect(fd=4, dest_addr={address}:5) failed: Connection refused\n"
    (found,) = [each for each in read(line).findings if each.code == "LOG037"]

    assert found.fix is not None
    assert ("bridge" in found.fix) is is_bridge


def test_a_program_that_is_not_there_is_named():
    assert "finds no program" in evidence(read(LINES["mpi-no-program"] + "\n"), "LOG030")
