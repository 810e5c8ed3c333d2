"""Whether a result may be held against a baseline, and what to know of it."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.base.text import counted, listed
from busbw.judge.comparing.fairness import REFUSED, differences
from busbw.judge.comparing.launch import Circumstances
from busbw.judge.gates.deciding import GatedPoints
from busbw.model.comparison import Side
from busbw.model.finding import Verdict
from busbw.model.gates import PointRow, is_missing, point_name, same_point

# Of differences that are refused the one that explains others: programs have modes of their own.
_PROGRAMS = "CMP003"
_RANKS = "CMP002"
_HINT = "measure both the same way, or hold the result against numbers: --at-least 'all_reduce@1G=380GB/s'"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredPoints:
    """A result or a baseline: its points, how they were measured, and on what. (), 0 and None: not known."""

    held: GatedPoints
    circumstances: Circumstances
    # Names of the GPUs, or of the processors where there are none.
    devices: tuple[str, ...] = ()
    hosts: int = 0
    platform: str | None = None
    # Of a run.
    verdict: Verdict | None = None


def agreed(circumstances: Sequence[Circumstances], rows: Sequence[PointRow]) -> Circumstances:
    """Return in what all tables of an import were measured alike; ranks are those of its points."""
    first, *others = circumstances or ({},)
    alike = {code: words for code, words in first.items() if all(other.get(code) == words for other in others)}
    alike.pop(_RANKS, None)
    ranks = {row.ranks for row in rows}
    number = ranks.pop() if len(ranks) == 1 else None
    return alike if number is None else alike | {_RANKS: counted(number, "rank")}


def notes_on(baseline: MeasuredPoints, result: MeasuredPoints) -> tuple[str, ...]:
    """Return what to know of a baseline that a result is held against.

    Raises InputError where they are not of the same thing: other machines, numbers of ranks, modes, programs,
    statistics; or not a point in common.
    """
    for what, words in _other_machine(baseline, result):
        raise _not_comparable(what, words)
    sides = tuple(Side(letter=name, name=name, kind="import", launches=()) for name in ("baseline", "result"))
    found = differences(sides, (baseline.circumstances, result.circumstances))
    for each in sorted((each for each in found if each.code in REFUSED), key=lambda each: each.code != _PROGRAMS):
        raise _not_comparable(each.title, each.evidence)
    common = _keys(baseline.held) & _keys(result.held)
    if not common:
        raise _not_comparable(
            "no point in common", f"baseline: {_points(baseline.held)}; result: {_points(result.held)}"
        )
    return (*_judged(baseline), *(f"{each.title}: {each.evidence}" for each in found))


def _not_comparable(what: str, words: str) -> InputError:
    return InputError(f"the baseline is not comparable: {what}: {words}", hint=_HINT)


def _other_machine(baseline: MeasuredPoints, result: MeasuredPoints) -> Iterator[tuple[str, str]]:
    """Yield in what two machines differ, where both are known."""
    pairs: Mapping[str, tuple[str, str]] = {
        "measured on different devices": (_named(baseline.devices), _named(result.devices)),
        "measured on different platforms": (baseline.platform or "", result.platform or ""),
        "measured over different numbers of hosts": tuple(
            counted(each.hosts, "host") if each.hosts else "" for each in (baseline, result)
        ),  # type: ignore[dict-item]
    }
    for what, (before, now) in pairs.items():
        if before and now and before != now:
            yield what, f"baseline: {before}; result: {now}"


def _named(devices: Iterable[str]) -> str:
    return listed(sorted(set(devices)))


def _keys(held: GatedPoints) -> set[object]:
    return {same_point(row) for row in held.rows if not is_missing(row)}


def _points(held: GatedPoints) -> str:
    """Return which points there are, the first in words."""
    measured = [row for row in held.rows if not is_missing(row)]
    if not measured:
        return "nothing was measured"
    return listed((f"{row.collective} {point_name(row)}" for row in measured), 1)


def _judged(baseline: MeasuredPoints) -> tuple[str, ...]:
    verdict = baseline.verdict
    if verdict is None or verdict.outcome not in ("slow", "wrong", "failed"):
        return ()
    return (f"it was itself judged {verdict.outcome}: busbw judge {shlex.quote(baseline.held.name)}",)
