"""Finds what made a difference: comparison after comparison, each about half of what is left."""

import datetime as dt
import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from busbw import __version__
from busbw.api.interleave import AskedSide, ComparisonTerms, Follower, go_on, plan_comparison, start
from busbw.base.errors import RunError
from busbw.base.text import counted, percent
from busbw.base.units import format_size
from busbw.judge.comparing.comparison import Unclear, answer_of, causes, change
from busbw.measure.plan.request import run_words
from busbw.model.comparison import (
    Answer,
    Bisection,
    BisectionPlan,
    BisectionStep,
    Cause,
    ComparedPoint,
    Comparison,
    ComparisonPlan,
    SpeedEstimate,
)
from busbw.store import bisections, comparisons

# Of each question, where the difference as a whole is surely this large; smaller ones take as many as the two ends.
_FEWER_BLOCKS = 12
_LARGE = 1.1
Follow = Callable[[ComparisonPlan, Path], AbstractContextManager[Follower]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """What is searched. `side` makes a side of the items that are as the bad end has them."""

    good: str
    bad: str
    items: tuple[str, ...]
    # Whether the items are sides in an order, of which each has all that those before it have.
    in_order: bool
    side: Callable[[frozenset[int]], AskedSide]


@dataclass(slots=True)
class _Asking:
    """The questions asked so far."""

    search: Search
    terms: ComparisonTerms
    where: Path
    follow: Follow
    point: ComparedPoint
    steps: list[BisectionStep] = field(default_factory=list)

    def ask(self, sets: Sequence[frozenset[int]]) -> Sequence[Answer]:
        """Return an answer for each set of items, from one comparison of all of them with the good side."""
        sides = [_at(self.search.side(items), self.point) for items in (frozenset[int](), *sets)]
        folder = f"step-{len({step.folder for step in self.steps}) + 1:02d}"
        found = _compared(sides, self.terms, self.where / folder, self.follow)
        answers: list[Answer] = []
        for items, versus in zip(sets, found.versus, strict=True):
            if not versus.points:
                answers.append("unclear")
                continue
            estimate = versus.points[0].estimate
            answers.append(answer_of(estimate, self.point.estimate))
            self.steps.append(
                BisectionStep(folder=folder, items=tuple(sorted(items)), estimate=estimate, answer=answers[-1])
            )
        return answers


def bisect(search: Search, terms: ComparisonTerms, directory: Path | None, base: Path, follow: Follow) -> Bisection:
    """Return which of the items made the difference, measured in a folder of its own.

    In a folder that holds the same bisection already, what was measured is taken as it is. `terms` are those of the
    first comparison, of both ends.

    Raises InputError for what cannot be measured, RunError when a side does not run.
    """
    first, last = search.side(frozenset()), search.side(frozenset(range(len(search.items))))
    token = f"{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S}-bisect-{run_words(first.request)}-{secrets.token_hex(2)}"
    where = (directory if directory is not None else base / token).absolute()
    plan = _plan(search, terms, where, first)
    terms = ComparisonTerms(blocks=terms.blocks, budget_s=terms.budget_s, seed=plan.seed, anyway=terms.anyway)
    bisections.create(where, plan)
    whole = _compared([first, last], terms, where / bisections.ENDS, follow)
    point = _strongest(whole)
    if point is None:
        return _stored(where, _nothing(plan, whole))
    asking = _Asking(search, _of_step(terms, point), where, follow, point)
    try:
        found = _searched(search, asking)
    except Unclear as unclear:
        return _stored(where, _unclear(plan, asking, unclear.left))
    return _stored(where, _found(plan, asking, found))


def _searched(search: Search, asking: _Asking) -> tuple[frozenset[int], ...]:
    if search.in_order:
        return (frozenset((change(len(search.items), asking.ask),)),)
    return causes(range(len(search.items)), asking.ask)


def _plan(search: Search, terms: ComparisonTerms, where: Path, first: AskedSide) -> BisectionPlan:
    seed = terms.seed if terms.seed is not None else secrets.randbits(32)
    if terms.seed is None and bisections.is_begun(where):
        seed = bisections.read_plan(where).seed
    return BisectionPlan(
        busbw_version=__version__,
        good=search.good,
        bad=search.bad,
        items=search.items,
        in_order=search.in_order,
        collectives=first.request.collectives,
        blocks=terms.blocks,
        seed=seed,
    )


def _of_step(terms: ComparisonTerms, point: ComparedPoint) -> ComparisonTerms:
    blocks = min(terms.blocks, _FEWER_BLOCKS) if _sureness(point.estimate) >= _LARGE else terms.blocks
    return ComparisonTerms(blocks=blocks, budget_s=terms.budget_s, seed=terms.seed, anyway=terms.anyway)


def _compared(sides: Sequence[AskedSide], terms: ComparisonTerms, where: Path, follow: Follow) -> Comparison:
    """Return a comparison measured in `where`, going on with one that lies there. Raises RunError if stopped."""
    if comparisons.is_comparison(where):
        plan = comparisons.read_plan(where)
        with follow(plan, where) as follower:
            found = go_on(where, follower)
    else:
        plan, launches, _where = plan_comparison(sides, terms, where, where.parent)
        with follow(plan, where) as follower:
            found = start(plan, launches, where, follower)
    if found.blocks == 0:
        raise RunError(
            "stopped before anything was compared",
            where=str(where),
            hint=f"give the same command again, with --out {where.parent}",
        )
    return found


def _at(asked: AskedSide, point: ComparedPoint) -> AskedSide:
    """Return a side that measures this one point alone."""
    request = msgspec.structs.replace(
        asked.request,
        collectives=(point.collective,),
        suite=None,
        smallest_bytes=point.size_bytes,
        largest_bytes=point.size_bytes,
        factor=None,
        step_bytes=None,
        dtype=point.dtype,
        op=point.op,
        placement="in" if point.in_place else "out",
    )
    return AskedSide(
        name=asked.name,
        environment=asked.environment,
        unset=asked.unset,
        options=asked.options,
        request=request,
    )


def _strongest(whole: Comparison) -> ComparedPoint | None:
    """Return the point whose difference is surest: the end of its interval lies farthest from none at all."""
    shown = [point for point in whole.versus[0].points if point.estimate.claim in ("faster", "slower")]
    return max(shown, key=lambda point: _sureness(point.estimate), default=None)


def _sureness(estimate: SpeedEstimate) -> float:
    low, high = estimate.low or 0.0, estimate.high or 0.0
    return low if estimate.claim == "faster" else 1 / high if high > 0 else 0.0


def _stored(where: Path, found: Bisection) -> Bisection:
    bisections.write(where, found)
    return found


def _nothing(plan: BisectionPlan, whole: Comparison) -> Bisection:
    is_told = whole.verdict.outcome in ("none", "same")
    return Bisection(
        plan=plan,
        point=None,
        whole=None,
        steps=(),
        causes=(),
        outcome="none" if is_told else "cannot_tell",
        sentence=f"there is nothing to find: {whole.verdict.sentence}",
    )


def _unclear(plan: BisectionPlan, asking: _Asking, left: frozenset[int]) -> Bisection:
    names = ", ".join(plan.items[item] for item in sorted(left))
    few = min((len(step.estimate.blocks) for step in asking.steps), default=asking.terms.blocks)
    why = f" ({few} of {asking.terms.blocks} blocks, give it more --budget)" if few < asking.terms.blocks else ""
    untold = f"it is one or more of {len(left)}, and these launches do not tell which{why}: {names}"
    return Bisection(
        plan=plan,
        point=_point_words(asking.point),
        whole=asking.point.estimate,
        steps=tuple(asking.steps),
        causes=(),
        outcome="cannot_tell",
        sentence=f"{_whole_words(plan, asking.point)}; {untold}",
    )


def _found(plan: BisectionPlan, asking: _Asking, found: Sequence[frozenset[int]]) -> Bisection:
    names = [" and ".join(plan.items[item] for item in sorted(cause)) for cause in found]
    if plan.in_order:
        before = plan.items[min(found[0]) - 1]
        said = f"the change came with {names[0]}; {before} is still as the first one"
    elif len(found) == 1:
        said = f"{names[0]} together do it; neither half does alone" if len(found[0]) > 1 else f"{names[0]} does it"
    else:
        said = f"each of {counted(len(found), 'difference')} does it by itself: {'; '.join(names)}"
    return Bisection(
        plan=plan,
        point=_point_words(asking.point),
        whole=asking.point.estimate,
        steps=tuple(asking.steps),
        causes=tuple(Cause(items=tuple(sorted(cause))) for cause in found),
        outcome="found",
        sentence=f"{_whole_words(plan, asking.point)}; {said}{_others(plan, asking, found)}",
    )


def _others(plan: BisectionPlan, asking: _Asking, found: Sequence[frozenset[int]]) -> str:
    """Return what these launches leave open of differences that are not among the causes."""
    open_items = {item for step in asking.steps if step.answer == "unclear" for item in step.items}
    left = sorted(open_items.difference(*found))
    if not left or plan.in_order:
        return ""
    return f"; whether {' or '.join(plan.items[item] for item in left)} does it too, they do not tell"


def _point_words(point: ComparedPoint) -> str:
    return f"{point.collective}{' in place' if point.in_place else ''} {format_size(point.size_bytes)}"


def _whole_words(plan: BisectionPlan, point: ComparedPoint) -> str:
    much = percent(abs(point.estimate.ratio - 1))
    ends = ("the last", "the first") if plan.in_order else ("bad", "good")
    return f"{ends[0]} is {much} {point.estimate.claim} than {ends[1]} at {_point_words(point)}"
