"""Which CPUs the ranks of one node should have, and which they would get from a launcher."""

from typing import Literal

from busbw.base.value import Integer, Value

Fit = Literal["right", "partly", "wrong", "unknown"]


class RankPlace(Value, kw_only=True, frozen=True):
    """Where one local rank belongs."""

    rank: Integer
    # Bus id of its GPU; None: the node has none.
    gpu: str | None
    numa: Integer | None
    # All CPUs of its NUMA node, and its even share of them where ranks share the node. None: not known.
    cpus: tuple[Integer, ...] | None
    share: tuple[Integer, ...] | None


class MaskForms(Value, kw_only=True, frozen=True):
    """The same CPUs of every local rank, as launchers want them."""

    # "node": all CPUs of each rank's NUMA node; "share": an even part of them.
    cpus: Literal["node", "share"]
    # An option of srun.
    srun: str
    # Kernel lists for `taskset -c`, one a rank, and options of numactl.
    taskset: tuple[str, ...]
    numactl: tuple[str, ...]
    # Lines of a rankfile of Open MPI for the first node; and the options of mpirun that read it, by version.
    rankfile: tuple[str, ...]
    rankfile_options: tuple[tuple[str, str], ...]


class BoundRank(Value, kw_only=True, frozen=True):
    """What one local rank gets."""

    rank: Integer
    # None: it cannot be told.
    cpus: tuple[Integer, ...] | None
    # NUMA nodes that these CPUs belong to.
    numa: tuple[Integer, ...]
    # Whether they are those of its GPU's NUMA node.
    fit: Fit
    # Where NCCL's own threads then run; None: it cannot be told.
    nccl_cpus: tuple[Integer, ...] | None
    # Whether NCCL moves them at all.
    nccl_applies: bool | None


class Reading(Value, kw_only=True, frozen=True):
    """What a binding means to one launcher."""

    # As "Open MPI 4.1"; several where they agree.
    launcher: str
    ranks: tuple[BoundRank, ...] = ()
    # Why it cannot be told; None where it can.
    cannot_tell: str | None = None
    # Where the rule is from.
    source: str
    notes: tuple[str, ...] = ()


class RankMasks(Value, kw_only=True, frozen=True):
    """The CPUs of the local ranks of one node, in the order of its GPUs."""

    name: str | None
    ranks: tuple[RankPlace, ...]
    forms: tuple[MaskForms, ...] = ()
    # Options of mpirun that put every rank on its NUMA node, by launcher.
    sufficient: tuple[tuple[str, str], ...] = ()
    # The binding that was asked about, as it was given, and what it means.
    binding: str | None = None
    ignores_affinity: bool = False
    readings: tuple[Reading, ...] = ()
    remarks: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
