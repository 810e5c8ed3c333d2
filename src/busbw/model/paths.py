"""Ways from one device of a node to another, as NCCL names them, and what follows from them.

A device is called as NCCL's log calls it, with its whole address: `GPU/0000:0f:00.0`, `PCI/ffff:ff:01.0`, `CPU/0` (a
NUMA node), `NIC/0101:00:00.0`, `NET/mlx5_ib0` (a port), `NVS/0` (all NVSwitches together, as NCCL has them).
"""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.topology import Topology

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
    """What a ring or tree over all GPUs of a node could carry at best, as bus bandwidth."""

    algorithm: Literal["ring", "tree"]
    busbw_Bps: float
    # How it follows from the links, and the part that limits.
    formula: str
    limit: str


class MatrixRow(Value, kw_only=True, frozen=True):
    """One row of the matrix: a GPU or a NIC against all of them."""

    name: str
    # In nvidia-smi's words, and in NCCL's, with its detours.
    cells: tuple[str, ...]
    nccl: tuple[PathType, ...]
    # Of GPUs; None for NICs and where the topology does not say.
    cpus: tuple[Integer, ...] | None = None
    numa: Integer | None = None


class PathMatrix(Value, kw_only=True, frozen=True):
    """The ways between all GPUs and ports. Cells of a row are in the order of the rows."""

    rows: tuple[MatrixRow, ...]
    # NIC0, NIC1, ... and what they stand for.
    legend: tuple[tuple[str, str], ...]


class NodeView(Value, kw_only=True, frozen=True):
    """A topology and what follows from it."""

    topology: Topology
    gpus: tuple[GpuSpot, ...]
    ports: tuple[PortSpot, ...]
    ceilings: tuple[RingCeiling, ...]
    # What to know before believing the rest, in words.
    notes: tuple[str, ...] = ()
