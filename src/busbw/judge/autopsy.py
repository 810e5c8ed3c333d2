"""What visits to the hosts of a run tell together: which rank the others waited for, or that it cannot be told."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from busbw.base.text import listed
from busbw.measure.launchers.notices import Notice, first_death, gave_up, lost_host, peer_lost
from busbw.model.plan import Plan
from busbw.model.record import step_words
from busbw.model.visit import (
    Autopsy,
    BeatSeen,
    CounterSeen,
    Culprit,
    Heard,
    HostFound,
    ProcessSeen,
    RankFound,
    Silent,
    Visit,
    VisitLine,
    progress,
)

# A rank that waits in MPI keeps its processor busy; one that uses less than this share is asleep.
_ASLEEP_SHARE = 0.03
# Ranks that poll a network, or yield their core, spend this share of their time in the kernel, or more; one that spins
# in code of its own spends next to nothing there. The kernel counts by ticks: of less time they tell nothing.
_POLLING_SHARE = 0.25
_OWN_SHARE = 0.02
_LEAST_BUSY_S = 0.1


def busy_share(process: ProcessSeen | None) -> float | None:
    """Return the share of a processor that a process used while it was watched; None: not watched."""
    if process is None or process.busy_s is None or not process.watched_s:
        return None
    return process.busy_s / process.watched_s


def sleeper(processes: Sequence[ProcessSeen | None]) -> int | None:
    """Return the place of the only process that sleeps while all others are busy."""
    shares = [share for process in processes if (share := busy_share(process)) is not None]
    asleep = [place for place, share in enumerate(shares) if share <= _ASLEEP_SHARE]
    return asleep[0] if len(asleep) == 1 and 1 < len(shares) == len(processes) else None


def spinner(processes: Sequence[ProcessSeen | None]) -> int | None:
    """Return the place of the only process that is busy without the kernel, while every other one polls through it.

    Where MPI polls shared memory alone, all are alike, and there is None.
    """
    shares = [share for process in processes if (share := _kernel_share(process)) is not None]
    own = [place for place, share in enumerate(shares) if share <= _OWN_SHARE]
    polling = sum(share >= _POLLING_SHARE for share in shares)
    return own[0] if len(own) == 1 and 0 < polling == len(processes) - 1 else None


def _kernel_share(process: ProcessSeen | None) -> float | None:
    if process is None or process.busy_s is None or process.system_s is None or process.busy_s < _LEAST_BUSY_S:
        return None
    return process.system_s / process.busy_s


_MOST_WORDS = 12
_UNNUMBERED = re.compile(r"^busbw rank failed at (?P<step>[^:\n]+): (?P<cause>.+)$", re.MULTILINE)
_STATES = {"R": "running", "S": "sleeping", "D": "waiting in the kernel", "T": "stopped", "t": "stopped", "Z": "ended"}
_FAULTS = ("drop", "err", "discard", "retrans", "timeout", "seq_err", "out_of", "link_downed", "cnp", "retry")


@dataclass(frozen=True, slots=True)
class _Rank:
    """One rank with what was found of it."""

    number: int
    host: str
    beat: BeatSeen | None
    process: ProcessSeen | None
    # Whether its host answered.
    heard: bool


def hosts_of_ranks(plan: Plan) -> tuple[str, ...]:
    """Return the host of each rank."""
    placement = plan.placement
    if len(placement.ranks_of_hosts) != len(placement.hosts) or sum(placement.ranks_of_hosts) != placement.ranks:
        # A plan of one host, or one that nobody but a file has made.
        return (placement.hosts[0] if placement.hosts else "",) * placement.ranks
    counts = zip(placement.hosts, placement.ranks_of_hosts, strict=True)
    return tuple(host for host, count in counts for _ in range(count))


_SLOW = (
    "cannot tell: the ranks still moved while they were looked at; the run is slow, not stuck: "
    "try fewer ranks, or a longer --stall-timeout"
)


def autopsy(plan: Plan, lines: Sequence[VisitLine]) -> Autopsy | None:
    """Return what the hosts and the launcher said, read together; None when nobody was asked."""
    answers = [line for line in lines if not isinstance(line, Heard)]
    text = "\n".join(line.text for line in lines if isinstance(line, Heard))
    seen = [answer for answer in answers if answer.asked == "look"]
    # Of several looks at a host the last one counts.
    looks = {answer.host: answer for answer in seen}
    if not looks:
        # With nobody looked at, what the ranks left is in the answers of those that were to end them.
        looks = {answer.host: answer for answer in answers}
    if not looks:
        return None
    visits = {host: answer for host, answer in looks.items() if isinstance(answer, Visit)}
    silent = tuple(answer for answer in looks.values() if isinstance(answer, Silent))
    ends = {answer.host: answer for answer in answers if isinstance(answer, Visit) and answer.asked == "end"}
    ranks = _ranks(plan, visits)
    culprit, because, compared = _culprit(plan, ranks, visits, silent, text)
    if compared and _moved(seen):
        culprit, because = None, _SLOW
    return Autopsy(
        culprit=culprit,
        because=because,
        compared=compared,
        ranks=tuple(_found(rank, plan) for rank in ranks),
        hosts=tuple(_host(visit, ends.get(host)) for host, visit in visits.items()),
        silent=silent,
        ras=max((visit.ras for visit in visits.values() if visit.ras is not None), key=len, default=None),
        words=_last_words(text),
    )


def _ranks(plan: Plan, visits: Mapping[str, Visit]) -> tuple[_Rank, ...]:
    found = []
    for number, host in enumerate(hosts_of_ranks(plan)):
        visit = visits.get(host)
        beats = {beat.rank: beat for beat in visit.beats} if visit is not None else {}
        beat = beats.get(number)
        processes = {process.process_id: process for process in visit.processes} if visit is not None else {}
        found.append(
            _Rank(
                number=number,
                host=host,
                beat=beat,
                process=processes.get(beat.process_id) if beat is not None else None,
                heard=visit is not None,
            )
        )
    return tuple(found)


def _culprit(
    plan: Plan, ranks: tuple[_Rank, ...], visits: Mapping[str, Visit], silent: tuple[Silent, ...], text: str
) -> tuple[Culprit | None, str, bool]:
    """Return the rank it began on, why it is that one, and whether hosts were compared; the surest sign first."""
    sure = (
        _told(plan, ranks, text)
        or _own_words(plan, ranks, text)
        or _held(plan, ranks)
        or _unshared(plan, ranks, visits)
        or _mute(plan, ranks, silent)
        or _lost(plan, ranks, text)
        or _unasked(plan, ranks, text)
    )
    if sure is not None:
        return *sure, False
    if plan.fabric is not None:
        # Ranks of a sweep differ in how many tests they had: who has done less, or sleeps, waits for its turn.
        return *(_unbegun(plan, ranks) or _missing(plan, ranks) or (None, _why_not_of_sweep(ranks, silent))), False
    found = _missing(plan, ranks) or _behind(plan, ranks) or _asleep(plan, ranks) or _spinning(plan, ranks)
    return *(found or (None, _why_not(ranks, silent))), True


def _moved(looks: Sequence[Visit | Silent]) -> bool:
    """Whether any rank made progress during a look, or from one to the next."""
    before: dict[str, tuple[BeatSeen, ...]] = {}
    for look in looks:
        if not isinstance(look, Visit):
            continue
        now = progress(look.beats)
        if look.moved or before.setdefault(look.host, now) != now:
            return True
    return False


def _held(plan: Plan, ranks: tuple[_Rank, ...]) -> tuple[Culprit, str] | None:
    """Return the first rank that the kernel holds stopped."""
    for rank in ranks:
        if rank.process is not None and rank.process.state in ("T", "t"):
            what = "stopped (SIGSTOP or a debugger)"
            return _as_culprit(plan, rank, what), f"the kernel of {rank.host} holds its process stopped"
    return None


def _told(plan: Plan, ranks: tuple[_Rank, ...], text: str) -> tuple[Culprit, str] | None:
    """Return the rank that the launcher saw end first."""
    notice = first_death(text)
    rank = _named(notice, ranks) if notice is not None else None
    if notice is None or rank is None:
        return None
    culprit = _as_culprit(plan, rank, notice.what)
    if (gave_up := _UNNUMBERED.search(text)) is not None and notice.what.startswith("exited"):
        # Before it knew its number.
        culprit = msgspec.structs.replace(culprit, what=f"gave up: {gave_up['cause']}", step=gave_up["step"])
    # Hydra tells of signals alone, and MPI in another rank may crash where one has exited.
    silence = "; it does not tell of ranks that exit by themselves" if notice.rank is None else ""
    return culprit, f"the launcher saw it end first{silence}"


def _named(notice: Notice, ranks: tuple[_Rank, ...]) -> _Rank | None:
    """Return the rank of a notice: by its number, by its process, or as the only one of its host."""
    if notice.rank is not None and notice.rank < len(ranks):
        return ranks[notice.rank]
    for rank in ranks:
        if rank.beat is not None and rank.beat.process_id == notice.process_id and _same(rank.host, notice.host):
            return rank
    there = [rank for rank in ranks if notice.host is not None and _same(rank.host, notice.host)]
    return there[0] if len(there) == 1 else None


def _own_words(plan: Plan, ranks: tuple[_Rank, ...], text: str) -> tuple[Culprit, str] | None:
    """Return the rank that gave up first, by what it printed."""
    for line in text.splitlines():
        before, found, after = line.partition("busbw rank ")
        number, _, rest = after.partition(" failed at ")
        if found and rest and number.isdecimal() and int(number) < len(ranks) and not before.strip():
            step, _, cause = rest.partition(": ")
            culprit = _as_culprit(plan, ranks[int(number)], f"gave up: {cause}")
            return msgspec.structs.replace(culprit, step=step), "it was the first to say so"
    return None


def _unshared(plan: Plan, ranks: tuple[_Rank, ...], visits: Mapping[str, Visit]) -> tuple[Culprit, str] | None:
    """Return the first rank that had not begun, on a host that lacks the run directory which another host has."""
    if not any(visit.sees_plan for visit in visits.values()):
        return None
    without = [host for host, visit in visits.items() if visit.sees_plan is False]
    first = next((rank for rank in ranks if rank.beat is None and rank.host in without), None)
    if first is None:
        return None
    return (
        _as_culprit(plan, first, "is on a host that cannot see the run directory"),
        f"{listed(without)}: not there; it must be at the same path on every host, on a file system that they share",
    )


def _mute(plan: Plan, ranks: tuple[_Rank, ...], silent: tuple[Silent, ...]) -> tuple[Culprit, str] | None:
    """Return the first rank of the only host that does not answer."""
    hosts = sorted({answer.host for answer in silent})
    here = [rank for rank in ranks if rank.host in hosts]
    if len(hosts) != 1 or len(here) in (0, len(ranks)):
        return None
    what = "is on a host that does not answer" + _with_others(here)
    words = next((f" ({answer.words})" for answer in silent if answer.words is not None), "")
    return _as_culprit(plan, here[0], what), f"{hosts[0]} does not answer{words}, and every other host does"


def _lost(plan: Plan, ranks: tuple[_Rank, ...], text: str) -> tuple[Culprit, str] | None:
    """Return the first rank of the host that the launcher, or MPI in another rank, lost its connection to."""
    for host, who in ((lost_host(text), "the launcher"), (peer_lost(text), "MPI in another rank")):
        here = [rank for rank in ranks if host is not None and _same(rank.host, host)]
        if here and len(here) < len(ranks):
            least = min(here, key=_reached)
            what = ("ended or lost its connection" if who != "the launcher" else "was lost with its host") + (
                _with_others(here)
            )
            return _as_culprit(plan, least, what), f"{who} lost its connection to {here[0].host} first"
    return None


def _unasked(plan: Plan, ranks: tuple[_Rank, ...], text: str) -> tuple[Culprit, str] | None:
    """Return the only rank that ended unasked, where all have ended: launchers ask the others before they kill them."""
    if any(rank.process is not None or rank.beat is None or rank.beat.told_to_stop is None for rank in ranks):
        return None
    followers = gave_up(text)
    first = [rank for rank in ranks if rank.beat and not rank.beat.told_to_stop and rank.number not in followers]
    if len(first) != 1 or len(ranks) == 1:
        return None
    return _as_culprit(plan, first[0], "ended early"), "every other rank was asked to end, or MPI gave up in it"


def _unbegun(plan: Plan, ranks: tuple[_Rank, ...]) -> tuple[Culprit, str] | None:
    """Return the only rank that left no heartbeat, where every other one did."""
    never = [rank for rank in ranks if rank.heard and rank.beat is None and rank.process is None]
    if len(never) != 1 or len(ranks) < 2 or any(rank.beat is None for rank in ranks if rank is not never[0]):
        return None
    return _as_culprit(plan, never[0], "did not start, or ended before it said anything"), (
        f"nothing of it is on {never[0].host}, and every other rank left its heartbeat"
    )


def _missing(plan: Plan, ranks: tuple[_Rank, ...]) -> tuple[Culprit, str] | None:
    """Return the only rank that has gone, or that never came, while others are there."""
    heard = [rank for rank in ranks if rank.heard]
    absent = [rank for rank in heard if rank.process is None and not (rank.beat and rank.beat.state == "done")]
    if len(absent) != 1 or len(heard) == 1:
        return None
    what = "did not start" if absent[0].beat is None else "ended early"
    return _as_culprit(plan, absent[0], what), "its process is not there, and those of the others are"


def _behind(plan: Plan, ranks: tuple[_Rank, ...]) -> tuple[Culprit, str] | None:
    """Return the only rank that has done less than all others."""
    reached = {rank.number: _reached(rank) for rank in ranks if rank.beat is not None}
    if len(reached) < len(ranks) or len(set(reached.values())) == 1:
        return None
    last = min(reached.values())
    behind = [number for number, where in reached.items() if where == last]
    if len(behind) != 1:
        return None
    return _as_culprit(plan, ranks[behind[0]], "did not arrive"), "every other rank has done more calls"


def _asleep(plan: Plan, ranks: tuple[_Rank, ...]) -> tuple[Culprit, str] | None:
    """Return the only rank that sleeps while all others are busy in the same call."""
    place = sleeper([rank.process for rank in ranks])
    if place is None:
        return None
    return _as_culprit(plan, ranks[place], "sleeps while the others wait for it"), "every other rank is busy"


def _spinning(plan: Plan, ranks: tuple[_Rank, ...]) -> tuple[Culprit, str] | None:
    """Return the only rank that is busy outside of MPI while all others wait in it."""
    place = spinner([rank.process for rank in ranks])
    if place is None:
        return None
    what = "computes or spins outside of MPI while the others wait for it"
    return _as_culprit(
        plan, ranks[place], what
    ), "it spends no time in the kernel, and every other rank polls through it"


def _why_not(ranks: tuple[_Rank, ...], silent: tuple[Silent, ...]) -> str:
    if len({answer.host for answer in silent}) > 1:
        return f"cannot tell: {listed([answer.host for answer in silent])} do not answer"
    if silent:
        return "cannot tell: no other host answers"
    if all(rank.process is None for rank in ranks):
        return "cannot tell: every rank had ended before anyone could look"
    return "cannot tell: all ranks are in the same call, and none of them is stopped, behind, asleep or busy alone"


def _why_not_of_sweep(ranks: tuple[_Rank, ...], silent: tuple[Silent, ...]) -> str:
    if silent:
        return _why_not(ranks, silent)
    never = [f"rank {rank.number} ({rank.host})" for rank in ranks if rank.beat is None]
    if never and len(never) < len(ranks):
        return f"cannot tell which began it: {listed(never)} did not start, or ended before they said anything"
    if never:
        return "cannot tell: no rank said anything, and every host answers a visit"
    gone = [f"rank {rank.number} ({rank.host})" for rank in ranks if rank.process is None]
    if len(gone) == len(ranks):
        return "cannot tell: every rank had ended before anyone could look"
    if gone:
        return f"cannot tell which began it: {listed(gone)} ended early"
    return "cannot tell: every rank is there, and none is stopped"


def _as_culprit(plan: Plan, rank: _Rank, what: str) -> Culprit:
    process_id = rank.beat.process_id if rank.beat is not None else 0
    return Culprit(rank=rank.number, host=rank.host, process_id=process_id, what=what, step=_step(rank, plan))


def _with_others(ranks: Sequence[_Rank]) -> str:
    return f", as ranks {ranks[0].number} to {ranks[-1].number} are" if len(ranks) > 1 else ""


def _found(rank: _Rank, plan: Plan) -> RankFound:
    process = rank.process
    if process is not None:
        state = _STATES.get(process.state, process.state)
    elif not rank.heard:
        state = "host does not answer"
    else:
        state = "gone" if rank.beat is not None else "not seen"
    frames = process.python_stack if process is not None else ()
    return RankFound(
        rank=rank.number,
        host=rank.host,
        process_id=rank.beat.process_id if rank.beat is not None else None,
        step=_step(rank, plan),
        calls=rank.beat.calls if rank.beat is not None else None,
        in_call=rank.beat is not None and rank.beat.in_call > 0,
        state=state,
        busy_share=busy_share(process),
        wchan=process.wchan if process is not None else None,
        frame=frames[0] if frames else None,
    )


def _host(visit: Visit, ended: Visit | None) -> HostFound:
    moved = tuple(f"{each.name} +{each.later - each.now}" for each in visit.counters if each.later > each.now)
    return HostFound(
        host=visit.host,
        load_average=visit.load_average,
        counters=len(visit.counters),
        moved=moved,
        faults=tuple(_fault(each) for each in visit.counters if _is_fault(each)),
        kernel_lines=visit.kernel_lines,
        left=ended.left if ended is not None else (),
    )


def _is_fault(counter: CounterSeen) -> bool:
    name = counter.name.lower()
    return counter.at_point is not None and counter.later > counter.at_point and any(word in name for word in _FAULTS)


def _fault(counter: CounterSeen) -> str:
    return f"{counter.name} +{counter.later - (counter.at_point or 0)}"


def _step(rank: _Rank, plan: Plan) -> str:
    if rank.beat is None:
        return "starting" if rank.heard else "not known"
    if rank.beat.point < 0:
        return rank.beat.state
    return step_words(rank.beat.state, rank.beat.point, rank.beat.samples, plan.sweeps)


def _reached(rank: _Rank) -> tuple[int, int, int]:
    return (rank.beat.turns, rank.beat.calls, rank.beat.in_call) if rank.beat is not None else (-1, 0, 0)


def _same(host: str, named: str | None) -> bool:
    """Whether two names are one host's: one may be the short form of the other."""
    return named is not None and (host == named or host.split(".", maxsplit=1)[0] == named.split(".")[0])


def _last_words(text: str) -> tuple[str, ...]:
    lines = [line.rstrip()[:300] for line in text.splitlines() if line.strip(" -=*\n")]
    return tuple(line for line in lines if not line.startswith("busbw-event "))[-_MOST_WORDS:]
