"""One node in NCCL's words: devices, links, the paths between them, how two nodes differ, which CPUs ranks have."""

from typing import Literal

import msgspec

from busbw.base.value import Integer, Value
from busbw.model.limit import Bound, ChannelPlan

# Of what `busbw topo show --json` writes. 2: with schema, release, bounds, plans and pairs; `ceilings` are of links as
# NCCL counts them.
VIEW_SCHEMA = 2
# 2: with schema, release and the bandwidth of each cell.
MATRIX_SCHEMA = 2

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
    # As written: `16 GT/s` and `16.0 GT/s PCIe` are the same rate (busbw.topo.buses reads them).
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


# Best first, in NCCL's order since 2.27; earlier ones lack C2C and P2C and number the rest otherwise.
PathType = Literal["LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"]
LinkType = Literal["LOC", "NVL", "C2C", "PCI", "SYS", "NET"]


class Hop(Value, kw_only=True, frozen=True):
    """One link, in the direction of the way."""

    source: str
    target: str
    kind: LinkType
    # One direction, as NCCL counts it.
    bandwidth_Bps: float


class Path(Value, kw_only=True, frozen=True):
    """The way from one device to another. Without hops it is the device itself, or DIS: there is none."""

    type: PathType
    bandwidth_Bps: float
    hops: tuple[Hop, ...] = ()


class GpuSpot(Value, kw_only=True, frozen=True):
    """Where one GPU sits, and how it gets to the network."""

    # As people call it: NCCL's dev where known, else its place in the topology.
    number: Integer
    bus_id: str
    numa: Integer
    # Of its NUMA node; None: the topology has no mask.
    cpus: tuple[Integer, ...] | None
    # Its nearest ports, by the names of PortSpot; with the way to the first.
    ports: tuple[str, ...] = ()
    path: PathType | None = None
    path_Bps: float | None = None
    # The narrowest link on the way, in words; and how many GPUs with the same nearest ports share them.
    bottleneck: str | None = None
    sharers: Integer = 1


class PortSpot(Value, kw_only=True, frozen=True):
    """Where one port of a NIC sits."""

    # The port's name, or the bus id of its NIC where the topology names no ports.
    name: str
    bus_id: str | None
    numa: Integer
    cpus: tuple[Integer, ...] | None
    rate_Bps: float | None


class RingCeiling(Value, kw_only=True, frozen=True):
    """What the links, as NCCL counts them, let it plan at most for a ring or tree over all GPUs, as bus bandwidth.

    What it does plan may be less: see `NodeView.plans`. NCCL's rates are below line rates, and what is measured may be
    above them; `NodeView.bounds` go by line rates.
    """

    algorithm: Literal["ring", "tree"]
    busbw_Bps: float
    # How it follows from the links, and the part that limits.
    formula: str
    limit: str


class PairPath(Value, kw_only=True, frozen=True):
    """The way from a GPU or port to another, with NCCL's detours: to a port over another GPU (PXN), through a CPU."""

    # As `GPU/0000:0f:00.0` and `NET/mlx5_0`; `NIC/` with an address where the topology names no port.
    source: str
    target: str
    type: PathType
    # As NCCL counts it, in one direction.
    bandwidth_Bps: float


class MatrixRow(Value, kw_only=True, frozen=True):
    """One row of the matrix: a GPU or a NIC against all of them."""

    name: str
    # In nvidia-smi's words, and in NCCL's, with its detours, and what NCCL counts for each in one direction.
    cells: tuple[str, ...]
    nccl: tuple[PathType, ...]
    bandwidth_Bps: tuple[float, ...] = ()
    # Of GPUs; None for NICs and where the topology does not say.
    cpus: tuple[Integer, ...] | None = None
    numa: Integer | None = None


class PathMatrix(Value, kw_only=True, frozen=True):
    """The ways between all GPUs and ports. Cells of a row are in the order of the rows."""

    schema: Integer = MATRIX_SCHEMA
    # The release whose rules these are.
    release: str
    rows: tuple[MatrixRow, ...]
    # NIC0, NIC1, ... and what they stand for.
    legend: tuple[tuple[str, str], ...]


