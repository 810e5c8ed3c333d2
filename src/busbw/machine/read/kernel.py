"""Captured text of the kernel and of MPI into values. No file is opened here."""

import re
from collections.abc import Mapping

from busbw.base.cpus import parse_cpu_list
from busbw.base.value import Integer, Value
from busbw.machine.read.index import SnapshotIndex, cpu_list, fields, number
from busbw.model.host import HostNuma
from busbw.model.machine import MpiFamily

_OPEN_MPI = re.compile(r"mpirun(?:\.(?:real|openmpi))?\s+\((?:Open MPI|OpenRTE)\)\s+(\S+)")
_PRRTE = re.compile(r"(?:prte|PRRTE)\b[^\n]{0,80}?(\d+\.\d+\S*)")
_HYDRA = re.compile(r"^\s*Version:\s+(\S+)", re.MULTILINE)
_INTEL = re.compile(r"Intel\(R\) MPI Library.*?Version\s+([\d.]+)")
_LONGEST_VERSION = 4096


def mpirun_version(text: str) -> tuple[MpiFamily, str | None]:
    """Return the family and version that `mpirun --version` printed; its first 4 KiB say it."""
    text = text[:_LONGEST_VERSION]
    if match := _OPEN_MPI.search(text):
        return "Open MPI", match[1]
    if match := _INTEL.search(text):
        return "Intel MPI", match[1]
    if "HYDRA" in text or "mpiexec" in text.lower():
        match = _HYDRA.search(text)
        return ("MVAPICH" if "mvapich" in text.lower() else "MPICH"), match[1] if match else None
    if match := _PRRTE.search(text):
        return "Open MPI", match[1]
    return "unknown", None


class BuiltWithCuda(Value, kw_only=True, frozen=True):
    """Whether an MPI was built with CUDA, and the line that says so."""

    has_cuda: bool
    said: str


# Open MPI 4 says it of its MPI layer, 5 of the layer below.
_CUDA = re.compile(
    r"^mca:(?:mpi|opal):base:param:((?:mpi|opal)_built_with_cuda_support):value:(true|false)$", re.MULTILINE
)


def built_with_cuda(text: str) -> BuiltWithCuda | None:
    """Return what `ompi_info --parsable --all` says; None where it does not."""
    match = _CUDA.search(text)
    return BuiltWithCuda(has_cuda=match[2] == "true", said=f"ompi_info: {match[1]} {match[2]}") if match else None


def _is_number(text: str) -> bool:
    """Whether `text` is a counter of the kernel: decimal digits that fit into 64 bits."""
    return text.isascii() and text.isdecimal() and len(text) < 20


def meminfo(text: str) -> dict[str, int]:
    """Return the fields of /proc/meminfo in bytes."""
    fields = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if words and _is_number(words[0]):
            fields[name.strip()] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return fields


def cpu_model(cpuinfo: str) -> str | None:
    """Return the processor's name from /proc/cpuinfo (x86 `model name`, else `CPU part` of Arm)."""
    for wanted in ("model name", "Model", "CPU part"):
        for line in cpuinfo.splitlines():
            key, _, value = line.partition(":")
            if key.strip() == wanted and value.strip():
                return value.strip()[:200]
    return None


def is_virtual(cpuinfo: str) -> bool:
    """Whether the processor says that a hypervisor runs below."""
    return any(line.startswith("flags") and "hypervisor" in line.split() for line in cpuinfo.splitlines())


def os_name(os_release: str) -> str | None:
    """Return PRETTY_NAME of /etc/os-release."""
    for line in os_release.splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip().strip("\"'")[:200]
    return None


def core_count(cpus: tuple[int, ...], siblings: Mapping[int, str]) -> int:
    """Return the physical cores among `cpus`; `siblings` holds each CPU's thread_siblings_list."""
    cores = {parse_cpu_list(siblings.get(cpu, "")) or (cpu,) for cpu in cpus}
    return len(cores)


def stolen_and_total_s(stat: str, ticks_per_s: int) -> tuple[float | None, float]:
    """Return (stolen, all) CPU seconds of all CPUs since boot from /proc/stat; stolen None where not counted."""
    for line in stat.splitlines():
        fields = line.split()
        if fields[:1] == ["cpu"] and all(_is_number(field) for field in fields[1:]):
            ticks = [int(field) for field in fields[1:9]]
            stolen = ticks[7] / ticks_per_s if len(ticks) == 8 else None
            return stolen, sum(ticks) / ticks_per_s
    return None, 0.0


def keyed_numbers(text: str) -> dict[str, int]:
    """Return the `name number` lines of a control group file such as cpu.stat."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and _is_number(pair[1])}


def cpu_quota(cpu_max: str) -> float | None:
    """Return the CPUs that cpu.max (`QUOTA PERIOD`, both in us) allows; None without a limit."""
    fields = cpu_max.split()
    if len(fields) == 2 and all(_is_number(field) for field in fields) and int(fields[1]) > 0:
        return int(fields[0]) / int(fields[1])
    return None


def chosen(text: str) -> str | None:
    """Return the choice in brackets of a kernel file such as `always [madvise] never`."""
    match = re.search(r"\[(\w{1,32})\]", text)
    return match[1] if match is not None else None


def control_group(text: str) -> str:
    """Return the path of the unified control group in /proc/self/cgroup; `/` when there is none."""
    for line in text.splitlines():
        if line.startswith("0::"):
            return line[3:].strip() or "/"
    return "/"


def library_names(family: MpiFamily) -> tuple[str, ...]:
    """Return the file names that the library of an MPI family goes by, most specific first."""
    if family == "Open MPI":
        return ("libmpi.so.40", "libmpi.so.80", "libmpi.so")
    if family in ("MPICH", "MVAPICH"):
        return ("libmpi.so.12", "libmpich.so.12", "libmpi.so")
    if family == "Intel MPI":
        return ("libmpi.so.12", "libmpi.so")
    return ()


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
        model=cpuinfo.get("model name") or lscpu.get("Model name") or cpu_model(index.text("/proc/cpuinfo") or ""),
        vendor=cpuinfo.get("vendor_id") or lscpu.get("Vendor ID"),
        family=number(cpuinfo.get("cpu family") or lscpu.get("CPU family")),
        model_number=number(cpuinfo.get("model") or lscpu.get("Model")),
        sockets=len(packages) or number(lscpu.get("Socket(s)")),
        cores=core_count(cpus, siblings) if has_topology else _cores(lscpu),
        cpus=cpus,
    )


def hypervisor(index: SnapshotIndex, dmi: dict[str, str]) -> str | None:
    """Return what the host runs on; None for the bare machine, as far as it shows."""
    said = fields(index.output("lscpu")).get("Hypervisor vendor") or index.text("/sys/hypervisor/type")
    if said is not None:
        return said
    return (dmi.get("sys_vendor") or "unnamed") if is_virtual(index.text("/proc/cpuinfo") or "") else None


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


def bytes_of(text: str | None) -> int | None:
    """Return the whole memory that a meminfo file says, of the machine or of a node."""
    sizes = fields(text or "")
    total = next((value for field, value in sizes.items() if field.endswith("MemTotal")), None)
    size_bytes = meminfo(f"MemTotal: {total}").get("MemTotal")
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
