"""Every pattern is well formed and says what to do; each is shown one line in the form that it is for."""

import pytest

from busbw.facts.logs import log_patterns
from busbw.logs.troubles import Troubles

# Written after the format strings of NCCL, PyTorch, Slurm and Open MPI.
LINES = {
    "completion-error": "NET/IB: Got completion from peer 10.0.0.2<4> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0",
    "completion-queue-error": "NET/IB: ncclIbTest: Got CQE with error (devIndex=0, req=0x1, comm=0x2 (send), wr_id=3)",
    "retry-exceeded": "ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81)",
    "memory-kill": "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks were killed.",
    "program-out-of-memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "program-error": "[rank3]: ValueError: batch is empty",
    "stub-driver": "Cuda failure 'CUDA driver is a stub library'",
    "gpu-xid": "[ 910.1] NVRM: Xid (PCI:0000:1b:00): 79, pid=4, name=python, GPU has fallen off the bus.",
    "garbled-address": "Net : connecting to address  with family 4711 is neither AF_INET(2) nor AF_INET6(10)",
    "desync": "\t     [2, 5] finished collective #17, but didn't join collective #18 (count from 1)",
    "version-mismatch": "Mismatched NCCL version detected : rank 0 version 22809 rank 1 version 22703",
    "duplicate-gpu": "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
    "shm-full": "Error: failed to extend /dev/shm/nccl-abc to 9637892 bytes, error: No space left on device (28)",
    "out-of-memory": "Cuda failure 2 'out of memory'",
    "no-verbs": "Failed to open libibverbs.so[.1]",
    "driver-too-old": "CUDA Driver version found is 11. Minimum requirement is 12.",
    "gpu-unusable": "Cuda failure 'uncorrectable ECC error encountered'",
    "cuda-failure": "Cuda failure 400 'invalid resource handle'",
    "no-nvml": "Failed to open libnvidia-ml.so.1",
    "no-algorithm": "no algorithm/protocol available for function AllReduce with datatype ncclFloat32",
    "bad-list": 'Unrecognized element token "rnig" when parsing "rnig,tree"',
    "truncated-message": "NET/IB : message truncated : receiving 4096 bytes instead of 1024",
    "mixed-nics": "Detected mixed local Net device counts",
    "no-plugin": "Error: network AWS Libfabric not found.",
    "no-interface": "Bootstrap : no socket interface found",
    "two-jobs": "Bootstrap Root : rank 3 of 8 ranks has already checked in",
    "ip-unreachable": "socketPollConnect: connect returned No route to host",
    "qp-failed": "Call to ibv_modify_qp failed with error Invalid argument, on dev mlx5_0",
    "registration-failed": "Call to ibv_reg_mr_iova2 failed with error Bad address",
    "fatal-nic": "NET/IB : mlx5_0:1 async fatal event: local catastrophic error",
    "gid-changed": "NET/IB : mlx5_0:1 Got non-fatal async event: GID table changed(18)",
    "peer-gone": "socketProgress: Connection closed by remote peer node1<4>",
    "connect-failed": "socketPollConnect: connect to 10.0.0.1<4> returned Connection refused, exceeded error",
    "p2p-disabled": "P2P is disabled between NVLINK connected GPUs 1 and 0",
    "nvls-bind": "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152",
    "imex": "Check the IMEX channel configuration (/dev/nvidia-caps-imex-channels)",
    "topology-file": "XML Topology has wrong version 2, 1 needed",
    "no-transport": "No transport found for rank 2[b1000] -> rank 1[5e000]",
    "numa-balancing": "NUMA auto balancing enabled which can lead to variability in the RCCL performance!",
    "bad-value": "Invalid value 8M for NCCL_BUFFSIZE, using default 4194304",
    "detected-elsewhere": "communicator encountered a fatal error (detected in ncclCommGetAsyncError)",
    "proxy-failed": "[Proxy Service 3] Failed to execute operation Setup from rank 3, retcode 1",
    "framework-timeout": "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1",
    "signal": "mpirun noticed that process rank 3 with PID 77 on node n1 exited on signal 9 (Killed).",
    "exit-code": "srun: error: n1: tasks 0-3: Exited with exit code 1",
    "msccl-other-ranks": "MSCCL: ngpus set in the MSCCL algo (16) doesn't match the communicator ngpus (8)",
    "msccl-left-out": "MSCCL: algorithm /opt/two-step.xml failed to initialize. Will be ignored.",
    "msccl-too-many": "MSCCL: too many algorithms (4) specified in environment variable MSCCL_XML_FILES. "
    "The rest will be ignored.",
    "msccl-no-files": "MSCCL Internal Scheduler: open algorithm in share directory /usr/share/msccl-algorithms failed",
    "msccl-channels": "MSCCL: number of channels available (16) less than required (32)",
    "msccl-no-sku": "github.com/Azure/msccl-scheduler: WARN There is no related algo file for the detected Azure VM "
    "SKU:Standard_ND96isr_H200_v5 been finded, MSCCL will use nccl as default communication channel",
    "msccl-several-gpus": "MSCCL doesn't support multiple GPUs in one process and is not available",
    "msccl-alltoall": "number of local GPUs (8) or number of nodes (1) is 1.",
    "msccl-file": "Could not open MSCCL XML algorithm file /opt/two-step.xml : No such file or directory",
    "mscclpp-off": "MSCCL++: Cannot enable MSCCL++ on gfx90a:sramecc+:xnack- architecture",
    "mscclpp-no-nccl": "MSCCLPP_NCCL_LIB_PATH points to a directory: /usr/lib",
    "mscclpp-cannot": "ncclAllToAll is currently unavailable",
    "ofi-no-provider": "NET/OFI Unable to find a protocol that worked.  Failing initialization.",
    "ofi-old-libfabric": "NET/OFI EFA provider requires at least libfabric version 1.22.0.",
    "ofi-no-gdr": "NET/OFI GDR disabled on GDR-supported instance type p4d.24xlarge",
    "ofi-transfer": "NET/OFI Request 0x7f (SEND) completed with error: err: 21, strerror: unknown error, len: 0",
    "ofi-registration": "NET/OFI Unable to register memory (type = 1) for device 0. RC: -12, Error: No memory",
    "ofi-endpoint": "NET/OFI Couldn't open CQ. RC: -22, ERROR: Invalid argument",
    "ofi-unreachable": "NET/OFI Unable to insert remote address into address vector for device 1. RC: -22",
    "ofi-address": "NET/OFI Wrong number of NICs for receiver, expected 4 but got 2",
    "qp-no-device": "Call to ibv_modify_qp failed with error No such device",
    "dmabuf-unsupported": "Call to ibv_reg_dmabuf_mr failed with error Operation not supported",
    "mpi-locked-memory": "ib_iface.c:946  UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory",
    "store-unreached": "[W1121 10:00:00.1 socket.cpp:697] [c10d] The client socket has failed to connect to "
    "[n1]:29500 (errno: 110 - Connection timed out).",
    "framework-waits": "[PG ID 0 PG GUID 0(default_pg) Rank 3] Timeout at NCCL work: 19, last enqueued NCCL work: 19",
    "mpi-no-pmi": 'The application appears to have been direct launched using "srun",',
    "mpi-other-launcher": "check_PMI_VERSION(167):  Runtime environment uses unsupported PMI version PMIx. Aborting.",
    "mpi-slots": "There are not enough slots available in the system to satisfy the 8",
    "mpi-daemons": "ORTE was unable to reliably start one or more daemons.",
    "ssh-refused": "kex_exchange_identification: Connection closed by remote host",
    "mpi-no-program": "prterun was unable to find the specified executable file, and therefore did",
    "mpi-tcp-stranger": "another Open MPI process but cannot find a corresponding process",
    "too-many-peers": "Cuda failure 711 'peer mapping resources exhausted'",
    "no-code-amd": "Cannot retrieve Static function, error: 218",
    "cxi-undelivered": "MPIDI_OFI_handle_cq_error(1062): OFI poll failed (ofi_events.c:1064:"
    "MPIDI_OFI_handle_cq_error:Input/output error - UNDELIVERABLE)",
    "mpi-no-pml": "No components were able to be opened in the pml framework.",
    "mpi-unreachable": "At least one pair of MPI processes are unable to reach each other for",
    "mpi-tcp": "WARNING: Open MPI failed to TCP connect to a peer MPI process.  This",
    "mpi-shared-memory": "init_worker(48)....:  ucx function returned with failed status(ucx_init.c 48 init_worker "
    "No resources are available to initiate the operation)",
    "mpi-no-provider": "find_provider(1427).........: OFI fi_getinfo() failed (ofi_init.c:1427:find_provider:No data)",
    "ucx-no-transport": "select.c:722  UCX  ERROR   no active messages transport to <no debug data>: posix/memory",
    "ucx-device": "UCX  ERROR   uct_iface_open(ud_verbs/mana_0:1) failed: Input/output error",
    "mpi-not-started": "*** An error occurred in MPI_Init_thread",
    "ofi-protocol": 'NCCL_PROTO was set to "LL", but the Libfabric endpoint does not support 128 byte in-order stores',
    "ofi-option": "NET/OFI Couldn't set FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES. RC: -92, ERROR: No such",
    "ip-link-local": "Connect to fe80::64a6:63ff:fe0d:2ef4%9<48381> failed : Network is unreachable",
    "ofi-other": "NET/OFI fi_writedata failed; RC: -11, Error: Resource temporarily unavailable",
    "cxi-match": "libfabric:9:17::cxi:core:cxip_ux_onload_cb():26<warn> n1: PtlTE 375:[Fatal] LE resources "
    "not recovered during flow control. FI_CXI_RX_MATCH_MODE=[hybrid|software] is required",
    "cxi-vni": "libfabric:9:17::cxi:fabric:cxip():2<warn> : Failed to find valid default rgroup and vni for cxi0",
    "driver-mixed": "nvmlInit_v2() failed: Driver/library version mismatch",
    "fabric-manager": "Cuda failure 802 'system not yet initialized'",
    "no-kernel-image": "Cuda failure 209 'no kernel image is available for execution on the device'",
    "device-missing": "Cuda failure 101 'invalid device ordinal'",
    "cuda-init": "Cuda failure 'initialization error'",
    "no-peer-access": "failed to open CUDA IPC handle : 217 peer access is not supported between these two devices",
    "not-permitted": "Cuda failure 800 'operation not permitted'",
    "nvls-state": "Cuda failure 401 'the operation cannot be performed in the present state'",
    "kernel-fault": "Cuda failure 'an illegal memory access was encountered'",
    "no-libcuda": "Failed to find CUDA library libcuda.so (NCCL_CUDA_PATH='') : ",
    "gpu-allocation": "Failed to CUDA calloc async 4194304 bytes",
    "host-allocation": "Failed to malloc 1048576 bytes",
    "nvml-failed": "nvmlDeviceGetHandleByPciBusId() failed: Not Found",
    "incorrect-receive": "NET/IB : req 0/1 tag 5 peer 10.0.0.2<1> posted incorrect receive info: size 512",
    "shm-attach": "Error while attaching to shared memory segment /dev/shm/nccl-Ab1 (size 0)",
    "handle-exchange": "UDS: Sending data over socket /tmp/nccl-socket-1-2 failed : Connection refused (111)",
    "mixed-virtual-nics": "NET/IB : Local mergedDev mlx5_0+mlx5_1 has a different number of devices=2",
    "merge-failed": "TOPO/NET : Could not force merge NICs mlx5_0,mlx5_9. Please specify a valid string.",
    "no-oob-interface": "NET/IB : No IP interface found.",
    "address-unknown": "Net : error encountered when getting address info : Name or service not known",
    "unique-id-timeout": "[3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d "
    "by key '0', but store->get('0') got error: Socket Timeout",
    "too-many-files": "socketTryAccept: Accept failed: Too many open files",
    "accept-failed": "socketTryAccept: Accept failed: Interrupted system call",
    "address-in-use": "Call to bind failed : Address already in use",
    "threads-exhausted": "Call to pthread_create failed: Resource temporarily unavailable",
    "system-call": "Call to epoll_wait failed : Bad file descriptor",
    "nic-replaced": "NET/IB: ncclIbResiliencyHandle: Device 1 marked as failed. (send comm=0x1)",
    "nic-not-openable": "NET/IB : Unable to open device mlx5_3",
    "verbs-memory": "Call to ibv_create_qp failed with error Cannot allocate memory",
    "verbs-failed": "Call to ibv_query_gid failed with error No such device",
    "port-down": "NET/IB : mlx5_2:1 Got async event : port error",
    "work-queue-error": "NET/IB : mlx5_1:1 async fatal event on QP (0x7309): local access violation work queue error",
    "async-event": "NET/IB : mlx5_0:1 Got non-fatal async event: port active(9)",
    "queue-refused": "ibv_post_send() failed with error Invalid argument, Bad WR 0x1, First WR 0x2",
    "nic-thread-ended": "Call to ibv_get_async_event failed",
    "connection-broke": "socketProgressOpt: Call to recv from 10.0.0.2<4> failed : Software caused connection abort",
    "connect-given-up": "socketStartConnect: exceeded retries (20000)",
    "collnet-off": "Cannot initialize CollNet, using point-to-point network instead",
    "gdrcopy": "gdr_pin_buffer(addr 7f, size 65536) failed: 22",
    "gin-unavailable": "No GIN-capable devices found.",
    "graph-file": "Could not open XML graph file /opt/graph.xml : No such file or directory",
    "topology-file-missing": "Could not open XML topology file /opt/topo.xml : No such file or directory",
    "one-sided-link": "Failed to find reverse path from remNode 0/41000 nlinks 2 to node 0/61000",
    "rank-order": "Failed to determine local ranks rank 3 hostHash 1f pidHash 2f localRank -1",
    "nic-not-in-topology": "Could not find NET with id 3",
    "topology-inconsistent": "Could not find gpu rank 3",
    "window-refused": "Communicator does not support symmetric memory!",
    "older-library": "NCCL library is too old. This application was compiled with NCCL version 2.30.7",
    "not-ready": "Attempt to use communicator before the previous operation returned ncclSuccess",
    "wrong-device": "AllReduce : sendbuff allocated on device 0 mismatchs with NCCL device 1",
    "group-misused": "ncclGroupEnd: not in a group call.",
    "bad-rank": "improper usage of ncclCommInitRank: nId = 1, nranks=0",
    "fp8": "FP8 reduction support begins with sm90 capable devices.",
    "nccl-tests-cuda": "node1: Test CUDA failure common.cu:941 'out of memory'",
    "barrier-device": "[PG ID 0 Rank 0]  using GPU 0 to perform barrier as devices used by this process are "
    "currently unknown.",
    "watchdog-stuck": "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring",
    "rendezvous": "[c10d] The client socket has timed out after 600000ms while trying to connect to (node1, 29500).",
    "passed-on": "commReclaim: comm 0x1 (rank = 0) in abort, error 1",
    "setting-changed": "User asked for a maximum of 0 channels, setting it to 1",
    "no-symbol": "dlvsym failed on ibv_reg_mr_iova2 - /lib/libibverbs.so: undefined symbol version IBVERBS_1.8",
    "iommu": 'Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!',
    "fast-socket": "Cannot get incoming CPU.",
    "internal": "Could not find pool of op 0x7f",
    "job-cancelled": "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-21T10:00:00 DUE TO TIME LIMIT ***",
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_is_known_for_what_it_is(name: str):
    matched = Troubles().matched(LINES[name], shape=1)

    assert matched is not None
    assert matched[0].id == name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129", "completion-error"),
        ("Cuda failure 'API call is not supported in the installed CUDA driver'", "driver-too-old"),
        ("MSCCL: threadblock 3 is missing", "msccl-file"),
        ("MSCCL: unsupported collective: alltoallw", "msccl-file"),
        ("In-place alltoall is not possible currently.", "msccl-alltoall"),
        (
            "MSCCL Internal Scheduler:  Unable to find algorithm files in /opt/rocm/share/rccl. Please ensure that x",
            "msccl-no-files",
        ),
        (
            "NCCL_MAX_NCHANNELS:16 is lesser than number of channels required by MSCCL:32, so disabling MSCCL for x",
            "msccl-channels",
        ),
        (
            "2026-01-05 10:00:00.1 MSCCLPP 77 WARN NCCL nccl.cc:658 No FallBack implementation for AllReduce",
            "mscclpp-cannot",
        ),
        ("Call to ibv_modify_qp failed with error Network is unreachable", "qp-failed"),
        (
            "srun: error: Unable to confirm allocation for job 71: Socket timed out on send/recv operation",
            "slurm-no-controller",
        ),
        ("srun: error: Task launch for StepId=7.0 failed on node n1: Socket timed out on send/recv", "slurm-launch"),
        ("srun: error: n3: task 9: Out Of Memory", "memory-kill"),
        ("Out of memory: Killed process 4711 (python) total-vm:1kB", "memory-kill"),
        ("worker-2   0/1     OOMKilled   0          5m", "memory-kill"),
        ("[n4:4711] Signal: Segmentation fault (11)", "signal"),
        ("[n4:4711:0:4790] Caught signal 11 (Segmentation fault: address not mapped to object)", "signal"),
        ("*** SIGSEGV received at time=1763712000 on cpu 12 ***", "signal"),
        ("*** SIGBUS (@0x7f) received by PID 4711 (TID 0x7f) from PID 8; stack trace: ***", "signal"),
        ("Fatal Python error: Segmentation fault", "signal"),
        ("  exitcode  : -9 (pid: 4711)", "signal"),
        ("  traceback : Signal 9 (SIGKILL) received by PID 4711", "signal"),
        ("=   KILLED BY SIGNAL: 9 (Killed)", "signal"),
        ("YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)", "signal"),
        ("[launch.py:322:sigkill_handler] ['python3', 'train.py'] exits with return code = -9", "signal"),
    ],
)
def test_one_thing_has_several_forms(line: str, name: str):
    matched = Troubles().matched(line, shape=1)

    assert matched is not None
    assert matched[0].id == name


