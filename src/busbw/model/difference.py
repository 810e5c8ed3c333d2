"""How two topologies differ in what NCCL makes of them."""

from typing import Literal

from busbw.base.value import Value

# files: one that NCCL does not take as it is meant differs, whatever it means.
Group = Literal[
    "files", "GPUs", "NICs", "CPU masks", "processors", "ways", "PCIe links", "NVLinks", "XGMI links", "C2C", "ports"
]


class Difference(Value, kw_only=True, frozen=True):
    """One value that two topologies do not share, in words."""

    group: Group
    # `GPU 0000:0f:00.0`, `NUMA node 1`, `GPU 0000:0f:00.0 to NIC 0000:0c:00.0`; `A` or `B` of files.
    subject: str
    # Which of its values; None: the subject itself.
    what: str | None = None
    # None: the side says nothing, or lacks the subject.
    first: str | None = None
    second: str | None = None


class Comparison(Value, kw_only=True, frozen=True):
    """Two topologies held against each other."""

    first: str
    second: str
    # What NCCL would see differently.
    differences: tuple[Difference, ...]
    # What one side states and the other leaves to detection: whether they agree depends on the machine.
    detected: tuple[Difference, ...] = ()
    # What differs and NCCL does not use, or writes over.
    unused: tuple[Difference, ...] = ()
    # What to know before believing the rest, in words.
    notes: tuple[str, ...] = ()
