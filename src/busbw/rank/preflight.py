"""Before anything is measured on several hosts: what each is like, and whether they may be measured together."""

import hashlib
import os
import pwd
import re
import resource
import secrets
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from busbw import __version__
from busbw.base import layout
from busbw.base.cpus import parse_cpu_list
from busbw.model import codec
from busbw.model.plan import Plan
from busbw.model.preflight import differences, is_setting, sentences, troubles
from busbw.model.record import GpuHello, Hello, LoadedLibrary, Node, NodeLimit, NodePort
from busbw.model.settings import kept
from busbw.rank.admission import refuse
from busbw.rank.world import World

_MOST_BYTES = 64 * 2**10
# Of a library: NCCL's has several hundred MiB, and its build number is among the first.
_ENDS_BYTES = 2**20
_DIGITS = 16
# What decides how bytes get from rank to rank.
_LIBRARIES = re.compile(
    r"lib(?:mpi|nccl|rccl|cuda|ucp|uct|fabric|pmix|hcoll|ucc|psm2|psm3|cxi|efa|ibverbs)(?:-[a-z0-9_-]{1,40})?\.so[.\w]*"
)
_PLUGIN = "libnccl-net.so"
_PLUGIN_FOLDERS = (
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
)
_VERSION = re.compile(r"\.so\.(\d[\d.]*)$")
_LIMITS = {"memlock": resource.RLIMIT_MEMLOCK, "nofile": resource.RLIMIT_NOFILE, "stack": resource.RLIMIT_STACK}
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - looked at, not written to
# Version 2 of control groups has none in its name.
_CPU_CONTROLLERS = ("", "cpu", "cpu,cpuacct", "cpuacct,cpu")
_NVIDIA, _DISPLAY = "0x10de", "0x03"


def describe_node(world: World, gpu: GpuHello | None, *, sees_directory: bool) -> Node:
    """Return this host as this process finds it; `gpu` is the first of its GPUs."""
    system, memory = os.uname(), _meminfo()
    shared = os.statvfs(_SHARED_MEMORY) if Path(_SHARED_MEMORY).is_dir() else None
    return Node(
        rank=world.rank,
        ranks=1,
        host=socket.gethostname(),
        boot_id=_text("/proc/sys/kernel/random/boot_id"),
        kernel=f"{system.sysname} {system.release} {system.machine}",
        cpu_model=_cpu_model(),
        cpus=len(parse_cpu_list(_text("/sys/devices/system/cpu/online") or "") or ()) or os.cpu_count() or 0,
        threads_per_core=_threads_per_core(),
        numa_nodes=len(parse_cpu_list(_text("/sys/devices/system/node/online") or "0") or (0,)),
        memory_bytes=memory.get("MemTotal", 0),
        memory_available_bytes=memory.get("MemAvailable", 0),
        cpu_quota=_cpu_quota(),
        governor=_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        numa_balancing=_number("/proc/sys/kernel/numa_balancing"),
        busbw=__version__,
        busbw_fingerprint=_own_fingerprint(),
        python=sys.version.split(maxsplit=1)[0],
        mpi4py=getattr(sys.modules.get("mpi4py"), "__version__", None),
        mpi=world.version,
        libraries=tuple(_libraries(world, gpu)),
        environment=kept(f"{name}={value}" for name, value in os.environ.items() if is_setting(name))[0],
        settings_files=tuple(_settings_files()),
        limits=tuple(_limit(name, kind) for name, kind in _LIMITS.items()),
        shared_memory_bytes=shared.f_blocks * shared.f_frsize if shared is not None else 0,
        shared_memory_free_bytes=shared.f_bavail * shared.f_frsize if shared is not None else 0,
        gpus=tuple(_gpus()),
        cuda_devices=gpu.visible if gpu is not None else None,
        gpu_free_bytes=gpu.free_bytes if gpu is not None else None,
        ports=(*_rdma_ports(), *_interfaces()),
        unix_s=time.time(),
        sees_directory=sees_directory,
    )


