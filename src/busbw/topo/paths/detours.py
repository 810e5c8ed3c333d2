"""Where NCCL does not take the direct way: past another GPU to a NIC (PXN), and through the CPU's memory."""

from busbw.model.paths import Path
from busbw.model.topology import Topology
from busbw.topo.paths.constants import DEFAULT_NCCL, Nccl
from busbw.topo.paths.graph import port_names
from busbw.topo.paths.nearest import port_gpus
from busbw.topo.paths.paths import RANK, direct_paths, joined, nearest_cpu

# Up to here PXN needed a NIC without a CPU in between, unless NCCL_PXN_C2C was set; it came with 2.27.5.
_PXN_OVER_C2C_SINCE = (2, 28, 3)
_PXN_BEATS_CPU_SINCE = (2, 27, 5)


def nccl_paths(topology: Topology, nccl: Nccl = DEFAULT_NCCL) -> dict[str, dict[str, Path]]:
    """Return the ways that NCCL's own tables show, with its defaults: the direct ones and the detours to ports.

    A port or GPU whose `gdr` is 0 is reached through its CPU; one that the topology says nothing of counts as able.
    GPUs that do not reach each other without a CPU exchange data through its memory: the same links and the same type.
    """
    paths = direct_paths(topology, nccl)
    gpus = tuple(name for name in paths if name.startswith("GPU/"))
    relays = port_gpus(paths, topology)
    able = _able(topology)
    for port in (name for name in paths if name.startswith("NET/")):
        relay = relays.get(port)
        for gpu in gpus:
            if relay is not None and relay != gpu and _is_worth_a_relay(paths, gpu, relay, port, nccl):
                past = joined(paths[gpu][relay], paths[relay][port])
                paths[gpu][port] = Path(type="PXN", bandwidth_Bps=past.bandwidth_Bps, hops=past.hops)
            if RANK[paths[gpu][port].type] < RANK["PHB"] and not (able[gpu] and able[port]):
                _divert(paths, gpu, port)
    return paths


def _is_worth_a_relay(paths: dict[str, dict[str, Path]], gpu: str, relay: str, port: str, nccl: Nccl) -> bool:
    direct, onward = paths[gpu][port], paths[relay][port]
    farthest = "P2C" if nccl >= _PXN_OVER_C2C_SINCE else "PXB"
    best_kept = "PXN" if nccl >= _PXN_BEATS_CPU_SINCE else "PXB"
    return (
        RANK[onward.type] <= RANK[farthest]
        and RANK[paths[relay][gpu].type] <= RANK["NVL"]
        and (onward.bandwidth_Bps > direct.bandwidth_Bps or RANK[direct.type] > RANK[best_kept])
    )


def _able(topology: Topology) -> dict[str, bool]:
    """Return for each GPU and port whether nothing in the topology forbids GPUDirect RDMA."""
    gpus = {f"GPU/{gpu.bus_id}": gpu.gdr is not False for gpu in topology.gpus}
    nets = zip(port_names(topology), topology.nets, strict=True)
    return gpus | {f"NET/{name}": net.gdr is not False for name, net in nets}


def _divert(paths: dict[str, dict[str, Path]], gpu: str, port: str) -> None:
    cpu = nearest_cpu(paths, gpu)
    if cpu is not None and cpu in paths[port]:
        paths[port][gpu] = joined(paths[port][cpu], paths[cpu][gpu])
        paths[gpu][port] = joined(paths[gpu][cpu], paths[cpu][port])
