"""A kind of machine as published: what it is made of, how it is recognised, what it is told to be set to and to reach.

Every section says where its values come from: `source` holds ids of `Platform.sources`, `checked` the day somebody
looked. None, or an empty tuple, means that nobody has published the value.
"""

from typing import Literal

import msgspec

from busbw.base.value import Integer, Value


class PlatformSection(Value, kw_only=True, frozen=True):
    """What every section of a platform file carries."""

    source: tuple[str, ...] = ()
    # Day of the last look at the sources, as 2026-11-21.
    checked: str | None = None
    note: str | None = None


class Match(PlatformSection, kw_only=True, frozen=True):
    """How a machine of this kind is recognised. Texts are globs, compared without regard to case."""

    # What the firmware says, by the kernel's names under /sys/class/dmi/id; it often names the cloud only.
    dmi: dict[str, str] = msgspec.field(default_factory=dict)
    # The metadata service that knows the exact name, and the names it gives.
    service: Literal["azure", "oci", "aws", "gcp"] | None = None
    skus: tuple[str, ...] = ()
    architecture: Literal["x86_64", "aarch64"] | None = None
    # Names that nvidia-smi or rocm-smi prints.
    gpu_names: tuple[str, ...] = ()
    # PCI ids, as 10de:2330 or 10de:2330:10de:16c1 with the subsystem.
    gpu_devices: tuple[str, ...] = ()
    nic_devices: tuple[str, ...] = ()
    # Names of the compute NICs' RDMA devices.
    rdma_names: tuple[str, ...] = ()
    hostnames: tuple[str, ...] = ()
    memory_bytes: Integer | None = None


class Cpu(PlatformSection, kw_only=True, frozen=True):
    """The processors of one node, as its operating system sees them."""

    model: str | None = None
    sockets: Integer | None = None
    # Physical cores, and CPUs as the kernel counts them.
    cores: Integer | None = None
    threads: Integer | None = None
    numa_nodes: Integer | None = None
    memory_bytes: Integer | None = None
    # As in an NCCL topology file: vendor as CPUID spells it, family as it truly is (Milan 25), model.
    vendor: str | None = None
    family: Integer | None = None
    model_number: Integer | None = None


class GpuKind(PlatformSection, kw_only=True, frozen=True):
    """The GPUs of one node."""

    model: str | None = None
    count: Integer = 0
    memory_bytes: Integer | None = None
    # Compute capability times ten, as NCCL has it; None for other makers.
    sm: Integer | None = None
    # AMD's name of the processor, as gfx942; None for other makers.
    gcn: str | None = None
    locked_clock_MHz: Integer | None = None


class NvLinkKind(PlatformSection, kw_only=True, frozen=True):
    """The links between the GPUs of one node, NVLink or another maker's; all rates in one direction."""

    generation: Integer | None = None
    links_per_gpu: Integer | None = None
    gpu_Bps: float | None = None
    # Between two GPUs that are linked to each other directly.
    pair_Bps: float | None = None
    links_per_pair: Integer | None = None
    # Whether a switch joins all GPUs, and whether it can add (NVLink SHARP).
    switched: bool | None = None
    nvls: bool | None = None
    # GPUs that reach each other over these links; None: those of the node.
    domain_gpus: Integer | None = None
    # Between a GPU and its own CPU (NVLink-C2C).
    c2c_Bps: float | None = None


class PcieKind(PlatformSection, kw_only=True, frozen=True):
    """The PCIe slots that GPUs and compute NICs sit in."""

    generation: Integer | None = None
    width: Integer | None = None
    # What the vendor's topology file says where that differs, in GT/s.
    written_GTps: float | None = None


class NumaPlace(PlatformSection, kw_only=True, frozen=True):
    """One NUMA node with CPUs."""

    id: Integer
    # A list of the kernel such as `0-55,112-167`.
    cpus: str | None = None
    # NUMA nodes of GPU memory that belong to it (Grace Hopper).
    gpu_memory: tuple[Integer, ...] = ()


class SwitchPlace(PlatformSection, kw_only=True, frozen=True):
    """One PCI switch or bridge, real or written into the topology file only."""

    bus_id: str
    numa: Integer
    # The switch above; None: the NUMA node itself.
    parent: str | None = None
    vendor: str | None = None
    device: str | None = None
    subsystem_vendor: str | None = None
    subsystem_device: str | None = None
    # None: as the slots of the platform.
    link_GTps: float | None = None
    link_width: Integer | None = None


