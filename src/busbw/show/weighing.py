"""Which findings a reader needs first, and what disturbed the measurement in one line.

Findings stand by severity, then by what they are about: what the verdict rests on, parts that are named and large
messages, then the rest, small messages last. Conditions of a run are folded: together they say how far its numbers
can be trusted, one by one they are in run.json and in the report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from busbw.model.finding import Finding, Severity, Verdict
from busbw.model.run import Run
from busbw.show.words import interval_share

# From this size on the bandwidth decides more than the latency.
LARGE_BYTES = 2**20
# A median whose interval reaches no further than this share of it is said to be known.
_STEADY = 0.05
_SEVERITIES = ("error", "warn", "note")
# Findings that name a rank, a GPU, a NIC, a port or a host; and those about the time of small messages alone.
_NAMES_A_PART = frozenset({"RUN002", "RUN023", "RUN024", "RUN025", "RUN027", "PERF004", "PERF013"})
_SMALL_ALONE = frozenset({"PERF014", "RUN026"})
# What each condition is called, in the order of their weight; "" where the title of the finding says it.
_CONDITIONS = {
    "RUN006": "",
    "RUN007": "CPU throttled",
    "RUN008": "stopped for the CPU quota",
    "RUN009": "",
    "RUN022": "other processes on the ranks' cores",
    "RUN010": "load",
    "RUN015": "another library before MPI functions",
    "RUN016": "CPU governor powersave",
    "RUN017": "MPI thread level multiple",
    "RUN018": "16-bit floats reduced by busbw",
    "RUN004": "too few samples",
    "RUN014": "missed starts",
    "RUN011": "drift",
    "RUN013": "unsettled warm-up",
    "RUN012": "dependent samples",
    "RUN019": "coarse clocks",
    "RUN005": "wide intervals",
}
# They take time from the ranks, and give none.
_ONLY_SLOWER = frozenset({"RUN006", "RUN007", "RUN008", "RUN009", "RUN010", "RUN015", "RUN016", "RUN017", "RUN022"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """What disturbed a run: one line that says what it means for the numbers, and the fix of the gravest."""

    severity: Severity
    words: str
    fix: str | None
    findings: tuple[Finding, ...]


def by_weight(
    findings: Sequence[Finding], verdict: Verdict | None = None, sizes_bytes: Mapping[int, int] | None = None
) -> tuple[Finding, ...]:
    """Return findings, those first that matter most.

    `sizes_bytes`: the size of each measurement, by the number that findings name it with.
    """

    def weight(one: Finding) -> tuple[int, bool, int]:
        because = verdict.because if verdict is not None else ()
        return _SEVERITIES.index(one.severity), one.code not in because, _place(one, sizes_bytes or {})

    return tuple(sorted(findings, key=weight))


def _place(one: Finding, sizes_bytes: Mapping[int, int]) -> int:
    """Return 0 for a named part and for large messages, 2 for small ones, 1 for everything else."""
    size_bytes = sizes_bytes.get(one.point) if one.point is not None else None
    if one.code in _SMALL_ALONE:
        return 2
    if one.code in _NAMES_A_PART or (size_bytes is not None and size_bytes >= LARGE_BYTES):
        return 0
    return 1 if size_bytes is None else 2


def weighed(run: Run) -> tuple[Finding, ...]:
    """Return the findings of a run by weight, without its conditions."""
    sizes = {item.point: item.size_bytes for item in run.measurements}
    return by_weight([one for one in run.findings if one.code not in _CONDITIONS], run.verdict, sizes)


def conditions_of(run: Run) -> Conditions | None:
    """Return what disturbed a run; None: nothing did."""
    order = tuple(_CONDITIONS)
    found = sorted((one for one in run.findings if one.code in _CONDITIONS), key=lambda one: order.index(one.code))
    if not found:
        return None
    gravest = min(found, key=lambda one: _SEVERITIES.index(one.severity))
    seen = ", ".join(dict.fromkeys(_condition_words(one, run) for one in found))
    fixes = [one.fix for one in sorted(found, key=lambda one: _SEVERITIES.index(one.severity)) if one.fix]
    return Conditions(
        severity=gravest.severity,
        words=f"{seen}: {'; '.join(_meaning(run, found))}",
        fix=fixes[0] if fixes else None,
        findings=tuple(found),
    )


def _condition_words(one: Finding, run: Run) -> str:
    if one.code == "RUN010" and run.outcome is not None:
        cores = run.plan.host.cores
        return f"load {run.outcome.counters_before.load_average:.1f} on {cores} core{'' if cores == 1 else 's'}"
    words = _CONDITIONS[one.code] or one.title
    # A warning is named by its code in the verdict.
    return f"{words} ({one.code})" if one.is_serious else words


def _meaning(run: Run, found: Sequence[Finding]) -> list[str]:
    """Return what the conditions mean for the numbers, by the intervals that were measured under them."""
    codes = {one.code for one in found}
    said = []
    if run.verdict.outcome == "cannot_tell" and codes & set(run.verdict.because):
        said.append("speed cannot be judged")
    if codes & _ONLY_SLOWER:
        said.append("times may read too long")
    known = [(item, share) for item in run.measurements if (share := interval_share(item)) is not None]
    right = [(item.size_bytes, share) for item, share in known if item.wrong is None]
    asked = run.plan.sampling.half_width
    if right and all(share <= asked for _, share in right):
        said.append(f"every median is known to ±{100 * asked:g} %")
    elif right:
        large = [share for size_bytes, share in right if size_bytes >= LARGE_BYTES]
        small = [share for size_bytes, share in right if size_bytes < LARGE_BYTES]
        parts = [_steady(large, "from 1 MiB on"), _steady(small, "below 1 MiB" if not large else "below")]
        said.append(f"medians known to ±{100 * _STEADY:g} %: {', '.join(part for part in parts if part)}")
    return said


def _steady(shares: Sequence[float], where: str) -> str:
    if not shares:
        return ""
    return f"{sum(share <= _STEADY for share in shares)} of {len(shares)} {where}"
