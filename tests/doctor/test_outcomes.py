"""What only tells that something was not started, or was lost: the line that says why is the cause."""

import pytest

from busbw.facts.logs import log_patterns
from busbw.logs.troubles import Troubles

from .made import Job, to_do
from .test_diagnosis import codes, read
from .test_mpi_logs import only

RULE = "-" * 74 + "\n"
DAEMONS = (
    f"{RULE}ORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n\n"
    "* not finding the required libraries and/or binaries on\n  one or more nodes. Please check your PATH and "
    "LD_LIBRARY_PATH\n  settings, or configure OMPI with --enable-orterun-prefix-by-default\n\n"
    "* lack of authority to execute on one or more specified nodes.\n  Please verify your allocation and "
    f"authorities.\n{RULE}"
)
LOST = (
    f"{RULE}ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[7,0],0] on node n1\n"
    "  Remote daemon: [[7,0],1] on node n2\n\nThis is usually due to either a failure of the TCP network\n"
    f"connection to the node, or possibly an internal failure of\nthe daemon itself.\n{RULE}"
)
NO_DOMAIN = (
    "n1:77:99 [0] NCCL WARN NET/OFI Couldn't open a fabric access domain. RC: -38, ERROR: Function not implemented\n"
)
NO_VNI = (
    "libfabric:77:1::cxi:fabric:cxip_nic_get_rgroup_vni():253<warn> : Failed to find valid default rgroup and vni\n"
)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("bash: line 1: orted: command not found", "orted"),
        ("ssh: Could not resolve hostname n2: Name or service not known", "name of a host"),
        ("Host key verification failed.", "ssh does not get into a host"),
        (
            "orted: error while loading shared libraries: libopen-rte.so.40: cannot open shared object file",
            "libopen-rte",
        ),
        ("mpiexec: Symbol `orte_schizo' has different size in shared object, consider re-linking", "orte_schizo"),
    ],
)
def test_what_a_host_says_comes_before_that_no_daemon_was_started(line: str, word: str):
    assert word in only(f"{line}\n{DAEMONS}", "LOG030").title


def test_reasons_that_hydra_lists_below_are_hints():
    text = (
        "[mpiexec@n1] check_exit_codes (x.c:117): unable to run bstrap_proxy on n2 (pid 247, exit code 65280)\n"
        "[mpiexec@n1] HYD_bstrap_setup (../x.c:1062): error waiting for event\n[mpiexec@n1] Possible reasons:\n"
        "[mpiexec@n1] 1. Host is unavailable. Please check that all hosts are available.\n"
    )

    assert "Hydra cannot start its helper" in only(text, "LOG030").title
    assert (
        "name of a host"
        in only("ssh: Could not resolve hostname n2: Name or service not known\n" + text, "LOG030").title
    )


def test_of_many_hosts_each_says_it_and_the_message_stands_far_below():
    text = "".join(f"n{number}: bash: orted: command not found\n" for number in range(400))

    assert "orted" in only(text + DAEMONS, "LOG030").title


def test_where_nothing_else_is_said_the_message_is_told_with_its_own_causes():
    assert "could not start its daemon" in only(DAEMONS, "LOG030").title


def test_what_was_refused_long_before_is_not_why_a_daemon_was_not_started():
    text = "cat: /etc/motd: No such file or directory\n" + "loading modules\n" * 200

    assert "could not start its daemon" in only(text + DAEMONS, "LOG030").title


def test_a_pod_that_was_killed_is_why_its_daemon_was_lost():
    assert "137" in only(f"command terminated with exit code 137\n{LOST}", "LOG030").title


def test_a_warning_of_the_start_is_not_why_a_host_was_lost_at_the_end():
    text = "ssh-keygen: /etc/ssh/key: Permission denied\n" + "step 1 of 9\n" * 200

    assert "dropped out" in only(text + LOST, "LOG030").title


def test_an_exception_is_why_the_program_called_abort():
    text = "KeyError: 'hidden_size'\nMPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\n"

    assert "hidden_size" in only(text, "LOG030").title
    assert "MPI_Abort" in only("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\n", "LOG030").title


def test_a_nic_without_a_vni_is_why_its_domain_does_not_open():
    assert "VNI" in only(NO_VNI + NO_DOMAIN, "LOG030").title
    assert "cannot open a device" in only(NO_DOMAIN, "LOG030").title


def test_a_nic_without_a_vni_alone_is_a_warning():
    assert "LOG030" not in codes(read(NO_VNI + Job().text()))


def test_a_warning_that_comes_until_the_end_is_the_last_word():
    line = "slurmstepd: error: Some words that nobody knows of a host\n"

    assert "nobody knows" in only(line * 5, "LOG030").title
    assert "LOG030" not in codes(read(line * 5 + "Hello from a program\n" * 8 + Job().text()))


