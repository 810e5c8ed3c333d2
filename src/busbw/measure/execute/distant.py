"""A run on several hosts as the launching side sees it: by what rank 0 says, and by nothing else."""

import time

from busbw.measure.execute.watch import Death
from busbw.model.culprit import Culprit
from busbw.model.event import AnyEvent, Measuring
from busbw.model.plan import Plan
from busbw.model.step import step_words


class Distant:
    """Follows a run by the events of rank 0. Who ended, or stands still, only a visit can tell."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._moved_s = time.monotonic()
        # The first event says that every rank listens to signals: rank 0 has met them all.
        self.has_begun = False
        self.step = "starting"
        self.early_deaths: list[Death] = []
        self.shared_memory: frozenset[str] = frozenset()

    def hear(self, event: AnyEvent) -> None:
        """Take an event as progress."""
        self.has_begun = True
        self._moved_s = time.monotonic()
        if isinstance(event, Measuring):
            self.step = step_words(event.phase, event.point, event.samples, self._plan.sweeps)

    def touch(self) -> None:
        """Count output as progress until the ranks speak for themselves: a launcher may complain for ever."""
        if not self.has_begun:
            self._moved_s = time.monotonic()

    @property
    def still_s(self) -> float:
        """Seconds since anything moved."""
        return time.monotonic() - self._moved_s

    def glance(self) -> None:
        """See nothing from here."""

    def look(self) -> None:
        """See nothing from here."""

    def fileno(self) -> int | None:
        """Return None: nothing here becomes readable."""
        return None

    def close(self) -> None:
        """Hold nothing."""

    def stopped(self) -> Culprit | None:
        """Return None: a visit tells."""
        return None

    def absent(self) -> Culprit | None:
        """Return None: a visit tells."""
        return None

    def first_death(self) -> Death | None:
        """Return None: a visit tells."""
        return None

    def by_process(self, _process_id: int) -> int | None:
        """Return None: process ids of other hosts say nothing here."""
        return None

    def culprit(self, rank: int, what: str) -> Culprit:
        """Return `rank` as the culprit of `what`, as far as it is known from here."""
        from busbw.judge.autopsy import hosts_of_ranks  # noqa: PLC0415 - needed where a run failed

        hosts = hosts_of_ranks(self._plan)
        host = hosts[rank] if rank < len(hosts) else "an unknown host"
        return Culprit(rank=rank, host=host, process_id=0, what=what, step=self.step)
