"""Logs in the form of NCCL 2.28's, made here: every line is written after its format string, none is copied.

A job has `hosts` nodes of `gpus` ranks, one process each. What a test is about is changed by its arguments.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from busbw.model.finding import Finding

IB_LIST = " ".join(f"[{number}]mlx5_{number}:1/IB" for number in range(4))


@dataclass(frozen=True)
class Job:
    """What a job's log says."""

    hosts: int = 2
    gpus: int = 2
    version: str = "2.28.9+cuda12.9"
    network: str = "IB"
    between: str = "NET/IB/{nic}/GDRDMA"
    inside: str = "P2P/CUMEM/read"
    nics: str = IB_LIST
    # Lines that every rank prints, and those of one rank; versions of single ranks.
    everywhere: tuple[str, ...] = ()
    of_rank: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    version_of: Mapping[int, str] = field(default_factory=dict)
    unfinished: frozenset[int] = frozenset()
    absent: frozenset[int] = frozenset()

    @property
    def ranks(self) -> int:
        return self.hosts * self.gpus

    def head(self, rank: int) -> str:
        return f"node{rank // self.gpus:02}:{1000 + rank}:{2000 + rank} [{rank % self.gpus}] NCCL INFO "

    def warn(self, rank: int, text: str, *, time: str | None = None) -> str:
        when = f"[{time}] " if time is not None else ""
        return f"\n{when}{self.head(rank).removesuffix('NCCL INFO ')}misc/x.cc:1 NCCL WARN {text}"

    def of(self, rank: int) -> list[str]:
        node, gpu = divmod(rank, self.gpus)
        where = f"comm 0x55{rank:06x} rank {rank} nranks {self.ranks} cudaDev {gpu} nvmlDev {gpu} busId {gpu + 1}000"
        after = (rank + 1) % self.ranks
        lines = [
            f"NCCL version {self.version_of.get(rank, self.version)}",
            "cudaDriverVersion 12090",
            f"Bootstrap: Using eth0:10.0.0.{node + 1}<0>",
            *self.everywhere,
            *self.of_rank.get(rank, ()),
            *([f"NET/IB : Using {self.nics} [RO]; OOB eth0:10.0.0.{node + 1}<0>"] if self.network == "IB" else []),
            f"Using network {self.network}",
            f"ncclCommInitRankConfig {where} commId 0x77aa - Init START",
            f"comm 0x1 rank {rank} nRanks {self.ranks} nNodes {self.hosts} localRanks {self.gpus} localRank {gpu} x",
            "8 coll channels, 8 collnet channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per peer",
        ]
        if rank not in self.unfinished:
            lines.append(f"ncclCommInitRankConfig {where} commId 0x77aa - Init COMPLETE")
            for channel in range(8):
                via = self.inside if after // self.gpus == node else self.between.format(nic=channel % 4)
                send = " [send]" if via.startswith("NET") else ""
                lines.append(f"Channel {channel:02}/0 : {rank}[{gpu}] -> {after}[{after % self.gpus}]{send} via {via}")
        return [self.head(rank) + line for line in lines]

    def lines(self) -> list[str]:
        """Return the log, ranks interleaved."""
        every = [self.of(rank) for rank in range(self.ranks) if rank not in self.absent]
        longest = max(map(len, every), default=0)
        return [lines[index] for index in range(longest) for lines in every if index < len(lines)]

    def text(self, *more: str) -> str:
        return "\n".join([*self.lines(), *more]) + "\n"


def told(found: Finding) -> str:
    """Return all that a finding says of why, its causes numbered."""
    causes = (
        f"({number}) {each.words}" + (f" [in the log: {', '.join(each.shown)}]" if each.shown else "")
        for number, each in enumerate(found.causes, 1)
    )
    return "; ".join((found.evidence, *causes))


def to_do(found: Finding) -> str:
    """Return all that a finding says of what to do, the tests of its causes numbered."""
    tests = (f"({number}) {each.test}" for number, each in enumerate(found.causes, 1) if each.test is not None)
    return "; ".join((*tests, found.fix or ""))
