"""One node in NCCL's words: NUMA nodes, PCI devices, GPUs, NICs, and the links between them.

Whether it was read from an NCCL topology file, made from a platform or found on a host, it is the same value. What an
NCCL file does not say is None: NCCL then asks the machine (facts: NCCL's topology format, sections 2 and 3).
"""

from typing import Literal

import msgspec

from busbw.base.value import Integer, Value

DeviceKind = Literal["gpu", "nic", "switch", "nvswitch", "cpu", "other"]
# Links of NVIDIA's GPUs, and of AMD's.
LinkKind = Literal["nvlink", "xgmi"]


class NumaNode(Value, kw_only=True, frozen=True):
    """What NCCL calls a CPU: the processors of one NUMA node."""

    # NCCL's numaid; -1 where the machine shows no NUMA.
    id: Integer
    # As the kernel numbers them, ascending; None: no mask given.
    cpus: tuple[Integer, ...] | None = None
    # NCCL's words: x86_64, arm64, ppc64.
    architecture: str | None = None
    vendor: str | None = None
    # As an NCCL file holds them; NCCL up to 2.30 writes AMD's family as 143 or 175 where it is 23 or 25.
    family: Integer | None = None
    model: Integer | None = None


class PciDevice(Value, kw_only=True, frozen=True):
    """One PCI function that NCCL looks at."""

    # Lower case, as 0000:0f:00.0; ffff:... are switches that only a file knows.
    bus_id: str
    # The device it hangs below; None: its NUMA node.
    parent: str | None
    numa: Integer
    kind: DeviceKind
    # As 0x030200.
    device_class: str | None = None
    vendor: str | None = None
    device: str | None = None
    subsystem_vendor: str | None = None
    subsystem_device: str | None = None
    # As written: `16 GT/s` and `16.0 GT/s PCIe` are the same rate (busbw.topo.pcie reads them).
    link_speed: str | None = None
    link_width: Integer | None = None
    # Domain and bus of the host bridge above, as 0000:00; None: not known, as from a file, which has none.
    host_bridge: str | None = None
    # What the kernel calls local to a device of which it shows no NUMA node, and the NUMA nodes those CPUs are of.
    # NCCL asks for neither there.
    near_cpus: tuple[Integer, ...] = ()
    near_numa: tuple[Integer, ...] = ()


class Gpu(Value, kw_only=True, frozen=True):
    """What is known of the GPU at a PCI address."""

    bus_id: str
    # NVML's number, and the rank NCCL gave it.
    dev: Integer | None = None
    rank: Integer | None = None
    # Compute capability times ten.
    sm: Integer | None = None
    # Whether NICs can read and write its memory.
    gdr: bool | None = None
    mlopart: Integer | None = None
    # The processor of AMD's, as gfx942; only RCCL writes it.
    gcn: str | None = None
    # As the driver names it; no NCCL file has it.
    name: str | None = None


class NvLink(Value, kw_only=True, frozen=True):
    """The NVLinks from one GPU to one peer; of AMD's GPUs the XGMI links, which RCCL treats alike."""

    gpu: str
    # Bus id of a GPU or an NVSwitch; `fffffff:ffff:ff` and the like where a virtual machine hides the switch.
    target: str
    count: Integer
    target_class: str | None = None
    kind: LinkKind = "nvlink"


class ChipLink(Value, kw_only=True, frozen=True):
    """The chip-to-chip links from one GPU to its own CPU."""

    gpu: str
    count: Integer
    # Of one link, in MB/s as NCCL counts it.
    link_MBps: Integer


class PciLink(Value, kw_only=True, frozen=True):
    """A link between two PCI switches beside the tree."""

    device: str
    target: str


class Net(Value, kw_only=True, frozen=True):
    """One port that NCCL can send through."""

    name: str
    # The PCI device it belongs to; None: only its NUMA node is known.
    bus_id: str | None
    numa: Integer
    dev: Integer | None = None
    # As NCCL has it, in 10^6 bits per second; it takes what is missing or not positive for 10000.
    speed_Mbps: Integer | None = None
    latency_us: float | None = None
    port: Integer | None = None
    guid: str | None = None
    maxconn: Integer | None = None
    gdr: bool | None = None
    coll: bool | None = None
    # Newer attributes (net, gin, rma, rail, plane) by name.
    more: dict[str, str] = msgspec.field(default_factory=dict)


class Topology(Value, kw_only=True, frozen=True):
    """One node. Devices are in the order of the file, the platform or the bus; a parent stands before its children."""

    # What it is of: a platform's id, a host's name, the `name` of an NCCL file; None: not said.
    name: str | None = None
    # NCCL's hash of the host, where a dump has one.
    host_hash: str | None = None
    numa: tuple[NumaNode, ...] = ()
    devices: tuple[PciDevice, ...] = ()
    # Ordered by `dev`, where that is known, else by bus id: the order of CUDA_DEVICE_ORDER=PCI_BUS_ID.
    gpus: tuple[Gpu, ...] = ()
    nvlinks: tuple[NvLink, ...] = ()
    chip_links: tuple[ChipLink, ...] = ()
    pci_links: tuple[PciLink, ...] = ()
    nets: tuple[Net, ...] = ()
