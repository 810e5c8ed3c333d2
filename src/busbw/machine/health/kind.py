"""Whether the host is what its platform should be."""

from busbw.machine.health.node import Node, fault, fine, found, unknown
from busbw.model.detection import Contradiction
from busbw.model.host_check import HostCheck


def platform(node: Node) -> HostCheck:
    """Check the host against what is published of its platform."""
    name, look = "platform", "busbw platform detect --explain"
    if node.platform is None:
        return unknown(name, "the platform is not known, so neither is what it should have", look=look)
    made = [
        fault(
            "HOST050",
            platform=node.platform.id,
            part=each.part,
            evidence=each.text,
            fix=each.fix or look,
            look=look,
            confidence="likely",
        )
        for each in node.contradictions
        if not _is_told_elsewhere(node, each)
    ]
    return found(name, *made, look=look) if made else fine(name, node.platform.id, look=look)


def _is_told_elsewhere(node: Node, each: Contradiction) -> bool:
    """Whether it is about state or rate of ports that are all there: other checks say which, and more of them."""
    wanted = node.platform.nic.ports if node.platform is not None else None
    return each.part == "NIC ports" and len(node.ports) == wanted
