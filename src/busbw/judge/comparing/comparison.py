"""From launches to a comparison: what is shown, whether it is fair, and one sentence."""

import math
from collections.abc import Callable, Sequence

from busbw import __version__
from busbw.base.errors import InputError
from busbw.base.text import counted, listed, percent
from busbw.base.units import format_size
from busbw.judge.comparing.fairness import REFUSED, differences, launch_findings
from busbw.judge.comparing.launch import Circumstances, Launch
from busbw.judge.comparing.versus import FALSE_CLAIMS, LEAST_DIFFERENCE, least_blocks, point_words, versus
from busbw.model.comparison import (
    Answer,
    ComparedPoint,
    Comparison,
    ComparisonOutcome,
    ComparisonVerdict,
    Design,
    Side,
    SpeedEstimate,
    Versus,
)
from busbw.model.finding import Finding
from busbw.stats.signed_rank import MOST_PAIRS

# A difference that people look for, and blocks that somebody might still measure.
_WANTED = 0.03
_MOST_BLOCKS = 200


def verdict_of(
    sides: Sequence[Side],
    held: Sequence[Versus],
    launches: Sequence[Launch],
    findings: Sequence[Finding],
    design: Design,
) -> ComparisonVerdict:
    """Return the answer: what is faster or slower where, or why it cannot be told."""
    wrong = [each for each in findings if each.code == "CMP005"]
    because = tuple(dict.fromkeys(each.code for each in findings if each.is_serious))
    if wrong:
        named = "; ".join(each.evidence for each in wrong)
        return ComparisonVerdict(
            outcome="wrong", sentence=f"wrong results, whose speed does not matter: {named}", because=because
        )
    outcomes = [_outcome(each) for each in held]
    points = sum(len(each.points) for each in held)
    sentences = [
        _untold(sides, each, _why_not(each, launches, points, design))
        if outcome == "cannot_tell"
        else _sentence(sides, each)
        for each, outcome in zip(held, outcomes, strict=True)
    ]
    return ComparisonVerdict(outcome=_together(outcomes), sentence="; ".join(sentences), because=because)


def _outcome(held: Versus) -> ComparisonOutcome:
    claims = {point.estimate.claim for point in held.points}
    if {"faster", "slower"} <= claims:
        return "mixed"
    for claim in ("faster", "slower"):
        if claim in claims:
            return claim
    if not claims or claims == {"cannot_tell"}:
        return "cannot_tell"
    return "same" if claims == {"same"} else "none"


def _together(outcomes: Sequence[ComparisonOutcome]) -> ComparisonOutcome:
    """Return the outcome of several sides: what should be looked at first."""
    order: tuple[ComparisonOutcome, ...] = ("mixed", "slower", "faster", "none", "same", "cannot_tell")
    found = set(outcomes)
    if {"faster", "slower"} <= found:
        return "mixed"
    return next(outcome for outcome in order if outcome in found)


def _untold(sides: Sequence[Side], held: Versus, why: str) -> str:
    first, other = sides[0], sides[held.other]
    return f"cannot tell whether {other.letter} ({other.name}) differs from {first.letter} ({first.name}): {why}"


def _sentence(sides: Sequence[Side], held: Versus) -> str:
    first, other = sides[0], sides[held.other]
    name = f"{other.letter} ({other.name})"
    total = counted(len(held.points), "point")
    said = [
        f"{claim} at {_places(points)}, {_extent(points)}"
        for claim in ("faster", "slower")
        if (points := [point for point in held.points if point.estimate.claim == claim])
    ]
    counts = {claim: sum(point.estimate.claim == claim for point in held.points) for claim in ("same", "none")}
    if not said:
        alike = f", and at {counts['same']} it is within 1 %" if counts["same"] else ""
        return (
            f"no difference between {name} and {first.letter} ({first.name}) is shown at any of {total}{alike}"
            f"{_would_have(held)}"
        )
    rest = len(held.points) - sum(point.estimate.claim in ("faster", "slower") for point in held.points)
    everywhere = f", at all of {total}" if len(held.points) > 1 else ""
    untold = f"; no difference shown at {rest} of {total}" if rest else everywhere
    return f"{name} is {' and '.join(said)}{untold}"


def _places(points: Sequence[ComparedPoint]) -> str:
    if len(points) == 1:
        return f"{points[0].collective} {format_size(points[0].size_bytes)}"
    names = list(dict.fromkeys(point.collective for point in points))
    return f"{counted(len(points), 'point')} ({listed(names, 6)})"


