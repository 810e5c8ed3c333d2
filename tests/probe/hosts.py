"""Synthetic snapshots: what a machine of a described kind would be captured as. None of them was captured anywhere.

`snapshot_of(MACHINES["azure-nd-h100-v5"])` (see machines.py) is a Snapshot with the files, links and answers that
`busbw probe` would take. A test that needs another machine builds a Machine, or changes one with dataclasses.replace.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from busbw.base.cpus import format_cpu_list, parse_cpu_list
from busbw.machine.read.commands import COMMANDS
from busbw.model.host import Answer, CapturedFile, CapturedLink, FoundLibrary, Snapshot

GEN3, GEN4, GEN5 = "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe"


@dataclass(frozen=True, kw_only=True)
class Function:
    """One PCI function; `above` are the bridges over it, the outermost first."""

    bus_id: str
    above: tuple[str, ...] = ()
    numa: int = -1
    device_class: str = "0x060400"
    vendor: str = "0x1000"
    device: str = "0xc030"
    subsystem: tuple[str, str] = ("0x0000", "0x0000")
    driver: str | None = None
    speed: str = "Unknown"
    width: int = 0
    max_speed: str | None = None
    max_width: int | None = None


@dataclass(frozen=True, kw_only=True)
class Gpu(Function):
    """One GPU; `targets` are the far ends of its NVLinks, None for those that are hidden."""

    device_class: str = "0x030200"
    vendor: str = "0x10de"
    driver: str | None = "nvidia"
    name: str = "NVIDIA H100 80GB HBM3"
    sm: int = 90
    memory_mebibytes: int = 81559
    targets: tuple[str | None, ...] = (None,) * 18
    link_gigabytes: float = 26.562
    chip_links: int = 0
    mig: bool = False


@dataclass(frozen=True, kw_only=True)
class Nic(Function):
    """One port. `name` is its RDMA device's, None for a plain interface; `device_path` is below its function."""

    device_class: str = "0x020000"
    vendor: str = "0x15b3"
    driver: str | None = "mlx5_core"
    name: str | None = None
    interface: str | None = None
    # InfiniBand, RoCE, EFA, Slingshot, Ethernet.
    kind: str = "InfiniBand"
    rate_gigabits: int | None = None
    guid: str = "0000:0000:0000:0000"
    up: bool = True
    mtu: int = 1500
    device_path: str = ""


@dataclass(frozen=True, kw_only=True)
class Numa:
    """One NUMA node; `cpus` is a kernel list, empty for the memory of a GPU."""

    id: int
    cpus: str
    memory_gibibytes: int = 64


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine in short; `pci_root` is what stands before a function's own path in sysfs."""

    name: str
    vendor: str = "GenuineIntel"
    family: int = 6
    model: int = 143
    cpu: str = "Intel(R) Xeon(R) Platinum 8480C"
    architecture: str = "x86_64"
    sockets: int = 2
    threads_per_core: int = 1
    hypervisor: str | None = None
    dmi: dict[str, str] = field(default_factory=dict)
    numa: tuple[Numa, ...] = ()
    functions: tuple[Function, ...] = ()
    nvidia_driver: str = "550.54.15"
    environment: dict[str, str] = field(default_factory=dict)
    more_files: dict[str, str] = field(default_factory=dict)
    more_answers: dict[str, str] = field(default_factory=dict)
    libraries: tuple[FoundLibrary, ...] = ()
    container: str | None = None

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        found = [function for function in self.functions if isinstance(function, Gpu)]
        return tuple(sorted(found, key=lambda gpu: (int(gpu.bus_id.partition(":")[0], 16), gpu.bus_id)))

    @property
    def nics(self) -> tuple[Nic, ...]:
        return tuple(function for function in self.functions if isinstance(function, Nic))


def snapshot_of(machine: Machine) -> Snapshot:
    """Return what `busbw probe` would capture on a machine."""
    files = {**dict(_processor_files(machine)), **dict(_pci_files(machine)), **dict(_nic_files(machine))}
    files |= {f"/sys/class/dmi/id/{name}": f"{value}\n" for name, value in machine.dmi.items()} | machine.more_files
    links = dict(_links(machine))
    return Snapshot(
        busbw_version="0.1.0",
        captured="2026-11-21T12:00:00+00:00",
        hostname=machine.name,
        root=False,
        container=machine.container,
        files=tuple(CapturedFile(path=path, text=files[path]) for path in sorted(files)),
        links=tuple(CapturedLink(path=path, target=links[path]) for path in sorted(links)),
        answers=_answers(machine),
        environment=machine.environment,
        libraries=machine.libraries,
    )


