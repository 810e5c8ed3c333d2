"""Hosts to compare, made of one."""

from typing import Any

import msgspec

from busbw.model.record import LoadedLibrary, Node, NodeLimit, NodePort

NCCL = LoadedLibrary(name="libnccl", path="/usr/lib/libnccl.so.2", version="2.28.9", fingerprint="90d1f3aa00000000")
OLD_NCCL = LoadedLibrary(name="libnccl", path="/opt/libnccl.so.2", version="2.27.7", fingerprint="1b0c8e5500000000")
PORT = NodePort(name="mlx5_0/1", up=True, rate="400 Gb/sec (4X NDR)")


def node(number: int = 0, **changes: Any) -> Node:
    """Return host `n<number>` with 8 GPUs and one port, changed."""
    usual = Node(
        rank=8 * number,
        ranks=8,
        host=f"n{number}",
        boot_id=f"boot {number}",
        kernel="Linux 6.1.0 x86_64",
        cpu_model="A Processor",
        cpus=96,
        threads_per_core=1,
        numa_nodes=2,
        memory_bytes=2**40,
        memory_available_bytes=2**39,
        cpu_quota=None,
        governor="performance",
        numa_balancing=0,
        busbw="0.1.0",
        busbw_fingerprint="99e0b81a587b60b1",
        python="3.11.7",
        mpi4py="4.1.2",
        mpi="Open MPI v5.0.11",
        libraries=(NCCL,),
        environment=(("NCCL_ALGO", "Ring"),),
        settings_files=(),
        limits=(NodeLimit(name="memlock", most=None),),
        shared_memory_bytes=2**39,
        shared_memory_free_bytes=2**39,
        gpus=tuple(f"0000:{bus:02x}:00.0" for bus in range(8)),
        cuda_devices=8,
        gpu_free_bytes=2**36,
        ports=(PORT,),
        unix_s=1e9,
        sees_directory=True,
    )
    return msgspec.structs.replace(usual, **changes)


def nodes(count: int = 4, /, **odd: dict[str, Any]) -> tuple[Node, ...]:
    """Return hosts n0, n1, ...; `n2={...}` are the changes of one."""
    return tuple(node(number, **odd.get(f"n{number}", {})) for number in range(count))
