"""The door to the machine: reads the kernel's files and asks mpirun who it is."""

import os
import platform
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from busbw.base.cpus import parse_cpu_list
from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.machine.read import kernel
from busbw.model import codec
from busbw.model.machine import GpuHost, Host, HostCounters, Library, MpiLibrary, MpiOrigin, Origin

_MAX_BYTES = 8 * 2**20
_VERSION_TIMEOUT_S = 20.0
_NO_MPI_HINT = "load your site's MPI module, or: pip install 'busbw[mpi]'"


def _text(path: str | Path) -> str:
    """Return a small text file's content, or "" when it is not there."""
    try:
        with Path(path).open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def host() -> Host:
    """Describe this host as far as it says."""
    cpuinfo = _text("/proc/cpuinfo")
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    siblings = {cpu: _text(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in cpus}
    memory = kernel.meminfo(_text("/proc/meminfo"))
    group = Path("/sys/fs/cgroup" + kernel.control_group(_text("/proc/self/cgroup")))
    return Host(
        name=socket.gethostname(),
        kernel=platform.release(),
        os_name=kernel.os_name(_text("/etc/os-release")),
        cpu_model=kernel.cpu_model(cpuinfo),
        cpus=cpus,
        cores=kernel.core_count(cpus, siblings),
        numa_nodes=max(len(parse_cpu_list(_text("/sys/devices/system/node/has_cpu")) or ()), 1),
        memory_bytes=memory.get("MemTotal", 0),
        memory_available_bytes=_memory_available_bytes(memory, group),
        hypervisor=_hypervisor(cpuinfo),
        container=container(),
        governor=_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None,
        huge_pages=kernel.chosen(_text("/sys/kernel/mm/transparent_hugepage/enabled")),
        cpu_quota=kernel.cpu_quota(_text(group / "cpu.max")),
    )


def gpus_seen() -> int:
    """Return how many GPUs NVIDIA's driver shows on this host, asked of the kernel alone."""
    try:
        return sum(1 for _entry in Path("/proc/driver/nvidia/gpus").iterdir())
    except OSError:
        return 0


def gpu_nodes() -> tuple[int | None, ...]:
    """Return the NUMA node of each of these GPUs, by PCI address; None where the kernel tells none."""
    found = []
    for name in sorted(_names(Path("/proc/driver/nvidia/gpus"))):
        text = _text(f"/sys/bus/pci/devices/{name.lower()}/numa_node").strip()
        found.append(int(text) if text.isdecimal() else None)
    return tuple(found)


def user() -> str | None:
    """Return who asks, as `1000:1000`; None for root."""
    return f"{os.getuid()}:{os.getgid()}" if os.geteuid() != 0 else None


def token() -> str:
    """Return four letters that tell runs of the same second apart."""
    return os.urandom(2).hex()


# PCI's classes of displays and 3D controllers, of accelerators, and of InfiniBand controllers.
_PLATFORM_CLASSES = ("0x03", "0x12", "0x0207")


def shows_platform(root: Path = Path("/")) -> bool:
    """Whether the kernel shows a GPU, or a network as platforms have it: else no platform needs to be recognised."""
    if any(_names(root / "sys/class" / name) for name in ("infiniband", "cxi")):
        return True
    devices = root / "sys/bus/pci/devices"
    return any(_text(devices / name / "class").startswith(_PLATFORM_CLASSES) for name in _names(devices))


def _names(folder: Path) -> tuple[str, ...]:
    """Return what a folder of the kernel holds; () where there is no such folder."""
    try:
        return tuple(entry.name for entry in folder.iterdir())
    except OSError:
        return ()


def _memory_available_bytes(memory: dict[str, int], group: Path) -> int:
    available = memory.get("MemAvailable", memory.get("MemFree", 0))
    limit, used = _text(group / "memory.max").strip(), _text(group / "memory.current").strip()
    if limit.isdecimal() and used.isdecimal():
        reclaimable = kernel.keyed_numbers(_text(group / "memory.stat")).get("inactive_file", 0)
        available = min(available, int(limit) - int(used) + reclaimable)
    return max(available, 0)


def _hypervisor(cpuinfo: str) -> str | None:
    vendor = _text("/sys/hypervisor/type").strip() or _text("/sys/class/dmi/id/sys_vendor").strip()
    return (vendor or "unnamed") if kernel.is_virtual(cpuinfo) else None


def container() -> str | None:
    """Return what kind of container this process runs in; None: none that shows itself."""
    marks = {"/.dockerenv": "docker", "/run/.containerenv": "podman", "/.singularity.d": "apptainer"}
    for path, kind in marks.items():
        if Path(path).exists():
            return kind
    if os.environ.get("container"):
        return os.environ["container"]
    return "kubernetes" if os.environ.get("KUBERNETES_SERVICE_HOST") else None


def counters() -> HostCounters:
    """Read the counters whose change over a run tells whether the machine was left alone."""
    stolen_s, cpu_s = kernel.stolen_and_total_s(_text("/proc/stat"), os.sysconf("SC_CLK_TCK"))
    group = Path("/sys/fs/cgroup" + kernel.control_group(_text("/proc/self/cgroup")))
    throttles = [_text(path) for path in Path("/sys/devices/system/cpu").glob("cpu*/thermal_throttle/*_throttle_count")]
    return HostCounters(
        stolen_s=stolen_s,
        cpu_s=cpu_s,
        quota_stops=kernel.keyed_numbers(_text(group / "cpu.stat")).get("nr_throttled"),
        throttle_events=sum(int(text) for text in throttles if text.strip().isdecimal()) if throttles else None,
        memory_kills=kernel.keyed_numbers(_text("/proc/vmstat")).get("oom_kill"),
        load_average=os.getloadavg()[0],
    )


def mpi(chosen: str | None) -> MpiLibrary:
    """Find the MPI to use: `chosen`, else the first mpirun on PATH that is the site's own, else the wheel's.

    Raises InputError when there is none, when it does not answer, or when its library is not where it belongs.
    """
    mpirun, origin = _find_mpirun(chosen)
    text = _version_text(mpirun)
    family, version = kernel.mpirun_version(text)
    if family == "unknown":
        said = text.strip().splitlines()
        raise InputError(
            f"do not know how to start ranks with this mpirun; it says: {said[0] if said else 'nothing'}",
            where=mpirun,
            hint="put Open MPI, MPICH, Intel MPI or MVAPICH first on PATH, or name one with --mpirun",
        )
    library = next(_libraries(Path(mpirun), family), None)
    if library is None:
        names = " or ".join(kernel.library_names(family)) or "libmpi.so"
        raise InputError(
            f"{family} {version or ''} is here, but not its library ({names})".replace("  ", " "),
            where=mpirun,
            hint="add the directory of its libmpi to LD_LIBRARY_PATH, or choose another MPI with --mpirun",
        )
    return MpiLibrary(family=family, version=version, mpirun=mpirun, library=str(library), origin=origin)


def _find_mpirun(chosen: str | None) -> tuple[str, MpiOrigin]:
    if chosen is not None:
        found = shutil.which(chosen)
        if found is None:
            raise InputError(f"no program {chosen!r}", hint="give the path of an mpirun or mpiexec")
        return str(Path(found).absolute()), "chosen"
    own = Path(sys.prefix, "bin")
    for directory in os.get_exec_path():
        if directory and Path(directory).resolve() == own.resolve():
            continue
        for name in ("mpirun", "mpiexec"):
            found = shutil.which(name, path=directory or ".")
            if found is not None:
                return str(Path(found).absolute()), "site"
    for name in ("mpirun", "mpiexec"):
        found = shutil.which(name, path=str(own))
        if found is not None:
            return found, "wheel"
    raise InputError("no MPI: neither mpirun nor mpiexec is on PATH", hint=_NO_MPI_HINT)


def _version_text(mpirun: str) -> str:
    try:
        answer = subprocess.run(
            [mpirun, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_TIMEOUT_S,
            # Intel MPI's mpirun is a script that looks for its programs on PATH.
            env={**os.environ, "PATH": f"{Path(mpirun).parent}:{os.environ.get('PATH', os.defpath)}"},
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"mpirun does not answer: {error}", where=mpirun, hint=_NO_MPI_HINT) from error
    if answer.returncode != 0:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        raise InputError(
            f"mpirun --version failed with code {answer.returncode}: {said[0] if said else 'no output'}",
            where=mpirun,
            hint=_NO_MPI_HINT,
        )
    return answer.stdout


def _libraries(mpirun: Path, family: str) -> Iterator[Path]:
    """Yield where the library of this mpirun can be: beside it, then on LD_LIBRARY_PATH, then with the system's."""
    directories = []
    for start in (mpirun, mpirun.resolve()):
        prefix = start.parent.parent
        directories += [
            prefix / "lib",
            prefix / "lib64",
            prefix / "lib" / "release",
            prefix / "lib" / "openmpi" / "lib",
            *sorted((prefix / "lib").glob("*-linux-gnu")),
        ]
    directories += [Path(entry) for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":") if entry]
    for directory in directories:
        for name in kernel.library_names(family):  # type: ignore[arg-type]
            if (directory / name).is_file():
                yield directory / name


_SURVEY_TIMEOUT_S = 120.0
_DRIVER = "libcuda.so.1"
_NCCL = "libnccl.so.2"
_NO_NCCL_HINT = "name it with --nccl PATH, put its folder into LD_LIBRARY_PATH, or: pip install nvidia-nccl-cu13"
# Tried in this order; the newest that the driver is not older than counts.
_NVRTC_MAJORS = ("13", "12")
_SYSTEM_FOLDERS = ("/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/cuda/lib64")
_NONE = "none"


class Named(Value, kw_only=True, frozen=True):
    """Libraries that the user named by path. None: found by busbw; for NVRTC, "none" is to do without."""

    nccl: str | None = None
    driver: str | None = None
    nvrtc: str | None = None


class _FoundLibraries(Value, frozen=True):
    path: str
    origin: Origin


def gpus(named: Named, python: str) -> GpuHost:
    """Return what this host offers for NCCL, asked in a process of its own: a driver may take it down.

    Raises InputError in one line when something is missing.
    """
    nccl = _first(named.nccl, _NCCL, ("nvidia/nccl/lib",))
    driver = _first(named.driver, _DRIVER, ())
    found = (nccl, driver, *_compilers(named.nvrtc))
    request = [word for library in found for word in (library.path, library.origin)]
    try:
        answer = subprocess.run(
            [python, "-P", "-m", "busbw.rank.survey", *request],
            capture_output=True,
            text=True,
            timeout=_SURVEY_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"the GPUs do not answer: {error}", hint="does nvidia-smi answer?") from error
    if answer.returncode != 0:
        said = (answer.stderr.strip() or f"ended with code {answer.returncode}").splitlines()[-1]
        raise InputError(said, hint=_hint(said))
    return codec.decode(answer.stdout.encode(), GpuHost, where="busbw.rank.survey")


def _hint(said: str) -> str:
    if "has no function" in said:
        return "this file is another library; name the right one with --nccl, --driver or --nvrtc"
    if "the oldest that works" in said:
        return "name a newer one with --nccl; programs built against this one run with --backend nccl-tests --bin DIR"
    if _NCCL in said or "NCCL" in said:
        return _NO_NCCL_HINT
    if _DRIVER in said:
        return "there is no NVIDIA driver here; MPI needs none: busbw run --backend native-mpi"
    return "does nvidia-smi see the GPUs?"


def _first(named: str | None, name: str, wheel_folders: tuple[str, ...]) -> _FoundLibraries:
    """Return where a library is: named, on LD_LIBRARY_PATH, in a wheel, or left to the dynamic loader."""
    if named is not None:
        if not Path(named).is_file():
            raise InputError("there is no such library", where=named, hint=f"the path of a {name}")
        return _FoundLibraries(str(Path(named).absolute()), "named")
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and (Path(folder) / name).is_file():
            return _FoundLibraries(str((Path(folder) / name).absolute()), "LD_LIBRARY_PATH")
    for packages in package_folders():
        for folder in wheel_folders:
            if (packages / folder / name).is_file():
                return _FoundLibraries(str(packages / folder / name), "wheel")
    return _FoundLibraries(name, "system")


def driver_for_mpi(mpi: MpiLibrary, named: str | None, python: str) -> Library:
    """Return the driver of the GPUs that buffers of an MPI can lie on.

    Raises InputError where that MPI was built without CUDA, and where there is no driver that can be used. An MPI that
    does not say how it was built is asked by the ranks.
    """
    built = kernel.built_with_cuda(_built(mpi))
    if built is not None and not built.has_cuda:
        raise InputError(
            f"this {mpi.family} {mpi.version or ''} was built without CUDA: {built.said}".replace("  ", " "),
            where=mpi.mpirun,
            hint="--mpirun of an MPI that was built with CUDA, as HPC-X's",
        )
    driver = _first(named, _DRIVER, ())
    try:
        answer = subprocess.run(
            [python, "-P", "-m", "busbw.rank.gpu_buffers", driver.path],
            capture_output=True,
            text=True,
            timeout=_SURVEY_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"the GPUs do not answer: {error}", hint="does nvidia-smi answer?") from error
    version, _space, _devices = answer.stdout.strip().partition(" ")
    if answer.returncode != 0 or not version.isdecimal():
        said = (answer.stderr.strip() or f"ended with code {answer.returncode}").splitlines()[-1]
        hint = "there is no NVIDIA driver here; leave --gpu-buffers out" if "cannot open" in said else _hint(said)
        raise InputError(f"no GPU for buffers: {said}", where=driver.path, hint=hint)
    number = int(version)
    return Library(path=driver.path, version=f"{number // 1000}.{number % 1000 // 10}", origin=driver.origin)


def _built(mpi: MpiLibrary) -> str:
    """Return what the tool beside an mpirun says of how its MPI was built; "" where there is none."""
    tool = Path(mpi.mpirun).parent / "ompi_info"
    if mpi.family != "Open MPI" or not tool.is_file():
        return ""
    try:
        answer = subprocess.run(
            [str(tool), "--parsable", "--all"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout[:_MAX_BYTES]


def _compilers(named: str | None) -> list[_FoundLibraries]:
    """Return every NVRTC there is, the newest first; without one the host checks results."""
    if named is not None:
        return [] if named == _NONE else [_first(named, "libnvrtc.so", ())]
    found = []
    for major in _NVRTC_MAJORS:
        name = f"libnvrtc.so.{major}"
        one = _first(None, name, ("nvidia/cuda_nvrtc/lib", f"nvidia/cu{major}/lib"))
        # The toolkit's own folder is often not one of the dynamic loader's: its path is given in full.
        places = [Path(folder) / name for folder in _SYSTEM_FOLDERS] if one.origin == "system" else [Path(one.path)]
        found += [_FoundLibraries(str(place), one.origin) for place in places if place.exists()][:1]
    return found


def package_folders() -> Iterator[Path]:
    """Yield the folders of Python packages: of the activated environment first, then of this interpreter."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield from sorted((Path(os.environ[variable]) / "lib").glob("python3*/site-packages"))
    for path in dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path)):
        if path:
            yield Path(path)