def _processor_files(machine: Machine) -> Iterator[tuple[str, str]]:
    cpus = sorted({cpu for node in machine.numa for cpu in parse_cpu_list(node.cpus) or ()})
    kibibytes = sum(node.memory_gibibytes for node in machine.numa) * 2**20
    yield "/sys/devices/system/cpu/online", f"{format_cpu_list(tuple(cpus))}\n"
    yield "/proc/meminfo", f"MemTotal:       {kibibytes} kB\nMemFree:        1024 kB\n"
    if machine.architecture == "x86_64":
        flags = "fpu sse2 hypervisor avx2" if machine.hypervisor else "fpu sse2 avx2"
        numbers = f"cpu family\t: {machine.family}\nmodel\t\t: {machine.model}\nmodel name\t: {machine.cpu}\n"
        yield "/proc/cpuinfo", f"processor\t: 0\nvendor_id\t: {machine.vendor}\n{numbers}flags\t\t: {flags}\n"
    else:
        yield "/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"
    cores = len(cpus) // machine.threads_per_core
    for place, cpu in enumerate(cpus):
        siblings = tuple(cpus[place % cores + cores * thread] for thread in range(machine.threads_per_core))
        package = place % cores * machine.sockets // cores
        yield f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", f"{format_cpu_list(siblings)}\n"
        yield f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", f"{package}\n"
    for node in machine.numa:
        distances = " ".join("10" if other.id == node.id else "21" for other in machine.numa)
        folder = f"/sys/devices/system/node/node{node.id}"
        yield f"{folder}/cpulist", f"{node.cpus}\n"
        yield f"{folder}/distance", f"{distances}\n"
        yield f"{folder}/meminfo", f"Node {node.id} MemTotal:       {node.memory_gibibytes * 2**20} kB\n"


def _pci_files(machine: Machine) -> Iterator[tuple[str, str]]:
    cpus = {node.id: node.cpus for node in machine.numa}
    for one in machine.functions:
        folder = f"/sys/bus/pci/devices/{one.bus_id}"
        yield f"{folder}/class", f"{one.device_class}\n"
        yield f"{folder}/vendor", f"{one.vendor}\n"
        yield f"{folder}/device", f"{one.device}\n"
        yield f"{folder}/subsystem_vendor", f"{one.subsystem[0]}\n"
        yield f"{folder}/subsystem_device", f"{one.subsystem[1]}\n"
        yield f"{folder}/numa_node", f"{one.numa}\n"
        yield f"{folder}/local_cpulist", f"{cpus.get(one.numa, '')}\n"
        yield f"{folder}/current_link_speed", f"{one.speed}\n"
        yield f"{folder}/current_link_width", f"{one.width}\n"
        yield f"{folder}/max_link_speed", f"{one.max_speed or one.speed}\n"
        yield f"{folder}/max_link_width", f"{one.max_width if one.max_width is not None else one.width}\n"


def _path(one: Function) -> str:
    """Return where a function lies, from /sys/devices: below the root of its domain and bus, through its bridges."""
    first = one.above[0] if one.above else one.bus_id
    domain, bus, _rest = first.split(":")
    return "/".join([f"pci{domain}:{bus}", *one.above, one.bus_id])


def _links(machine: Machine) -> Iterator[tuple[str, str]]:
    for one in machine.functions:
        yield f"/sys/bus/pci/devices/{one.bus_id}", f"../../../devices/{_path(one)}"
        if one.driver is not None:
            yield f"/sys/bus/pci/devices/{one.bus_id}/driver", f"../../../bus/pci/drivers/{one.driver}"
    for nic in machine.nics:
        path = f"../../devices/{_path(nic)}{nic.device_path}"
        if nic.interface is not None:
            yield f"/sys/class/net/{nic.interface}", f"{path}/net/{nic.interface}"
        if nic.name is not None and nic.kind == "Slingshot":
            yield f"/sys/class/cxi/{nic.name}", f"{path}/cxi/{nic.name}"
            yield f"/sys/class/cxi/{nic.name}/device", f"../../../{nic.bus_id}"
        elif nic.name is not None:
            yield f"/sys/class/infiniband/{nic.name}", f"{path}/infiniband/{nic.name}"
            yield f"/sys/class/infiniband/{nic.name}/device", f"../../../{nic.bus_id}"


