"""Lines of launchers, loaders, containers, kernels, MPI, UCX and programs: what each is known for, and when."""

import pytest

from busbw.facts.logs import log_codes, log_patterns
from busbw.logs.reader import LogReader
from busbw.logs.troubles import Troubles

from .made import Job, to_do, told
from .test_diagnosis import codes, read
from .test_mpi_logs import only

# In the form that the program prints, with hosts, numbers and paths of our own.
FAMILIES = {
    "library-missing": "./a.out: error while loading shared libraries: libfoo.so.3: cannot open "
    "shared object file: No such",
    "library-mixed": "python: symbol lookup error: /opt/lib/libx.so: undefined symbol: ncclMemFree",
    "wrong-architecture": "slurmstepd: error: execve(): ./a.out: Exec format error",
    "program-not-permitted": "slurmstepd: error: execve(): /opt/a.out: Permission denied",
    "container-rights": "enroot-aufs2ovlfs: failed to set capabilities: Operation not permitted",
    "container-image-missing": "FATAL:   could not open image /data/some.sif: no such file or directory, not found",
    "command-missing": "bash: orted: command not found",
    "ssh-login": "Host key verification failed.",
    "host-name-unknown": "ssh: Could not resolve hostname worker-1: Name or service not known",
    "launch-agent-missing": 'The value of the MCA parameter "plm_rsh_agent" was set to a path that could not be found:',
    "mpi-root": "mpirun has detected an attempt to run as root.",
    "mpi-mapping": "Your job failed to map. Either no mapper was available, or none",
    "mpi-addresses": "MPID_nem_tcp_init(337).: Missing hostname or invalid host/port description in business card",
    "pmix-versions": "[n1:77] PMIX ERROR: PMIX TEMPORARILY UNAVAILABLE in file ptl_tcp.c at line 685",
    "mpi-install-moved": "Sorry!  You were supposed to get help about: but I couldn't open the help file:",
    "mpi-component-missing": "A requested component was not found, or was unable to be opened.  This",
    "mpi-shared-file": "[n1:77] shmem: mmap: an error occurred while determining whether or not "
    "/tmp/x could be created.",
    "mpi-session-folder": "mkdir: unable to create the desired directory /tmp/ompi.n1.1000",
    "mpi-peer-daemon-lost": "PRTE has lost communication with a remote daemon.",
    "slurm-pmix": "srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files",
    "slurm-step-refused": "srun: error: Unable to create step for job 71: More processors requested than permitted",
    "slurm-step-waits": "srun: Job 71 step creation temporarily disabled, retrying (Requested nodes are busy)",
    "slurm-launch": "srun: error: Task launch for StepId=71.0 failed on node n1: Invalid job credential",
    "container-no-gpu": 'could not select device driver "" with capabilities: [[gpu]]',
    "image-not-fetched": "slurmstepd: error: pyxis:     [ERROR] URL returned error code: 401 Unauthorized",
    "container-not-started": "slurmstepd: error: pyxis: couldn't start container",
    "mpi-abort": "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
    "mpi-truncated": "[n1:77] *** MPI_ERR_TRUNCATE: message truncated",
    "mpi-arguments": "[n1:77] *** MPI_ERR_RANK: invalid rank",
    "mpi-no-room": "[n1:77] *** MPI_ERR_NO_MEM: out of memory",
    "mpi-cma": "Read -1, expected 65536, errno = 1",
    "mpi-ucx-peer": "[n1:77] pml_ucx.c:178  Error: Failed to receive UCX worker address: Not found (-13)",
    "ucx-old": "UCP version is incompatible, required: 1.15, actual: 1.10.0 (release 0)",
    "ucx-setting": "[1.0] [n1:77:0] ucp_context.c:1 UCX  WARN  network device 'mlx5_9:1' is not "
    "available, please use one",
    "slurm-gres-config": "slurmd[57977]: fatal: gres.conf duplicate records for gpu",
    "slurm-daemon-fatal": "slurmd: fatal: Unable to determine this slurmd's NodeName",
    "slurm-pmix-library": "slurmstepd: error:  mpi/pmix_v5: pmixp_stepd_init: n1 [0]: pmixp_server.c:445: "
    "pmixp_libpmix_job_set() failed",
    "container-gpu-rights": "nvidia-docker | 2017/06/02 17:35:05 Error: nvml: Insufficient Permissions",
    "container-gpu-tool": "nvidia-container-cli: device error: 5: unknown device: unknown",
    "hydra-host-list": "[mpiexec@n1] HYDU_parse_hostfile (utils/args/args.c:319): unable to open host file: "
    "/var/spool/PBS/aux/14.pbs01",
    "gasnet-registration": "*** WARNING (proc 1): Unexpected error 12 (Cannot allocate memory) from fi_mr_regattr() "
    "when binding segment [0x602000000, 0xecc000000) to EP 2",
    "mpi-tcp-address": "[n1:77] btl: tcp: Match incoming connection from [[5,1],1] 44.128.0.4 with locally known IP "
    "2.2.2.77 failed (iface 0/4)!",
    "ucx-shared-limits": "[1.0] [n1:77:0] sys.c:619 UCX ERROR shmget(size=4263936 flags=0x7b0) for "
    "mm_recv_desc failed: No space left on device, please check shared memory limits by 'ipcs -l'",
    "ucx-shared-full": "[1.0] [n1:77:0] mm_iface.c:797  UCX  ERROR mm_iface failed to allocate receive FIFO",
    "nic-queues-used-up": "[1.0] [n1:77:0] ib_mlx5_dv.c:161  UCX  ERROR   mlx5dv_devx_obj_create(QP) failed, "
    "syndrome 0: Cannot allocate memory",
    "cxi-service": "flux-slingshot: cxi0: cxil_alloc_svc: Invalid argument",
    "pmi-exchange": "MPIDU_bc_table_create(204)..:  PMI_Allgather failed: -1",
    "mpi-pml-differs": "[n1:77] [[5,1],5] selected pml ob1, but peer [[5,1],0] on n2 selected pml ucx",
    "bus-error-address": "[n1:77:0:77] Caught signal 7 (Bus error: nonexistent physical address)",
    "pmix-security-missing": "Framework: psec",
    "ucx-shared-memory": "[1.0] [n1:77:0] mm_posix.c:206 UCX  ERROR open(file_name=/proc/78/fd/30 "
    "flags=0x0) failed: No such",
    "gdrcopy-pin": "[1.0] [n1:77:0] gdr_copy_md.c:122  UCX  ERROR gdr_pin_buffer failed. length :65536 ret:22",
    "ucx-gpu-memory": "[1.0] [n1:77:0] cuda_ipc_md.c:1 UCX  ERROR cuIpcGetMemHandle(&key) failed: invalid argument",
    "ucx-transfer": "[n1:77:0] ib_mlx5_log.c:177 Remote access error on mlx5_0:1/IB (synd 0x13 vend 0x88 hw_synd 0/0)",
    "ucx-connect": "[1.0] [n1:77:0] ud_ep.c:278 UCX  FATAL UD endpoint 0x7 to <no debug data>: unhandled timeout error",
    "ucx-files": "the maximal number of files that could be opened is 1024",
    "psm-device": "n1.77 PSM3 can't open nic unit: 0 (err=23)",
    "efa-fork": 'A process has executed an operation involving a call to the "fork()" system call to create a child',
    "cxi-resources": "cxil_alloc_lni: Failed to allocate LNI: No space left on device",
    "cray-gtl": "MPICH_GPU_SUPPORT_ENABLED is requested, but GTL library is not linked",
    "impi-launch": "[mpiexec@n1] check_exit_codes (bstrap.c:70): unable to run bstrap_proxy on n2 "
    "(pid 88, exit code 256)",
    "verbs-driver-of-others": "libibverbs: Warning: couldn't load driver 'libipathverbs-rdmav25.so': cannot open",
    "verbs-driver": "libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so': cannot open shared object file",
    "verbs-memlock": "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.",
    "nic-gpu-memory": "ibgda.cpp:1040: NULL value mlx5dv_devx_umem_reg failed",
    "sharp-failed": "[n1:1:77 unique id 12] ERROR collect_ports_data: device mlx5_0 port 1 is not "
    "valid (port is used by SM)",
    "ucc-shared-memory": "[1.0] [n1:77:0] tl_shm_team.c:617 TL_SHM ERROR Child failed to attach to "
    "shmseg, errno: Invalid",
    "nvshmem-mapping": "ibgda.cpp:2 cudaHostRegister with IoMemory failed with error=1.",
    "nvshmem-heap": "nvshmem_malloc failed",
    "nvshmem-start": "src/host/init/init.cu:915: non-zero status: 7 nvshmem detect topo failed",
    "deepep-timeout": "DeepEP error: CPU recv timeout",
    "mpi-cancelled": "MPIDI_OFI_handle_cq_error(1075): OFI poll failed (ofi_events.c:1077:Operation canceled)",
    "gpu-lost": "Unable to determine the device handle for GPU 0000:1B:00.0: GPU is lost.",
    "gpu-driver": "RuntimeError: No CUDA GPUs are available",
    "kfd-unsupported": "[    3.5] kfd kfd: amdgpu: PITCAIRN  not supported in kfd",
    "kfd-denied": "Unable to open /dev/kfd read-write: Permission denied",
    "gpu-contained": "RuntimeError: CUDA error: CUDA_ERROR_CONTAINED",
    "gpu-page-fault": "Memory access fault by GPU node-4 (Agent handle: 0x2) on address 0x7f. Reason: Unknown.",
    "iommu-fault": "DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0xe000",
    "pcie-error": "pcieport 0000:3a:00.0: AER: Uncorrected (Fatal) error received: 0000:3a:00.0",
    "nic-firmware": "mlx5_core 0000:3b:00.0: poll_health:825:(pid 0): device's health compromised - reached miss count",
    "link-down": "mlx5_core 0000:3b:00.0 ens1f0np0: Link down",
    "nvswitch": "nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 44 LTSSM Fault Up",
    "peermem": "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument",
    "host-hangs": "watchdog: BUG: soft lockup - CPU#12 stuck for 22s! [python:77]",
    "bus-error": "ERROR: Unexpected bus error encountered in worker. This might be caused by "
    "insufficient shared memory",
    "worker-killed": "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed.",
    "disk-full": "OSError: [Errno 122] Disk quota exceeded",
    "container-unpack": "slurmstepd: error: pyxis:     FATAL ERROR:write_file: failed to create file /home/a/x",
    "container-overlay": "mount: drop permissions failed.",
    "mpi-hostfile-twice": "A hostfile was provided that contains multiple definitions",
    "torch-cpu-tensor": "RuntimeError: No backend type associated with device type cpu",
    "torch-no-group": "ValueError: Default process group has not been initialized, please make sure "
    "to call init_process",
    "torch-no-nccl": "RuntimeError: Distributed package doesn't have NCCL built in",
    "torch-reduction": "RuntimeError: Expected to have finished reduction in the prior iteration "
    "before starting a new one.",
    "torch-agents": "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
    "gloo-address": "RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:83] ifa != nullptr. "
    "Unable to find address",
    "accelerator-library": "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling "
    "`cublasCreate(handle)`",
    "launch-timeout-worker": "RuntimeError: Engine core initialization failed. See root cause above.",
    "module-missing": "ModuleNotFoundError: No module named 'mpi4py'",
    "mpi-ucx-message": "[1.0] [n1:77:0] some.c:3 UCX  ERROR nothing that is known",
    "mpi-reason": "MPIDI_some_call(77)...: the reason in words of its own",
    "mpi-stack": "Fatal error in internal_Allreduce: Other MPI error, error stack:",
    "assertion": "a.out: src/a.c:77: main: Assertion `n > 0' failed.",
    "exception": "KeyError: 'hidden_size'",
    "slurm-no-controller": "sbatch: error: Batch job submission failed: Unable to contact slurm controller",
    "slurm-munge": 'srun: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file',
    "slurm-host-name": "srun: error: fwd_tree_thread: can't find address for host n7, check slurm.conf",
    "slurm-contradiction": "srun: fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually "
    "exclusive.",
    "slurm-spank": 'slurmstepd: error: Warning: SPANK plugin "pyxis" option "container-image" not found',
    "slurm-plugin-start": "srun: error: task 0 launch failed: Plugin initialization failed",
    "slurm-network": "slurmstepd: error: switch/hpe_slingshot: setup_fabric: cxil_alloc_svc failed",
    "slurm-cpu-mask": "slurmstepd: error: task_p_pre_launch: Using sched_affinity for tasks failed",
    "slurm-io-lost": "srun: error: _server_read: fd 18 error reading header: Connection reset by peer",
    "slurm-no-config": "srun: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host",
    "slurm-pmix-collective": "slurmstepd: error: mpi/pmix_v4: pmixp_coll_ring_reset: n1 [0]: collective timeout",
    "slurm-mpirun-inside": "slurmstepd: error: mpi/pmi2: invalid PMI1 init command: `error'",
    "slurm-says": "srun: error: Some words that nobody knows of a step",
    "slurmstepd-says": "slurmstepd: error: Some words that nobody knows of a host",
    "slurm-script-lost": "slurmstepd: error: execve(): /tmp/slurmd/job71/slurm_script: No such file or directory",
    "user-unknown": "/usr/bin/id: cannot find name for user ID 1234",
    "slurm-gres-file": "slurmd: fatal: can't stat gres.conf file /dev/nvidia3: No such file or directory",
    "slurm-request": "sbatch: error: Memory specification can not be satisfied",
    "container-file-as-name": "pyxis: importing docker image: train.sqsh",
    "container-no-nv": "WARNING: Could not find any nv files on this host!",
    "gloo-loopback": "[W ProcessGroupGloo.cpp:7] Warning: Unable to resolve hostname to a (local) address. Using the "
    "loopback address as fallback.",
    "mpi-firewall": "A process or daemon was unable to complete a TCP connection",
    "mpi-lists-both": "Both TCP interface include and exclude lists were specified: failed",
    "mpi-interface-unknown": "[n1][[7,1],1][btl_tcp_component.c:7:mca_btl_tcp_component_create_instances] "
    'invalid interface "ib7"',
    "mpi-ofi-mtl": "mtl_ofi.h:7: Error returned from fi_cq_readerr: Resource temporarily unavailable(-11).",
    "pmix-security": "pmix_psec_base_open failed --> Returned value -46 instead of PMIX_SUCCESS",
    "sge-launch": "error: executing task of job 71 failed: failed sending task to execd@n2: got send error",
    "mpi-stale-segments": "  System call: open(2) /dev/shm/vader_segment.n1.7c930001.6",
    "container-image-not-mounted": "FATAL: container creation failed: kernel reported a bad superblock for squashfs",
    "container-mount-refused": "enroot-mount: failed to mount: /home/a/b at /tmp/enroot-data/c/data: Permission denied",
    "session-folder": "mkdir: cannot create directory '/run/user/1001': Permission denied",
    "sshd-refuses": "sshd: no hostkeys available -- exiting.",
    "cxi-no-vni": "cxip_gen_auth_key failed: -38",
    "mpi-spawn": "mpi4py.MPI.Exception: MPI_ERR_SPAWN: could not spawn processes",
    "mpi-routine-order": "Attempting to use an MPI routine before initializing MPICH",
    "mpi-too-many-communicators": "MPIR_Get_contextid_sparse_group(7): Too many communicators (0/2048 free)",
    "impi-fabrics": "MPI startup(): I_MPI_FABRICS value (dapl) is not supported",
    "jax-peers": "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect::0.",
    "nic-uar": "[1.0] [n1:77:0]  ib_md.c:7 UCX  ERROR ibv_open_device(mlx5_0) failed: Cannot allocate memory",
    "ucx-devices-differ": "[1.0] [n1:77:0] wireup.c:7 UCX  ERROR endpoint reconfiguration not supported yet",
    "ucx-pkey": "[1.0] [n1:77:0] ib_iface.c:7 UCX ERROR unable to find specified pkey 0x8001 on mlx5_0:1",
    "ucx-gid-lists": "[1.0] [n1:77:0] ib_iface.c:7 UCX  ERROR both GID_INDEX and ROCE_SUBNET_LIST are specified",
    "interface-unknown": "[1.0] [n1:77:0] tcp_iface.c:7 UCX ERROR failed to get interface index for ib7: No such",
    "rdmacm-missing": "librdmacm: Fatal: no RDMA devices found",
    "ofi-registration-gpu": "NET/OFI Unable to register memory (type = 2) for device 0. RC: -22: NCCL",
    "mpich-ofi-call": "some_send(7): OFI tagged send failed (ofi_send.h:7:Invalid argument)",
    "mpich-ucx-call": "MPIDI_UCX_init_local(149): ucp_init failed",
    "mlx5-command": "mlx5_core 0000:3b:00.0: mlx5_cmd_check:7:(pid 77): CREATE_QP(0x500) op_mod(0x0) failed, status "
    "limits exceeded(0x8), syndrome (0x12)",
    "too-few-gpus": "ValueError: World size (16) is larger than the number of available GPUs (8) in this node.",
    "tasks-against-devices": "ValueError: You set `devices=4` in Lightning, but the number of tasks per node "
    "configured in SLURM `--ntasks-per-node=1` does not match.",
    "nccl-missing": "'libnccl.so not found in library path.",
    "ray-node-dead": "(raylet) The node with node id: 12ab and address: 10.0.0.2 has been marked dead",
    "horovod-stalled": "[W] One or more tensors were submitted to be reduced, gathered or "
    "broadcasted by subset of ranks",
    "horovod-mismatch": "HorovodInternalError: Mismatched allreduce tensor shapes: One rank sent a tensor of shape [1]",
    "horovod-not-built": "ImportError: Extension horovod.torch has not been built: /x/mpi_lib.so not found",
    "shared-file-mapped": "RuntimeError: unable to mmap 1024 bytes from file </torch_7>: Cannot allocate memory (12)",
    "bad-alloc": "terminate called after throwing an instance of 'std::bad_alloc'",
    "amd-no-code": "RuntimeError: HIP error: invalid device function",
    "amd-no-device": "RuntimeError: hipErrorInsufficientDriver",
    "cuda-start": "UserWarning: CUDA initialization: CUDA driver initialization failed, you might not have a GPU.",
    "user-namespaces": "slurmstepd: error: pyxis:   enroot-nsenter: failed to create user namespace: Not allowed",
    "seccomp": "slurmstepd: error: pyxis: seccomp filter failed: Function not implemented",
    "container-hook": "slurmstepd: error: pyxis:     [ERROR] /etc/hooks.d/98-nvidia.sh exited with return code 1",
    "container-entrypoint": "slurmstepd: error: pyxis:     enroot-switchroot: failed to execute: /bin/bash: No such",
    "container-device": "docker: Error response from daemon: error gathering device information while adding custom "
    'device "/dev/infiniband/uverbs0": no such file or directory.',
    "container-driver-in-image": "nvidia-container-cli: mount error: file creation failed: /var/lib/docker/overlay2/x/"
    "merged/usr/lib/libnvidia-ml.so.1: file exists: unknown.",
    "ofi-event-queue": "Unable to write to EQ: Missing or unavailable event queue. err: Input/output error (5)",
    "container-mount": "slurmstepd: error: pyxis: --container-mounts: source path does not exist: /data/x",
    "container-says": "slurmstepd: error: pyxis: container exited too soon",
    "pod-not-scheduled": "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
    "pod-evicted": "Warning  Evicted  kubelet  The node was low on resource: ephemeral-storage.",
    "pod-network": 'Failed to create pod sandbox: plugin type="multus" failed (add): no address left',
    "pod-exec": 'error: unable to upgrade connection: container not found ("worker")',
    "mpi-btl-ofi": "[n1][[1,1],7][btl_ofi_component.c:238:mca_btl_ofi_exit] BTL OFI will now abort.",
    "mpi-port-range": "[btl_tcp_component.c:966:listen] bind() failed: no port available in the range [1024..1030]",
    "mpi-hcoll": "[n1:77] Error: coll_hcoll_module.c:312 - mca_coll_hcoll_comm_query() Hcol library init failed",
    "mpi-openib": "The OpenFabrics (openib) BTL failed to initialize while trying to allocate some locked memory.",
    "mpi-add-procs": '  --> Returned "Unreachable" (-12) instead of "Success" (0)',
    "mpi-not-initialised": "*** The MPI_Comm_rank() function was called before MPI_INIT was invoked.",
    "cray-nic-policy": "MPICH ERROR: Unable to use a NIC_POLICY of 'NUMA'. Rank 0 is not confined to one",
    "mpi-av-insert": "MPIDI_OFI_mpi_init_hook(1657): OFI get address vector map failed (ofi_init.c:1657)",
    "hydra-arguments": "[mpiexec@n1] match_arg (../args.c:122): unrecognized argument N",
    "hydra-bootstrap": "[mpiexec@n1] Error setting up the bootstrap proxies",
    "hydra-says": "[mpiexec@n1] HYD_some_call (a.c:77): words that nobody knows",
    "ucx-devx": "[1.0] [n1:77:0] a.c:1 UCX ERROR mlx5dv_devx_obj_create(QP) failed, syndrome 0x68d22c",
    "nvshmem-connect": "src/modules/transport/ibrc/ibrc.cpp:418: non-zero status: 110 ibv_modify_qp failed",
    "nvshmem-device": "WARN: device erdma_0 is not enumerated as an mlx5 device. Skipping...",
    "nvshmem-transport": "src/host/transport/transport.cpp:287: Unable to initialize any transports.",
    "ofi-efa-peer": "libfabric:77:1::efa:cq:poll():1<warn> err: 12, message: Unresponsive receiver (connection never "
    "established)",
    "efa-command": "infiniband efa_0: Failed to process command ALLOC_PD (opcode 14) comp_status 1 err -12",
    "perftest-failed": "Failed to modify QP 1234 to RTR",
    "xpmem-device": "xpmem: Failed to open /dev/xpmem",
    "verbs-connect": "terminate: what():  ibv_modify_qp failed (errno 22)",
    "verbs-refused": "ibv_create_qp failed: Device or resource busy",
    "libfabric-says": "libfabric:77:1::abc:ep_ctrl:a_b():30<warn> words that nobody knows",
    "launcher-says": "Message of the launcher: A hostfile was provided that could not be understood",
    "deepspeed-hostfile": "[WARNING] Unable to find hostfile, will proceed with training with local resources only.",
    "nvidia-probe": "NVRM: The NVIDIA probe routine failed for 8 device(s).",
    "no-nvswitch": "nv-fabricmanager[77]: request to query NVSwitch device information from NVSwitch driver failed "
    "with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]",
    "fabric-manager-start": "nv-fabricmanager[77]: fabric manager NVIDIA GPU driver interface version 530.30.02 don't "
    "match with driver version 530.41.03.",
    "cable": "mlx5_core 0000:3b:00.0: Port module event: module 0, Cable unplugged",
    "shared-file-system": "nfs: server fs1 not responding, still trying",
    "rdma-device-missing": "rdma_create_event_channel: No such device",
    "torch-fork": "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing",
    "torch-devices": "RuntimeError: Expected all tensors to be on the same device, but found at least two devices",
    "torch-monitored-barrier": "RuntimeError: Rank 3 successfully reached monitoredBarrier, but received errors",
    "gpu-busy": "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
    "program-hang-up": "torch.distributed.elastic.multiprocessing.api.SignalException: Process 77 got signal: 1",
    "jit-build": "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.",
    "topology-value": "graph/topo.cc:33 Could not find value 8.0 GT/s PCIe in dictionary",
    "crash-frame": "[n1:77] [ 4] /opt/ompi/lib/libmpi.so.40(MPI_Comm_rank+0x30)[0x7f0000000000]",
    "system-error": "cannot write /data/out.bin: Function not implemented",
    "flux-exception": "0.032s: job.exception f6V type=alloc severity=0 unsatisfiable request: need 16 slot(s)",
    "slurm-nodelist": "srun: error: Required nodelist includes more nodes than permitted by max-node count (2 > 1).",
    "module-system": "openmpi/1.4(21):ERROR:150: Module 'openmpi/1.4' conflicts with the currently loaded x",
    "container-processes": "ERROR  : Failed to create container process: No space left on device",
    "container-fuse": "FATAL:   container creation failed: while mounting image: squashfuse_ll exited with status 1",
    "libfabric-call": "fi_getinfo(): common/shared.c:627, ret=-61 (No data available)",
    "pmix-error": "[n1:77] PMIX ERROR: BAD-PARAM in file src/server/pmix_server.c at line 2330",
    "pmix-unpack": "[n1:77] PMIX ERROR: UNPACK-PAST-END in file src/server/pmix_server.c at line 2330",
    "ray-version": "RuntimeError: Version mismatch: The cluster was started with: Ray: 2.9.0 Python: 3.10.12",
    "parallel-sizes": "AssertionError: world size (12) is not divisible by tensor_model_parallel_size (8)",
    "nic-probe": "mlx5_core: probe of 0000:01:00.0 failed with error -22",
    "subnet-manager": "  165028 [F0D43740] 0x01 -> osm_vendor_bind: ERR 5426: Unable to register class 129 version 1",
    "mpi-ofi-no-contexts": "Reached limit (0) for number of OFI contexts that can be opened with the",
    "mpi-ofi-contexts": "Reached limit (16) for number of OFI contexts that can be opened with the",
    "slurm-prolog": "slurmstepd: error: prolog failed: exit status 1:0",
    "pals-vni": "launch RPC: Couldn't allocate VNI",
    "pals-node": "launch failed on x4201c0s4b0n0: Couldn't forward RPC launch(0a1b) to child x4513c0s7b0n0.hsn.cm: "
    "Resource temporarily unavailable",
    "foreign-option": "mpiexec: unrecognized option '--mca'",
    "alps-launch": "0: [unset]:_pmi_alps_get_apid:alps_app_lli_put_request failed",
    "lsf-launch": "Error: Remote JSM server is not responding on host n1",
    "pbs-launch": "mpiexec: Error: get_hosts: pbs_statjob failed",
    "pods-forbidden": 'Error from server (Forbidden): pods "job-worker-0" is forbidden: User '
    '"system:serviceaccount:default:job-launcher" cannot create resource "pods/exec"',
    "ssh-key-files": "Authentication refused: bad ownership or modes for directory /root/.ssh",
    "mvapich-affinity": "Error parsing CPU mapping string",
    "mvapich-hca": "rdma_setup_startup_ring(410): cannot open hca device",
    "mvapich-start": "[n1:mpirun_rsh][child_handler] Error in init phase, aborting! (1/2 mpispawn connections)",
    "mpi-gpu-pointer": "[1.0] [n1:77:0] cma_ep.c:87   UCX  ERROR process_vm_readv(pid=78 length=8) returned -1: Bad "
    "address",
    "ucx-value": "[1.0] [n1:77:0] ucp_context.c:7 UCX  ERROR UCX_KEEPALIVE_INTERVAL value must be greater than 0",
    "mlx5-completion": "mlx5: n1: got completion with error:",
    "ucc-start": "[1.0] [n1:77:0] ucc_context.c:200 CORE ERROR no tl contexts were created",
    "slurm-tmpfs": "slurmstepd: error: container_p_join: open failed for /scratch/71/.ns: No such file or directory",
    "slurm-credential": "[2026-01-22T10:27:09.995] error: Credential signature check: Credential replayed",
    "slurm-preempted": "slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2026-01-01T10:00:00 DUE TO PREEMPTION ***",
    "slurm-memory-limit": "slurmstepd: error: Job 71 exceeded memory limit (4200 > 4096), being killed",
    "pod-killed": "command terminated with exit code 137",
    "network-tables-full": "kernel: nf_conntrack: nf_conntrack: table full, dropping packet",
    "nic-transmit-hangs": "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out",
}

