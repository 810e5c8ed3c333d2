"""Whether a NIC can reach the memory of GPUs by itself (GPUDirect RDMA)."""

from busbw.machine.health.node import Node, fault, fine, found, skipped, unknown
from busbw.model.host_check import HostCheck

_PEER_MODULES = {"nvidia_peermem", "nv_peer_mem"}
# DMA-BUF with RDMA came with Linux 5.12; distributions have carried it back to older ones.
_DMA_BUF_KERNEL = (5, 12)


def gpu_direct(node: Node) -> HostCheck:
    """Check that nvidia_peermem is loaded, or else that DMA-BUF can do the same."""
    name, look = "GPUDirect RDMA", "lsmod | grep -i peermem; cat /proc/driver/nvidia/version; uname -r"
    if not node.nvidia_gpus or not node.rdma_ports:
        because = "not both NVIDIA GPUs and ports that NCCL drives itself; a plug-in says in its log what it does"
        return skipped(name, because, look=look)
    modules, module, kernel = node.state.modules, node.state.nvidia_module, node.state.kernel
    loaded = _PEER_MODULES.intersection(modules or ())
    if loaded:
        return fine(name, f"{min(loaded)} is loaded", look=look)
    if modules is None or module is None or (module == "open" and kernel is None):
        because = "the modules that are loaded, the kind of NVIDIA's, or the kernel's version cannot be seen"
        return unknown(name, because, look=look)
    if module == "open" and kernel is not None and kernel >= _DMA_BUF_KERNEL:
        return fine(name, f"DMA-BUF: NVIDIA's open module on Linux {kernel[0]}.{kernel[1]}", look=look)
    reason = (
        "NVIDIA's proprietary module has no DMA-BUF for RDMA"
        if module == "proprietary"
        else f"Linux {kernel[0]}.{kernel[1]} is before 5.12"
        if kernel is not None
        else ""
    )
    made = fault(
        "HOST020",
        evidence=f"nvidia_peermem is not loaded, and {reason}",
        fix="sudo modprobe nvidia_peermem, and a line nvidia_peermem in /etc/modules-load.d/nvidia.conf",
        look=look,
        confidence="likely" if module == "proprietary" else "possible",
    )
    return found(name, made, look=look)
