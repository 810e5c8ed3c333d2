"""What settings and the reader say of how something was measured: it decides which expectations apply."""

from collections.abc import Iterable
from dataclasses import dataclass

from busbw.judge.explaining.series import Detour, Network

_OFF, _ON = frozenset({"0"}), frozenset({"1"})
# NCCL's names of algorithms, in busbw's spelling, which has one name for both forms of CollNet.
NAMES = {
    "RING": "ring",
    "TREE": "tree",
    "NVLS": "nvls",
    "NVLSTREE": "nvlstree",
    "COLLNET": "collnet",
    "COLLNETDIRECT": "collnet",
    "COLLNETCHAIN": "collnet",
    "PAT": "pat",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What is said. None, or (): nothing."""

    nodes: int | None = None
    gpus_per_node: int | None = None
    nvls: bool | None = None
    sharp: bool | None = None
    algorithms: tuple[str, ...] = ()
    # What the reader says, or what settings make a test of the NICs.
    network: Network | None = None
    # What settings make NCCL use in place of the fabric, or of the links.
    detour: Detour | None = None

    def then(self, stronger: "Told") -> "Told":
        """Return this with what `stronger` says on top."""
        return Told(
            nodes=_first(stronger.nodes, self.nodes),
            gpus_per_node=_first(stronger.gpus_per_node, self.gpus_per_node),
            nvls=self.nvls if stronger.nvls is None else stronger.nvls,
            sharp=self.sharp if stronger.sharp is None else stronger.sharp,
            algorithms=stronger.algorithms or self.algorithms,
            network=stronger.network or self.network,
            detour=stronger.detour or self.detour,
        )


def _first(stronger: int | None, weaker: int | None) -> int | None:
    return weaker if stronger is None else stronger


def told_by_settings(settings: Iterable[tuple[str, str]]) -> Told:
    """Return what variables of NCCL say. Whoever does not set NCCL_NVLS_ENABLE leaves it to NCCL: not known."""
    values = dict(settings)
    nvls = values.get("NCCL_NVLS_ENABLE")
    collnet = values.get("NCCL_COLLNET_ENABLE")
    return Told(
        nvls=False if nvls in _OFF else None,
        sharp=False if collnet in _OFF else True if collnet in _ON else None,
        algorithms=_algorithms(values.get("NCCL_ALGO", "")),
        network="loopback" if _is_on(values, "NCCL_P2P_DISABLE") and _is_on(values, "NCCL_SHM_DISABLE") else None,
        detour=_detour(values),
    )


def algorithm_name(word: str) -> str | None:
    """Return busbw's name of an algorithm that NCCL names; None for a kernel that has no name among them."""
    return NAMES.get(word.upper().replace("_", ""))


def _algorithms(text: str) -> tuple[str, ...]:
    """Return what a plain list allows; exclusions and lists by function are left to NCCL."""
    names = [algorithm_name(word.strip()) for word in text.split(",") if word.strip()]
    return tuple(dict.fromkeys(name for name in names if name is not None)) if None not in names else ()


def _is_on(values: dict[str, str], name: str) -> bool:
    return values.get(name) in _ON


def _detour(values: dict[str, str]) -> Detour | None:
    if values.get("NCCL_NET", "").lower() == "socket" or _is_on(values, "NCCL_IB_DISABLE"):
        return "sockets"
    return "shm" if _is_on(values, "NCCL_P2P_DISABLE") and not _is_on(values, "NCCL_SHM_DISABLE") else None


def detour_of(told: Told, nodes: int | None) -> Detour | None:
    """Return the detour that settings make on so many nodes: within one nothing crosses a network."""
    return None if told.detour == "sockets" and nodes == 1 else told.detour