DEATH = "mpirun noticed that process rank 3 with PID 77 on node n1 exited on signal 6 (Aborted).\n"
CAUGHT = "ModuleNotFoundError: No module named 'apex'\n"


@pytest.mark.parametrize("name", FAMILIES)
def test_a_line_is_known_for_what_it_is(name: str):
    matched = Troubles().matched(FAMILIES[name], shape=1)

    assert matched is not None
    assert matched[0].id == name


def test_every_last_resort_has_a_line_here():
    assert {pattern.id for pattern in log_patterns() if pattern.last_resort} <= set(FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_line_of_a_program_reaches_its_pattern(name: str):
    reader = LogReader()
    reader.feed(FAMILIES[name].encode() + b"\n")
    reader.end_source()

    assert [event.kind for event in reader.troubles.events.values()] == [name]


# When a line counts that names an error of any kind.


def test_an_error_that_a_program_caught_is_no_failure_where_all_went_on():
    assert "LOG030" not in codes(read(CAUGHT + Job().text()))


def test_the_same_error_is_the_cause_where_a_rank_died():
    text = Job().text() + CAUGHT + DEATH

    assert "apex" in only(text, "LOG030").title


def test_at_the_end_of_a_log_without_a_start_of_nccl_it_is_the_cause():
    assert "apex" in only(CAUGHT, "LOG030").title


def test_far_from_the_end_it_is_none():
    assert "LOG030" not in codes(read(CAUGHT + "step 1 of 9\n" * 100))


def test_a_line_that_names_a_cause_counts_before_one_that_only_tells_of_an_error():
    found = only(
        "RuntimeError: it failed\nmodprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument\n", "LOG030"
    )

    assert "GPUDirect" in found.title


def test_of_a_stack_of_mpich_the_last_line_is_the_reason():
    stack = (
        "Abort(77) on node 0 (rank 0 in comm 0): Fatal error in internal_Init: Other MPI error, error stack:\n"
        "internal_Init(70)....: MPI_Init(argc=(nil), argv=(nil)) failed\n"
        "some_init(71)........: another call did not do\n"
        "deepest_init(72).....: the reason in words of its own\n"
    )

    assert only(stack, "LOG030").title.endswith("the reason in words of its own")


# Numbers that a line holds.


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("mpirun noticed that process rank 3 with PID 77 on node n1 exited on signal 9 (Killed).", "memory"),
        ("mpirun noticed that process rank 3 with PID 77 on node n1 exited on signal 7 (Bus error).", "/dev/shm"),
        (
            "mpirun noticed that process rank 3 with PID 77 on node n1 exited on signal 4 (Illegal instruction).",
            "built",
        ),
        (
            "[ 910.1] NVRM: Xid (PCI:0000:1b:00): 79, pid=4, name=python, GPU has fallen off the bus.",
            "fallen off the bus",
        ),
        ("[ 910.1] NVRM: Xid (PCI:0000:1b:00): 119, pid=4, name=python, Timeout waiting for RPC from GSP!", "GSP"),
        ("cannot write /data/out.bin: Read-only file system", "read"),
    ],
)
def test_a_number_is_said_in_words(line: str, word: str):
    found = only(line + "\n", "LOG030")

    assert word in f"{found.title} {told(found)} {to_do(found)}"


