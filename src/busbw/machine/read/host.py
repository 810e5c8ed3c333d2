"""A snapshot into what `busbw probe` says: the hardware, what jobs would load, and what is unusual."""

import re

from busbw.base.cpus import format_cpu_list, parse_cpu_list
from busbw.base.units import format_size
from busbw.machine.read.hardware import hardware_of
from busbw.machine.read.index import SnapshotIndex, number
from busbw.model.host import FoundLibrary, FoundSetting, Hardware, HostGpu, PciFunction, Probe, Snapshot

_SETTING = re.compile(r"\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=(?P<value>.*)")
_CONF_NAMES = ("nccl.conf",)
_FILE_SETTINGS = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")
# NCCL keeps buffers of tens of MiB a GPU there; Docker's default is 64 MiB.
_LEAST_SHARED_BYTES = 2**30
# Registering memory for RDMA locks it.
_LEAST_LOCKED_BYTES = 2**30
_PEER_MODULES = {"nvidia_peermem", "nv_peer_mem"}
_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?) GT/s")


def host_of(snapshot: Snapshot) -> Probe:
    """Return what a snapshot says of its host."""
    index = SnapshotIndex(snapshot)
    hardware = hardware_of(snapshot)
    settings = _settings(snapshot)
    remarks = (
        *_links(hardware),
        *_ports(index, hardware),
        *_named_files(snapshot, settings),
        *_limits(index, hardware),
        *_libraries(snapshot.libraries),
    )
    return Probe(
        captured=snapshot.captured,
        root=snapshot.root,
        anonymous=snapshot.anonymous,
        hardware=hardware,
        libraries=snapshot.libraries,
        settings=settings,
        remarks=remarks,
    )


def _settings(snapshot: Snapshot) -> tuple[FoundSetting, ...]:
    """Return the settings of NCCL's files and of the environment, in the order in which they stand there."""
    found = []
    for file in snapshot.files:
        if file.path.endswith(_CONF_NAMES) and file.text is not None:
            matches = (_SETTING.fullmatch(line) for line in file.text.splitlines())
            found += [
                FoundSetting(name=match["name"], value=match["value"], path=file.path)
                for match in matches
                if match is not None
            ]
    found += [FoundSetting(name=name, value=value) for name, value in sorted(snapshot.environment.items())]
    return tuple(found)


def _links(hardware: Hardware) -> list[str]:
    """Return which links of GPUs and NICs are narrower or slower than both ends could be, and which NVLinks are off."""
    pci = {function.bus_id: function for function in hardware.pci}
    notes = []
    joined = {gpu.name for gpu in hardware.gpus if any(link.active for link in gpu.nvlinks)}
    for gpu in hardware.gpus:
        name = f"GPU {gpu.index} ({gpu.bus_id})"
        # A GPU with links to its own CPU sends nothing over PCIe.
        if not gpu.chip_links and gpu.link_width and gpu.max_link_width and gpu.link_width < gpu.max_link_width:
            notes.append(
                f"{name} has {gpu.link_width} of {gpu.max_link_width} PCIe lanes: its slot has no more, or it is loose"
            )
        notes += _slow_gpu(gpu, name)
        dead = [link.link for link in gpu.nvlinks if not link.active]
        if dead and len(dead) < len(gpu.nvlinks):
            notes.append(f"{name}: NVLink {format_cpu_list(tuple(dead))} of {len(gpu.nvlinks)} inactive")
        elif dead:
            notes.append(f"{name}: none of its {len(dead)} NVLinks is active")
        elif not gpu.nvlinks and gpu.name in joined:
            notes.append(f"{name}: no active NVLink, and other GPUs of its kind have some")
    for address in dict.fromkeys(port.bus_id for port in hardware.ports if port.kind != "Ethernet"):
        function = pci.get(address or "")
        if function is not None:
            notes += _slow_nic(function, next(port.name for port in hardware.ports if port.bus_id == address))
    return notes