class NodeView(Value, kw_only=True, frozen=True):
    """A topology and what follows from it, by the rules of one release of NCCL."""

    schema: Integer = VIEW_SCHEMA
    release: str
    topology: Topology
    gpus: tuple[GpuSpot, ...]
    ports: tuple[PortSpot, ...]
    ceilings: tuple[RingCeiling, ...]
    # Of ring and tree by line rates, as `busbw limit` has them; empty for a file, which has no line rates, and where a
    # rate that counts is not known.
    bounds: tuple[Bound, ...] = ()
    # What NCCL plans: ring, tree, and NVLS where switches can add; empty where that is not known, and a note says why.
    plans: tuple[ChannelPlan, ...] = ()
    # From every GPU to all others and to every port, and back from the ports.
    pairs: tuple[PairPath, ...] = ()
    # What to know before believing the rest, in words.
    notes: tuple[str, ...] = ()


# files: one that NCCL does not take as it is meant differs, whatever it means.
Group = Literal[
    "files", "GPUs", "NICs", "CPU masks", "processors", "ways", "PCIe links", "NVLinks", "XGMI links", "C2C", "ports"
]


class TopologyDifference(Value, kw_only=True, frozen=True):
    """One value that two topologies do not share, in words."""

    group: Group
    # `GPU 0000:0f:00.0`, `NUMA node 1`, `GPU 0000:0f:00.0 to NIC 0000:0c:00.0`; `A` or `B` of files.
    subject: str
    # Which of its values; None: the subject itself.
    what: str | None = None
    # None: the side says nothing, or lacks the subject.
    first: str | None = None
    second: str | None = None


class TopologyComparison(Value, kw_only=True, frozen=True):
    """Two topologies held against each other."""

    first: str
    second: str
    # What NCCL would see differently.
    differences: tuple[TopologyDifference, ...]
    # What one side states and the other leaves to detection: whether they agree depends on the machine.
    detected: tuple[TopologyDifference, ...] = ()
    # What differs and NCCL does not use, or writes over.
    unused: tuple[TopologyDifference, ...] = ()
    # What to know before believing the rest, in words.
    notes: tuple[str, ...] = ()


Fit = Literal["right", "partly", "wrong", "unknown"]


class RankPlace(Value, kw_only=True, frozen=True):
    """Where one local rank belongs."""

    rank: Integer
    # Bus id of its GPU; None: the node has none.
    gpu: str | None
    numa: Integer | None
    # All CPUs of its NUMA node, and its even share of them where ranks share the node. None: not known.
    cpus: tuple[Integer, ...] | None
    share: tuple[Integer, ...] | None


class MaskForms(Value, kw_only=True, frozen=True):
    """The same CPUs of every local rank, as launchers want them."""

    # "node": all CPUs of each rank's NUMA node; "share": an even part of them.
    cpus: Literal["node", "share"]
    # An option of srun.
    srun: str
    # Kernel lists for `taskset -c`, one a rank, and options of numactl.
    taskset: tuple[str, ...]
    numactl: tuple[str, ...]
    # Lines of a rankfile of Open MPI for the first node; and the options of mpirun that read it, by version.
    rankfile: tuple[str, ...]
    rankfile_options: tuple[tuple[str, str], ...]


class BoundRank(Value, kw_only=True, frozen=True):
    """What one local rank gets."""

    rank: Integer
    # None: it cannot be told.
    cpus: tuple[Integer, ...] | None
    # NUMA nodes that these CPUs belong to.
    numa: tuple[Integer, ...]
    # Whether they are those of its GPU's NUMA node.
    fit: Fit
    # Where NCCL's own threads then run; None: it cannot be told.
    nccl_cpus: tuple[Integer, ...] | None
    # Whether NCCL moves them at all.
    nccl_applies: bool | None


class BindingReading(Value, kw_only=True, frozen=True):
    """What a binding means to one launcher."""

    # As "Open MPI 4.1"; several where they agree.
    launcher: str
    ranks: tuple[BoundRank, ...] = ()
    # Why it cannot be told; None where it can.
    cannot_tell: str | None = None
    # Where the rule is from.
    source: str
    notes: tuple[str, ...] = ()


class RankMasks(Value, kw_only=True, frozen=True):
    """The CPUs of the local ranks of one node, in the order of its GPUs."""

    name: str | None
    ranks: tuple[RankPlace, ...]
    forms: tuple[MaskForms, ...] = ()
    # Options of mpirun that put every rank on its NUMA node, by launcher.
    sufficient: tuple[tuple[str, str], ...] = ()
    # The binding that was asked about, as it was given, and what it means.
    binding: str | None = None
    ignores_affinity: bool = False
    readings: tuple[BindingReading, ...] = ()
    remarks: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
