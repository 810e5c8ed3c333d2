"""The door to the whole machine: one call captures everything that understanding it needs."""

import datetime as dt
import os
import re
import socket
import sys
from pathlib import Path

import msgspec

from busbw import __version__
from busbw.facts.port_counters import names_of
from busbw.machine.capture import anonymous as names
from busbw.machine.capture import host, metadata
from busbw.machine.capture.environment import environment, take_settings
from busbw.machine.capture.files import Collection, ask
from busbw.machine.capture.libraries import libraries
from busbw.machine.read.commands import COMMANDS, FILES, noise_command, statistics_command
from busbw.machine.read.index import SnapshotIndex
from busbw.machine.read.network import KEY_PLACES
from busbw.machine.read.pci import acs_of, pci_functions, ports
from busbw.model.host import Answer, HostPort, Snapshot

_PCI = "/sys/bus/pci/devices"
_RDMA = "/sys/class/infiniband"
_BRIDGE = "0x0604"
# Displays, processing accelerators and networks: what sends to another device.
_SENDERS = ("0x03", "0x12", "0x02")
_MOST_PORTS = 16
# Of Slingshot's retry handler.
_RETRIES = "rh:"


def take_state(taken: Collection) -> None:
    """Take settings of the kernel, error counters of RDMA ports, and what IOMMU and ACS do to devices."""
    taken.file("/proc/sys/kernel/numa_balancing")
    taken.file("/proc/uptime")
    for bus_id in taken.names(_PCI):
        _function(taken, f"{_PCI}/{bus_id}")
    take_counters(taken)


def take_counters(taken: Collection) -> None:
    """Take the counters of network ports: what is known of each is in data/port_counters.toml."""
    for device in taken.names(_RDMA):
        for port in taken.names(f"{_RDMA}/{device}/ports")[:_MOST_PORTS]:
            for folder in ("counters", "hw_counters"):
                at = f"{_RDMA}/{device}/ports/{port}/{folder}"
                here = set(taken.names(at))
                taken.under(at, tuple(name for name in names_of("rdma") if name in here))
    telemetry = tuple(name for name in names_of("cxi") if not name.startswith(_RETRIES))
    retries = tuple(name.removeprefix(_RETRIES) for name in names_of("cxi") if name.startswith(_RETRIES))
    for device in taken.names("/sys/class/cxi"):
        taken.under(f"/sys/class/cxi/{device}/device/telemetry", telemetry)
        taken.under(f"/run/cxi/{device}", retries)
    for name in taken.names("/sys/class/net"):
        # Bridges, tunnels and pairs of containers have no device below them.
        if taken.names(f"/sys/class/net/{name}/device"):
            taken.file(f"/sys/class/net/{name}/carrier_changes")
            at = f"/sys/class/net/{name}/statistics"
            here = set(taken.names(at))
            taken.under(at, tuple(name for name in names_of("net") if name in here))


def _function(taken: Collection, folder: str) -> None:
    device_class = taken.file(f"{folder}/class") or ""
    if device_class.startswith(_BRIDGE):
        # All of it would hold serial numbers.
        taken.binary(f"{folder}/config", keep=acs_of)
    elif device_class.startswith(_SENDERS):
        group = taken.link(f"{folder}/iommu_group")
        if group is not None:
            taken.file(f"/sys/kernel/iommu_groups/{group.rpartition('/')[2]}/type")


_PCI_FILES = (
    "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "numa_node", "local_cpulist",
    "current_link_speed", "current_link_width", "max_link_speed", "max_link_width",
)  # fmt: skip
_VIRTUAL_FILES = ("sriov_totalvfs", "sriov_numvfs")
_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node"
# Serial numbers and UUIDs are left where they are.
_DMI_FILES = (
    "sys_vendor", "product_name", "product_family", "product_version", "product_sku", "board_vendor", "board_name",
    "board_version", "board_asset_tag", "chassis_vendor", "chassis_type", "chassis_version", "chassis_asset_tag",
    "bios_vendor", "bios_version", "bios_date",
)  # fmt: skip
_RDMA_FILES = ("node_guid", "sys_image_guid", "node_type", "fw_ver", "hca_type", "board_id")
_PORT_FILES = ("state", "phys_state", "rate", "link_layer", "lid", "gid_attrs/ndevs/0")
# A port of RoCE has v1 and v2 of each address; the first few say which are there.
_GID_TYPES = tuple(f"gid_attrs/types/{place}" for place in range(4))
_KEYS = tuple(f"pkeys/{place}" for place in range(KEY_PLACES))
_NET_FILES = ("speed", "mtu", "operstate", "type", "dev_port")
_MODULES = re.compile(
    r"nvidia\w*|nv_peer_mem|gdrdrv|mlx\d\w*|ib_\w+|rdma_\w+|efa|irdma|bnxt\w*|cxi\w*|amdgpu|gve|mana\w*"
)
_BOOT_WORD = re.compile(
    r"(?:iommu|intel_iommu|amd_iommu|iommu\.\w+|pci|pcie_\w+|numa\w*|isolcpus|nohz_full|default_hugepagesz|hugepages\w*"
    r"|transparent_hugepage|numa_balancing)(?:=[\w.:,@+-]*)?"
)
_LARGE_BYTES = 8 * 2**20
_PORTS_S = 5.0


