"""A node screened: what it is asked to do, and what it finds of itself. Nothing is judged but its health."""

from typing import Annotated, Literal

import msgspec

from busbw.base.value import Integer, Value
from busbw.model.finding import HostCheck

# What a node says of itself in one line of its output.
SCREENED_PREFIX = "busbw-screened "

# health: `doctor --here`; memory: copies on all cores; noise: what disturbs fixed work; transfer: over TCP with
# partners; pcie: copies between the host and each GPU; gpus: copies between the GPUs of the node; nics: each NIC to
# itself.
Part = Literal["health", "memory", "noise", "transfer", "pcie", "gpus", "nics"]
# What a threshold is about. noise: a share of the time; all others: bytes per second.
Measure = Literal["memory_copy", "noise", "send", "receive", "to_gpu", "from_gpu", "gpu_pair", "nic"]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class SlotLink(Value, kw_only=True, frozen=True):
    """The PCIe link of one PCI function to what is above it, as the kernel shows it. None: not shown."""

    bus_id: str
    # As `32.0 GT/s PCIe`, and lanes; most: what the function could.
    speed: str | None = None
    width: Integer | None = None
    most_speed: str | None = None
    most_width: Integer | None = None


class NodeKind(Value, kw_only=True, frozen=True):
    """What nodes of the same kind have in common. None: not told."""

    cpu_model: str | None
    cpus: Integer
    # Of memory, rounded to whole GiB: firmware keeps a little of it, and not the same everywhere.
    memory_gib: Integer
    # GPUs that the kernel shows.
    gpus: Integer
    platform: str | None


class NodeReading(Value, kw_only=True, frozen=True):
    """One measure of a node: every sample, in the order taken. Bytes per second, or a share."""

    measure: Measure
    samples: tuple[float, ...]
    # Whom data went to or came from; the pair of GPUs; the GPU or NIC; None: the node alone.
    partner: str | None = None
    # The links that data crossed, the GPU's first and then those of the bridges above it; (): not told.
    way: tuple[SlotLink, ...] = ()


class NotScreened(Value, kw_only=True, frozen=True):
    """A part that was asked for and could not be told, or that there is nothing of here."""

    part: Part
    because: str
    # There is nothing here that it is about.
    absent: bool = False


class Screening(Value, kw_only=True, frozen=True):
    """What a node is asked to do; it goes to each node in its command line."""

    parts: tuple[Part, ...]
    # Seconds for all of it.
    time_limit_s: Seconds
    platform: str | None = None
    noise_s: Seconds = 1.0
    memory_s: Seconds = 1.0
    # Of each GPU in each direction, and of each NIC.
    pcie_s: Seconds = 0.2
    nics_s: Seconds = 2.0
    # Hosts that data is sent to and taken from, in turn; at most `most_partners` of them.
    partners: tuple[str, ...] = ()
    most_partners: Annotated[int, msgspec.Meta(ge=1, le=16)] = 3
    transfer_s: Seconds = 0.5
    # What a rate must reach, so that no further partner is asked; None: it is not known beforehand.
    enough_Bps: float | None = None
    remote_shell: tuple[str, ...] = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=3")


class ScreenedNode(Value, kw_only=True, frozen=True):
    """What one node found of itself. Nothing is judged yet but its health."""

    host: str
    unix_s: float
    wall_s: float
    kind: NodeKind
    checks: tuple[HostCheck, ...] = ()
    readings: tuple[NodeReading, ...] = ()
    # GPUs whose copies came back changed.
    changed: tuple[str, ...] = ()
    unscreened: tuple[NotScreened, ...] = ()


class SilentNode(Value, kw_only=True, frozen=True):
    """A node that was asked and did not answer."""

    host: str
    # The last words of what was to start the screening there; None: it said nothing.
    words: str | None


class ScreenedNodes(Value, kw_only=True, frozen=True):
    """The stage `screening`, whole."""

    nodes: tuple[ScreenedNode, ...]
    silent: tuple[SilentNode, ...] = ()
    wall_s: float = 0.0