def test_outcomes_name_no_cause_by_themselves():
    outcomes = [pattern for pattern in log_patterns() if pattern.outcome is not None]

    assert {pattern.outcome for pattern in outcomes} == {"start", "run"}
    assert all(pattern.role in {"origin", "follower"} for pattern in outcomes)


CGROUPS = (
    "slurmstepd: error: xcgroup_instantiate: unable to create cgroup '/sys/fs/cgroup/x' : No space left on device\n"
    "slurmstepd: error: task/cgroup: unable to add task[pid=123] to memory cg '(null)'\nmapped 100 reads\n"
)


# Messages that stand in front of what a job prints as it goes on; after threads of their projects.


@pytest.mark.parametrize(
    "text",
    [
        # open-mpi/ompi 11964
        "[n1:77] PMIX ERROR: PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER in file base/gds_base_fns.c at line 133\n" * 3
        + "# OSU MPI Bandwidth Test v7.0\n# Size      Bandwidth (MB/s)\n1                       5.88\n",
        # galaxyproject/galaxy 2309
        "Reading\nslurmstepd: error: Exceeded step memory limit at some point. Step may have been swapped out.\n",
        # tgen/jetstream 18
        'sbatch: error: "SBATCH_EXCLUSIVE=true" -- invalid value, ignoring...\nSubmitted batch job 71\n',
        # galaxyproject/galaxy 6705
        CGROUPS,
        # NOAA-EMC/hpc-stack 188: the module is not there, and the job goes on with another MPI.
        'Lmod has detected the following error: The following module(s) are unknown: "cray-mpich/8.0.15"\nstep 1\n',
    ],
)
def test_what_a_job_gets_over_is_no_failure(text: str):
    assert "LOG030" not in codes(read(text))


# Processes that do not know of each other.


@pytest.mark.parametrize(
    "line",
    [
        "Rank: 0 Size: 1",
        "rank 0 of 1",
        "My rank = 0, size = 1",
        "Number of processes = 1, my rank = 0",
        "Process 0 of 1 is on n1",
    ],
)
def test_ranks_that_are_each_a_world_of_its_own_were_started_by_another_mpi(line: str):
    assert "LOG035" in codes(read(f"{line}\n" * 4))
    assert "LOG035" not in codes(read(f"{line}\n"))


@pytest.mark.parametrize("line", ["Rank: 0 Size: 4", "rank 0 of 16", "epoch 0 of 1", "processed 0 of 1 files"])
def test_ranks_that_know_of_each_other_are_no_worlds_of_their_own(line: str):
    assert "LOG035" not in codes(read(f"{line}\n" * 4))


# The plug-in of the network that is there and does not load.


def test_a_plugin_that_needs_another_libfabric_is_told():
    text = (
        "n1:77:77 [0] NCCL INFO NET/Plugin : dlerror=/opt/efa/lib/libfabric.so.1: version `FABRIC_1.7' not found "
        "(required by /opt/lib/libnccl-net.so) No plugin found (libnccl-net.so), using internal implementation\n"
    )

    assert "FABRIC_1.7" in only(text, "LOG040").title + only(text, "LOG040").evidence


@pytest.mark.parametrize(
    "message",
    [
        "NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file No plugin found, using x",
        "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
        "NET/Plugin: Failed to find ncclCollNetPlugin_v8 symbol.",
    ],
)
def test_a_plugin_that_is_not_there_is_none_that_does_not_load(message: str):
    matched = Troubles().matched_quiet(message, shape=1)

    assert matched is None or matched[0].id != "net-plugin-broken"


# Words that look like a fault and are none.


@pytest.mark.parametrize(
    "line",
    [
        "nvidia_peermem: module verification failed: signature and/or required key missing - tainting kernel",
        "n1:77:99 [0] transport/net_ib.cc:74 NCCL WARN NET/IB : Got async event : client reregistration",
        "n1:77:99 [0] transport/net_ib.cc:74 NCCL WARN NET/IB : Got async event : LID change",
        "job.yaml: pods may be forbidden by a policy",
        "PBS_NODEFILE=/var/spool/pbs/aux/71.server",
        "MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 ./osu_bw",
        "MVAPICH2: mpispawn started on n1",
        "srun: launch/slurm: task_p_launch: launching StepId=71.0 on host n1, 4 tasks: [0-3]",
        "x4201c0s4b0n0: ping ok",
        "libfabric:77:1::core:core:ofi_hmem_init():1<info> process_vm_readv is available",
        "kernel: nf_conntrack version 0.5.0 (65536 buckets, 262144 max)",
        "NETDEV WATCHDOG enabled",
        "UCX_TLS=rc,cuda_copy UCX_KEEPALIVE_INTERVAL=20s",
        "[1.0] [n1:77:0] ucc_context.c:7 CORE INFO created ucc context 0x7",
        "slurmd: job_container/tmpfs: loaded",
        "command terminated with exit code 0",
        "Memory limit of the job: 64 GB",
        "mlx5_core 0000:3b:00.0: Port module event: module 0, Cable plugged",
        "165028 [F0D43740] 0x02 -> osm_ucast_mgr_process: minhop tables configured on all switches",
        "slurmd: Prolog for job 71 ran for 2 seconds",
        "world size 16 is divisible by 8",
        "amdgpu 0000:c1:00.0: amdgpu: GPU mode1 reset is supported",
        "container-fuse: /usr/bin/fusermount3 is setuid",
        "Loading module openmpi/5.0",
        "flux-job: task completed",
        "Ray: 2.9.0 Python: 3.10.12",
        "slurmstepd: error: Exceeded step memory limit at some point. Step may have been swapped.",
    ],
)
def test_like_words_in_a_job_that_goes_well_are_no_failure(line: str):
    found = codes(read(f"{line}\n{Job().text()}"))

    assert "LOG030" not in found
    assert "LOG030" not in codes(read(f"{Job().text()}{line}\n"))


