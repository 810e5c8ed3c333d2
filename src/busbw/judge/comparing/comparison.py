"""From launches to a comparison: what is shown, whether it is fair, and one sentence."""

from collections.abc import Sequence

from busbw import __version__
from busbw.base.errors import InputError
from busbw.judge.comparing.circumstances import Circumstances
from busbw.judge.comparing.estimate import FALSE_CLAIMS, LEAST_DIFFERENCE
from busbw.judge.comparing.fairness import REFUSED, differences, launch_findings
from busbw.judge.comparing.launch import Launch
from busbw.judge.comparing.sentence import verdict_of
from busbw.judge.comparing.versus import versus
from busbw.model.comparison import Comparison, Design, Side
from busbw.model.finding import Finding
from busbw.stats.signed_rank import MOST_PAIRS

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
