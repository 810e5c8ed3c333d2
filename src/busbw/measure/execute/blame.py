"""Why a job ended before its time: what its ranks and its launcher said, how they ended, and who was first."""

import re
import time
from dataclasses import dataclass

import msgspec

from busbw.measure.execute import processes
from busbw.measure.execute.watch import Death, Watch
from busbw.measure.launchers.notices import first_death
from busbw.model.plan import Plan
from busbw.model.record import AnyEvent, Measuring, step_words
from busbw.model.visit import Culprit


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


_FAILED = re.compile(r"busbw rank (?P<rank>\d{1,7}) failed at ")


@dataclass(frozen=True, slots=True)
class Blame:
    """The reason in one line, and the rank it began on if that can be told."""

    cause: str
    culprit: Culprit | None


def blame(text: str, exit_code: int | None, watch: Watch | Distant) -> Blame:
    """Return why a job ended; `text` is what the launcher printed, `exit_code` is None while it runs.

    A launcher that a signal ended took its ranks along; nothing that happened to them counts then.
    """
    if exit_code is not None and exit_code < 0:
        return Blame(f"mpirun was {processes.describe_status(exit_code)}", None)
    own = _own_words(text)
    culprit = _culprit(text, watch)
    if culprit is not None:
        return Blame(own or f"rank {culprit.rank} on {culprit.host} {culprit.what} while {culprit.step}", culprit)
    ended = sorted(death.rank for death in watch.early_deaths)
    if not ended:
        return Blame(own or _first_line(text) or "the launcher failed before any rank started", None)
    names = ", ".join(map(str, ended))
    return Blame(own or f"ranks {names} ended early, too close together to tell which was first", None)


def _culprit(text: str, watch: Watch | Distant) -> Culprit | None:
    """Return the rank that ended first, with what the launcher says of it where that is more."""
    first = watch.first_death()
    rank, what = (first.rank, first.what) if first is not None else (None, None)
    notice = first_death(text)
    if notice is not None:
        named_rank = notice.rank if notice.rank is not None else watch.by_process(notice.process_id or 0)
        rank = named_rank if named_rank is not None else rank
        what = notice.what
    if rank is None and isinstance(watch, Watch):
        rank, what = _only_speaker(text), "gave up"
    if rank is None:
        return None
    culprit = watch.culprit(rank, what or "ended early")
    death = next((death for death in watch.early_deaths if death.rank == rank), None)
    if death is None:
        return culprit
    return msgspec.structs.replace(culprit, step=death.step, process_id=death.process_id)


def _own_words(text: str) -> str | None:
    """Return what a rank of ours printed before it gave up."""
    for line in text.splitlines():
        if "busbw rank " in line and (" failed at " in line or " started, " in line):
            return line[line.index("busbw rank ") + len("busbw ") :]
    return None


def _only_speaker(text: str) -> int | None:
    """Return the rank that says it failed, if no other says so: the others were ended with it."""
    ranks = {int(found["rank"]) for found in _FAILED.finditer(text)}
    return ranks.pop() if len(ranks) == 1 else None


def _first_line(text: str) -> str | None:
    lines = [line.strip() for line in text.splitlines() if line.strip().strip("-=")]
    return next((line for line in lines if not line.startswith("busbw-event ") and not _is_noise(line)), None)


def _is_noise(line: str) -> bool:
    """Whether Open MPI says this beside what is wrong."""
    return "plm:ssh: Warning: " in line or line.endswith("before aborting")
