"""What a process may have: locked memory, shared memory, open files."""

from busbw.base.units import format_size
from busbw.machine.health.node import Node, fault, fine, found, skipped, unknown
from busbw.model.host_check import HostCheck

# A job pins buffers of this order; any real limit is either far below or none.
_LEAST_LOCKED_BYTES = 2**30
# NCCL's own guide has containers start with 1 GiB.
_LEAST_SHARED_BYTES = 2**30
# Linux gives 1024 unless told otherwise; NCCL and MPI hold some descriptors for each peer.
_LEAST_FILES = 4096


def locked_memory(node: Node) -> HostCheck:
    """Check how much memory may be locked, which RDMA does with every buffer."""
    name, look = "locked memory", "ulimit -l"
    if not node.ports:
        return skipped(name, "no RDMA device", look=look)
    limit = node.state.limits.get("Max locked memory")
    if limit is None:
        return unknown(name, "the snapshot does not hold the limits of a process", look=look)
    if limit == "unlimited" or limit >= _LEAST_LOCKED_BYTES:
        return fine(name, "unlimited" if limit == "unlimited" else format_size(limit), look=look)
    return found(
        name,
        fault(
            "HOST001",
            limit=format_size(limit),
            evidence=f"Max locked memory = {limit} bytes for the process that looked; a job's own limit may differ",
            fix="'* - memlock unlimited' in /etc/security/limits.conf; Slurm: LimitMEMLOCK=infinity for slurmd; "
            "docker run --ulimit memlock=-1",
            look=look,
            confidence="likely",
        ),
        look=look,
    )


def shared_memory(node: Node) -> HostCheck:
    """Check the room in /dev/shm."""
    name, look = "shared memory", "df -h /dev/shm"
    if not node.hardware.gpus:
        return skipped(name, "no GPU", look=look)
    size_bytes = node.state.shared_bytes
    if size_bytes is None:
        return unknown(name, "df said nothing of /dev/shm", look=look)
    if size_bytes >= _LEAST_SHARED_BYTES:
        return fine(name, format_size(size_bytes), look=look)
    return found(
        name,
        fault(
            "HOST002",
            size=format_size(size_bytes),
            evidence=f"{format_size(size_bytes)} in all, for {len(node.hardware.gpus)} GPUs",
            fix="docker run --shm-size=8g (or --ipc=host); Kubernetes: an emptyDir of medium Memory on /dev/shm",
            look=look,
            confidence="likely",
        ),
        look=look,
    )


def open_files(node: Node) -> HostCheck:
    """Check how many files a process may open."""
    name, look = "open files", "ulimit -n"
    limit = node.state.limits.get("Max open files")
    if limit is None:
        return unknown(name, "the snapshot does not hold the limits of a process", look=look)
    if limit == "unlimited" or limit >= _LEAST_FILES:
        return fine(name, str(limit), look=look)
    return found(
        name,
        fault(
            "HOST003",
            limit=limit,
            evidence=f"Max open files = {limit}",
            fix="ulimit -n 65536 before the job, or 'nofile' in /etc/security/limits.conf",
            look=look,
            confidence="possible",
        ),
        look=look,
    )
