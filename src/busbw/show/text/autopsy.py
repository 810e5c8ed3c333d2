"""The autopsy of a run that ended before its time, as one page of plain text."""

from collections.abc import Sequence

from busbw.base.text import listed
from busbw.model.visit import Autopsy, HostFound, RankFound, Silent

_MOST_RANKS = 32
_MOST_HOSTS = 16
_MOST_COUNTERS = 6
_MOST_RAS_LINES = 20
# States that explain why nobody goes on.
_ODD = ("stopped", "gone", "not seen", "host does not answer", "waiting in the kernel")


def autopsy_lines(found: Autopsy) -> tuple[str, ...]:
    """Return the page, a line each: who did not arrive, every rank, every host, what NCCL and the launcher said."""
    return (
        "# autopsy",
        *_suspect(found),
        "",
        *_ranks(found.ranks),
        "",
        *(_silent(each) for each in found.silent[:_MOST_HOSTS]),
        *_more(len(found.silent), _MOST_HOSTS, "hosts that do not answer"),
        *(line for host in found.hosts[:_MOST_HOSTS] for line in _host(host)),
        *_more(len(found.hosts), _MOST_HOSTS, "hosts"),
        *_quoted("NCCL's diagnosis service (RAS):", (found.ras or "").splitlines()[:_MOST_RAS_LINES]),
        *_quoted("last words of the launcher:", found.words),
    )


def _suspect(found: Autopsy) -> tuple[str, ...]:
    culprit = found.culprit
    if culprit is None:
        return (f"which rank did not arrive: {found.because}",)
    return (
        f"rank {culprit.rank} on {culprit.host} did not arrive: {culprit.what}, at: {culprit.step}",
        f"because {found.because}",
    )


def _ranks(ranks: Sequence[RankFound]) -> tuple[str, ...]:
    """Return a line a rank, those first that are odd or behind."""
    ordered = sorted(ranks, key=lambda rank: (rank.state not in _ODD, rank.calls or 0, rank.rank))
    shown = ordered[:_MOST_RANKS]
    rows = [("rank", "host", "state", "cpu", "calls", "doing", "in Python", "in the kernel"), *map(_row, shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return (*lines, *_more(len(ordered), _MOST_RANKS, "ranks, none of them behind these"))


def _row(rank: RankFound) -> tuple[str, ...]:
    calls = "" if rank.calls is None else f"{rank.calls}{' + 1 begun' if rank.in_call else ''}"
    return (
        str(rank.rank),
        rank.host,
        rank.state,
        "" if rank.busy_share is None else f"{100 * rank.busy_share:.0f}%",
        calls,
        rank.step,
        rank.frame or "",
        rank.wchan or "",
    )


def _silent(host: Silent) -> str:
    words = f": {host.words}" if host.words is not None else ""
    return f"{host.host} does not answer, asked for {host.waited_s:.0f} s{words}"


def _host(host: HostFound) -> tuple[str, ...]:
    moved = listed(host.moved, _MOST_COUNTERS) if host.moved else "none moved"
    load = f"load {host.load_average:.1f}, " if host.load_average is not None else ""
    line = f"{host.host}: {load}{host.counters} network counters, in the second of the visit: {moved}"
    faults = (f"  since the point began: {listed(host.faults, _MOST_COUNTERS)}",) if host.faults else ()
    left = (f"  processes that do not end: {', '.join(map(str, host.left))}",) if host.left else ()
    return (line, *faults, *left, *(f"  kernel: {each}" for each in host.kernel_lines))


def _quoted(title: str, lines: Sequence[str]) -> tuple[str, ...]:
    return (title, *(f"  {line}" for line in lines)) if lines else ()


def _more(number: int, most: int, what: str) -> tuple[str, ...]:
    return (f"and {number - most} more {what}",) if number > most else ()
