"""The way between every two GPUs and ports, in the words of nvidia-smi's matrix and in NCCL's."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from busbw.base.value import Value
from busbw.model.topology import (
    MatrixRow,
    PathMatrix,
    PciDevice,
    Topology,
)
from busbw.topo.paths.graph import (
    DEFAULT_NCCL,
    Nccl,
    release_name,
)
from busbw.topo.paths.paths import (
    NO_PATH,
    gpu_numbers,
    nccl_paths,
    port_spots,
)

# As nvidia-smi explains them under its matrix.
_MEANINGS = (
    ("X", "itself"),
    ("SYS", "through PCIe and the link between NUMA nodes"),
    ("NODE", "through PCIe and the link between host bridges of one NUMA node"),
    ("PHB", "through PCIe and one host bridge"),
    ("PXB", "through several PCIe switches, and no host bridge"),
    ("PIX", "through at most one PCIe switch"),
    ("NV#", "through # NVLinks"),
)
# nvidia-smi has no word for it; rocm-smi's matrix says this.
_XGMI = "XGMI"
_XGMI_MEANING = (_XGMI, "through links between AMD's GPUs")


class _End(Value, kw_only=True, frozen=True):
    """A GPU or port of the matrix."""

    name: str
    # As in model.paths.
    device: str
    bus_id: str
    numa: int
    # Bus ids of the switches above, the nearest first.
    switches: tuple[str, ...]
    host_bridge: str | None


@dataclass(frozen=True, kw_only=True)
class _Links:
    """The links between GPUs: how many each has to each other one, and under None to switches; which are XGMI."""

    counts: Mapping[tuple[str, str | None], int]
    xgmi: frozenset[tuple[str, str]]


def path_matrix(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> PathMatrix:
    """Return the matrix of all GPUs, then all ports of PCI devices, with the CPUs and NUMA node of each GPU.

    Raises InputError for a topology larger than a node can be.
    """
    paths = nccl_paths(topology, nccl)
    devices: dict[str | None, PciDevice] = {device.bus_id: device for device in topology.devices}
    cpus = {numa.id: numa.cpus for numa in topology.numa}
    gpus = tuple(
        _end(f"GPU{number}", f"GPU/{gpu.bus_id}", gpu.bus_id, _numa(devices, gpu.bus_id), devices)
        for number, gpu in zip(gpu_numbers(topology.gpus), topology.gpus, strict=True)
    )
    # nvidia-smi knows ports of the PCI bus only; a host may have a hundred interfaces beside them.
    ports = tuple((port, port.bus_id) for port in port_spots(topology) if port.bus_id is not None)
    nics = tuple(
        _end(f"NIC{place}", f"{'NIC' if port.rate_Bps is None else 'NET'}/{port.name}", bus_id, port.numa, devices)
        for place, (port, bus_id) in enumerate(ports)
    )
    links = _links(topology)
    rows = tuple(
        MatrixRow(
            name=end.name,
            cells=tuple("X" if end.device == other.device else _cell(end, other, links) for other in (*gpus, *nics)),
            nccl=tuple(paths.get(end.device, {}).get(other.device, NO_PATH).type for other in (*gpus, *nics)),
            bandwidth_Bps=tuple(
                paths.get(end.device, {}).get(other.device, NO_PATH).bandwidth_Bps for other in (*gpus, *nics)
            ),
            cpus=cpus.get(end.numa) or _near_cpus(devices, end.bus_id) if end in gpus else None,
            numa=_numa_near(devices, end) if end in gpus else None,
        )
        for end in (*gpus, *nics)
    )
    return PathMatrix(
        release=release_name(nccl),
        rows=rows,
        legend=tuple((nic.name, port.name) for nic, (port, _bus_id) in zip(nics, ports, strict=True)),
    )


def meanings(matrix: PathMatrix) -> tuple[tuple[str, str], ...]:
    """Return what the words of a matrix mean: all of nvidia-smi's, and XGMI where it is in the matrix."""
    return (*_MEANINGS, _XGMI_MEANING) if any(_XGMI in row.cells for row in matrix.rows) else _MEANINGS


def _near_cpus(devices: Mapping[str | None, PciDevice], bus_id: str) -> tuple[int, ...] | None:
    return devices[bus_id].near_cpus or None if bus_id in devices else None


def _numa_near(devices: Mapping[str | None, PciDevice], end: _End) -> int | None:
    """Return the NUMA node of an end; of one that shows none, that of all CPUs that are local to it."""
    if end.numa >= 0:
        return end.numa
    near = devices[end.bus_id].near_numa if end.bus_id in devices else ()
    return near[0] if len(near) == 1 else None


def _numa(devices: Mapping[str | None, PciDevice], bus_id: str) -> int:
    return devices[bus_id].numa if bus_id in devices else -1


def _end(name: str, device: str, bus_id: str, numa: int, devices: Mapping[str | None, PciDevice]) -> _End:
    switches = tuple(_switches(bus_id, devices)) if bus_id in devices else ()
    bridge = devices[bus_id].host_bridge if bus_id in devices else None
    return _End(name=name, device=device, bus_id=bus_id, numa=numa, switches=switches, host_bridge=bridge)


def _switches(bus_id: str | None, devices: Mapping[str | None, PciDevice]) -> Iterator[str]:
    seen = {bus_id}
    parent = devices[bus_id].parent
    while parent is not None and parent in devices and parent not in seen:
        seen.add(parent)
        yield parent
        parent = devices[parent].parent


def _cell(one: _End, other: _End, links: _Links) -> str:
    straight = links.counts.get((one.bus_id, other.bus_id), 0)
    count = straight or min(links.counts.get((end.bus_id, None), 0) for end in (one, other))
    if count:
        return _XGMI if (one.bus_id, other.bus_id) in links.xgmi else f"NV{count}"
    if one.numa != other.numa:
        return "SYS"
    shared = next((switch for switch in one.switches if switch in other.switches), None)
    if shared is not None:
        return "PIX" if one.switches[0] == shared == other.switches[0] else "PXB"
    if one.bus_id.rpartition(".")[0] == other.bus_id.rpartition(".")[0]:
        # Ports of one card.
        return "PIX"
    return "PHB" if _root_bus(one) == _root_bus(other) is not None else "NODE"


def _root_bus(end: _End) -> str | None:
    """Return the root bus above a device; where that is not known its own bus, unless it is below a switch."""
    if end.host_bridge is not None:
        return end.host_bridge
    return end.bus_id.rpartition(":")[0] if not end.switches else None


def _links(topology: Topology) -> _Links:
    gpus = {gpu.bus_id for gpu in topology.gpus}
    counts: Counter[tuple[str, str | None]] = Counter()
    for link in topology.nvlinks:
        if link.target in gpus:
            counts[link.gpu, link.target] += link.count
        elif link.kind == "nvlink" and not (link.target_class or "").startswith(("0x03", "0x068001")):
            counts[link.gpu, None] += link.count
    xgmi = frozenset((link.gpu, link.target) for link in topology.nvlinks if link.kind == "xgmi")
    return _Links(counts=counts, xgmi=xgmi)
