"""What a host is set to and how its devices are, apart from what it is made of. None: the snapshot does not say."""

from typing import Literal

import msgspec

from busbw.base.value import Integer, Value


class PortState(Value, kw_only=True, frozen=True):
    """One port of an RDMA device."""

    name: str
    port: Integer
    # ACTIVE, INIT, ARMED, DOWN; and of the cable: LinkUp, Polling, Disabled.
    state: str | None = None
    physical: str | None = None
    # Errors since the counters were last set to zero, by the kernel's names.
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
