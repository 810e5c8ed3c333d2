"""The GPUs: all there, healthy, not slowed, and joined by their NVLinks."""

from busbw.base.cpus import format_cpu_list
from busbw.machine.health.node import ExaminedNode, fault, fine, found, skipped, unknown
from busbw.model.finding import Finding, HostCheck
from busbw.model.host import GpuState

_NO_GPUS = "no NVIDIA GPU"
_SILENT = "nvidia-smi -q was not there, or said nothing that can be read"
_COMPUTE_CLASS = "0x0302"
_NVIDIA = "0x10de"


def present(node: ExaminedNode) -> HostCheck:
    """Check that the driver shows every GPU that is on the bus, with its name."""
    name, look = "GPUs on the bus", "nvidia-smi -L; lspci -d 10de:; sudo dmesg | grep -i xid"
    on_bus = [
        each.bus_id
        for each in node.hardware.pci
        # One that another driver holds was given away on purpose.
        if each.vendor == _NVIDIA and each.device_class.startswith(_COMPUTE_CLASS) and each.driver in (None, "nvidia")
    ]
    if not node.nvidia_gpus and not on_bus:
        return skipped(name, _NO_GPUS, look=look)
    if not node.state.gpus:
        return unknown(name, _SILENT, look=look)
    shown = {gpu.bus_id for gpu in node.state.gpus}
    lost = [address for address in on_bus if address not in shown]
    if lost and node.hardware.container is not None:
        because = f"{len(lost)} of {len(on_bus)} are not shown, which a container may mean to do"
        return unknown(name, because, look=look)
    nameless = [gpu.bus_id for gpu in node.nvidia_gpus if gpu.name is None]
    made = [_lost(address, "on the PCI bus, and nvidia-smi does not show it", look) for address in lost]
    made += [_lost(address, "nvidia-smi shows it without a name", look) for address in nameless]
    return found(name, *made, look=look) if made else fine(name, f"{len(node.nvidia_gpus)} of them", look=look)


def _lost(address: str, evidence: str, look: str) -> Finding:
    fix = "look for Xid 79 in dmesg; drain the node and restart it; if it happens again, replace the GPU"
    return fault("HOST030", device=address, evidence=evidence, fix=fix, look=look, confidence="likely")


def memory_health(node: ExaminedNode) -> HostCheck:
    """Check that no memory error waits for a repair or has been beyond one."""
    name, look = "GPU memory (ECC)", "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT"
    if not node.nvidia_gpus:
        return skipped(name, _NO_GPUS, look=look)
    reporting = [gpu for gpu in node.state.gpus if gpu.uncorrected_errors is not None or gpu.repair_pending is not None]
    if not reporting:
        return unknown(name, _SILENT if not node.state.gpus else "the GPUs count no errors", look=look)
    made = [each for gpu in reporting for each in _memory(gpu, look)]
    return found(name, *made, look=look) if made else fine(name, f"no such error; GPUs: {len(reporting)}", look=look)


def _memory(gpu: GpuState, look: str) -> list[Finding]:
    device, made = f"GPU {gpu.index} ({gpu.bus_id})", []
    if gpu.uncorrected_errors:
        evidence = f"{gpu.uncorrected_errors} uncorrected since the driver was loaded"
        fix = "sudo nvidia-smi --gpu-reset -i N with nothing running, or restart; if they come back, replace the GPU"
        made.append(fault("HOST031", device=device, evidence=evidence, fix=fix, look=look))
    if gpu.repair_failed:
        fix = "replace the GPU: it has no spare rows left where they are needed"
        made.append(
            fault("HOST032", device=device, what="has failed", evidence="row remapping failed", fix=fix, look=look)
        )
    elif gpu.repair_pending:
        fix = "sudo nvidia-smi --gpu-reset -i N with nothing running, or restart the node"
        made.append(
            fault("HOST032", device=device, what="is pending", evidence="a row is to be remapped", fix=fix, look=look)
        )
    return made


def clocks(node: ExaminedNode) -> HostCheck:
    """Check that nothing but load and rest decides on the clocks."""
    name, look = "GPU clocks", "nvidia-smi -q -d CLOCK,PERFORMANCE"
    if not node.nvidia_gpus:
        return skipped(name, _NO_GPUS, look=look)
    reporting = [gpu for gpu in node.state.gpus if gpu.slowed_by is not None]
    made = [each for gpu in node.state.gpus for each in _clocks(gpu, look)]
    if made:
        return found(name, *made, look=look)
    if not reporting:
        return unknown(name, _SILENT if not node.state.gpus else "nvidia-smi gives no reasons for clocks", look=look)
    return fine(name, f"no GPU of {len(reporting)} is slowed", look=look)


