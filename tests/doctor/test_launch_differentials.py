"""Causes of what launchers, MPI, UCX, Slurm and containers say: what the log shows puts the likeliest first."""

import pytest

from .made import Job, to_do, told
from .test_diagnosis import codes, read
from .test_mpi_logs import only

SLOTS = (
    "There are not enough slots available in the system to satisfy the 16 slots\nthat were requested by the "
    'application:\n\n  ./all_reduce_perf\n\n  1. Hostfile, via "slots=N" clauses\n  2. The --host command line '
    'parameter, via a ":N" suffix on the hostname\nof hardware threads use the --use-hwthread-cpus option.\n'
)
NO_PMI = (
    'The application appears to have been direct launched using "srun",\nbut OMPI was not built with SLURM\'s PMI\n'
)
STRANGER = "another Open MPI process but cannot find a corresponding process\nentry for that peer.\n"
BLOCKED = "A process or daemon was unable to complete a TCP connection\nto another process:\n  Remote host:   {}\n"
DEVX = "ib_mlx5_dv.c:1 UCX  ERROR mlx5dv_devx_{} failed: {}\n"
UD = "[1.2] [n1:7:0] ucp_worker.c:363  UCX  ERROR Error Endpoint timeout was not handled for ep 0x7f\n"
CMA = "[1.2] [n1:7:0] cma_ep.c:113  UCX  ERROR process_vm_readv delivered 0 instead of 16, error message Bad address\n"
CLI = "slurmstepd: error: pyxis:     nvidia-container-cli: {}: permission denied\n"
FLUX = (
    "1.5s: flux-shell[0]: FATAL: MPI_Abort: {0}\n1.5s: job.exception type=exec severity=0 MPI_Abort: {0}\n"
    "flux-job: task(s) exited with exit code 1\n"
)
DENIED = "root@n2: Permission denied (publickey,password).\n"
EXEC = "error: unable to upgrade connection: {}\n"
BOUND = "Open MPI tried to bind a new process, but something went wrong.  The\n"
NODES = "+ srun {} ./a\nsrun: error: Unable to create step for job 1: Requested node configuration is not available\n"
LIBRARY = "./a: error while loading shared libraries: liba.so: cannot open shared object file: No such file\n"
UNSPECIFIED = "srun: error: task 0 launch failed: Unspecified error\n"
SEGV = "[n1:77:0:77] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x10)\n"
FRAMES = (
    " 0 0x0000000000012b20 .annobin_sigaction.c()  sigaction.c:0\n"
    " 1 0x000000000001de09 {}()  ???:0\n"
    " 2 0x000000000005ec69 ucp_worker_progress()  ucp_worker.c:1\n"
)
LISTED = (
    "# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20\n#\n# Using devices\n"
    "#  Rank  0 Group  0 Pid  {pid} on {host} device  0 [0x3b] Tesla V100-PCIE-32GB\n"
    "#  Rank  1 Group  0 Pid  {pid} on {host} device  1 [0x86] Tesla V100-PCIE-32GB\n"
)
ENDED = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 3.94145\n"