class GpuPlace(PlatformSection, kw_only=True, frozen=True):
    """Where one GPU sits. GPUs are numbered by PCI address, as CUDA_DEVICE_ORDER=PCI_BUS_ID numbers them."""

    gpu: Integer
    bus_id: str | None = None
    numa: Integer | None = None
    # The switch it hangs below; None: its NUMA node.
    parent: str | None = None
    # Names of the compute NICs that are nearest, as in NicPlace.
    nics: tuple[str, ...] = ()
    # Links to each NVSwitch or GPU, by bus id; empty: all of them to switches that the machine does not show.
    nvlinks: dict[str, Integer] = msgspec.field(default_factory=dict)


class NicPlace(PlatformSection, kw_only=True, frozen=True):
    """Where one port of a compute NIC sits. Ports are in the order of the platform's device names."""

    name: str | None = None
    bus_id: str | None = None
    port: Integer = 1
    numa: Integer | None = None
    parent: str | None = None
    # Of this port, in bits per second; None: as NicKind.
    rate_bps: float | None = None


class NicKind(PlatformSection, kw_only=True, frozen=True):
    """The NICs that collectives use."""

    model: str | None = None
    # Ports of one node, and the line rate of one in bits per second.
    ports: Integer | None = None
    port_bps: float | None = None
    # Messages a second that one port can send, by its maker or by the platform's owner.
    messages_per_s: float | None = None
    # PCI class: 0x020700 is InfiniBand, 0x020000 Ethernet.
    device_class: str | None = None
    # RDMA device names in words: `mlx5_ib0..7`; and the network interfaces on top, where they have names of their own.
    names: str | None = None
    interfaces: str | None = None
    mtu_bytes: Integer | None = None
    # NCCL_IB_HCA as the platform's owner publishes it.
    hca_list: str | None = None


class FrontendKind(PlatformSection, kw_only=True, frozen=True):
    """The network for everything else: storage, login, start-up."""

    names: str | None = None
    rate_bps: float | None = None
    usable_bps: float | None = None


class FabricKind(PlatformSection, kw_only=True, frozen=True):
    """What joins the nodes."""

    kind: Literal["InfiniBand", "RoCE", "EFA", "Slingshot", "TCPX", "TCPXO", "Ethernet"] | None = None
    generation: str | None = None
    # The network plug-in that NCCL needs to use it.
    plugin: str | None = None
    sharp: bool | None = None
    latency_s: float | None = None


class PlatformSetting(PlatformSection, kw_only=True, frozen=True):
    """A setting that somebody publishes for this platform. Publishing is not recommending: see `busbw env`."""

    name: str
    # As it would be written; None: make sure that it is unset, for which a platform file writes `unset = true`.
    value: str | None
    # What reads it: nccl, mpi, libfabric, sharp, cuda, launcher...
    scope: str
    # What it is for, where it is not for every job: sharp, single_node...
    goal: str | None = None
    reason: str | None = None


class LaunchForm(PlatformSection, kw_only=True, frozen=True):
    """A way to start ranks that somebody publishes for this platform."""

    method: str
    layout: str | None = None
    flags: tuple[str, ...] = ()
    program: str | None = None


class ContainerImage(PlatformSection, kw_only=True, frozen=True):
    """An image, of a container or of a virtual machine, that is published for this platform."""

    image: str
    kind: Literal["container", "vm"] = "container"
    use: str | None = None


class Published(PlatformSection, kw_only=True, frozen=True):
    """A result that somebody published, and the conditions it holds for."""

    test: str
    metric: str
    value: float
    unit: str
    # measured: a printed run; stated: prose; reference: the maker of the parts; threshold: a health check's limit.
    kind: Literal["measured", "stated", "reference", "threshold"]
    # None: not said, or, with `scope`, said in words.
    nodes: Integer | None = None
    gpus: Integer | None = None
    size_bytes: Integer | None = None
    # `several nodes`, where no count is given.
    scope: str | None = None
    conditions: str | None = None
    # The conditions that decide whether it applies to another result; None: not said. The algorithm as NCCL calls it;
    # NVLink SHARP; SHARP of the network's switches.
    algorithm: str | None = None
    nvls: bool | None = None
    sharp: bool | None = None
    # fabric: the platform's own network with its plug-in; fallback: what is used where the plug-in is not found (TCP);
    # loopback: one node that sends to itself through its NICs.
    network: Literal["fabric", "fallback", "loopback"] | None = None


