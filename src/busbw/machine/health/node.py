"""The node that the checks look at, and the four answers a check can give."""

from collections.abc import Iterator

from busbw.base.value import Value
from busbw.facts.rules import finding, rule
from busbw.machine.detect.parts import compute_ports
from busbw.model.finding import Confidence, Finding, HostCheck
from busbw.model.host import Contradiction, FoundLibrary, Hardware, HostGpu, HostPort, HostState, Probe
from busbw.model.platform import Platform

_NVIDIA = "0x10de"
_OWN_FABRICS = ("InfiniBand", "EFA", "Slingshot")


class ExaminedNode(Value, kw_only=True, frozen=True):
    """One host with everything that is known of it."""

    hardware: Hardware
    state: HostState
    libraries: tuple[FoundLibrary, ...]
    # Settings of NCCL in force, by name.
    settings: dict[str, str]
    # None: unknown.
    platform: Platform | None
    contradictions: tuple[Contradiction, ...]
    # The ports that collectives use.
    ports: tuple[HostPort, ...]
    nvidia_gpus: tuple[HostGpu, ...]

    @property
    def rdma_ports(self) -> tuple[HostPort, ...]:
        """Return the ports that NCCL drives itself, through verbs."""
        return tuple(port for port in self.ports if port.kind in ("InfiniBand", "RoCE"))


def node_of(
    probe: Probe, state: HostState, platform: Platform | None, contradictions: tuple[Contradiction, ...]
) -> ExaminedNode:
    """Return the node; `contradictions` are where it is not as its platform."""
    vendors = {function.bus_id: function.vendor for function in probe.hardware.pci}
    # nvidia-smi may show a GPU whose bus is hidden.
    gpus = tuple(gpu for gpu in probe.hardware.gpus if vendors.get(gpu.bus_id, _NVIDIA) == _NVIDIA)
    return ExaminedNode(
        hardware=probe.hardware,
        state=state,
        libraries=probe.libraries,
        settings={setting.name: setting.value for setting in probe.settings},
        platform=platform,
        contradictions=contradictions,
        ports=_fabric_ports(probe.hardware, platform),
        nvidia_gpus=gpus,
    )


def _fabric_ports(hardware: Hardware, platform: Platform | None) -> tuple[HostPort, ...]:
    """Return the platform's compute ports; else those of a fabric of its own kind, else the fastest of RoCE."""
    published = compute_ports(platform, hardware) if platform is not None else ()
    own = tuple(port for port in hardware.ports if port.kind in _OWN_FABRICS)
    if published or own:
        return published or own
    roce = tuple(port for port in hardware.ports if port.kind == "RoCE")
    fastest_bps = max((port.rate_bps or 0 for port in roce), default=0)
    return tuple(port for port in roce if (port.rate_bps or 0) == fastest_bps)


def bridges_above(hardware: Hardware, bus_ids: Iterator[str | None]) -> tuple[str, ...]:
    """Return the PCI bridges over some functions, each once."""
    parents = {function.bus_id: function.parent for function in hardware.pci}
    found: dict[str, None] = {}
    for bus_id in bus_ids:
        above = parents.get(bus_id or "")
        while above is not None and above not in found:
            found[above] = None
            above = parents.get(above)
    return tuple(found)


def port_name(port: HostPort) -> str:
    """Return the name of a port, with its number where it is not the first."""
    return port.name if port.port == 1 else f"{port.name}:{port.port}"


def fault(
    code: str, *, evidence: str, fix: str, look: str, confidence: Confidence = "certain", **names: str | int
) -> Finding:
    """Return a finding about this host; `look` is the command that shows what was seen."""
    # `point` and `place` are said because names could be taken for them.
    return finding(
        code,
        evidence=evidence,
        fix=fix,
        point=None,
        place=None,
        look=look,
        confidence=confidence,
        effect=rule(code).why,
        causes=(),
        **names,
    )


def fine(name: str, because: str, *, look: str) -> HostCheck:
    """Return that this is as it should be, and what was seen."""
    return HostCheck(name=name, outcome="ok", because=because, look=look)


def unknown(name: str, because: str, *, look: str) -> HostCheck:
    """Return that it cannot be told, and why."""
    return HostCheck(name=name, outcome="cannot_tell", because=because, look=look)


def skipped(name: str, because: str, *, look: str) -> HostCheck:
    """Return that there is nothing here that the check is about."""
    return HostCheck(name=name, outcome="skipped", because=because, look=look)


def found(name: str, *findings: Finding, look: str) -> HostCheck:
    """Return what was found."""
    return HostCheck(name=name, outcome="found", look=look, findings=findings)
