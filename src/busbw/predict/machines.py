"""Nodes of one kind as the constants see them."""

from dataclasses import dataclass

from busbw.limits.algorithms import shape_of
from busbw.limits.rates import rates_of_platform
from busbw.model.limit import NodeRates
from busbw.model.platform import Platform

# Networks that read and write memory of GPUs. Of one of them that nobody measured the others say something, with a
# wider interval.
RDMA = frozenset({"InfiniBand", "RoCE", "EFA", "Slingshot"})


class CannotTellError(Exception):
    """No data applies; the text says to what."""


@dataclass(frozen=True, kw_only=True)
class MachineClass:
    """Nodes of one kind as the constants see them."""

    name: str
    rates: NodeRates
    # ampere, hopper, blackwell, blackwell rack (a switch joins GPUs of several nodes), or AMD's processor; None: of no
    # kind that was measured.
    generation: str | None
    # The kind of network; None: not known.
    fabric: str | None
    # Compute capability times ten.
    sm: int | None = None

    def __hash__(self) -> int:
        """Return a hash by name and GPUs, of which everything else follows."""
        return hash((self.name, self.rates.gpus))


def machine_of(platform: Platform, *, gpus: int | None = None, name: str | None = None) -> MachineClass:
    """Return a platform as the constants see it. Raises InputError as `rates_of_platform`."""
    return MachineClass(
        name=platform.id,
        rates=rates_of_platform(platform, gpus=gpus, name=name),
        generation=generation_of(platform),
        fabric=platform.fabric.kind,
        sm=platform.gpu.sm,
    )


def generation_of(platform: Platform) -> str | None:
    """Return the kind of GPUs as constants tell them apart; None: of no kind that was measured."""
    if platform.gpu.gcn is not None:
        return platform.gpu.gcn.partition(":")[0]
    generations = {80: "ampere", 90: "hopper", 100: "blackwell"}
    generation = generations.get(platform.gpu.sm or 0)
    return f"{generation} rack" if generation is not None and platform.nvlink.domain_gpus is not None else generation


def groups_of(machine: MachineClass, nodes: int) -> int:
    """Return how many groups of ranks only NICs join: nodes, or NVLink domains of several."""
    return shape_of(machine.rates, nodes).groups