def _extent(points: Sequence[ComparedPoint]) -> str:
    """Return how much faster or slower, as a share of the first side's speed."""
    shares = sorted(abs(point.estimate.ratio - 1) for point in points)
    if len(shares) == 1:
        return f"by {percent(shares[0])}"
    return f"by {percent(shares[0])} to {percent(shares[-1])}"


def _would_have(held: Versus) -> str:
    shown = sorted(point.estimate.detectable for point in held.points if point.estimate.detectable is not None)
    if not shown:
        return ""
    typical = shown[len(shown) // 2]
    blocks = max(len(point.estimate.blocks) for point in held.points)
    return f"; at half of them these launches would have shown {percent(typical)}{_more(typical, blocks)}"


def _more(shown: float, blocks: int) -> str:
    """Return how many blocks it would take, where that is more than there were: scatter falls with their root."""
    wanted = _WANTED - LEAST_DIFFERENCE
    needed = math.ceil(blocks * ((shown - LEAST_DIFFERENCE) / wanted) ** 2)
    if needed <= blocks:
        return ""
    if needed > _MOST_BLOCKS:
        return f"; for {100 * _WANTED:g} % this machine is too unsteady"
    return f"; {100 * _WANTED:g} % would take about {needed} blocks"


def _why_not(held: Versus, launches: Sequence[Launch], all_points: int, design: Design) -> str:
    if not held.points:
        return "they have no point in common" if design == "descriptive" else "no block has a launch of both"
    if design == "descriptive":
        return _description(held, launches)
    blocks = max(len(point.estimate.blocks) for point in held.points)
    if blocks == 1:
        return f"one launch of each, and launches differ by themselves; {_within(held, launches)}"
    points = counted(all_points, "point")
    least = least_blocks(all_points, design)
    return f"{counted(blocks, 'block')} of launches are too few to claim anything of {points}; {least} are the least"


def _description(held: Versus, launches: Sequence[Launch]) -> str:
    """Return why sides that were not interleaved allow no claim, and what was measured all the same."""
    single = all(sum(launch.side == side for launch in launches) == 1 for side in (0, held.other))
    caveat = f"; one launch of each, and {_within(held, launches)}" if single else ""
    return (
        "these are stored results, not launches in random order, and a change of the machine between them looks the "
        f"same; measured: {_gains(held)}{caveat}"
    )


def _gains(held: Versus) -> str:
    """Return from where to where the measured differences of all points reach: `gain -3.1 to +0.4 % at 12 points`."""
    gains = sorted(100 * (point.estimate.ratio - 1) for point in held.points)
    low, high = f"{gains[0]:+.1f}", f"{gains[-1]:+.1f}"
    extent = f"{low} %" if low == high else f"{low} to {high} %"
    return f"gain {extent} at {counted(len(gains), 'point')}"


def _within(held: Versus, launches: Sequence[Launch]) -> str:
    """Return at how many points the intervals within two single launches lie apart."""
    of_side = {launch.side: {point.key: point for point in launch.points} for launch in launches}
    apart = [
        point_words(key)
        for key, first in of_side.get(0, {}).items()
        if (other := of_side.get(held.other, {}).get(key)) is not None
        and first.low_s is not None
        and first.high_s is not None
        and other.low_s is not None
        and other.high_s is not None
        and (first.high_s < other.low_s or other.high_s < first.low_s)
    ]
    if not any(point.low_s is not None for launch in launches for point in launch.points):
        return "nor is it told how samples within them differ"
    if not apart:
        return "within them no interval lies apart from the other's"
    points = counted(len(held.points), "point")
    return f"the intervals within them lie apart at {len(apart)} of {points} ({listed(apart, 3)})"


_ORDER = {"error": 0, "warn": 1, "note": 2}


def check_fair(findings: Sequence[Finding]) -> None:
    """Raise InputError where sides differ in what makes their times those of different things."""
    refused = [each for each in findings if each.code in REFUSED]
    if refused:
        raise InputError(
            "this would be no fair comparison: " + "; ".join(f"{each.title} ({each.evidence})" for each in refused),
            hint="measure both the same way, or compare all the same: --anyway",
        )


def compare(
    sides: Sequence[Side],
    launches: Sequence[Launch],
    circumstances: Sequence[Circumstances],
    *,
    design: Design,
    anyway: bool = False,
    geometric_mean: bool = False,
    comparison_id: str | None = None,
    blocks_planned: int = 0,
    notes: tuple[str, ...] = (),
    claim_command: str | None = None,
) -> Comparison:
    """Return what the launches of these sides come to; `circumstances` of each side, in their order.

    `claim_command` is what would tell more of sides that were not interleaved; None: not known.

    Raises InputError for sides that are not to be compared, unless `anyway`, and where they have no point in common.
    """
    _check_count(launches)
    unlike = differences(sides, circumstances)
    if not anyway:
        check_fair(unlike)
    held = versus(sides, launches, design, geometric_mean=geometric_mean)
    _check_common(held_points=[len(each.points) for each in held], sides=sides, launches=launches)
    findings = (*unlike, *launch_findings(sides, launches, design, claim_command))
    ordered = tuple(sorted(findings, key=lambda one: _ORDER[one.severity]))
    return Comparison(
        busbw_version=__version__,
        comparison_id=comparison_id,
        design=design,
        sides=tuple(sides),
        versus=held,
        false_claims=None if design == "descriptive" else FALSE_CLAIMS,
        least_difference=LEAST_DIFFERENCE,
        blocks=max((len(point.estimate.blocks) for each in held for point in each.points), default=0),
        blocks_planned=blocks_planned,
        findings=ordered,
        notes=notes,
        verdict=verdict_of(sides, held, launches, ordered, design),
    )


def _check_count(launches: Sequence[Launch]) -> None:
    most = len({launch.block for launch in launches})
    if most > MOST_PAIRS:
        raise InputError(f"{most} launches of a side, over the limit of {MOST_PAIRS}", hint="name fewer of them")


def _check_common(*, held_points: list[int], sides: Sequence[Side], launches: Sequence[Launch]) -> None:
    """Raise InputError where stored sides have nothing in common; a measured one may not have got that far."""
    if all(side.kind == "settings" for side in sides):
        return
    for other, points in enumerate(held_points, start=1):
        if points == 0:
            raise InputError(
                f"{sides[0].name} and {sides[other].name} have no point in common: "
                f"{_points_words(launches, 0)} against {_points_words(launches, other)}",
                hint="measure the same collectives, sizes and data types",
            )


def _points_words(launches: Sequence[Launch], side: int) -> str:
    keys = {point.key for launch in launches if launch.side == side for point in launch.points}
    if not keys:
        return "nothing with a time"
    names = ", ".join(sorted({key.collective for key in keys})[:4])
    dtypes = ", ".join(sorted({key.dtype for key in keys})[:4])
    sizes = sorted({key.size_bytes for key in keys})
    return f"{names} of {dtypes}, {sizes[0]} to {sizes[-1]} bytes"


# Sets of items in, an answer for each out.
Ask = Callable[[Sequence[frozenset[int]]], Sequence[Answer]]


class Unclear(Exception):  # noqa: N818 - an answer that ends a search, and no error
    """The launches do not tell where to go on; the items that are left."""

    def __init__(self, left: frozenset[int]) -> None:
        super().__init__(f"{len(left)} left")
        self.left = left


def answer_of(estimate: SpeedEstimate, whole: SpeedEstimate) -> Answer:
    """Return whether a part makes the difference that the whole does: in its direction, and at least half of it."""
    if estimate.claim == whole.claim:
        return "shows"
    if estimate.low is None or estimate.high is None:
        return "unclear"
    half = math.sqrt(whole.ratio)
    is_less = estimate.high < half if whole.ratio > 1 else estimate.low > half
    return "absent" if is_less else "unclear"


def causes(items: Sequence[int], ask: Ask) -> tuple[frozenset[int], ...]:
    """Return the sets of items that make the difference: one by itself, or several that do so only together.

    All items together are known to make it. Raises Unclear where an answer that is needed is none.
    """
    return _causes(list(items), frozenset(), ask)


def _causes(items: list[int], held: frozenset[int], ask: Ask) -> tuple[frozenset[int], ...]:
    if len(items) == 1:
        return (frozenset(items),)
    halves = items[: len(items) // 2], items[len(items) // 2 :]
    answers = ask([held | frozenset(half) for half in halves])
    if "shows" in answers:
        # What the other half does, where that is unclear, is not needed to name a cause.
        shown = [half for half, answer in zip(halves, answers, strict=True) if answer == "shows"]
        return tuple(cause for half in shown for cause in _causes(half, held, ask))
    if "unclear" in answers:
        raise Unclear(frozenset(items))
    first = _causes(halves[0], held | frozenset(halves[1]), ask)
    second = _causes(halves[1], held | frozenset(halves[0]), ask)
    return (first[0] | second[0],)


def change(count: int, ask: Ask) -> int:
    """Return the first of `count` sides in order, counted from 0, that differs from the first one as the last one does.

    Raises Unclear where an answer that is needed is none.
    """
    same, differs = 0, count - 1
    while differs - same > 1:
        middle = (same + differs) // 2
        (answer,) = ask([frozenset((middle,))])
        if answer == "unclear":
            raise Unclear(frozenset(range(same + 1, differs + 1)))
        same, differs = (same, middle) if answer == "shows" else (middle, differs)
    return differs
