"""A host: what was captured of it, its parts and their state, which platform it is, and what was built on it.

None: not known.
"""

from typing import Literal

import msgspec

from busbw.base.value import Integer, Value
from busbw.model.finding import Confidence, Finding, FindingCounts, NetworkFeature
from busbw.model.machine import MpiFamily, NoiseTest

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


class PortState(Value, kw_only=True, frozen=True):
    """One port of an RDMA device."""

    name: str
    port: Integer
    # ACTIVE, INIT, ARMED, DOWN; and of the cable: LinkUp, Polling, Disabled.
    state: str | None = None
    physical: str | None = None
    # Errors, losses and congestion since the counters were last set to zero, by the kernel's names.
    errors: dict[str, Integer] = msgspec.field(default_factory=dict)


class GpuState(Value, kw_only=True, frozen=True):
    """One GPU, as nvidia-smi describes its health."""

    index: Integer
    bus_id: str
    persistence: bool | None = None
    # Reasons for low clocks that are faults, in words; (): none of them.
    slowed_by: tuple[str, ...] | None = None
    # Since the driver was loaded.
    uncorrected_errors: Integer | None = None
    repair_pending: bool | None = None
    repair_failed: bool | None = None
    # Of the NVLink fabric: `Completed` and `Success` when it can be used.
    fabric_state: str | None = None
    fabric_status: str | None = None
    application_MHz: Integer | None = None
    default_application_MHz: Integer | None = None


class NamedFile(Value, kw_only=True, frozen=True):
    """A file that a setting of NCCL names."""

    setting: str
    path: str
    # The settings file that names it; None: the environment.
    named_in: str | None
    # Why it is of no use; None: it is there.
    fault: str | None


class PortKeys(Value, kw_only=True, frozen=True):
    """The table of partition keys of one port, as far as it was captured."""

    name: str
    port: Integer
    # By their place in the table; entries that are 0 are empty, and left out.
    keys: dict[Integer, Integer]


class VirtualFunctions(Value, kw_only=True, frozen=True):
    """How many virtual functions an adapter shows, and could; None: not said."""

    bus_id: str
    # Whether it is itself one.
    is_virtual: bool
    shown: Integer | None = None
    most: Integer | None = None


class NetworkState(Value, kw_only=True, frozen=True):
    """What adapters, drivers and UCX say of the network's features. A device that is not there was not told of."""

    # By RDMA device: tags that the NIC can match, and multicast groups it can be in.
    tags: dict[str, Integer] = msgspec.field(default_factory=dict)
    multicast_groups: dict[str, Integer] = msgspec.field(default_factory=dict)
    # UCX's transports, each with its devices; None: ucx_info was not there, or said nothing.
    transports: dict[str, tuple[str, ...]] | None = None
    # UCX's settings in force, from its files, the environment and its defaults.
    ucx: dict[str, str] = msgspec.field(default_factory=dict)
    keys: tuple[PortKeys, ...] = ()
    functions: tuple[VirtualFunctions, ...] = ()
    # The family of the first mpirun.
    mpi: MpiFamily | None = None


class HostState(Value, kw_only=True, frozen=True):
    """The state of one host at the moment of its snapshot."""

    # By the kernel's names: `Max locked memory`, in its units; a name that is not there is not known.
    limits: dict[str, Integer | Literal["unlimited"]] = msgspec.field(default_factory=dict)
    # Size of /dev/shm.
    shared_bytes: Integer | None = None
    numa_balancing: Integer | None = None
    # 6, 8 of 6.8.0-1015-azure.
    kernel: tuple[Integer, Integer] | None = None
    uptime_s: float | None = None
    modules: tuple[str, ...] | None = None
    # Which of NVIDIA's two kernel modules is loaded.
    nvidia_module: Literal["open", "proprietary"] | None = None
    # Words of the kernel's command line that are about PCI, NUMA and memory.
    boot_words: tuple[str, ...] | None = None
    # How the IOMMU treats a PCI function: identity, DMA, DMA-FQ.
    iommu: dict[str, str] = msgspec.field(default_factory=dict)
    # ACS control words of the PCI bridges that could be looked at; None: it has no such thing.
    acs: dict[str, Integer | None] = msgspec.field(default_factory=dict)
    ports: tuple[PortState, ...] = ()
    gpus: tuple[GpuState, ...] = ()
    # Pairs of GPUs that cannot reach each other's memory, with nvidia-smi's word for why.
    peers_denied: tuple[tuple[str, str, str], ...] | None = None
    # Whether /dev/infiniband has the devices that programs open.
    has_verbs_devices: bool | None = None
    allowed_cpus: tuple[Integer, ...] | None = None
    governor: str | None = None
    clock_synchronised: bool | None = None
    named_files: tuple[NamedFile, ...] = ()
    network: NetworkState = NetworkState()


