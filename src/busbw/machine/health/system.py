"""How the host is set: the kernel, what a process may have, the libraries a job would load, what platform it is."""

from collections.abc import Callable

from busbw.base.cpus import format_cpu_list
from busbw.base.text import listed
from busbw.base.units import format_size
from busbw.machine.health import gpus, network, ports
from busbw.machine.health.node import ExaminedNode, fault, fine, found, skipped, unknown
from busbw.machine.read.built import readers_of, unread_by
from busbw.model.finding import Finding, HostCheck
from busbw.model.host import Contradiction, FoundLibrary

# Fabrics that NCCL reaches through a plug-in only, and what brings it.
_PLUGINS = {"EFA": "aws-ofi-nccl", "Slingshot": "aws-ofi-nccl"}
_NO_LIBRARIES = "no library of the interconnect was found, or none was looked for"
_BUILT_IN = ("none", "ib", "socket")


def resolution(node: ExaminedNode) -> HostCheck:
    """Check that what the first library of each name needs is there."""
    name, look = "libraries resolve", "ldd LIBRARY | grep 'not found'"
    first: dict[str, FoundLibrary] = {}
    for each in node.libraries:
        first.setdefault(each.name, each)
    examined = [each for each in first.values() if each.unresolved is not None]
    if not examined:
        return unknown(name, _NO_LIBRARIES if not first else "none of the libraries could be followed", look=look)
    made = [each for library in examined for each in _unresolved(library, has_runtime="libcudart" in first)]
    return found(name, *made, look=look) if made else fine(name, f"{len(examined)} of them", look=look)


def _unresolved(library: FoundLibrary, *, has_runtime: bool) -> list[Finding]:
    # Frameworks load their own CUDA runtime before any plug-in.
    missing = [each for each in library.unresolved or () if not (has_runtime and each.startswith("libcudart."))]
    if not missing:
        return []
    made = fault(
        "HOST040",
        library=library.name,
        evidence=f"{library.path} needs {listed(missing)}",
        fix="load the module that brings them, or add their folder to LD_LIBRARY_PATH",
        look=f"ldd {library.path}",
        confidence="likely",
    )
    return [made]


def plugin(node: ExaminedNode) -> HostCheck:
    """Check that NCCL's network plug-in is there, where the fabric or a setting needs one; else libibverbs."""
    name, look = "NCCL's network", "ldconfig -p | grep -e libnccl-net -e libibverbs; echo $NCCL_NET_PLUGIN"
    if not node.nvidia_gpus:
        return skipped(name, "no NVIDIA GPU", look=look)
    if not node.libraries:
        return unknown(name, _NO_LIBRARIES, look=look)
    wanted = node.settings.get("NCCL_NET_PLUGIN", "").strip()
    names = {each.name for each in node.libraries}
    if wanted and wanted.lower() not in _BUILT_IN:
        return _wanted(node, name, wanted, look)
    if not node.ports:
        return skipped(name, "no port of a fabric", look=look)
    made = _without_transport(node, names, look)
    if made is not None:
        return found(name, made, look=look)
    return fine(name, "libnccl-net" if "libnccl-net" in names else "libibverbs", look=look)


def _without_transport(node: ExaminedNode, names: set[str], look: str) -> Finding | None:
    """Return what NCCL lacks to use the fabric; None where it lacks nothing."""
    kinds = [port.kind for port in node.ports if port.kind in _PLUGINS]
    if kinds and "libnccl-net" not in names:
        evidence = f"{len(kinds)} ports of {kinds[0]}, and no libnccl-net*.so where a job would find it"
        fix = f"load the module of {_PLUGINS[kinds[0]]}, or add its folder to LD_LIBRARY_PATH"
        return fault("HOST041", fabric=kinds[0], evidence=evidence, fix=fix, look=look, confidence="likely")
    if node.rdma_ports and not names & {"libibverbs", "libnccl-net"}:
        evidence = f"{len(node.rdma_ports)} ports, and no libibverbs.so.1 where a job would find it"
        fix = "install libibverbs1 and ibverbs-providers (rdma-core), in the container too"
        return fault("HOST042", evidence=evidence, fix=fix, look=look, confidence="likely")
    return None