MODULES_GONE = 'couldn\'t read file "/opt/Modules/5.0.1/libexec/modulecmd.tcl": no such file or directory\n'
NO_PMI = (
    "[n1:77] OPAL ERROR: Unreachable in file pmix3x_client.c at line 111\n"
    f'{RULE}The application appears to have been direct launched using "srun",\n'
    f"but OMPI was not built with SLURM's PMI support and therefore cannot\nexecute.\n{RULE}"
)
STORE = "[c10d] The client socket has timed out after 60000ms while trying to connect to (job-master-0, 23456).\n"
NO_NAME = "nslookup: can't resolve 'job-master-0': Name does not resolve\n"
KFD = "Unable to open /dev/kfd read-write: Cannot allocate memory\n"
CRASH = "[n1:77] *** Process received signal ***\n[n1:77] Signal: Segmentation fault (11)\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MODULES_GONE + NO_PMI, "a module was not loaded"),
        (NO_PMI, "no PMI"),
        (NO_NAME + STORE, "the name of a host is not known: job-master-0"),
        (STORE, "did not meet"),
        (KFD + "[    3.5] kfd kfd: amdgpu: PITCAIRN  not supported in kfd\n", "PITCAIRN"),
        (KFD, "may not use the GPUs"),
        (
            "[1.0] [n1:77:0] mm_iface.c:797  UCX  ERROR mm_iface failed to allocate receive FIFO\n" + CRASH,
            "no room in shared memory",
        ),
        ("Reached limit (0) for number of OFI contexts that can be opened with the\n" + CRASH, "contexts"),
        ("Reached limit (16) for number of OFI contexts that can be opened with the\n" + CRASH, "segmentation fault"),
    ],
)
def test_a_reason_is_told_before_what_came_of_it(text: str, words: str):
    assert words in only(text, "LOG030").title


PSEC = (
    f"{RULE}A requested component was not found, or was unable to be opened.  This\n\nHost: n1\nFramework: psec\n"
    f"Component: munge\n{RULE}"
)


def test_the_frame_of_a_component_says_which_is_missing():
    failed = f"{RULE}It looks like pmix_init failed for some reason.\n  pmix_psec_base_open failed\n{RULE}"

    assert "psec" in only(PSEC + failed, "LOG030").title


@pytest.mark.parametrize(
    "line",
    [
        MODULES_GONE,
        NO_NAME,
        PSEC,
        "[W socket.cpp:601] [c10d] The IPv6 network addresses of (n1, 4545) cannot be retrieved (gai error: -2)\n",
        "[    3.5] kfd kfd: amdgpu: skipped device 1002:15d8, PCI rejects atomics 730<0\n",
        "[1.0] [n1:77:0] sys.c:619 UCX  WARN  shmget(size=2097152) for mm_recv_desc failed: No space left on device\n",
        "[n1:77] btl: tcp: Match incoming connection from [[5,1],1] 10.0.0.2 with locally known IP 10.1.0.1 failed\n",
        "[n1:77] PMIX ERROR: UNPACK-PAST-END in file client/pmix_client.c at line 389\n",
    ],
)
def test_what_a_job_got_over_is_no_failure(line: str):
    assert "LOG030" not in codes(read(line + Job().text()))


def test_a_gpu_that_hip_does_not_see_is_looked_for_with_rocms_tools():
    assert "/dev/kfd" in to_do(only("n1: Test HIP failure common.cu:1129 'hipErrorInvalidDevice'\n", "LOG030"))
    assert "nvidia-smi" in to_do(only("n1: Test CUDA failure common.cu:1 'invalid device ordinal'\n", "LOG030"))


def test_a_line_that_lacks_what_others_of_its_kind_say_has_no_mark_in_its_place():
    text = "It looks like MPI_INIT failed for some reason;\n  PML add procs failed\n"

    assert not only(text, "LOG030").title.endswith("?")
    assert only(text + '  --> Returned "Unreachable" (-12) instead of "Success" (0)\n', "LOG030").title.endswith(
        "ranks"
    )