def _nic_files(machine: Machine) -> Iterator[tuple[str, str]]:
    for nic in machine.nics:
        if nic.interface is not None:
            folder = f"/sys/class/net/{nic.interface}"
            yield f"{folder}/type", "32\n" if nic.kind == "InfiniBand" else "1\n"
            yield f"{folder}/mtu", f"{nic.mtu}\n"
            yield f"{folder}/operstate", "up\n" if nic.up else "down\n"
            yield f"{folder}/speed", f"{nic.rate_gigabits * 1000 if nic.rate_gigabits is not None else -1}\n"
        if nic.name is not None and nic.kind != "Slingshot":
            folder = f"/sys/class/infiniband/{nic.name}"
            yield f"{folder}/node_guid", f"{nic.guid}\n"
            yield f"{folder}/sys_image_guid", f"{nic.guid}\n"
            yield f"{folder}/fw_ver", "28.39.1002\n"
            yield f"{folder}/node_type", "1: CA\n"
            yield f"{folder}/ports/1/state", "4: ACTIVE\n" if nic.up else "1: DOWN\n"
            yield f"{folder}/ports/1/rate", f"{nic.rate_gigabits} Gb/sec (4X)\n"
            layer = "InfiniBand" if nic.kind == "InfiniBand" else "Ethernet" if nic.kind == "RoCE" else "Unspecified"
            yield f"{folder}/ports/1/link_layer", f"{layer}\n"


def _answers(machine: Machine) -> tuple[Answer, ...]:
    outputs = {"uname": f"Linux 6.8.0 {machine.architecture}\n", "lscpu": _lscpu(machine)}
    if machine.gpus:
        outputs["nvidia-smi-xml"] = smi_xml(machine)
        outputs["nvidia-smi-topo"] = smi_matrix(machine)
        outputs["nvidia-smi-query"] = "".join(
            f"{place}, 0000{gpu.bus_id.upper()}, {gpu.sm // 10}.{gpu.sm % 10}\n"
            for place, gpu in enumerate(machine.gpus)
        )
        outputs["nvidia-smi-nvlink"] = _nvlink(machine, "Link", lambda gpu: len(gpu.targets))
        outputs["nvidia-smi-nvlink-remote"] = _remote(machine)
        if any(gpu.chip_links for gpu in machine.gpus):
            outputs["nvidia-smi-c2c"] = _nvlink(machine, "C2C Link", lambda gpu: gpu.chip_links)
    if any(nic.name is not None and nic.kind != "Slingshot" for nic in machine.nics):
        outputs["ls-infiniband"] = "total 0\ncrw-rw-rw- 1 root root 231, 192 Nov 21 12:00 uverbs0\n"
    outputs |= machine.more_answers
    return tuple(
        Answer(
            name=command.name,
            argv=(command.programs[0], *command.arguments),
            ended="ok" if command.name in outputs else "absent",
            exit_code=0 if command.name in outputs else None,
            output=outputs.get(command.name, ""),
        )
        for command in COMMANDS
    )


def _lscpu(machine: Machine) -> str:
    hypervisor = f"Hypervisor vendor:  {machine.hypervisor}\n" if machine.hypervisor else ""
    return f"Architecture:       {machine.architecture}\nModel name:         {machine.cpu}\n{hypervisor}"


