"""Where a container starts, and what becomes of the program that starts in it."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.facts.containers import FabricName
from busbw.model.plan import Program

Starter = Literal["mpirun", "srun", "processes"]
# How a rank finds its launcher: over sockets, or over a file descriptor that it inherits (PMI of Hydra and srun).
Pmi = Literal["pmix", "descriptor"]
GpuVendor = Literal["nvidia", "amd"]


class Place(Value, kw_only=True, frozen=True):
    """What is around a container on every host. The defaults: one process, no MPI, no GPU, no fabric."""

    # Who starts the runtime, once for each rank.
    starter: Starter = "processes"
    # None: ranks are told through variables of the program alone.
    pmi: Pmi | None = None
    # Ranks that start on each host; None: hosts differ in it.
    ranks_per_host: Integer | None = 1
    # The run directory: bound as it is, and where ranks start; None: neither.
    directory: str | None = None
    gpu_vendor: GpuVendor = "nvidia"
    fabric: FabricName | None = None
    # Device nodes of the fabric that every host has: /dev/cxi0, /dev/cxi1...
    devices: tuple[str, ...] = ()
    # Names that every rank gets as the launching shell has them, beside those of the program.
    forward: tuple[str, ...] = ()
    # `uid:gid` of whoever starts the run; None: root.
    user: str | None = None


class Wrapped(Value, kw_only=True, frozen=True):
    """A program that starts in a container."""

    # For the launcher: the runtime and its words, then the program; its environment is the host's side of it.
    program: Program
    # Words for the launcher itself: srun with pyxis.
    options: tuple[str, ...] = ()
    # Names that the runtime would hand on from the host, and must not get.
    unset: tuple[str, ...] = ()
    # Names that the runtime hands on as the launching shell has them: for the launcher to forward.
    forward: tuple[str, ...] = ()
    # What a reader should know of how it starts, a sentence each.
    notes: tuple[str, ...] = ()
