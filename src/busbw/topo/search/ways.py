"""Ways as a search counts them: which links a channel takes of, and how much of each."""

from dataclasses import dataclass

from busbw.model.topology import LinkType, Path, PathType, Topology
from busbw.topo.paths.graph import Graph, Nccl
from busbw.topo.paths.paths import TYPES

# NCCL rounds what is left of a link to this.
MBps = int
# A channel takes so many fortieths of its speed where it takes it whole.
WHOLE = 40
# From here on a GPU is two links away from itself: as a device, and as a part of one.
PARTS_SINCE = (2, 30, 3)
# C2C came as a type of its own, then P2C, which went before PXN two patches later.
_C2C_SINCE = (2, 26, 0)
_P2C_SINCE = (2, 27, 3)
_P2C_BEFORE_PXN_SINCE = (2, 27, 5)
# Before this compute capability what comes into a GPU takes an eighth as much of the way out.
_WRITES_FREELY = 80
# What names of GPUs begin with.
_GPU = "GPU/"


def types_of(nccl: Nccl) -> tuple[PathType, ...]:
    """Return the types of ways that a release knows, the best first."""
    missing = {"C2C"} if nccl < _C2C_SINCE else set()
    missing |= {"P2C"} if nccl < _P2C_SINCE else set()
    known = [each for each in TYPES if each not in missing]
    if "P2C" in known and nccl < _P2C_BEFORE_PXN_SINCE:
        known.remove("P2C")
        known.insert(known.index("PXN") + 1, "P2C")
    return tuple(known)


@dataclass(frozen=True, kw_only=True)
class SearchedWay:
    """A way through a node, and what a channel takes of each link, in fortieths of its speed."""

    # Place of its type among those of the release.
    rank: int
    rate_MBps: MBps
    hops: int
    fortieths: tuple[tuple[int, int], ...]

    def takes(self, speed_MBps: MBps) -> tuple[tuple[int, MBps], ...]:
        """Return what a channel of a speed takes of each link."""
        return tuple((link, speed_MBps * fortieths // WHOLE) for link, fortieths in self.fortieths)


class NumberedLinks:
    """The links that ways use, by number."""

    def __init__(self, topology: Topology, graph: Graph, types: tuple[PathType, ...]) -> None:
        self.capacities: list[MBps] = []
        self._numbers: dict[tuple[str, str, LinkType], int] = {}
        self._types = types
        self._graph = graph
        self._rates = {
            (hop.source, hop.target, hop.kind): hop.bandwidth_Bps for hops in graph.links.values() for hop in hops
        }
        x86 = [numa for numa in topology.numa if numa.architecture == "x86_64"]
        self._intel = {f"CPU/{numa.id}" for numa in x86 if numa.vendor == "GenuineIntel"}
        self._power = {f"CPU/{numa.id}" for numa in topology.numa if numa.architecture == "ppc64"}
        self._old = {f"GPU/{gpu.bus_id}" for gpu in topology.gpus if gpu.sm is not None and gpu.sm < _WRITES_FREELY}

    def way(self, path: Path, start: str, more: int = 0) -> SearchedWay:
        """Return a path as a way; `more` are links that NCCL counts beside those of the path."""
        # An Intel CPU passes on what a GPU sends in small packets: they take 6/5 of PCIe links.
        is_from_gpu = start.startswith(_GPU)
        is_costly = path.type == "PHB" and is_from_gpu and any(hop.target in self._intel for hop in path.hops)
        takes: dict[int, int] = {}
        for hop in path.hops:
            fortieths = WHOLE * 6 // 5 if is_costly and hop.kind == "PCI" else WHOLE
            back = 0
            if not is_from_gpu and hop.target in self._old:
                back += fortieths // 8
            if hop.kind == "NVL" and hop.target in self._power:
                back += fortieths
            number = self._number(hop.source, hop.target, hop.kind)
            takes[number] = takes.get(number, 0) + fortieths
            if back:
                number = self._number(hop.target, hop.source, hop.kind)
                takes[number] = takes.get(number, 0) + back
        return SearchedWay(
            rank=self._types.index(path.type),
            rate_MBps=round(path.bandwidth_Bps / 1e6),
            hops=len(path.hops) + more if path.hops else 0,
            fortieths=tuple(takes.items()),
        )

    def pci_links(self, gpu: str) -> tuple[int, int] | None:
        """Return the numbers of a GPU's link on PCIe, out of it and into it; None where it has none."""
        above = self._graph.up.get(gpu)
        if above is None:
            return None
        return self._number(gpu, above, "PCI"), self._number(above, gpu, "PCI")

    def _number(self, source: str, target: str, kind: LinkType) -> int:
        key = (source, target, kind)
        if key not in self._numbers:
            self._numbers[key] = len(self.capacities)
            self.capacities.append(round(self._rates[key] / 1e6))
        return self._numbers[key]