SNAPSHOT_SCHEMA = 1


class Answer(Value, kw_only=True, frozen=True):
    """What one command said, or why it said nothing."""

    # busbw's name of it: `nvidia-smi-topo`; every name there is stands in busbw.machine.read.commands.
    name: str
    argv: tuple[str, ...]
    # absent: no such program; cut: its output was longer than is kept.
    ended: Literal["ok", "failed", "absent", "timeout", "cut"]
    exit_code: Integer | None = None
    output: str = ""
    error: str = ""


class CapturedFile(Value, kw_only=True, frozen=True):
    """One small file, as /sys/devices/system/node/node0/cpulist."""

    path: str
    # None: it is there and could not be read; `reason` says why.
    text: str | None
    reason: str | None = None


class CapturedLink(Value, kw_only=True, frozen=True):
    """One symbolic link of sysfs: the tree of PCI is in them."""

    path: str
    target: str


# NCCL itself; microsoft/msccl, a fork of 2.12; msccl-executor-nccl, a fork of later ones; MSCCL++; AMD's.
NcclKind = Literal["NCCL", "MSCCL", "msccl-executor-nccl", "MSCCL++", "RCCL"]


class FoundLibrary(Value, kw_only=True, frozen=True):
    """A library that jobs here would load."""

    # libnccl, libcuda, libmpi, libnccl-net...
    name: str
    path: str
    # As the library itself or its file name says; None: neither does.
    version: str | None
    # Where it was found: loader, LD_LIBRARY_PATH, wheel, PATH.
    found_by: str
    # Libraries that it needs, itself or through others, and that nothing on the loader's way provides; None: not told.
    unresolved: tuple[str, ...] | None = None
    # What stands where NCCL does; None: it does not, or the file does not tell.
    kind: NcclKind | None = None


class Snapshot(Value, kw_only=True, frozen=True):
    """One host at one moment. Paths are those of the host."""

    schema: Integer = SNAPSHOT_SCHEMA
    busbw_version: str
    # ISO 8601 with offset.
    captured: str
    hostname: str
    # Whether it was captured as root, and whether names, serial numbers and addresses were replaced.
    root: bool
    anonymous: bool = False
    container: str | None = None
    files: tuple[CapturedFile, ...] = ()
    links: tuple[CapturedLink, ...] = ()
    answers: tuple[Answer, ...] = ()
    # Only names that begin with a prefix of the allow-list.
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    libraries: tuple[FoundLibrary, ...] = ()


class FoundSetting(Value, kw_only=True, frozen=True):
    """One setting that a job started here would have."""

    name: str
    value: str
    # The file it stands in; None: the environment.
    path: str | None = None


class Probe(Value, kw_only=True, frozen=True):
    """One host, read."""

    captured: str
    # Whether it was captured as root, and whether names and addresses were replaced.
    root: bool
    anonymous: bool
    hardware: Hardware
    libraries: tuple[FoundLibrary, ...] = ()
    settings: tuple[FoundSetting, ...] = ()
    # What is unusual here, in words, each with what it does.
    remarks: tuple[str, ...] = ()
    # () on a host without a port of a fabric.
    network: tuple[NetworkFeature, ...] = ()
    # None: it was not measured.
    noise: NoiseTest | None = None


# The steps of the ladder, in the order in which they are climbed.
Rung = Literal["firmware", "metadata", "hardware"]
# matches: it is this one; possible: nothing speaks against it and too little for it; near_miss: something does.
Standing = Literal["matches", "possible", "near_miss"]