def take_kernel(taken: Collection) -> None:
    """Take everything that the kernel shows."""
    _pci(taken)
    _processors(taken)
    taken.under("/sys/class/dmi/id", _DMI_FILES)
    _rdma(taken)
    _interfaces(taken)
    _gpus(taken)
    _system(taken)


def _pci(taken: Collection) -> None:
    for bus_id in taken.names(_PCI):
        taken.link(f"{_PCI}/{bus_id}")
        taken.link(f"{_PCI}/{bus_id}/driver")
        taken.link(f"{_PCI}/{bus_id}/physfn")
        taken.under(f"{_PCI}/{bus_id}", _PCI_FILES + _VIRTUAL_FILES)


def network_ports(root: Path = Path("/")) -> tuple[HostPort, ...]:
    """Return the ports of this host's network devices, from the kernel's files alone."""
    taken = Collection(root, timeout_s=_PORTS_S)
    _pci(taken)
    _rdma(taken)
    _interfaces(taken)
    index = SnapshotIndex(
        Snapshot(
            busbw_version=__version__,
            captured="",
            hostname=socket.gethostname(),
            root=os.geteuid() == 0,
            files=taken.files,
            links=taken.links,
        )
    )
    functions = {each.bus_id: each for each in pci_functions(index)}
    return ports(index, functions)


def _processors(taken: Collection) -> None:
    taken.under(_CPU, ("online", "possible", "isolated", "smt/active"))
    for name in taken.names(_CPU):
        if re.fullmatch(r"cpu\d+", name):
            topology = ("physical_package_id", "thread_siblings_list")
            taken.under(f"{_CPU}/{name}/topology", topology)
    taken.under(f"{_CPU}/cpu0/cpufreq", ("scaling_governor",))
    taken.under(_NODE, ("online", "has_cpu"))
    for name in taken.names(_NODE):
        if re.fullmatch(r"node\d+", name):
            taken.under(f"{_NODE}/{name}", ("cpulist", "distance"))
            taken.file(f"{_NODE}/{name}/meminfo", keep=_total)
    taken.file("/proc/cpuinfo", keep=_first_processor, most_bytes=_LARGE_BYTES)
    taken.file("/proc/meminfo")


def _rdma(taken: Collection) -> None:
    for device in taken.names(_RDMA):
        folder = f"{_RDMA}/{device}"
        taken.link(folder)
        taken.link(f"{folder}/device")
        taken.under(folder, _RDMA_FILES)
        for port in taken.names(f"{folder}/ports")[:_MOST_PORTS]:
            taken.under(f"{folder}/ports/{port}", _PORT_FILES + _GID_TYPES + _KEYS)
    for device in taken.names("/sys/class/cxi"):
        taken.link(f"/sys/class/cxi/{device}")
        taken.link(f"/sys/class/cxi/{device}/device")


def _interfaces(taken: Collection) -> None:
    for name in taken.names("/sys/class/net"):
        # Bridges, tunnels and pairs of containers have no device below them.
        if taken.names(f"/sys/class/net/{name}/device"):
            taken.link(f"/sys/class/net/{name}")
            taken.link(f"/sys/class/net/{name}/device")
            taken.under(f"/sys/class/net/{name}", _NET_FILES)


def _gpus(taken: Collection) -> None:
    taken.file("/proc/driver/nvidia/version")
    for bus_id in taken.names("/proc/driver/nvidia/gpus"):
        taken.file(f"/proc/driver/nvidia/gpus/{bus_id}/information")
    for module in ("nvidia", "gdrdrv", "efa", "nvidia_peermem", "nv_peer_mem", "amdgpu", "mlx5_core"):
        taken.file(f"/sys/module/{module}/version")


