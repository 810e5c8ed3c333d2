"""What the links between the GPUs of a node are called."""

from busbw.model.topology import Topology


def link_words(topology: Topology) -> str:
    """Return the name of the links between GPUs, in the plural: NVIDIA's where nothing says otherwise."""
    return "XGMI links" if any(link.kind == "xgmi" for link in topology.nvlinks) else "NVLinks"
