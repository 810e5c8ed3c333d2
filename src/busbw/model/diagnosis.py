"""What `busbw doctor` says of the logs of a job."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding, Verdict


class Held(Value, kw_only=True, frozen=True):
    """A value, and the ranks that have it, as `0-7` or, where ranks are not known, processes as `host:pid`."""

    value: str
    who: str
    count: Integer


class Fact(Value, kw_only=True, frozen=True):
    """One thing that NCCL says, with each value that somebody has; most common first."""

    name: str
    values: tuple[Held, ...]


class Traffic(Value, kw_only=True, frozen=True):
    """One kind of connection between ranks, as NCCL made it."""

    # As NCCL writes it: `P2P/CUMEM/read`, `NET/IB/GDRDMA`; without the number of the NIC.
    via: str
    # unknown: nothing tells which node the peer is on.
    place: Literal["within nodes", "between nodes", "unknown"]
    # `Channel ...` lines, and pairs of ranks they name.
    lines: Integer
    pairs: Integer
    ranks: str
    # The numbers of the NICs, where it is a network.
    nics: tuple[Integer, ...] = ()


class LoggedChoice(Value, kw_only=True, frozen=True):
    """What NCCL chose for one size of one collective."""

    collective: str
    size_bytes: Integer
    algorithm: str
    protocol: str
    lines: Integer


class Trouble(Value, kw_only=True, frozen=True):
    """A kind of line that tells of a problem, and the first of them."""

    what: str
    # Id of the pattern in data/log_patterns.toml; None: nobody knows this warning.
    pattern: str | None
    role: Literal["origin", "follower", "death", "timeout", "notice", "aside", "unknown"]
    text: str
    where: str
    # As logged; None: the line has no time.
    time: str | None = None
    host: str | None = None
    rank: Integer | None = None
    # How many lines, from how many processes.
    lines: Integer
    processes: Integer
    who: str


class Diagnosis(Value, kw_only=True, frozen=True):
    """What the logs of one job say."""

    sources: tuple[str, ...]
    lines: Integer
    nccl_lines: Integer
    # What could not be read of them, and why.
    unread: tuple[str, ...] = ()
    platform: str | None = None
    hosts: Integer
    processes: Integer
    # Ranks of the largest communicator, those of them that logged, and nodes as NCCL counts them; None: not said.
    ranks: Integer | None = None
    ranks_seen: Integer
    nodes: Integer | None = None
    communicators: Integer
    facts: tuple[Fact, ...] = ()
    environment: tuple[Fact, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    choices: tuple[LoggedChoice, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    findings: tuple[Finding, ...] = ()
    verdict: Verdict
