"""What was found on the hosts of a run that ended before its time: who did not arrive, and in what."""

from busbw.base.value import Integer, Value
from busbw.model.culprit import Culprit
from busbw.model.visit import Silent


class RankFound(Value, kw_only=True, frozen=True):
    """One rank as its host showed it."""

    rank: Integer
    host: str
    # None: nothing of it was found.
    process_id: Integer | None
    # What it was doing by its heartbeat: `sampling all_reduce 4 KiB, sample 17`.
    step: str
    # How many calls it had completed, and whether it was inside of one; None without a heartbeat.
    calls: Integer | None
    in_call: bool
    # In words: `running`, `stopped`, `gone`, `not seen`.
    state: str
    # Share of a processor it used while it was watched; None: not watched.
    busy_share: float | None
    wchan: str | None
    # Its innermost Python call.
    frame: str | None


class HostFound(Value, kw_only=True, frozen=True):
    """One host that answered."""

    host: str
    load_average: float | None
    # How many network counters there are, and those that moved while the run stood still: `eth0 tx_bytes +1234`.
    counters: Integer
    moved: tuple[str, ...]
    # Counters that tell of errors and loss, and rose since the point began.
    faults: tuple[str, ...]
    kernel_lines: tuple[str, ...] = ()
    # Processes of the run that would not end.
    left: tuple[Integer, ...] = ()


class Autopsy(Value, kw_only=True, frozen=True):
    """The visits to all hosts, read together."""

    # None: cannot be told, and `because` says why.
    culprit: Culprit | None
    because: str
    # Whether it rests on holding against each other what hosts said one after the other; a second look makes it sure.
    compared: bool
    ranks: tuple[RankFound, ...]
    hosts: tuple[HostFound, ...]
    silent: tuple[Silent, ...]
    # What NCCL's own diagnosis service said, the longest answer.
    ras: str | None
    # The last lines of the launcher.
    words: tuple[str, ...]