class PublishedSweep(PlatformSection, kw_only=True, frozen=True):
    """A table of one collective over message sizes that somebody measured and published, or this project measured."""

    # The collective, as nccl-tests calls it.
    test: str
    nodes: Integer
    # All ranks together.
    gpus: Integer
    # Size in bytes and bus bandwidth in GB/s, by size; at least one.
    points: tuple[tuple[Integer, float], ...]
    # NCCL's version as printed; None: not said, or another library.
    nccl: str | None = None
    # As in Published.
    algorithm: str | None = None
    nvls: bool | None = None
    sharp: bool | None = None
    network: Literal["fabric", "fallback", "loopback"] | None = None
    conditions: str | None = None
    # Short name of where it was printed: two tables of one document, or of one machine, are not independent.
    document: str


class Threshold(PlatformSection, kw_only=True, frozen=True):
    """A limit of a health check that is in use for this platform."""

    check: str
    test: str
    value: float
    unit: str
    # How a result passes: `>=`, `<=`, `==`, or `expect`, which only warns.
    passes: str
    size: str | None = None
    scope: str | None = None


class Disagreement(PlatformSection, kw_only=True, frozen=True):
    """Where sources contradict each other, and which is followed."""

    topic: str
    detail: str
    verdict: str | None = None


class Variant(PlatformSection, kw_only=True, frozen=True):
    """One of several sizes sold under the same name; what it does not say is as in the platform."""

    sku: str
    gpus: Integer | None = None
    cores: Integer | None = None
    memory_bytes: Integer | None = None
    gpu_memory_bytes: Integer | None = None
    nic_bps: float | None = None


class PlatformSource(Value, kw_only=True, frozen=True):
    """Where facts come from."""

    id: str
    # Repository, path and commit, or the title of a page.
    reference: str
    licence: str | None = None
    date: str | None = None
    note: str | None = None


class Platform(Value, kw_only=True, frozen=True):
    """One kind of machine, with everything its file and those it extends say."""

    id: str
    names: tuple[str, ...]
    provider: str
    kind: Literal["gpu", "cpu"]
    # How much is published, in a few words.
    status: str | None = None
    match: Match = Match()
    cpu: Cpu = Cpu()
    gpu: GpuKind = GpuKind()
    nvlink: NvLinkKind = NvLinkKind()
    pcie: PcieKind = PcieKind()
    nic: NicKind = NicKind()
    frontend: FrontendKind = FrontendKind()
    fabric: FabricKind = FabricKind()
    numa: tuple[NumaPlace, ...] = ()
    switches: tuple[SwitchPlace, ...] = ()
    gpus: tuple[GpuPlace, ...] = ()
    nics: tuple[NicPlace, ...] = ()
    variants: tuple[Variant, ...] = ()
    settings: tuple[PlatformSetting, ...] = ()
    launches: tuple[LaunchForm, ...] = ()
    containers: tuple[ContainerImage, ...] = ()
    published: tuple[Published, ...] = ()
    sweeps: tuple[PublishedSweep, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    traps: tuple[str, ...] = ()
    # What was looked for and not found, in words.
    missing: tuple[str, ...] = ()
    sources: tuple[PlatformSource, ...] = ()


class Origin(Value, kw_only=True, frozen=True):
    """Which file one value of a platform comes from."""

    # `gpu.count`, `numa[0].cpus`, `settings[NCCL_TOPO_FILE].value`: entries by what they are known by, a goal after a
    # comma (`settings[NCCL_ALGO, sharp].value`); entries that nothing is merged into by their place (`published[0]`).
    path: str
    file: str
    source: tuple[str, ...]
    checked: str | None


class ResolvedPlatform(Value, kw_only=True, frozen=True):
    """A platform and where each of its values comes from."""

    platform: Platform
    # The strongest first: what a site adds, the platform's own file, then those it extends.
    files: tuple[str, ...]
    origins: tuple[Origin, ...]


class SiteFile(Value, kw_only=True, frozen=True):
    """One TOML file from a site's directory, as it was found."""

    # Its last part names the platform; a file in a folder `family` is one that platforms extend.
    path: str
    text: str
