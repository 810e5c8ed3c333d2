"""Where a host is not as the platform that it is known to be."""

from busbw.machine.detect.gpus import gpus_of
from busbw.machine.detect.nics import compute_ports
from busbw.machine.detect.parts import Comparison, Part, listed
from busbw.model.detection import Contradiction
from busbw.model.host import Hardware
from busbw.model.platform import Platform

# The number of ports says it better, and a driver that is not told to names NICs as it likes.
_NOT_REPORTED: frozenset[Part] = frozenset({"NIC names", "host name"})
_FIXES: dict[Part, str] = {
    "GPU kind": "the platform may have been misnamed: busbw platform detect --explain",
    "GPU count": "nvidia-smi -L; look for Xid 79 in the kernel's log, then restart or replace the node",
    "NIC ports": "ibstat; look at the cable and at the kernel's log, then restart or replace the node",
    "NIC addresses": "lspci; look at the kernel's log, then restart or replace the node",
    "NUMA CPUs": "do not use masks or a topology file of this platform here: busbw topo make --here",
}


def contradictions(
    size: Platform, comparisons: tuple[Comparison, ...], hardware: Hardware
) -> tuple[Contradiction, ...]:
    """Return where a host differs from its platform in the size it has, with what to do about it."""
    found = []
    counted = {each.part for each in comparisons if each.verdict == "differs"}
    for each in comparisons:
        told_already = each.part == "NIC addresses" and "NIC ports" in counted
        if each.verdict == "differs" and each.part not in _NOT_REPORTED and not told_already:
            found.append(Contradiction(part=each.part, text=each.text, fix=_fix(each, hardware)))
    if not gpus_of(hardware) and size.gpu.count and "GPU count" not in counted:
        text = f"no GPU can be seen, of {size.gpu.count}"
        found.append(Contradiction(part="GPU count", text=text, fix="load the driver, or give the container its GPUs"))
    down = [port.name for port in compute_ports(size, hardware) if port.up is False]
    if down:
        text = f"{len(down)} of the compute NIC's ports {'is' if len(down) == 1 else 'are'} down: {listed(down)}"
        found.append(Contradiction(part="NIC ports", text=text, fix=_FIXES["NIC ports"]))
    return tuple(found)


def _fix(comparison: Comparison, hardware: Hardware) -> str | None:
    if comparison.part == "GPU count" and hardware.container is not None:
        return f"a container ({hardware.container}) may be given fewer than the host has: look on the host"
    return _FIXES.get(comparison.part)