def smi_xml(machine: Machine) -> str:
    """Return what `nvidia-smi -q -x` prints of the GPUs: the elements that are read, and some around them."""
    generations = {GEN3: 3, GEN4: 4, GEN5: 5}
    parts = []
    for place, gpu in enumerate(machine.gpus):
        now, most = generations.get(gpu.speed, 5), generations.get(gpu.max_speed or gpu.speed, 5)
        width = gpu.width or 16
        mig = "Enabled" if gpu.mig else "Disabled"
        parts.append(
            f'\t<gpu id="0000{gpu.bus_id.upper()}">\n\t\t<product_name>{gpu.name}</product_name>\n'
            f"\t\t<mig_mode>\n\t\t\t<current_mig>{mig}</current_mig>\n\t\t</mig_mode>\n"
            f"\t\t<serial>165{place:010d}</serial>\n\t\t<uuid>GPU-{place:08x}-1111-2222-3333-444444444444</uuid>\n"
            f"\t\t<pci>\n\t\t\t<pci_bus_id>0000{gpu.bus_id.upper()}</pci_bus_id>\n\t\t\t<pci_gpu_link_info>\n"
            f"\t\t\t\t<pcie_gen>\n\t\t\t\t\t<max_link_gen>{most}</max_link_gen>\n"
            f"\t\t\t\t\t<current_link_gen>{now}</current_link_gen>\n\t\t\t\t</pcie_gen>\n"
            f"\t\t\t\t<link_widths>\n\t\t\t\t\t<max_link_width>{gpu.max_width or width}x</max_link_width>\n"
            f"\t\t\t\t\t<current_link_width>{width}x</current_link_width>\n\t\t\t\t</link_widths>\n"
            f"\t\t\t</pci_gpu_link_info>\n\t\t</pci>\n"
            f"\t\t<fb_memory_usage>\n\t\t\t<total>{gpu.memory_mebibytes} MiB</total>\n\t\t</fb_memory_usage>\n"
            f"\t\t<processes>\n\t\t</processes>\n\t</gpu>\n"
        )
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
        f"\t<driver_version>{machine.nvidia_driver}</driver_version>\n"
        f"\t<attached_gpus>{len(machine.gpus)}</attached_gpus>\n"
        f"{''.join(parts)}</nvidia_smi_log>\n"
    )


def smi_matrix(machine: Machine) -> str:
    """Return what `nvidia-smi topo -m` prints: GPUs and RDMA devices, tabs between the columns, a legend."""
    devices: list[tuple[str, Function]] = [(f"GPU{place}", gpu) for place, gpu in enumerate(machine.gpus)]
    nics = [nic for nic in machine.nics if nic.name is not None and nic.kind != "Slingshot"]
    devices += [(f"NIC{place}", nic) for place, nic in enumerate(nics)]
    heading = "\t".join(["", *(name for name, _one in devices), "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    lines = [f"\x1b[4m{heading}\x1b[0m"]
    cpus = {node.id: node.cpus for node in machine.numa}
    for name, one in devices:
        cells = [" X " if other is one else _smi_path(one, other) for _name, other in devices]
        cells += [cpus.get(one.numa, ""), str(one.numa), "", "N/A"] if isinstance(one, Gpu) else ["", "", ""]
        lines.append("\t".join([name, *cells]))
    legend = [f"  NIC{place}: {nic.name}" for place, nic in enumerate(nics)]
    return "\n".join([*lines, "", "Legend:", "", "  X    = Self", "", "NIC Legend:", "", *legend, ""])


def _smi_path(one: Function, other: Function) -> str:
    if isinstance(one, Gpu) and isinstance(other, Gpu) and one.targets:
        hidden = None in one.targets
        return f"NV{len(one.targets) if hidden else one.targets.count(other.bus_id)}"
    if one.above and one.above == other.above:
        return "PIX"
    if one.above and other.above and one.above[0] == other.above[0]:
        return "PXB"
    return "NODE" if one.numa == other.numa else "SYS"


def _nvlink(machine: Machine, word: str, count) -> str:
    lines = []
    for place, gpu in enumerate(machine.gpus):
        lines.append(f"GPU {place}: {gpu.name} (UUID: GPU-{place:08x}-1111-2222-3333-444444444444)")
        lines += [f"\t {word} {link}: {gpu.link_gigabytes} GB/s" for link in range(count(gpu))]
    return "\n".join(lines) + "\n"


def _remote(machine: Machine) -> str:
    lines = []
    for place, gpu in enumerate(machine.gpus):
        lines.append(f"GPU {place}: {gpu.name}")
        lines += [
            f"\t Link {link}: Remote Device 0000{target.upper()}: Link {link}"
            for link, target in enumerate(gpu.targets)
            if target is not None
        ]
    return "\n".join(lines) + "\n"
