"""What settings are checked against: the machine, the library, the job."""

from dataclasses import dataclass

from busbw.model.platform import Platform


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What is known beside the text itself."""

    platform: Platform | None = None
    # The version of NCCL that was asked about, as `env.versions` reads it; None: the newest known is meant.
    nccl: tuple[int, ...] | None = None
    # Nodes of the job; None: not said.
    nodes: int | None = None
    # Of this host: files that settings name and that it does not have. None: it was not looked at.
    absent: frozenset[str] | None = None
