"""What is explained: one collective over its sizes, in one form whoever measured it."""

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
    """One size. `busbw_Bps` and `algbw_Bps` follow from size and time, whatever a table has rounded them to."""

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