def _text(path: str | Path) -> str | None:
    """Return the first 64 KiB of a file of the kernel, without white space around; None where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return None


def _number(path: str | Path) -> int | None:
    text = _text(path) or ""
    return int(text) if text.isdecimal() and len(text) < _DIGITS else None


def _names(folder: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - names are all that is wanted
    except OSError:
        return ()


def _meminfo() -> dict[str, int]:
    found = re.findall(r"^(\w+):\s+(\d{1,15}) kB$", _text("/proc/meminfo") or "", re.MULTILINE)
    return {name: int(size) * 1024 for name, size in found}


def _cpu_model() -> str | None:
    found = re.search(r"^(?:model name|Processor|cpu)\s*:\s*(.+)$", _text("/proc/cpuinfo") or "", re.MULTILINE)
    return found[1].strip() if found is not None else None


def _threads_per_core() -> int | None:
    siblings = _text("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    return len(parse_cpu_list(siblings) or ()) or None if siblings is not None else None


def _cpu_quota() -> float | None:
    """Return the least limit of the control groups that this process is in, version 2 or 1; None without one."""
    quotas: list[float] = []
    for line in (_text("/proc/self/cgroup") or "").splitlines():
        _hierarchy, _colon, rest = line.partition(":")
        controllers, _colon, path = rest.partition(":")
        if controllers not in _CPU_CONTROLLERS:
            continue
        group = Path("/sys/fs/cgroup", controllers, path.lstrip("/"))
        for folder in (group, *group.parents):
            if folder.is_relative_to("/sys/fs/cgroup"):
                quotas.extend(_quota(folder))
    return min(quotas, default=None)


def _quota(group: Path) -> Iterator[float]:
    both = (_text(group / "cpu.cfs_quota_us") or "", _text(group / "cpu.cfs_period_us") or "")
    words = (_text(group / "cpu.max") or " ".join(both)).split()
    if len(words) == len(both) and all(word.isdecimal() for word in words) and int(words[1]):
        yield int(words[0]) / int(words[1])


def _own_fingerprint() -> str:
    """Return a fingerprint of the files of busbw that this process has loaded."""
    digest = hashlib.sha256()
    for name in sorted(name for name in sys.modules if name == "busbw" or name.startswith("busbw.")):
        path = getattr(sys.modules[name], "__file__", None)
        if path is not None:
            digest.update(name.encode() + b"\0" + Path(path).read_bytes())
    return digest.hexdigest()[:_DIGITS]


def _libraries(world: World, gpu: GpuHello | None) -> Iterator[LoadedLibrary]:
    known = {"libmpi": world.version if world.library else None}
    if gpu is not None:
        known |= {"libnccl": gpu.nccl, "libcuda": f"{gpu.driver // 1000}.{gpu.driver % 1000 // 10}"}
    paths = {world.library, gpu.nccl_path if gpu is not None else "", gpu.driver_path if gpu is not None else ""}
    maps = _whole("/proc/self/maps")
    paths |= {line.split(maxsplit=5)[5] for line in maps.splitlines() if len(line.split(maxsplit=5)) > 5}
    found: dict[str, LoadedLibrary] = {}
    for path in sorted(path for path in paths if _LIBRARIES.fullmatch(os.path.basename(path))):  # noqa: PTH119
        name = Path(path).name.partition(".so")[0]
        if name not in found and (fingerprint := _fingerprint(path)) is not None:
            version = known.get(name) or _file_version(path)
            found[name] = LoadedLibrary(name=name, path=path, version=version, fingerprint=fingerprint)
    if gpu is not None and "libnccl-net" not in found:
        yield from _plugin()
    yield from found.values()


def _plugin() -> Iterator[LoadedLibrary]:
    """Yield the network plug-in that NCCL would load by its usual name; it does so when ranks join."""
    searched = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder.startswith("/")]
    for folder in (*searched, *_PLUGIN_FOLDERS):
        path = os.path.join(folder, _PLUGIN)  # noqa: PTH118 - as the loader joins them
        if (fingerprint := _fingerprint(path)) is not None:
            yield LoadedLibrary(name="libnccl-net", path=path, version=_file_version(path), fingerprint=fingerprint)
            return


def _file_version(path: str) -> str | None:
    match = _VERSION.search(os.path.realpath(path))
    return match[1] if match is not None else None


def _whole(path: str) -> str:
    """Return a file of the kernel of any length."""
    try:
        return Path(path).read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _fingerprint(path: str) -> str | None:
    """Return a fingerprint of a file's size, beginning and end; None where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            digest = hashlib.sha256(f"{size_bytes}\0".encode() + file.read(_ENDS_BYTES))
            file.seek(max(size_bytes - _ENDS_BYTES, 0))
            digest.update(file.read(_ENDS_BYTES))
    except (OSError, ValueError):
        return None
    return digest.hexdigest()[:_DIGITS]


def _settings_files() -> Iterator[tuple[str, str]]:
    """Yield NCCL's settings files, wherever some version looks for them, with a fingerprint of each."""
    try:
        account = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        account = ""
    homes = [f"{home}/.nccl.conf" for home in (os.environ.get("HOME", ""), account)]
    for path in dict.fromkeys((os.environ.get("NCCL_CONF_FILE", ""), *homes, "/etc/nccl.conf")):
        if path.startswith("/") and Path(path).is_file() and (fingerprint := _fingerprint(path)) is not None:
            yield path, fingerprint


def _limit(name: str, kind: int) -> NodeLimit:
    soft = resource.getrlimit(kind)[0]
    return NodeLimit(name=name, most=None if soft == resource.RLIM_INFINITY else soft)


def _gpus() -> Iterator[str]:
    for bus_id in _names("/sys/bus/pci/devices"):
        folder = f"/sys/bus/pci/devices/{bus_id}"
        if _text(f"{folder}/vendor") == _NVIDIA and (_text(f"{folder}/class") or "").startswith(_DISPLAY):
            yield bus_id