def _wanted(node: ExaminedNode, name: str, wanted: str, look: str) -> HostCheck:
    """Return whether the plug-in is there that a setting names; NCCL adds `libnccl-net-` and `.so` to a bare name."""
    files = (f"libnccl-net-{wanted}.so", wanted, f"{wanted}.so")
    hit = next((each for each in node.libraries if each.path == wanted or _is_called(each.path, files)), None)
    if hit is not None:
        return fine(name, hit.path, look=look)
    evidence = f'NCCL_NET_PLUGIN = "{wanted}"; none of {", ".join(files[:2])} was found'
    fix = "add the folder of the plug-in to LD_LIBRARY_PATH, or unset NCCL_NET_PLUGIN"
    made = fault("HOST043", plugin=wanted, evidence=evidence, fix=fix, look=look, confidence="possible")
    return found(name, made, look=look)


def _is_called(path: str, files: tuple[str, ...]) -> bool:
    return path.rpartition("/")[2].startswith(files)


def versions(node: ExaminedNode) -> HostCheck:
    """Check that there is one NCCL."""
    name, look = "NCCL versions", "ldconfig -p | grep libnccl.so; pip list | grep nccl"
    if not node.nvidia_gpus:
        return skipped(name, "no NVIDIA GPU", look=look)
    here = [each for each in node.libraries if each.name == "libnccl" and each.version is not None]
    if not here:
        return unknown(name, "no libnccl that says its version was found", look=look)
    different = {each.version: each.path for each in reversed(here)}
    if len(different) == 1:
        kind = here[0].kind
        return fine(name, f"{here[0].version}{'' if kind in (None, 'NCCL') else f', {kind}'}", look=look)
    evidence = listed(f"{each.version} {each.path}" for each in here)
    fix = "NCCL_DEBUG=VERSION tells which one a job loads; remove the others, or put the right one first"
    made = fault("HOST044", count=len(different), evidence=evidence, fix=fix, look=look, confidence="possible")
    return found(name, made, look=look)


def algorithms(node: ExaminedNode) -> HostCheck:
    """Check that the NCCL a job would load reads the variables that name algorithms of MSCCL."""
    name, look = "algorithms of MSCCL", "env | grep MSCCL; nm -D libnccl.so.2 | grep -e mscclLoadAlgo -e ncclCustom"
    first = next((each for each in node.libraries if each.name in ("libnccl", "librccl")), None)
    named = [each for each in ("MSCCL_XML_FILES", "MSCCL_CONFIG", "MSCCL_ALGO_DIR") if node.settings.get(each)]
    if not named:
        return skipped(name, "none are named", look=look)
    if first is None or first.kind is None:
        return unknown(name, f"{listed(named)} set, and no libnccl that tells what it is", look=look)
    made = [
        fault(
            "HOST046",
            setting=each,
            evidence=f"{first.path} is {first.kind} {first.version or ''}".rstrip(),
            fix=f"put the folder of {readers_of(each)[0]}'s libnccl.so first in LD_LIBRARY_PATH, or unset {each}",
            look=look,
            confidence="likely",
        )
        for each in unread_by(first.kind, node.settings)
    ]
    return found(name, *made, look=look) if made else fine(name, f"{first.kind} reads {listed(named)}", look=look)


def named_files(node: ExaminedNode) -> HostCheck:
    """Check that the files that NCCL's settings name are there."""
    name, look = "files of NCCL's settings", "env | grep NCCL_; cat /etc/nccl.conf ~/.nccl.conf"
    named = node.state.named_files
    if not named:
        return skipped(name, "neither NCCL_TOPO_FILE nor NCCL_GRAPH_FILE is set", look=look)
    made = [
        fault(
            "HOST045",
            setting=each.setting,
            evidence=f'{each.setting} = "{each.path}" ({each.named_in or "environment"}): {each.fault}',
            fix=f"unset {each.setting}, correct it, or mount the file into the container",
            look=f"ls -l {each.path}",
        )
        for each in named
        if each.fault is not None
    ]
    return found(name, *made, look=look) if made else fine(name, f"{len(named)} there", look=look)


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
    network.direct_forbidden,
    network.asked_in_vain,
    network.partition_members,
    plugin,
    resolution,
    versions,
    algorithms,
    named_files,
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
