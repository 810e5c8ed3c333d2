"""NICs of one node tried alone: which can be looped, how a run is told to send through one, and what is said of others.

A port of InfiniBand or RoCE sends to itself: two ranks of the node, with every other way between them forbidden. Over
TCP what a host sends to its own address stays in the kernel.
"""

from collections.abc import Sequence

from busbw.base.value import Value
from busbw.model.host import HostPort
from busbw.model.machine import MpiFamily

_LOOPED = ("InfiniBand", "RoCE")
# Large enough that only the NIC counts.
_SIZE = "64M"
# What NCCL must not take instead of the NIC: NVLink and PCIe between GPUs, memory of the host, sockets, plug-ins.
_NCCL = (
    ("NCCL_P2P_DISABLE", "1"), ("NCCL_SHM_DISABLE", "1"), ("NCCL_NVLS_ENABLE", "0"), ("NCCL_NET", "IB"),
    ("NCCL_NET_PLUGIN", "none"),
)  # fmt: skip
# Without shared memory among UCX's ways, and with nothing but UCX: else ranks would meet in memory of the host.
_UCX: dict[str, tuple[tuple[str, str], ...]] = {
    "Open MPI": (("UCX_TLS", "rc,ud,self"), ("OMPI_MCA_pml", "ucx"), ("OMPI_MCA_osc", "ucx")),
    "MPICH": (("UCX_TLS", "rc,ud,self"), ("MPIR_CVAR_NOLOCAL", "1"), ("MPIR_CVAR_CH4_NETMOD", "ucx")),
}
UNLOOPED = "the stage fabric tests it between nodes"


class NicLoop(Value, kw_only=True, frozen=True):
    """One port that is tried alone, and the run that tries it."""

    nic: str
    # Words behind `busbw run`, and what its environment has beside.
    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]


class UntriedNic(Value, kw_only=True, frozen=True):
    """A port that is not tried alone, and why. `absent`: nothing here could try it."""

    nic: str
    because: str
    absent: bool


def loops_of(
    ports: Sequence[HostPort], gpu_nodes: Sequence[int | None], mpi: MpiFamily | None
) -> tuple[NicLoop | UntriedNic, ...]:
    """Return for each port how it is tried alone, or why it is not.

    `gpu_nodes`: the NUMA node of each GPU, by PCI address; `mpi`: the one that is here; None: none.
    """
    return tuple(_loop(each, gpu_nodes, mpi) for each in ports)


def _loop(port: HostPort, gpu_nodes: Sequence[int | None], mpi: MpiFamily | None) -> NicLoop | UntriedNic:
    name = f"{port.name}:{port.port}" if port.port > 1 else port.name
    if port.up is False:
        return UntriedNic(nic=name, because="its link is down", absent=True)
    if port.kind not in _LOOPED:
        over = "TCP" if port.kind == "Ethernet" else port.kind
        return UntriedNic(nic=name, because=f"one NIC cannot be looped back over {over}; {UNLOOPED}", absent=True)
    device = f"{port.name}:{port.port}"
    if len(gpu_nodes) > 1:
        words = ("broadcast", "--backend", "nccl", "--ranks", "2", "--no-multicast")
        return _made(name, words, (*_NCCL, ("NCCL_IB_HCA", f"={device}"), *_nearest(port, gpu_nodes)))
    if mpi is None or mpi not in _UCX:
        here = f"{mpi} is not known to leave it no other way" if mpi is not None else "no MPI is here, nor two GPUs"
        return UntriedNic(nic=name, because=f"two ranks of this node must meet through it, and {here}", absent=False)
    return _made(name, ("bandwidth", "--ranks", "2"), (*_UCX[mpi], ("UCX_NET_DEVICES", device)))


def _nearest(port: HostPort, gpu_nodes: Sequence[int | None]) -> tuple[tuple[str, str], ...]:
    """Return what makes two GPUs beside the port the visible ones; the first two where there are no two."""
    beside = [gpu for gpu, node in enumerate(gpu_nodes) if node is not None and node == port.numa]
    chosen = beside[:2] if len(beside) > 1 else [0, 1]
    return (("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), ("CUDA_VISIBLE_DEVICES", ",".join(map(str, chosen))))


def _made(nic: str, words: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> NicLoop:
    return NicLoop(nic=nic, words=(*words, "-b", _SIZE, "-e", _SIZE), environment=environment)
