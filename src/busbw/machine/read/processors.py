"""The processors and NUMA nodes of a host."""

import re

from busbw.base.value import Integer, Value
from busbw.machine.read import kernel
from busbw.machine.read.index import SnapshotIndex, cpu_list, fields, number
from busbw.model.host import HostNuma

_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node"
_MOST_NODES = 1024
# Of one core; POWER has eight, and some kernels list a core twice.
_MOST_THREADS = 32


class Processors(Value, kw_only=True, frozen=True):
    """The fields of Hardware that are about processors."""

    architecture: str | None
    model: str | None
    vendor: str | None
    family: Integer | None
    model_number: Integer | None
    sockets: Integer | None
    cores: Integer | None
    cpus: tuple[Integer, ...]


def processors(index: SnapshotIndex) -> Processors:
    """Return the processors: from the kernel's files, and what these do not say from `lscpu`."""
    cpuinfo = fields(index.text("/proc/cpuinfo") or "")
    lscpu = fields(index.output("lscpu"))
    cpus = _online(index, lscpu)
    siblings = {cpu: _siblings(index.text(f"{_CPU}/cpu{cpu}/topology/thread_siblings_list")) for cpu in cpus}
    packages = {index.number(f"{_CPU}/cpu{cpu}/topology/physical_package_id") for cpu in cpus} - {None}
    has_topology = any(siblings.values())
    return Processors(
        architecture=_architecture(index, cpuinfo, lscpu),
        model=cpuinfo.get("model name")
        or lscpu.get("Model name")
        or kernel.cpu_model(index.text("/proc/cpuinfo") or ""),
        vendor=cpuinfo.get("vendor_id") or lscpu.get("Vendor ID"),
        family=number(cpuinfo.get("cpu family") or lscpu.get("CPU family")),
        model_number=number(cpuinfo.get("model") or lscpu.get("Model")),
        sockets=len(packages) or number(lscpu.get("Socket(s)")),
        cores=kernel.core_count(cpus, siblings) if has_topology else _cores(lscpu),
        cpus=cpus,
    )


def hypervisor(index: SnapshotIndex, dmi: dict[str, str]) -> str | None:
    """Return what the host runs on; None for the bare machine, as far as it shows."""
    said = fields(index.output("lscpu")).get("Hypervisor vendor") or index.text("/sys/hypervisor/type")
    if said is not None:
        return said
    return (dmi.get("sys_vendor") or "unnamed") if kernel.is_virtual(index.text("/proc/cpuinfo") or "") else None


def numa_nodes(index: SnapshotIndex) -> tuple[HostNuma, ...]:
    """Return the NUMA nodes by id, those without CPUs too: memory of GPUs is a node on some machines."""
    found = []
    for name in index.names(_NODE)[: 2 * _MOST_NODES]:
        match = re.fullmatch(r"node(\d{1,6})", name)
        if match is None:
            continue
        found.append(
            HostNuma(
                id=int(match[1]),
                cpus=cpu_list(index.text(f"{_NODE}/{name}/cpulist")),
                memory_bytes=bytes_of(index.text(f"{_NODE}/{name}/meminfo")),
                distances=_distances(index.text(f"{_NODE}/{name}/distance")),
            )
        )
    return tuple(sorted(found, key=lambda node: node.id))


def _siblings(text: str | None) -> str:
    """Return a list of the threads of one core; "" for one that is no such list."""
    return text if text is not None and cpu_list(text, _MOST_THREADS) else ""


def bytes_of(meminfo: str | None) -> int | None:
    """Return the whole memory that a meminfo file says, of the machine or of a node."""
    sizes = fields(meminfo or "")
    total = next((value for field, value in sizes.items() if field.endswith("MemTotal")), None)
    size_bytes = kernel.meminfo(f"MemTotal: {total}").get("MemTotal")
    return size_bytes if size_bytes is not None and size_bytes < 2**63 else None


def _distances(text: str | None) -> tuple[int, ...]:
    words = (text or "").split()
    read = [number(word) for word in words] if len(words) <= _MOST_NODES else []
    return tuple(each for each in read if each is not None) if None not in read else ()


def _online(index: SnapshotIndex, lscpu: dict[str, str]) -> tuple[int, ...]:
    for text in (index.text(f"{_CPU}/online"), lscpu.get("On-line CPU(s) list")):
        cpus = cpu_list(text)
        if cpus:
            return cpus
    return ()


def _architecture(index: SnapshotIndex, cpuinfo: dict[str, str], lscpu: dict[str, str]) -> str | None:
    said = index.text("/proc/sys/kernel/arch") or lscpu.get("Architecture")
    if said is not None:
        return said
    words = index.output("uname").split()
    if words:
        return words[-1]
    return "x86_64" if "vendor_id" in cpuinfo else "aarch64" if "CPU implementer" in cpuinfo else None


def _cores(lscpu: dict[str, str]) -> int | None:
    per_socket, sockets = number(lscpu.get("Core(s) per socket")), number(lscpu.get("Socket(s)"))
    return per_socket * sockets if per_socket is not None and sockets is not None and sockets < 10**6 else None