def likeliest(text: str) -> str:
    """Return the first cause that the only finding on a failure names."""
    (found,) = [each for each in read(text).findings if each.code in {"LOG030", "LOG040", "LOG048"}]
    return told(found).split("(1) ")[1].split("; (2)")[0]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (SLOTS, "hostfile"),
        (f"mpirun --host 10.0.0.1,10.0.0.2 -np 16 ./all_reduce_perf\n{SLOTS}", "without :N"),
        (f"mpirun --host 10.0.0.1:8,10.0.0.2:8 -np 32 ./all_reduce_perf\n{SLOTS}", "hostfile"),
        (f"sbatch -c32 mpirun -np 32 a.out\n{SLOTS}", "CPUs of a task"),
        (f"Thread(s) per core:  2\n{SLOTS}", "hardware threads"),
        (NO_PMI, "without a launcher"),
        (f"+ srun -n 2 ./hello\n{NO_PMI}", "no PMI"),
        (f"+ srun --mpi=pmix -n 2 singularity exec a.sif ./hello\n{NO_PMI}", "the PMIx of Slurm's plug-in"),
        (STRANGER, "the same address"),
        (BLOCKED.format("192.168.122.195"), "the same address"),
        (BLOCKED.format("10.0.0.7"), "a firewall"),
        (DEVX.format("create_event_channel()", "Protocol not supported"), "user libraries"),
        (DEVX.format("obj_create(QP)", "syndrome 0x6231, Remote I/O error"), "firmware"),
        (f"mpirun -x UCX_IB_GID_INDEX=1 a.out\n{UD}", "GID index"),
        (f"mlx5_0:1/IB\n{UD}", "joins the hosts|does not join|loses or refuses"),
        (CMA, "linked statically"),
        (f"mpirun -x UCX_TLS=rc,gdr_copy a.out\n{CMA}", "leaves cuda_copy out"),
        (f"mpirun -x UCX_TLS=rc,cuda_copy a.out\n{CMA}", "linked statically"),
        (CLI.format("container error: file lookup failed: /proc/4/root/a"), "libnvidia-container was updated"),
        (f"srun --mpi=pmix a\n{UNSPECIFIED}", "PMIx plug-in"),
        (f"srun --container-image=a.sqsh a\n{UNSPECIFIED}", "pyxis"),
        ("srun: error: Step requested GRES (gpu:(null)) not found in the job\n", "of a type"),
        ("enroot-switchroot: failed to execute: /bin/sh: Permission denied\n", "noexec"),
        ("enroot-aufs2ovlfs: failed to create ovlfs whiteout: /data/a: Operation not permitted\n", "ENROOT_TEMP_PATH"),
        ("prted has detected an attempt to run as root.\n", "not handed on"),
        ("mpirun has detected an attempt to run as root.\n", "mpirun runs as root"),
        ("a.so: undefined symbol: ompi_mpi_errors_abort\nImportError: a.so: undefined symbol: ompi_b\n", "two MPIs"),
        ("MPID_nem_tcp_init(379).............: gethostbyname failed, n7 (errno 1)\n", "its own name"),
        ("PSM2 can't open hfi unit: 0\nassign_context command failed: Device or resource busy\n", "contexts"),
        ("[n1:7] [[2,1],1] selected pml cm, but peer [[2,1],0] on n1 selected pml ob1\n", "pml cm was taken"),
        ("[n1:7] [[2,1],1] selected pml ob1, but peer [[2,1],0] on n1 selected pml ucx\n", "could not open"),
        ("internal_Send(78): Invalid rank has value 1 but must be nonnegative and less than 1\n", "of another MPI"),
        (">>> import h5py\nMPID_Init(636).......:  PMI2 init failed: 1 \n", "without a launcher"),
        ("$ srun -n 2 ./a\nMPID_Init(636).......:  PMI2 init failed: 1 \n", "was told no PMI"),
        ("[n1:7] PMI_Init [pmix_flux.c:389:flux_init]: Operation failed\n", "without a launcher"),
        (FLUX.format("Fatal error in PMPI_Init_thread: Invalid tag"), "PMI_process_mapping"),
        (FLUX.format("Fatal error in MPI_Init: ompi_mpi_init: pmix init failed"), "PMIx only"),
        (DENIED, "no key of the user's"),
        ("Host key verification failed.\n", "host's key is not known"),
        ("ssh: connect to host n2 port 22: Connection refused\n", "no sshd answers"),
        (EXEC.format("Forbidden (user=kube, verb=create, resource=nodes, subresource=proxy)"), "API server itself"),
        (BOUND, "control groups of version 2"),
        (f"mpirun --rankfile r.txt ./a\n{BOUND}", "a rankfile"),
        ("dest_addr: 32 error: 0x26c4 (err: 5, VNI_NOT_FOUND)\n", "past the scheduler's launch"),
        ("fi_domain: Function not implemented\ncxip_gen_auth_key failed: -38\n", "on one node"),
        ("Attempting to use an MPI routine before initializing MPICH\n", "two MPI libraries"),
        (NODES.format("-n 64"), "tasks times CPUs"),
        (NODES.format("--nodelist=n1.site.org"), "names hosts as Slurm does not"),
        ("srun --export=A=1 date\nslurmstepd: error: execve(): date: No such file or directory\n", "hands no PATH on"),
        ("slurmstepd: error: execve(): ./solver: No such file or directory\n", "misspelled"),
        (
            'srun: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file\n',
            "munged does not",
        ),
        ("error: Munge decode failed: Invalid credential\n", "the keys of the hosts differ"),
        ("sbatch: error: Batch job submission failed: Protocol authentication error\n", "munged does not"),
        ("sshd: no hostkeys available -- exiting.\n", "host keys"),
        (
            f"sudo mpiexec -n 2 ./a\n{LIBRARY}",
            "sudo",
        ),
        (LIBRARY, "do not get LD_LIBRARY_PATH"),
        ("ssh: Could not resolve hostname a.b.svc: Name or service not known\n", "pods of the workers"),
    ],
)
def test_what_the_log_shows_puts_a_cause_first(text: str, word: str):
    assert any(each in likeliest(text) for each in word.split("|"))


def test_an_invalid_rank_of_a_larger_job_is_the_programs():
    text = "internal_Send(78): Invalid rank has value 9 but must be nonnegative and less than 8\n"

    assert "a job of its own" not in only(text, "LOG030").title


def test_a_daemon_that_may_run_as_root_is_not_told_to_mpirun():
    text = "prted has detected an attempt to run as root.\n"

    assert "mpirun runs as root" not in told(only(text, "LOG030"))