def _system(taken: Collection) -> None:
    taken.file("/etc/os-release")
    taken.file("/proc/sys/kernel/arch")
    taken.file("/sys/hypervisor/type")
    taken.file("/proc/cmdline", keep=_boot_words)
    taken.file("/proc/modules", keep=_modules, most_bytes=_LARGE_BYTES)
    taken.file("/proc/self/status", keep=_allowed)
    taken.file("/proc/self/limits", keep=lambda text: _lines(text, ("Limit", "Max locked memory", "Max open files")))
    taken.under("/sys/fs/cgroup", ("cpuset.cpus.effective", "cpuset.mems.effective", "devices/devices.list"))
    for name in taken.names("/sys/class/iommu"):
        taken.link(f"/sys/class/iommu/{name}")


def _total(text: str) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if "MemTotal" in line)


def _first_processor(text: str) -> str:
    """Return the first processor's lines: the others differ in nothing that is read."""
    first = text.lstrip("\n").split("\n\n", maxsplit=1)[0]
    return "".join(f"{line}\n" for line in first.splitlines() if not line.lower().startswith("serial"))


def _boot_words(text: str) -> str:
    """Return the words of the kernel's command line that are about PCI, NUMA and memory; others may be secret."""
    return " ".join(word for word in text.split() if _BOOT_WORD.fullmatch(word)) + "\n"


def _modules(text: str) -> str:
    """Return the modules of GPUs and NICs: name, size, uses."""
    rows = (line.split()[:3] for line in text.splitlines())
    return "".join(f"{' '.join(row)}\n" for row in rows if row and _MODULES.fullmatch(row[0]))


def _allowed(text: str) -> str:
    return _lines(text, ("Cpus_allowed", "Mems_allowed"))


def _lines(text: str, beginnings: tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if line.startswith(beginnings))


_FILES_TIMEOUT_S = 30.0
# Some hundred files, each a question to the firmware of its adapter.
_COUNTERS_TIMEOUT_S = 5.0
_LIBRARIES_TIMEOUT_S = 15.0
_COMMANDS_TIMEOUT_S = 60.0
_DMI = "/sys/class/dmi/id/"


def capture() -> Snapshot:
    """Return this host as it is now, within about 100 seconds; what cannot be had is recorded as such.

    The cloud's metadata service is asked for the kind of machine, for at most a second.
    """
    hardware = capture_hardware()
    return msgspec.structs.replace(
        hardware,
        answers=(*hardware.answers, *metadata.answers(_dmi(hardware))),
        environment=environment(),
        libraries=libraries(timeout_s=_LIBRARIES_TIMEOUT_S),
    )


def capture_hardware() -> Snapshot:
    """Return this host without what jobs would load and be set to, and without asking anybody else about it."""
    taken = Collection(Path("/"), timeout_s=_FILES_TIMEOUT_S)
    take_settings(taken)
    take_kernel(taken)
    take_state(taken)
    return Snapshot(
        busbw_version=__version__,
        captured=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        hostname=socket.gethostname(),
        root=os.geteuid() == 0,
        container=host.container(),
        files=taken.files,
        links=taken.links,
        answers=(*_cut(taken), *ask(COMMANDS, total_s=_COMMANDS_TIMEOUT_S)),
    )


def capture_counters() -> Snapshot:
    """Return the counters of this host's network ports, and nothing else."""
    taken = Collection(Path("/"), timeout_s=_COUNTERS_TIMEOUT_S)
    taken.file("/proc/uptime")
    take_counters(taken)
    return Snapshot(
        busbw_version=__version__,
        captured=dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"),
        hostname=socket.gethostname(),
        root=os.geteuid() == 0,
        container=host.container(),
        files=taken.files,
        links=taken.links,
        answers=(*_cut(taken), *ask((statistics_command(sys.executable),), total_s=_COUNTERS_TIMEOUT_S)),
    )


def capture_noise(seconds: float) -> Answer:
    """Return what fixed work takes on every CPU of this host. Nothing else may be asked meanwhile: that is noise."""
    command = noise_command(sys.executable, seconds)
    (answer,) = ask((command,), total_s=command.timeout_s)
    return answer


def capture_anonymously() -> Snapshot:
    """Return this host as `capture` does, with names, serial numbers and addresses replaced by stable placeholders."""
    return names.anonymous(capture(), user=names.user())


def _cut(taken: Collection) -> tuple[Answer, ...]:
    """Return what says that not all files were taken; nothing where they were."""
    if not taken.is_full:
        return ()
    return (Answer(name=FILES, argv=(), ended="cut", error=f"stopped after {len(taken.files)} files"),)


def _dmi(snapshot: Snapshot) -> dict[str, str]:
    texts = ((file.path, file.text) for file in snapshot.files if file.path.startswith(_DMI))
    return {path.removeprefix(_DMI): text.strip() for path, text in texts if text is not None}
