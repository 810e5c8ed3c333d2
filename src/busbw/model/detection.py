"""Which platform a host is, how sure that is, and why each other one is not."""

from typing import Literal

from busbw.base.value import Value
from busbw.model.finding import Confidence

# The steps of the ladder, in the order in which they are climbed.
Rung = Literal["firmware", "metadata", "hardware"]
# matches: it is this one; possible: nothing speaks against it and too little for it; near_miss: something does.
Standing = Literal["matches", "possible", "near_miss"]


class Evidence(Value, kw_only=True, frozen=True):
    """One thing that was looked at, and what it says."""

    rung: Rung
    # As it was seen: `chassis_asset_tag = "..."`; what was not there is said too.
    seen: str
    says: str


class Candidate(Value, kw_only=True, frozen=True):
    """One platform of the catalogue, held against the host."""

    platform: str
    standing: Standing
    # What speaks for it and against it, and what is published and could not be seen here; each in words.
    agrees: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


class Contradiction(Value, kw_only=True, frozen=True):
    """Where the host is not as its platform should be."""

    # GPUs, NICs, CPUs, memory: what it is about.
    part: str
    text: str
    fix: str | None = None


class Detection(Value, kw_only=True, frozen=True):
    """The answer of the ladder."""

    # Its id; None: unknown.
    platform: str | None
    # None: unknown.
    confidence: Confidence | None
    # Why, in one sentence.
    because: str
    # The rung that gave the answer; None: unknown.
    rung: Rung | None = None
    # What the owner of the machine calls it, where firmware or metadata service say: `Standard_ND96isr_H100_v5`.
    sku: str | None = None
    # azure, oci, aws, gcp; None: not said.
    cloud: str | None = None
    evidence: tuple[Evidence, ...] = ()
    # The match first, then what is possible, then near misses; platforms with nothing in common are left out.
    candidates: tuple[Candidate, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
