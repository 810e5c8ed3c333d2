"""Captured text of the kernel and of MPI into values. No file is opened here."""

import re
from collections.abc import Mapping

from busbw.base.cpus import parse_cpu_list
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