def test_a_number_that_an_application_causes_is_no_fault_of_the_machine():
    assert not log_codes()["xid", "13"].is_hardware
    assert log_codes()["xid", "79"].is_hardware


# What jobs print that go well: words of failure, and yet nothing has failed.

SOUND = (
    "PMI2_KVS_Get:_pmi2_kvs_get failed\nkey [-NONEXIST-KEY] was not found.\n",
    (
        "[n1:77] mca: base: component_find: unable to open /usr/lib/mca_mtl_psm2: libpsm2.so.2: "
        "cannot open shared object "
        "file: No such file or directory (ignored)\n"
    ),
    (
        "[n1:77] mca_base_component_repository_open: unable to open mca_oob_ud: libibverbs.so.1: "
        "cannot open shared object "
        "file: No such file or directory (ignored)\n"
    ),
    "[n1:77] PMIX ERROR: ERROR in file gds_ds12_lock_pthread.c at line 169\n",
    "[n1:77] shmem: mmap: an error occurred while determining whether or not /tmp/ompi/f could be created.\n",
    "A requested component was not found, or was unable to be opened.  This\nFramework: psec\nComponent: munge\n",
    (
        "WARNING: Open MPI tried to bind a process but failed.  This is a\nwarning only; your job will continue.\n"
        "  Error message:     failed to bind memory\n"
    ),
    "WARNING: There was an error initializing an OpenFabrics device.\n",
    "[n1:77] PMIX ERROR: PMIX_ERR_FILE_OPEN_FAILURE in file gds_shmem2.c at line 1056\n",
    "libfabric:7:1:cxi:core:cxip_gen_auth_key():1<warn> n1: cxip_gen_auth_key failed: -38\n",
    "Could not load host key: /etc/ssh/ssh_host_dsa_key\nServer listening on 0.0.0.0 port 22.\n",
    "Failed to modify UD QP to INIT on mlx5_bond_0: Invalid argument\n",
    "libfabric:7:1:efa:core:efa_fork():1<info> fork support is on: RDMAV_FORK_SAFE is set\n",
    "[1.0] [n1:77:0]  sock.c:325  UCX  DIAG  connect(fd=3, dest_addr=10.0.0.1:1234) failed: Connection refused\n",
    "[1.0] [n1:77:0] parser.c:20 UCX  WARN  unused environment variables: UCX_NET_DEVICESS\n",
    "MPI startup(): Warning: I_MPI_PMI_LIBRARY will be ignored since the hydra process manager was found\n",
    "nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 12028, Non-fatal, Link 44 egress non-posted PRIV error\n",
    "pcieport 0000:00:1c.0: AER: Corrected error received: 0000:00:1c.0\n",
    "Warning: Permanently added 'n3' (ED25519) to the list of known hosts.\n",
    (
        "n1:51:51 [0] NCCL INFO Unable to load libnccl-net.so : libnccl-net.so: cannot open shared "
        "object file: No such "
        "file or directory\n"
    ),
    "slurmstepd: error: couldn't chdir to `/home/me': No such file or directory: going to /tmp instead\n",
    (
        "A process or daemon was unable to complete a TCP connection\nto another process:\n  Remote host:   10.0.0.4\n"
        "This is usually caused by a firewall on the remote host. Please\ncheck that any firewall has been disabled\n"
    ),
    '[n1][[7,1],1][btl_tcp_component.c:7:mca_btl_tcp_component_create_instances] invalid interface "ib7"\n',
    "[n1:77] btl: tcp: Incoming connection from 10.2.0.28 does not match known addresses for peer [[7,1],15]. Drop !\n",
    'srun: error: Ignoring conflicting option "x11" in plugin "x11"\n',
    "WARNING: Could not find any nv files on this host!\n",
    "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks\n",
    "/usr/bin/id: cannot find name for user ID 1234\n",
    "mlx5_core 0000:3b:00.0: mlx5_cmd_check:7:(pid 77): CREATE_QP(0x500) failed, status limits exceeded(0x8)\n",
    (
        "pyxis: importing docker image: nvcr.io/nvidia/pytorch:25.01-py3\n"
        "slurmstepd: error: pyxis:     [INFO] Fetching image\n"
    ),
    "[n1:1:77 unique id 12] ERROR Failed to connect to AM in sharp_get_job_data\n",
)


@pytest.mark.parametrize("text", SOUND)
def test_what_a_sound_job_prints_is_no_failure(text: str):
    greeting = "Hello world from processor n1, rank 1 out of 2 processors\n"

    found = read(text + greeting).findings

    assert not [each for each in found if each.severity == "error"]


def test_a_sound_job_of_nccl_stays_sound_with_all_of_them():
    assert not [each for each in read("".join(SOUND) + Job().text()).findings if each.severity == "error"]
