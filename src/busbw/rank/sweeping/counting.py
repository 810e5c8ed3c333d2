"""The counters of the network ports of a host in a sweep: before it, after it, and around each of its retests."""

from typing import Literal

from busbw.base.value import Value
from busbw.fabric.counters.ports import moved
from busbw.model.fabric import FabricMetric
from busbw.model.machine import CountersRead
from busbw.model.record import CountersKept, RetestCounted
from busbw.rank.journal import Journal
from busbw.rank.network import host_counters


class CountOrder(Value, kw_only=True, frozen=True, tag="count"):
    """Rank 0 has the counters of a host's ports read, before a round of retests and after each of its tests."""

    step: int
    metric: FabricMetric
    round: int
    # What has been tested on this host since the reading before.
    tests: tuple[tuple[int, int], ...] = ()


class CounterKeeper:
    """Writes down the counters of a host's network ports; one rank of each host does."""

    def __init__(self, journal: Journal, *, keeps: bool) -> None:
        self._journal = journal
        self._keeps = keeps
        self._last: CountersRead | None = None

    def count(self, order: CountOrder) -> None:
        """Read the counters, and write down what moved since the reading before, where anything was tested since."""
        if not self._keeps:
            return
        now = host_counters()
        if order.tests and self._last is not None:
            before, after = moved(self._last, now)
            self._journal.write(
                RetestCounted(metric=order.metric, round=order.round, tests=order.tests, before=before, after=after)
            )
        self._last = now

    def keep(self, moment: Literal["before", "after"]) -> None:
        """Read the counters now."""
        if self._keeps:
            self._journal.write(CountersKept(moment=moment, read=host_counters()))