def _rdma_ports() -> Iterator[NodePort]:
    for device in _names("/sys/class/infiniband"):
        for port in _names(f"/sys/class/infiniband/{device}/ports"):
            folder = f"/sys/class/infiniband/{device}/ports/{port}"
            state = _text(f"{folder}/state")
            up = state.endswith("ACTIVE") if state is not None else None
            yield NodePort(name=f"{device}/{port}", up=up, rate=_text(f"{folder}/rate"))


def _interfaces() -> Iterator[NodePort]:
    """Yield the network interfaces that are devices; bridges, tunnels and the like are none."""
    for name in _names("/sys/class/net"):
        folder = f"/sys/class/net/{name}"
        if not Path(folder, "device").exists():
            continue
        state = _text(f"{folder}/operstate")
        speed = _text(f"{folder}/speed")
        # Virtual devices and those without a link say -1.
        rate = f"{speed} Mbit/s" if speed is not None and speed.isdecimal() else None
        yield NodePort(name=name, up=None if state in (None, "unknown") else state == "up", rate=rate)


_TOKEN_BYTES = 16
# A shared file system may take this long to show one host what another wrote; NFS keeps what it knows of a folder for
# up to a minute, but asks again for a file that it has not seen.
_SEEN_WITHIN_S = 10.0
_LOOK_AGAIN_S = 0.1
# What NCCL registers of its own for each connection over InfiniBand, beside buffers of GPUs, which count nowhere:
# NCCL_BUFFSIZE, 4 MiB by default.
_NCCL_LOCKED_BYTES = 4 * 2**20


def inspect_nodes(world: World, hellos: Sequence[Hello], raw: Path) -> tuple[Node, ...]:
    """Return every host of the run, on rank 0; () elsewhere. Every rank calls this."""
    sees_directory = _sees_directory(world, raw / layout.SEEN_FILE)
    gpus = [hello.gpu for hello in hellos if hello.gpu is not None]
    mine = b""
    if world.local_rank == 0:
        node = describe_node(world, gpus[0] if gpus else None, sees_directory=sees_directory)
        mine = codec.encode(node)
    free_bytes = world.from_each(min((gpu.free_bytes for gpu in gpus), default=-1))
    parts = world.to_first(mine)
    if world.rank != 0:
        return ()
    return _together([codec.decode(part, Node, where="a rank") for part in parts if part], world.ranks, free_bytes)


def admit(plan: Plan, world: World, nodes: Sequence[Node]) -> None:
    """Go on where the hosts may be measured together. Every rank calls this; rank 0 has the hosts.

    Raises RuntimeError on rank 0 where they may not, while the others wait to be ended.
    """
    words = _refusal(plan, nodes) if world.rank == 0 else ""
    if not world.from_first([len(words)])[0]:
        return
    if world.rank == 0:
        refuse(words)
        raise RuntimeError(words)
    world.barrier()


def _refusal(plan: Plan, nodes: Sequence[Node]) -> str:
    """Return why these hosts are not measured together; empty where they are."""
    together = max(plan.placement.ranks_of_hosts or (plan.placement.ranks,))
    locked = _NCCL_LOCKED_BYTES if plan.gpu_setup is not None else plan.memory.buffers_bytes // together
    found = list(troubles(nodes, hosts=len(plan.placement.hosts), locked_bytes=locked))
    stopping = [difference for difference in differences(nodes) if difference.stops]
    if stopping and not plan.allow_mixed:
        found.append(f"{sentences(stopping)} (--allow-mixed measures them all the same, and marks the run)")
    return "; ".join(found)


def _together(nodes: Sequence[Node], processes: int, free_bytes: Sequence[int]) -> tuple[Node, ...]:
    """Return nodes in the order of their ranks, each host once, with what all of its ranks know."""
    ordered = sorted(nodes, key=lambda node: node.rank)
    ends = [*(node.rank for node in ordered[1:]), processes]
    hosts: dict[tuple[str, str | None], Node] = {}
    for node, end in zip(ordered, ends, strict=True):
        # Ranks in containers of their own do not share memory, and each calls itself the first of its host.
        known = hosts.get((node.host, node.boot_id))
        free = [known.gpu_free_bytes] if known is not None else []
        least = min(
            (one for one in (*free, *free_bytes[node.rank : end]) if one is not None and one >= 0), default=None
        )
        count = end - node.rank + (known.ranks if known is not None else 0)
        kept = known if known is not None else node
        hosts[node.host, node.boot_id] = msgspec.structs.replace(kept, ranks=count, gpu_free_bytes=least)
    return tuple(hosts.values())


def _sees_directory(world: World, path: Path) -> bool:
    """Whether this process reads what rank 0 has just written into the run directory."""
    if world.rank == 0:
        written = secrets.token_hex(_TOKEN_BYTES // 2).encode()
        path.write_bytes(written)
    else:
        written = bytes(_TOKEN_BYTES)
    expected = world.bytes_from_first(written)
    if world.local_rank != 0:
        return True
    ends_s = time.monotonic() + _SEEN_WITHIN_S
    while True:
        try:
            if path.read_bytes() == expected:
                return True
        except OSError:
            pass
        if time.monotonic() > ends_s:
            return False
        time.sleep(_LOOK_AGAIN_S)
