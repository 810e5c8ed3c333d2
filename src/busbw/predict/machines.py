"""Nodes of one kind as the constants see them, and what platforms' files publish of such nodes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from busbw.limits.algorithms import shape_of
from busbw.limits.rates import rates_of_platform
from busbw.model.limit import NodeRates
from busbw.model.platform import Platform, Published, PublishedSweep
from busbw.model.predict.prediction import MeasuredElsewhere

# Networks that read and write memory of GPUs. Of one of them that nobody measured the others say something, with a
# wider interval.
RDMA = frozenset({"InfiniBand", "RoCE", "EFA", "Slingshot"})

_OF_RACK = " rack"


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

    @property
    def generations(self) -> tuple[str, ...]:
        """Return the kinds of GPUs that are nearest, its own first: those of a rack are those of nodes, joined."""
        own = self.generation
        return () if own is None else tuple(dict.fromkeys((own, own.removesuffix(_OF_RACK))))

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
    return generation_of_sm(platform.gpu.sm, is_rack=platform.nvlink.domain_gpus is not None)


def generation_of_sm(sm: int | None, *, is_rack: bool) -> str | None:
    """Return the kind of NVIDIA's GPUs by their compute capability times ten; `is_rack`: a switch joins several nodes.

    None: of no kind that was measured.
    """
    generation = {80: "ampere", 90: "hopper", 100: "blackwell"}.get(sm or 0)
    return f"{generation}{_OF_RACK}" if generation is not None and is_rack else generation


def groups_of(machine: MachineClass, nodes: int) -> int:
    """Return how many groups of ranks only NICs join: nodes, or NVLink domains of several."""
    return shape_of(machine.rates, nodes).groups


def measured_elsewhere(
    machine: MachineClass, collective: str, platforms: Sequence[Platform]
) -> tuple[MeasuredElsewhere, ...]:
    """Return sizes that were measured with such GPUs, as many a node, and between nodes over such a network.

    Limits of health checks, averages over sizes, SHARP, and networks in place of the platform's own are left out.
    """
    if machine.generation is None:
        return ()
    return tuple(
        point
        for platform in platforms
        if generation_of(platform) == machine.generation
        for sweep in _published(platform)
        if sweep.test == collective and _is_alike(sweep, platform, machine)
        for point in _points(sweep, platform)
    )


def _published(platform: Platform) -> Iterator[PublishedSweep | Published]:
    yield from platform.sweeps
    yield from platform.published


def _is_alike(sweep: PublishedSweep | Published, platform: Platform, machine: MachineClass) -> bool:
    is_plain = sweep.network in (None, "fabric") and not sweep.sharp
    if not is_plain or sweep.nodes is None or sweep.gpus != sweep.nodes * machine.rates.gpus:
        return False
    return sweep.nodes == 1 or platform.fabric.kind == machine.fabric


def _points(sweep: PublishedSweep | Published, platform: Platform) -> Iterator[MeasuredElsewhere]:
    document = ""
    cells: tuple[tuple[int, float], ...] = ()
    if isinstance(sweep, PublishedSweep):
        document, cells = sweep.document, sweep.points
    elif sweep.kind == "measured" and sweep.size_bytes and (sweep.metric, sweep.unit) == ("busbw", "GB/s"):
        document, cells = sweep.source[0] if sweep.source else "", ((sweep.size_bytes, sweep.value),)
    for size_bytes, busbw_GBps in cells:
        yield MeasuredElsewhere(
            name=platform.id,
            document=document,
            nodes=sweep.nodes or 1,
            size_bytes=size_bytes,
            busbw_Bps=busbw_GBps * 1e9,
        )