@pytest.mark.parametrize(
    "line",
    [
        "There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to memory usage.",
        "vm.oom_kill_allocating_task = 0",
    ],
)
def test_a_word_about_what_may_be_is_no_death(line: str):
    matched = Troubles().matched(line, shape=1)

    assert matched is None or matched[0].role != "death"


@pytest.mark.parametrize(
    "line",
    [
        "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
        "connect to 10.0.0.1<4> returned Connection refused, retrying (1/34) after sleep for 100 msec",
        "[Proxy Service] Device 1 CPU core 21",
        "P2P Chunksize set to 131072",
        "Connected all rings, use ring PXN 0 GDR 1",
        "NCCL_IGNORE_CPU_AFFINITY set by environment to 1.",
        "Could not find real path of /sys/class/pci_bus/0000:00/../../0000:00:00.0",
        "TOPO/NET : Importing network plugins to topology",
        "UDS: Creating service thread comm 0x1 rank 3",
        "proxyProgressAsync opId=0x1 op.type=1 op.reqBuff=0x2 op.respSize=8 done",
        "Call to ibv_modify_qp failed with 110 Connection timed out, retrying 1/34 after 100 msec of sleep",
        "MemManager: Initialized for device 0",
        "MSCCL: No external scheduler found, using internal implementation",
        "MSCCL: Initialization finished, localSize 0",
        "Parsed MSCCL Algorithm /opt/two-step.xml successfully.",
        "ncclGroupStart is currently unavailable, return success",
        "Assigned GIN plugin GIN_IB_GDAKI to comm",
    ],
)
def test_ordinary_lines_are_no_trouble(line: str):
    assert Troubles().matched_quiet(line, shape=1) is None


@pytest.mark.parametrize("pattern", list(log_patterns()), ids=lambda pattern: pattern.id)
def test_a_pattern_says_what_why_and_what_to_do(pattern):
    assert pattern.what
    assert pattern.cause
    assert pattern.fix
    assert pattern.source


def test_patterns_have_names_of_their_own():
    names = [pattern.id for pattern in log_patterns()]

    assert len(set(names)) == len(names)