class Evidence(Value, kw_only=True, frozen=True):
    """One thing that was looked at, and what it says."""

    rung: Rung
    # As it was seen: `chassis_asset_tag = "..."`; what was not there is said too.
    seen: str
    says: str


class Candidate(Value, kw_only=True, frozen=True):
    """One platform of the catalogue, held against the host."""

    platform: str
    standing: Standing
    # What speaks for it and against it, and what is published and could not be seen here; each in words.
    agrees: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


class Contradiction(Value, kw_only=True, frozen=True):
    """Where the host is not as its platform should be."""

    # GPUs, NICs, CPUs, memory: what it is about.
    part: str
    text: str
    fix: str | None = None


class Detection(Value, kw_only=True, frozen=True):
    """The answer of the ladder."""

    # Its id; None: unknown.
    platform: str | None
    # None: unknown.
    confidence: Confidence | None
    # Why, in one sentence.
    because: str
    # The rung that gave the answer; None: unknown.
    rung: Rung | None = None
    # What the owner of the machine calls it, where firmware or metadata service say: `Standard_ND96isr_H100_v5`.
    sku: str | None = None
    # azure, oci, aws, gcp; None: not said.
    cloud: str | None = None
    evidence: tuple[Evidence, ...] = ()
    # The match first, then what is possible, then near misses; platforms with nothing in common are left out.
    candidates: tuple[Candidate, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()


# What plug-ins for networks export, before the number of the interface.
NET = "ncclNetPlugin"

# plugin: of NCCL, for networks, tuning or profiling; provider: of libfabric, in a file of its own.
Role = Literal["nccl", "plugin", "nccl-tests", "libfabric", "provider", "mpi", "hwloc", "cudart", "other"]
# Who said where a library is; given folder: one that load.sh puts into LD_LIBRARY_PATH.
FoundBy = Literal["RPATH", "given folder", "LD_LIBRARY_PATH", "RUNPATH", "loader's cache", "default folder", "path"]


class DeviceCode(Value, kw_only=True, frozen=True):
    """Code for GPUs of one architecture."""

    # Compute capability times ten.
    sm: Integer
    # ptx: the driver compiles it when the program starts.
    kind: Literal["machine", "ptx"]
    # a: only this very GPU runs it; f: only its family.
    suffix: Literal["", "a", "f"] = ""

    def __str__(self) -> str:
        """Return it as the compiler's options have it: `sm_90a`, `compute_90`."""
        return f"{'sm' if self.kind == 'machine' else 'compute'}_{self.sm}{self.suffix}"

    def runs_on(self, sm: int) -> bool:
        """Whether a GPU takes it. Machine code runs on later minor versions of its GPU, PTX on every later one."""
        is_same_major = self.sm // 10 == sm // 10
        if self.suffix == "a":
            return self.sm == sm
        if self.kind == "machine" or self.suffix == "f":
            return is_same_major and self.sm <= sm
        return self.sm <= sm


class Linked(Value, kw_only=True, frozen=True):
    """One library that another one needs, and what the loader would take for it."""

    name: str
    # None: nothing here provides it.
    path: str | None = None
    by: FoundBy | None = None
    # Versions of symbols that are wanted of it and that it does not have.
    lacking: tuple[str, ...] = ()
    # Files of this name that come later in the search, and differ.
    hidden: tuple[str, ...] = ()


class BuiltPackage(Value, kw_only=True, frozen=True):
    """What a site's package manager says of a folder."""

    manager: Literal["Spack", "EasyBuild", "conda"]
    name: str
    version: str
    # The folder that it was installed into.
    prefix: str
    # Compiler, variants, toolchain: as the manager names them.
    details: str | None = None
    # The module that loads it, where there is one; None: not known.
    module: str | None = None
    # Where that stands.
    file: str


class BuiltSource(Value, kw_only=True, frozen=True):
    """What was given in place of folders: a module file, or an environment of Spack."""

    kind: Literal["module", "environment"]
    # None: a module that somebody wrote.
    manager: Literal["Spack", "EasyBuild"] | None
    name: str
    file: str


class BuiltFile(Value, kw_only=True, frozen=True):
    """One library or program of a stack."""

    role: Role
    path: str
    # Its release as the file says it; None: it does not.
    version: str | None = None
    # The CUDA that an NCCL was built for.
    cuda: str | None = None
    # As `uname -m` says it; None: another one.
    machine: Literal["x86_64", "aarch64"] | None
    soname: str | None = None
    # Names under which NCCL finds a plug-in, as it exports them; of NCCL: those that it asks for.
    interfaces: tuple[str, ...] = ()
    # Of libfabric: the providers of fabrics that busbw knows platforms with.
    providers: tuple[str, ...] = ()
    code: tuple[DeviceCode, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    # Folders of RPATH and RUNPATH that are not there.
    absent: tuple[str, ...] = ()
    needs: tuple[Linked, ...] = ()
    # Of a plug-in: what it opens by name when it starts, and cannot do without.
    opens: tuple[Linked, ...] = ()
    # Of libfabric: whether it was built with CUDA, so that its providers reach the memory of GPUs.
    has_cuda: bool | None = None
    # Links that lead to it, of those in the folders that were given.
    links: tuple[str, ...] = ()
    # Whether it is in a folder that was given, and not one that was found through another.
    given: bool = True
    size_bytes: Integer = 0
    # Of what its own header says; above 0: it is cut off.
    lacking_bytes: Integer = 0
    package: BuiltPackage | None = None

    @property
    def is_usual_plugin(self) -> bool:
        """Whether it has the name under which NCCL looks for a plug-in by itself, or a link of that name."""
        return any(path.endswith("/libnccl-net.so") for path in (self.path, *self.links))

    @property
    def networks(self) -> tuple[str, ...]:
        """Return the interfaces for networks, the newest first."""
        return tuple(each for each in self.interfaces if each.startswith(f"{NET}_v"))

    @property
    def span(self) -> str:
        """Return the interfaces for networks as `ncclNetPlugin v6 to v10`."""
        versions = sorted(int(each.rpartition("_v")[2]) for each in self.networks)
        if not versions:
            return "none"
        if len(versions) == versions[-1] - versions[0] + 1 > 1:
            return f"{NET} v{versions[0]} to v{versions[-1]}"
        return f"{NET} {', '.join(f'v{each}' for each in versions)}"

    def common_interface(self, plugin: "BuiltFile") -> str | None:
        """Return the interface for networks that this NCCL takes of a plug-in; None: they have none in common."""
        asked = set(self.networks)
        return next((each for each in plugin.networks if each in asked), None)


class BuiltStack(Value, kw_only=True, frozen=True):
    """What was found in some folders or in an image, and what would be loaded with it."""

    # As given: folders, or the image.
    places: tuple[str, ...]
    # None: on this host.
    image: str | None = None
    files: tuple[BuiltFile, ...]
    packages: tuple[BuiltPackage, ...] = ()
    # Module files and environments that were given.
    sources: tuple[BuiltSource, ...] = ()
    # Folders for LD_LIBRARY_PATH, in order.
    library_path: tuple[str, ...] = ()
    # What could not be read, and why.
    unread: tuple[str, ...] = ()

    def rank(self, file: BuiltFile) -> int:
        """Return the place of a file's folder in the search path; what is elsewhere comes last."""
        folders = [path.rpartition("/")[0] for path in (file.path, *file.links)]
        found = [self.library_path.index(each) for each in folders if each in self.library_path]
        return min(found, default=len(self.library_path))

    def loaded(self, role: Role) -> BuiltFile | None:
        """Return the file of a role that programs would load: the first given one, else the first that was found."""
        of_role = [each for each in self.files if each.role == role]
        return next(iter(sorted(of_role, key=lambda each: (not each.given, self.rank(each)))), None)

    def network_plugin(self) -> BuiltFile | None:
        """Return the plug-in for networks that NCCL would load; None: there is none."""
        having = [each for each in self.files if each.role == "plugin" and each.networks]
        ordered = sorted(having, key=lambda each: (not each.is_usual_plugin, self.rank(each)))
        return next(iter(ordered), None)


class Adoption(Value, kw_only=True, frozen=True):
    """A stack, what is wrong with it, and what could not be told before it runs."""

    platform: str
    stack: BuiltStack
    findings: tuple[Finding, ...]
    counts: FindingCounts
    cannot_tell: tuple[str, ...] = ()