def _clocks(gpu: GpuState, look: str) -> list[Finding]:
    device, made = f"GPU {gpu.index} ({gpu.bus_id})", []
    if gpu.slowed_by:
        evidence = f"active now: {', '.join(gpu.slowed_by)}"
        fix = "look at temperature, fans, coolant and power supplies (nvidia-smi -q -d TEMPERATURE,POWER)"
        made.append(fault("HOST033", device=device, evidence=evidence, fix=fix, look=look, confidence="likely"))
    now, usual = gpu.application_MHz, gpu.default_application_MHz
    if now is not None and usual is not None and now < usual:
        evidence = f"application clock {now} MHz, by default {usual}"
        made.append(fault("HOST034", device=device, evidence=evidence, fix="sudo nvidia-smi -rac", look=look))
    return made


def persistence(node: ExaminedNode) -> HostCheck:
    """Check that the driver stays loaded between jobs."""
    name, look = "GPU persistence", "nvidia-smi -q | grep -i persistence"
    if not node.nvidia_gpus:
        return skipped(name, _NO_GPUS, look=look)
    reporting = [gpu for gpu in node.state.gpus if gpu.persistence is not None]
    if not reporting:
        return unknown(name, _SILENT if not node.state.gpus else "nvidia-smi does not say", look=look)
    off = [gpu.index for gpu in reporting if gpu.persistence is False]
    if not off:
        return fine(name, f"on; GPUs: {len(reporting)}", look=look)
    evidence = f"persistence mode is off on GPU {format_cpu_list(tuple(off))}"
    fix = "sudo systemctl enable --now nvidia-persistenced"
    return found(name, fault("HOST035", evidence=evidence, fix=fix, look=look), look=look)


def partitions(node: ExaminedNode) -> HostCheck:
    """Check that no GPU is partitioned."""
    name, look = "MIG", "nvidia-smi -q | grep -A 2 -i 'mig mode'"
    if not node.nvidia_gpus:
        return skipped(name, _NO_GPUS, look=look)
    if not node.state.gpus:
        return unknown(name, _SILENT, look=look)
    on = [gpu.index for gpu in node.nvidia_gpus if gpu.mig]
    if not on:
        return fine(name, "off", look=look)
    evidence = f"MIG is on for GPU {format_cpu_list(tuple(on))}"
    return found(name, fault("HOST036", evidence=evidence, fix="sudo nvidia-smi -mig 0", look=look), look=look)


def nvlinks(node: ExaminedNode) -> HostCheck:
    """Check that every NVLink is active, and that the fabric that joins them is ready."""
    name, look = (
        "NVLink",
        "nvidia-smi nvlink -s; nvidia-smi -q | grep -A 3 -w Fabric; systemctl status nvidia-fabricmanager",
    )
    if not node.nvidia_gpus:
        return skipped(name, _NO_GPUS, look=look)
    linked = [gpu for gpu in node.nvidia_gpus if gpu.nvlinks]
    made = _fabric(node, look)
    joined = {gpu.name for gpu in linked if any(link.active for link in gpu.nvlinks)}
    for gpu in node.nvidia_gpus:
        dead = [link.link for link in gpu.nvlinks if not link.active]
        if not dead and (gpu.nvlinks or gpu.name not in joined):
            continue
        evidence = f"inactive: {format_cpu_list(tuple(dead))}" if dead else "it shows none, and others of its kind do"
        fix = (
            "sudo dmesg | grep -i -e nvlink -e xid; stop the fabric manager, reset the GPUs (sudo nvidia-smi -r), "
            "start it again; else reboot"
        )
        device = f"GPU {gpu.index} ({gpu.bus_id})"
        few = f"{len(dead)} of {len(gpu.nvlinks)}" if dead else "all"
        made.append(
            fault("HOST038", device=device, few=few, evidence=evidence, fix=fix, look=look, confidence="likely")
        )
    if made:
        return found(name, *made, look=look)
    wants = node.platform is not None and node.platform.nvlink.links_per_gpu
    if not linked and (wants or node.platform is None):
        return unknown(name, "nvidia-smi nvlink shows no link", look=look)
    if not linked:
        return skipped(name, "the platform has none", look=look)
    return fine(name, f"all {sum(len(gpu.nvlinks) for gpu in linked)} links active", look=look)


def _fabric(node: ExaminedNode, look: str) -> list[Finding]:
    """Return that the switches are not set up, where the driver says so; no state means that there are none."""
    bad = [gpu for gpu in node.state.gpus if gpu.fabric_state is not None and not _is_ready(gpu)]
    if not bad:
        return []
    first = bad[0]
    evidence = f"state {first.fabric_state}, status {first.fabric_status or 'not said'}, on {len(bad)} of the GPUs"
    fix = (
        "systemctl status nvidia-fabricmanager: where it does not run, start it in the driver's version; where it runs "
        "or was restarted, end all programs on the GPUs and reset them (sudo nvidia-smi -r), or reboot"
    )
    return [fault("HOST037", evidence=evidence, fix=fix, look=look)]


def _is_ready(gpu: GpuState) -> bool:
    return gpu.fabric_state == "Completed" and gpu.fabric_status in (None, "Success")


_PEER_MODULES = {"nvidia_peermem", "nv_peer_mem"}
# DMA-BUF with RDMA came with Linux 5.12; distributions have carried it back to older ones.
_DMA_BUF_KERNEL = (5, 12)


def gpu_direct(node: ExaminedNode) -> HostCheck:
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
