"""How the host is set: the kernel, what a process may have, and whether it is what its platform should be."""

from collections.abc import Callable

from busbw.base.cpus import format_cpu_list
from busbw.base.units import format_size
from busbw.machine.health import gpus, libraries, ports
from busbw.machine.health.node import ExaminedNode, fault, fine, found, skipped, unknown
from busbw.model.finding import HostCheck
from busbw.model.host import Contradiction

# A job pins buffers of this order; any real limit is either far below or none.
_LEAST_LOCKED_BYTES = 2**30
# NCCL's own guide has containers start with 1 GiB.
_LEAST_SHARED_BYTES = 2**30
# Linux gives 1024 unless told otherwise; NCCL and MPI hold some descriptors for each peer.
_LEAST_FILES = 4096


def locked_memory(node: ExaminedNode) -> HostCheck:
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


def shared_memory(node: ExaminedNode) -> HostCheck:
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


def open_files(node: ExaminedNode) -> HostCheck:
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


def numa_balancing(node: ExaminedNode) -> HostCheck:
    """Check that the kernel does not move pages between NUMA nodes by itself."""
    name, look = "NUMA balancing", "cat /proc/sys/kernel/numa_balancing"
    if len([numa for numa in node.hardware.numa if numa.cpus]) == 1:
        return skipped(name, "one NUMA node", look=look)
    value = node.state.numa_balancing
    if value is None:
        return unknown(name, "the kernel does not say", look=look)
    if value == 0:
        return fine(name, "off", look=look)
    fix = "sudo sysctl kernel.numa_balancing=0, and the same in /etc/sysctl.d to keep it"
    evidence = f"kernel.numa_balancing = {value}"
    return found(name, fault("HOST004", evidence=evidence, fix=fix, look=look, confidence="possible"), look=look)


def cpu_frequency(node: ExaminedNode) -> HostCheck:
    """Check that the CPUs are not told to save power."""
    name, look = "CPU governor", "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    governor = node.state.governor
    if governor is None and node.hardware.hypervisor is not None:
        return skipped(name, "a virtual machine: the frequency is the hypervisor's", look=look)
    if governor is None:
        return unknown(name, "the kernel does not say", look=look)
    if governor == "performance":
        return fine(name, governor, look=look)
    fix = "sudo cpupower frequency-set -g performance"
    evidence = f"CPU 0 has the governor {governor}"
    return found(
        name,
        fault("HOST005", governor=governor, evidence=evidence, fix=fix, look=look, confidence="possible"),
        look=look,
    )


def clock(node: ExaminedNode) -> HostCheck:
    """Check that the clock follows others: logs of several nodes are put in order by it."""
    name, look = "clock", "timedatectl show -p NTPSynchronized"
    synchronised = node.state.clock_synchronised
    if synchronised is None:
        return unknown(name, "timedatectl does not say", look=look)
    if synchronised:
        return fine(name, "synchronised", look=look)
    evidence, fix = "NTPSynchronized = no", "start chronyd or systemd-timesyncd; a hypervisor may do it unseen"
    return found(name, fault("HOST006", evidence=evidence, fix=fix, look=look, confidence="possible"), look=look)


def allowed_cpus(node: ExaminedNode) -> HostCheck:
    """Check that this process may use every CPU."""
    name, look = "CPUs of this process", "taskset -cp $$"
    allowed, every = node.state.allowed_cpus, node.hardware.cpus
    if not allowed or not every:
        return unknown(name, "the kernel does not say which CPUs there are, or which are allowed", look=look)
    if set(every) <= set(allowed):
        return fine(name, f"all {len(every)}", look=look)
    evidence = f"allowed {format_cpu_list(allowed)} of {format_cpu_list(every)}"
    fix = "in a job: ask for whole nodes; in a container: --cpuset-cpus; see `busbw topo masks --here`"
    made = fault(
        "HOST007", few=len(allowed), many=len(every), evidence=evidence, fix=fix, look=look, confidence="possible"
    )
    return found(name, made, look=look)


def platform(node: ExaminedNode) -> HostCheck:
    """Check the host against what is published of its platform."""
    name, look = "platform", "busbw platform detect --explain"
    if node.platform is None:
        return unknown(name, "the platform is not known, so neither is what it should have", look=look)
    made = [
        fault(
            "HOST050",
            platform=node.platform.id,
            part=each.part,
            evidence=each.text,
            fix=each.fix or look,
            look=look,
            confidence="likely",
        )
        for each in node.contradictions
        if not _is_told_elsewhere(node, each)
    ]
    return found(name, *made, look=look) if made else fine(name, node.platform.id, look=look)


def _is_told_elsewhere(node: ExaminedNode, each: Contradiction) -> bool:
    """Whether it is about state or rate of ports that are all there: other checks say which, and more of them."""
    wanted = node.platform.nic.ports if node.platform is not None else None
    return each.part == "NIC ports" and len(node.ports) == wanted


CHECKS: tuple[Callable[[ExaminedNode], HostCheck], ...] = (
    platform,
    gpus.present,
    gpus.memory_health,
    gpus.clocks,
    gpus.persistence,
    gpus.partitions,
    gpus.nvlinks,
    ports.peers,
    ports.access_control,
    ports.iommu,
    ports.pcie_links,
    ports.link_states,
    ports.link_rates,
    ports.port_errors,
    ports.packet_sizes,
    ports.verbs_devices,
    gpus.gpu_direct,
    libraries.plugin,
    libraries.resolution,
    libraries.versions,
    libraries.named_files,
    locked_memory,
    shared_memory,
    open_files,
    numa_balancing,
    allowed_cpus,
    cpu_frequency,
    clock,
)


def examine(node: ExaminedNode) -> tuple[HostCheck, ...]:
    """Return what each check says of a node."""
    return tuple(check(node) for check in CHECKS)