@pytest.mark.parametrize(("frame", "library"), [("mcast_ucx_recv_completion_cb", "HCOLL"), ("uct_iface_x", "UCX")])
def test_the_library_that_gave_ucx_its_callback_is_the_one_that_crashed(frame: str, library: str):
    assert only(SEGV + FRAMES.format(frame), "LOG030").title.endswith(f", in {library}")


def test_a_crash_where_mpi_asks_a_newer_ucx_is_told_as_such():
    assert "of another release than MPI was built with" in likeliest(SEGV + FRAMES.format("uct_md_query"))
    assert "of another release" not in likeliest(SEGV + FRAMES.format("uct_rc_ep_put"))


def test_a_stack_alone_is_possible_and_beside_a_sound_job_nothing():
    stack = "".join(f"#{n}  0x00007f000000000{n} in uct_a{n} () from /opt/ucx/lib/libuct.so.0\n" for n in range(4))

    (found,) = [each for each in read(stack).findings if each.code == "LOG048"]
    assert found.confidence == "possible"
    assert "LOG048" not in codes(read(Job().text() + stack))


def test_processes_of_nccl_tests_that_begin_together_as_rank_0_are_alone():
    beside = LISTED.format(pid=7, host="n1") + LISTED.format(pid=8, host="n2") + ENDED + ENDED

    assert "make clean" in to_do(only(beside, "LOG035"))


@pytest.mark.parametrize(
    "between",
    [ENDED, "n1: Test CUDA failure common.cu:732 'out of memory'\n[n1:7] Signal: Bus error (7)\nout of memory\n"],
)
def test_runs_of_nccl_tests_one_after_the_other_are_not(between: str):
    text = LISTED.format(pid=7, host="n1") + between + LISTED.format(pid=8, host="n1") + ENDED

    assert "LOG035" not in codes(read(text + Job().text()))


def test_the_groups_that_nccl_tests_splits_its_ranks_into_are_one_job():
    second = LISTED.format(pid=8, host="n2").replace("Group  0", "Group  1")

    assert "LOG035" not in codes(read(LISTED.format(pid=7, host="n1") + second + ENDED + Job().text()))


def test_a_descriptor_that_a_container_closed_is_told_and_what_an_abort_writes_is_not():
    closed = (
        "[cli_0]: write_line error; fd=6 buf=:cmd=init pmi_version=1 pmi_subversion=1\n:\n"
        "system msg for write_line failure : Bad file descriptor\n[cli_0]: Unable to write to PMI_fd\n"
    )
    aborted = "[unset]: write_line error; fd=-1 buf=:cmd=abort exitcode=1090447\n:\n"

    assert "container's runtime" in to_do(only(closed, "LOG030"))
    assert "closed before" not in "".join(each.title for each in read(aborted + NO_PMI).findings)


def test_shared_memory_that_ucx_lacks_counts_before_the_end_of_the_job():
    lacks = (
        "mm_posix.c:206  UCX  ERROR   Not enough memory to write total of 17170544 bytes. Please check that /dev/shm\n"
    )
    killed = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"

    assert "no room in shared memory" in only(lacks + killed, "LOG030").title


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("As a result, the libfabric EFA provider is operating in\n", "FI_EFA_FORK_SAFE"),
        ('orted: Error: unknown option "--tree-spawn"\n', "ompi_info --version"),
        (
            "Assertion `mem_type == memh->mem_type' failed: mem_type=cuda got memh->mem_type=host\n",
            "UCX_MEMTYPE_CACHE=n",
        ),
    ],
)
def test_what_a_line_of_a_start_calls_for_is_told(text: str, word: str):
    assert word in to_do(only(text, "LOG030"))


def test_files_that_pmix_cannot_open_are_told_beside_what_ended_the_program():
    lines = "PMIX ERROR: PMIX_ERR_FILE_OPEN_FAILURE in file gds_shmem2.c at line 1056\n"

    assert "TMPDIR" in to_do(only(f"{lines}n1: rank 0 died from signal 11 and dumped core\n", "LOG040"))
    assert "PMIx cannot open" in only(f"{lines}*** An error occurred in MPI_Init\n", "LOG030").title


def test_a_file_of_shared_memory_that_is_gone_at_the_end_is_no_failure():
    box = (
        "A system call failed during shared memory initialization that should\nnot have.\n\n  Local host:  n1\n"
        "  System call: {}\n  Error:       {} (errno 2)\n"
    )
    gone = box.format("unlink(2) /tmp/ompi.n1/vader_segment.n1.1", "No such file or directory")
    stale = box.format("open(2) /dev/shm/vader_segment.n1.1", "Permission denied")

    assert not [each for each in read(gone).findings if each.severity == "error"]
    assert "an earlier job" in likeliest(stale)
