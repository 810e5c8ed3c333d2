"""A host as its kernel, drivers and tools describe it: what a snapshot says, read. None: the snapshot does not say."""

from typing import Literal

import msgspec

from busbw.base.value import Integer, Value

PortKind = Literal["InfiniBand", "RoCE", "EFA", "Slingshot", "Ethernet"]


class HostNuma(Value, kw_only=True, frozen=True):
    """One NUMA node; memory of a GPU is one without CPUs."""

    id: Integer
    cpus: tuple[Integer, ...]
    memory_bytes: Integer | None = None
    # To every node, in the order of the nodes' ids, as the firmware says.
    distances: tuple[Integer, ...] = ()


class PciFunction(Value, kw_only=True, frozen=True):
    """One PCI function under /sys/bus/pci/devices."""

    bus_id: str
    # The bridge above; None: a root port or a function of the root complex.
    parent: str | None
    # As 0x030200; ids as 0x10de.
    device_class: str
    vendor: str
    device: str
    subsystem_vendor: str | None = None
    subsystem_device: str | None = None
    # -1: the kernel knows none.
    numa: Integer = -1
    local_cpus: tuple[Integer, ...] = ()
    driver: str | None = None
    # As the kernel prints them: `16.0 GT/s PCIe`, and lanes; 0 or 255 lanes, and `Unknown`, are None.
    link_speed: str | None = None
    link_width: Integer | None = None
    max_link_speed: str | None = None
    max_link_width: Integer | None = None


class HostNvLink(Value, kw_only=True, frozen=True):
    """One NVLink of a GPU; of AMD's, one XGMI link."""

    link: Integer
    rate_Bps: float | None = None
    active: bool = True
    # Bus id of what is at the other end, where the driver says; None: hidden.
    target: str | None = None
    target_kind: Literal["gpu", "switch", "cpu"] | None = None


class HostGpu(Value, kw_only=True, frozen=True):
    """One GPU, as its driver describes it."""

    # The driver's number.
    index: Integer
    bus_id: str
    name: str | None = None
    uuid: str | None = None
    sm: Integer | None = None
    # The processor of AMD's, as gfx942.
    gcn: str | None = None
    memory_bytes: Integer | None = None
    driver: str | None = None
    link_generation: Integer | None = None
    max_link_generation: Integer | None = None
    link_width: Integer | None = None
    max_link_width: Integer | None = None
    numa: Integer | None = None
    nvlinks: tuple[HostNvLink, ...] = ()
    # To its own CPU (NVLink-C2C).
    chip_links: tuple[HostNvLink, ...] = ()
    # Whether partitioned into MIG instances.
    mig: bool | None = None


class HostPort(Value, kw_only=True, frozen=True):
    """One port of an RDMA device, or one network interface that belongs to a PCI function without any."""

    # mlx5_0, cxi0, rdmap16s27; an interface's name where there is no RDMA device.
    name: str
    port: Integer
    bus_id: str | None
    kind: PortKind
    interface: str | None = None
    rate_bps: float | None = None
    up: bool | None = None
    numa: Integer | None = None
    # Of the adapter, which its ports share (sys_image_guid), as sixteen hexadecimal digits behind 0x.
    guid: str | None = None
    firmware: str | None = None
    mtu_bytes: Integer | None = None


class MatrixCell(Value, kw_only=True, frozen=True):
    """One cell of `nvidia-smi topo -m`: NV18, PIX, PXB, PHB, NODE, SYS, X."""

    row: str
    column: str
    path: str


class Hardware(Value, kw_only=True, frozen=True):
    """One host."""

    hostname: str
    architecture: str | None = None
    # What the firmware says, by the kernel's names under /sys/class/dmi/id.
    dmi: dict[str, str] = msgspec.field(default_factory=dict)
    hypervisor: str | None = None
    container: str | None = None
    cpu_model: str | None = None
    # CPUID's vendor, true family and model number.
    cpu_vendor: str | None = None
    cpu_family: Integer | None = None
    cpu_model_number: Integer | None = None
    sockets: Integer | None = None
    cores: Integer | None = None
    # Online, as the kernel numbers them, ascending.
    cpus: tuple[Integer, ...] = ()
    memory_bytes: Integer | None = None
    numa: tuple[HostNuma, ...] = ()
    pci: tuple[PciFunction, ...] = ()
    gpus: tuple[HostGpu, ...] = ()
    ports: tuple[HostPort, ...] = ()
    matrix: tuple[MatrixCell, ...] = ()
    # What the snapshot should have held and did not, in words.
    missing: tuple[str, ...] = ()