def _slow_gpu(gpu: HostGpu, name: str) -> list[str]:
    now, most = gpu.link_generation, gpu.max_link_generation
    if now is None or most is None or now >= most:
        return []
    return [f"{name} runs PCIe generation {now}, and could {most}: normal while idle, look again under load"]


def _slow_nic(function: PciFunction, name: str) -> list[str]:
    notes = []
    width, most = function.link_width, function.max_link_width
    if width is not None and most is not None and width < most:
        notes.append(f"{name} ({function.bus_id}) has {width} of {most} PCIe lanes")
    now, could = (_SPEED.match(speed or "") for speed in (function.link_speed, function.max_link_speed))
    if now is not None and could is not None and float(now[1]) < float(could[1]):
        notes.append(f"{name} ({function.bus_id}) runs at {now[0]} a lane, and could at {could[0]}")
    return notes


def _ports(index: SnapshotIndex, hardware: Hardware) -> list[str]:
    fast = [port for port in hardware.ports if port.kind != "Ethernet"]
    notes = [f"{port.name} port {port.port} is down" for port in fast if port.up is False]
    rdma = [port for port in fast if port.kind != "Slingshot"]
    listed = index.answer("ls-infiniband")
    if rdma and listed is not None and "uverbs" not in listed.output:
        notes.append("RDMA devices, but none under /dev/infiniband: programs here cannot use them")
    modules = {line.split()[0] for line in (index.text("/proc/modules") or "").splitlines() if line.split()}
    if hardware.gpus and rdma and "nvidia" in modules and not modules & _PEER_MODULES:
        notes.append("no nvidia_peermem: GPUDirect RDMA works through DMA-BUF only (NCCL 2.13 and later, open driver)")
    return notes


def _named_files(snapshot: Snapshot, settings: tuple[FoundSetting, ...]) -> list[str]:
    notes = []
    files = {file.path: file for file in snapshot.files}
    for setting in settings:
        value = setting.value.strip()
        if setting.name not in _FILE_SETTINGS or not value.startswith("/"):
            continue
        file = files.get(value)
        where = f" ({setting.path})" if setting.path is not None else ""
        if file is None:
            notes.append(f'{setting.name} = "{value}"{where}: no such file here, which NCCL mentions at INFO only')
        elif file.text is None:
            notes.append(f'{setting.name} = "{value}"{where}: {file.reason or "cannot be read"}')
    if snapshot.container is not None and "/etc/nccl.conf" not in files:
        notes.append(f"a container ({snapshot.container}) without /etc/nccl.conf: settings of its host do not reach it")
    return notes


def _limits(index: SnapshotIndex, hardware: Hardware) -> list[str]:
    notes = []
    row = next((line.split() for line in reversed(index.output("df-shm").splitlines())), [])
    blocks = number(row[1]) if len(row) > 1 else None
    if blocks is not None and blocks * 1024 < _LEAST_SHARED_BYTES and hardware.gpus:
        size = format_size(blocks * 1024)
        notes.append(f"shared memory has {size}: NCCL may find no room in it; docker run --shm-size=8g")
    locked = next(
        (line.split() for line in (index.text("/proc/self/limits") or "").splitlines() if "locked" in line), []
    )
    most = number(locked[3]) if len(locked) > 3 else None
    if most is not None and most < _LEAST_LOCKED_BYTES and any(port.kind != "Ethernet" for port in hardware.ports):
        notes.append(f"locked memory is limited to {format_size(most)}: RDMA needs it unlimited (ulimit -l)")
    status = index.text("/proc/self/status") or ""
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    cpus = parse_cpu_list(allowed[1]) if allowed is not None else None
    if cpus and hardware.cpus and set(hardware.cpus) - set(cpus):
        notes.append(f"this process may use CPUs {format_cpu_list(cpus)} of {format_cpu_list(hardware.cpus)} only")
    return notes


def _libraries(libraries: tuple[FoundLibrary, ...]) -> list[str]:
    versions = dict.fromkeys(one.version for one in libraries if one.name == "libnccl" and one.version is not None)
    if len(versions) < 2:
        return []
    return [f"{len(versions)} versions of NCCL here ({', '.join(versions)}): the first in the search order is loaded"]
