"""The NVLinks of a host as NCCL sees them, from what the driver says."""

from collections import Counter
from collections.abc import Mapping

from busbw.model.host import Hardware, HostGpu, HostNvLink, PciFunction
from busbw.model.topology import NvLink

# What the driver says, and NCCL writes, where a virtual machine does not show the other end.
HIDDEN_TARGET = "fffffff:ff:ff.0"
_SWITCH_CLASS = "0x068000"
_CLASSES = {"gpu": "0x030200", "switch": _SWITCH_CLASS, "cpu": "0x068001"}
# Boards that plug into a slot are joined by bridges, two by two: there is no switch to hide.
_BRIDGED_BOARDS = ("pcie", "nvl")


def nvlinks_of(hardware: Hardware) -> tuple[NvLink, ...]:
    """Return the active NVLinks of every GPU, counted by what is at their other end.

    Ends that the driver hides are taken from the matrix of `nvidia-smi topo -m` where its counts say that the GPUs are
    joined directly, and are a hidden switch else, as NCCL takes them.
    """
    functions = {function.bus_id: function for function in hardware.pci}
    return tuple(link for gpu in hardware.gpus for link in _of_gpu(gpu, hardware, functions))


def _of_gpu(gpu: HostGpu, hardware: Hardware, functions: Mapping[str, PciFunction]) -> list[NvLink]:
    active = [link for link in gpu.nvlinks if link.active]
    counts = Counter(link.target for link in active if link.target is not None)
    kinds = {link.target: link for link in active}
    links = [
        NvLink(
            gpu=gpu.bus_id,
            target=target,
            count=count,
            target_class=_class(kinds[target], functions),
            kind="nvlink" if gpu.gcn is None else "xgmi",
        )
        for target, count in sorted(counts.items())
    ]
    hidden = [link for link in active if link.target is None]
    peers = _direct_peers(gpu, hardware, len(hidden)) if all(link.target_kind != "switch" for link in hidden) else {}
    if peers:
        links += [
            NvLink(gpu=gpu.bus_id, target=peer, count=count, target_class=_gpu_class(peer, functions))
            for peer, count in sorted(peers.items())
        ]
    elif hidden:
        links.append(
            NvLink(gpu=gpu.bus_id, target=HIDDEN_TARGET, count=len(hidden), target_class=_SWITCH_CLASS),
        )
    return links


def _class(link: HostNvLink, functions: Mapping[str, PciFunction]) -> str:
    """Return the class of what a link leads to; what the machine does not show is a switch to NCCL."""
    target = functions.get(link.target or "")
    if target is not None:
        return target.device_class
    return _CLASSES.get(link.target_kind or "switch", _SWITCH_CLASS)


def _gpu_class(bus_id: str, functions: Mapping[str, PciFunction]) -> str:
    return functions[bus_id].device_class if bus_id in functions else _CLASSES["gpu"]


def _direct_peers(gpu: HostGpu, hardware: Hardware, hidden: int) -> dict[str, int]:
    """Return how many links lead to each other GPU, where no switch is between them; else nothing.

    Through a switch every peer is reached by all links, so the counts of a row add up to more than there are.
    """
    by_name = {f"GPU{each.index}": each.bus_id for each in hardware.gpus}
    counts: dict[str, int] = {}
    for cell in hardware.matrix:
        peer = by_name.get(cell.column)
        number = cell.path.removeprefix("NV")
        if cell.row == f"GPU{gpu.index}" and peer is not None and number != cell.path and number.isdecimal():
            counts[peer] = int(number[:4])
    if sum(counts.values()) != hidden:
        return {}
    bridged = any(word in (gpu.name or "").lower() for word in _BRIDGED_BOARDS)
    return counts if len(counts) > 1 or bridged else {}
