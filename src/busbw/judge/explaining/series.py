"""What is explained: one collective over its sizes, in one form whoever measured it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from busbw.base.collectives import COLLECTIVES

# fabric: the network that the machine has for this; fallback: TCP in its place; loopback: one node that sends to itself
# through its NICs.
Network = Literal["fabric", "fallback", "loopback"]

# TCP, or the memory of the host between two GPUs of it.
Detour = Literal["sockets", "shm"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeSample:
    """One size. The rates follow from size and time; of a table they are as printed, where that has digits enough."""

    size_bytes: int
    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    busbw_Bps: float
    algbw_Bps: float
    point: int | None = None
    line: int | None = None
    # As NCCL itself says; None: it does not.
    algorithm: str | None = None
    protocol: str | None = None
    channels: int | None = None
    is_wrong: bool = False
    # Why its speed says nothing, where it does not: too few samples, other processes on the cores.
    spoiled: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One collective over its sizes, ascending, and what is known of how it was measured. None: not known."""

    title: str
    collective: str
    dtype: str | None
    op: str | None
    in_place: bool | None
    ranks: int
    nodes: int | None
    gpus_per_node: int | None
    gpu_name: str | None
    library: Literal["nccl", "mpi"]
    statistic: str
    # NVLink SHARP, and SHARP of the network's switches.
    nvls: bool | None = None
    sharp: bool | None = None
    # Algorithms that settings allow; (): no setting says so.
    algorithms: tuple[str, ...] = ()
    network: Network | None = None
    # What NCCL's log, or its settings, make ranks connect over, where links or the fabric could have been.
    detour: Detour | None = None
    # Version of NCCL, as `2.28.9`.
    nccl: str | None = None
    # Of an import the number of its table.
    table: int | None = None
    samples: tuple[SizeSample, ...] = ()

    @property
    def took_detour(self) -> Detour | None:
        """The detour, unless the reader means it."""
        return None if self.network == "fallback" else self.detour

    @property
    def factor(self) -> float:
        """Bus bandwidth over size and time."""
        return COLLECTIVES[self.collective].factor(self.ranks)


def rates_of(collective: str, ranks: int, size_bytes: int, time_s: float) -> tuple[float, float]:
    """Return bus and algorithm bandwidth in bytes per second."""
    algbw_Bps = size_bytes / time_s * COLLECTIVES[collective].algbw_factor(ranks)
    return COLLECTIVES[collective].factor(ranks) * size_bytes / time_s, algbw_Bps


# Levels of NCCL_P2P_LEVEL up to which GPUs talk to each other directly, at which none does.
_NEVER = frozenset({"LOC", "0"})
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
class StatedFacts:
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

    def then(self, stronger: "StatedFacts") -> "StatedFacts":
        """Return this with what `stronger` says on top."""
        return StatedFacts(
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


def stated_by_settings(settings: Iterable[tuple[str, str]]) -> StatedFacts:
    """Return what variables of NCCL say. Whoever does not set NCCL_NVLS_ENABLE leaves it to NCCL: not known."""
    values = dict(settings)
    nvls = values.get("NCCL_NVLS_ENABLE")
    collnet = values.get("NCCL_COLLNET_ENABLE")
    return StatedFacts(
        nvls=False if nvls in _OFF else None,
        sharp=False if collnet in _OFF else True if collnet in _ON else None,
        algorithms=_algorithms(values.get("NCCL_ALGO", "")),
        network="loopback" if _peers_off(values) and _is_on(values, "NCCL_SHM_DISABLE") else None,
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
    return "shm" if _peers_off(values) and not _is_on(values, "NCCL_SHM_DISABLE") else None


def _peers_off(values: dict[str, str]) -> bool:
    """Whether GPUs of a node do not reach each other directly; the level LOC, 0 in older spelling, says so too."""
    return _is_on(values, "NCCL_P2P_DISABLE") or values.get("NCCL_P2P_LEVEL", "").upper() in _NEVER


def detour_of(stated: StatedFacts, nodes: int | None) -> Detour | None:
    """Return the detour that settings make on so many nodes: within one nothing crosses a network."""
    return None if stated.detour == "sockets" and nodes == 1 else stated.detour
